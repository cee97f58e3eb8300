package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"aldis/internal/jxta"
)

const (
	maxHead  = 16 << 10 // octets of a request's or response's head
	maxLine  = 1024     // octets of a chunk's length line
	maxField = 1 << 20  // octets of one part of a trailer
)

var headEnd = []byte("\r\n\r\n")

// head reads a request's or response's head (RFC 9112).
func (d *dialog) head(side int, s *stream, b []byte) (int, bool) {
	end := bytes.Index(b[:min(len(b), maxHead)], headEnd)
	if end < 0 {
		if len(b) < maxHead {
			return 0, false
		}
		return d.pass(s, "an HTTP head of more than 16 KiB", nil)
	}
	first, fields, _ := strings.Cut(string(b[:end]), "\r\n")
	end += len(headEnd)
	words := strings.Fields(first)
	answer := strings.HasPrefix(first, "HTTP/1.")
	if len(words) < 2 || !answer && (len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/")) {
		return d.pass(s, "an HTTP head that cannot be read", nil)
	}
	d.a.read.http += int64(end)
	s.left, s.chunked, s.jxta, s.body = 0, false, false, bodyReader{}
	if answer {
		s.left = -1
		if len(words[1]) == 3 && (words[1][0] == '1' || words[1] == "204" || words[1] == "304") {
			s.left = 0
		}
	} else {
		d.a.request(d, side, s, words[0], words[1])
	}
	bodyless := answer && s.left == 0
	for line := range strings.SplitSeq(fields, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 && !bodyless && !s.chunked {
				s.left = n
			}
		case "transfer-encoding":
			if strings.EqualFold(value, "chunked") && !bodyless {
				s.chunked = true
			}
		case "content-type":
			base, _, _ := strings.Cut(value, ";")
			s.jxta = strings.EqualFold(strings.TrimSpace(base), jxta.MessageType)
		}
	}
	switch {
	case s.chunked:
		s.state = atChunk
	case s.left == 0:
		s.state = atHead
	default:
		s.state = atBody
	}
	return end, true
}

// inBody uses octets of a body, or of a chunk of it.
func (d *dialog) inBody(side int, s *stream, b []byte) (int, bool) {
	n := len(b)
	if s.left >= 0 {
		n = int(min(int64(n), s.left))
		s.left -= int64(n)
	}
	if !s.jxta && len(b) >= len(markMessage) && bytes.Equal(b[:len(markMessage)], markMessage) {
		s.jxta = true // 2.2 does not always declare it
	}
	if s.jxta {
		d.bodyData(side, s, b[:n], s.left == 0 && !s.chunked)
	} else {
		d.a.read.http += int64(n)
	}
	if s.left != 0 {
		return n, n < len(b)
	}
	if s.chunked {
		s.state = atChunkEnd
	} else {
		d.endBody(side, s)
		s.state = atHead
	}
	return n, true
}

// line reads the lines around chunks.
func (d *dialog) line(side int, s *stream, b []byte) (int, bool) {
	end := bytes.IndexByte(b[:min(len(b), maxLine)], '\n')
	if end < 0 {
		if len(b) < maxLine {
			return 0, false
		}
		return d.badChunk(side, s)
	}
	line := bytes.TrimRight(b[:end], "\r")
	end++
	d.a.read.http += int64(end)
	switch s.state {
	case atChunkEnd:
		if len(line) != 0 {
			d.a.read.http -= int64(end)
			return d.badChunk(side, s)
		}
		s.state = atChunk
	case atChunk:
		n, ok := parseHex(bytes.TrimSpace(line))
		switch {
		case !ok:
			d.a.read.http -= int64(end)
			return d.badChunk(side, s)
		case n == 0:
			s.state = atTrailer
		default:
			s.state, s.left = atBody, n
		}
	case atTrailer:
		if len(line) == 0 {
			d.endBody(side, s)
			s.state = atHead
		}
	}
	return end, true
}

func (d *dialog) badChunk(side int, s *stream) (int, bool) {
	d.a.damaged("a chunk without length", s.number, nil)
	d.endBody(side, s)
	s.chunked, s.state = false, atScan
	return 0, true
}

// messageLength returns the length of the message with which b starts, as far as b shows it: it takes need octets to tell more; when need
// is n the length is final. ok is false when it is no message.
func messageLength(b []byte) (n, need int, ok bool) {
	if i := min(len(b), 4); string(b[:i]) != "jxmg"[:i] {
		return 0, 0, false
	}
	if len(b) < 9 {
		return 0, 9, true
	}
	if b[4] != 0 {
		return otherVersion(b)
	}
	at := 7
	for range binary.BigEndian.Uint16(b[5:]) {
		if len(b) < at+2 {
			return 0, at + 2, true
		}
		at += 2 + int(binary.BigEndian.Uint16(b[at:]))
		if at > maxHead {
			return 0, 0, false
		}
	}
	if len(b) < at+2 {
		return 0, at + 2, true
	}
	count := int(binary.BigEndian.Uint16(b[at:]))
	if count > jxta.DefaultLimits.Elements {
		return 0, 0, false
	}
	at += 2
	for extra := 0; count > 0; count-- {
		if len(b) < at+8 {
			return 0, at + 8, true
		}
		if string(b[at:at+4]) != "jxel" {
			return 0, 0, false
		}
		flags := b[at+5]
		at += 6
		texts := 1
		for _, f := range []byte{1, 2} { // type, encoding
			if flags&f != 0 {
				texts++
			}
		}
		for range texts {
			if len(b) < at+2 {
				return 0, at + 2, true
			}
			at += 2 + int(binary.BigEndian.Uint16(b[at:]))
		}
		if len(b) < at+4 {
			return 0, at + 4, true
		}
		size := binary.BigEndian.Uint32(b[at:])
		at += 4
		if int64(at)+int64(size) > maxBody {
			return 0, 0, false
		}
		at += int(size)
		if flags&4 != 0 { // its signature element follows
			extra++
			if extra > jxta.DefaultLimits.Elements {
				return 0, 0, false
			}
			count++
		}
	}
	return at, at, true
}

// otherVersion tries to read a message of wire version 1, although none has been seen over HTTP.
func otherVersion(b []byte) (n, need int, ok bool) {
	_, rest, err := jxta.ParseMessage(b, jxta.DefaultLimits)
	switch {
	case err == nil:
		n = len(b) - len(rest)
		return n, n, true
	case errors.Is(err, jxta.ErrShort) && len(b) < 1<<20:
		return 0, len(b) + len(b)/4 + 1, true
	}
	return 0, 0, false
}

// trailerLength returns the length of the CBJX trailer with which b starts (wire 2.5); see messageLength.
func trailerLength(b []byte) (n, need int, ok bool) {
	at := 0
	for range 3 {
		if len(b) < at+4 {
			return 0, at + 4, true
		}
		size := binary.BigEndian.Uint32(b[at:])
		if size > maxField {
			return 0, 0, false
		}
		at += 4 + int(size)
	}
	return at, at, true
}
