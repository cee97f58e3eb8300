package cot

import (
	"bytes"
	"encoding/binary"
)

// mark begins a message of version 1, on streams and in datagrams.
const mark = 0xBF

var (
	end     = []byte("</event>")
	endAuth = []byte("</auth>")
)

// isAuth says whether XML is the login that a device with a name and a password sends first (<auth>), not an event. A header
// that is longer than 256 octets is not looked through.
func isAuth(b []byte) bool {
	b = bytes.TrimLeft(b[:min(len(b), 256)], " \t\r\n")
	if bytes.HasPrefix(b, []byte("<?")) {
		at := bytes.Index(b, []byte("?>"))
		if at < 0 {
			return false
		}
		b = bytes.TrimLeft(b[at+2:], " \t\r\n")
	}
	rest, ok := bytes.CutPrefix(b, []byte("<auth"))
	return ok && len(rest) > 0 && (rest[0] <= ' ' || rest[0] == '>')
}

// Splitter cuts a stream into events: XML up to </event>, or version 1 after its mark and length. It holds at most MaxEvent
// octets of an incomplete event.
type Splitter struct {
	buf  []byte
	seen int // octets searched, with no end in them
}

// Open says whether an incomplete event is held.
func (s *Splitter) Open() bool { return len(s.buf) > 0 }

// Feed takes octets of the stream and calls do with each whole event and its framing; do must not keep them. After a Fault the
// stream cannot be read any more.
func (s *Splitter) Feed(b []byte, do func(frame []byte)) error {
	s.buf = append(s.buf, b...)
	at := 0
	defer func() { s.buf = append(s.buf[:0], s.buf[at:]...) }()
	for {
		for at < len(s.buf) && s.buf[at] <= ' ' {
			at++
		}
		rest := s.buf[at:]
		if len(rest) == 0 {
			return nil
		}
		size, err := s.frame(rest)
		if err != nil {
			return err
		}
		if size == 0 {
			if len(rest) > MaxEvent {
				return fault(TooLong, "an event that does not end within %d octets", MaxEvent)
			}
			return nil
		}
		do(rest[:size])
		at += size
		s.seen = 0
	}
}

// frame is the length of the first event; 0: it is not complete.
func (s *Splitter) frame(b []byte) (int, error) {
	switch b[0] {
	case mark:
		size, n := binary.Uvarint(b[1:])
		switch {
		case n < 0 || size > MaxEvent:
			return 0, fault(TooLong, "a message of version 1 with a length of more than %d", MaxEvent)
		case n == 0 || len(b) < 1+n+int(size):
			return 0, nil
		}
		return 1 + n + int(size), nil
	case '<':
		end := end
		if isAuth(b) {
			end = endAuth
		}
		from := max(0, min(s.seen, len(b))-len(end))
		if i := bytes.Index(b[from:], end); i >= 0 {
			return from + i + len(end), nil
		}
		s.seen = len(b)
		return 0, nil
	}
	return 0, fault(Syntax, "a stream that begins an event with octet %#x", b[0])
}

// ParseFrame reads a frame from a Splitter: an event, a Control, or both; neither if the frame is the login of a
// device.
func ParseFrame(b []byte) (*Event, *Control, error) {
	if len(b) > 0 && b[0] == mark {
		_, n := binary.Uvarint(b[1:])
		return ParseProto(b[1+max(0, n):])
	}
	if isAuth(b) {
		return nil, nil, nil
	}
	e, err := ParseXML(b)
	return e, nil, err
}

// Meshed says whether b begins like version 1 on the mesh, where an event ends with the datagram or connection.
func Meshed(b []byte) bool { return len(b) > 2 && b[0] == mark && b[1] == 1 && b[2] == mark }

// ParseDirect reads an event that a device sent over a TCP connection made for it alone, in the form of a stream or of a datagram.
func ParseDirect(b []byte) (*Event, *Control, error) {
	if Meshed(b) {
		return ParseDatagram(b)
	}
	return ParseFrame(b)
}

// AppendFrame appends the event as version 1 in the form of streams.
func (e *Event) AppendFrame(dst []byte) []byte {
	body := e.AppendProto(nil, nil)
	dst = binary.AppendUvarint(append(dst, mark), uint64(len(body)))
	return append(dst, body...)
}

// ParseDatagram reads a datagram of the mesh: XML, or version 1 behind mark, version, mark.
func ParseDatagram(b []byte) (*Event, *Control, error) {
	if len(b) > 2 && b[0] == mark {
		version, n := binary.Uvarint(b[1:])
		if n <= 0 || version != 1 || 1+n >= len(b) || b[1+n] != mark {
			return nil, nil, fault(Syntax, "a datagram of a version that is not 1")
		}
		return ParseProto(b[2+n:])
	}
	e, err := ParseXML(b)
	return e, nil, err
}

// AppendDatagram appends the event as version 1 in the form of the mesh.
func (e *Event) AppendDatagram(dst []byte, c *Control) []byte {
	return e.AppendProto(append(dst, mark, 1, mark), c)
}
