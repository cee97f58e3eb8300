package lan

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// If two readers of one connection understand a head differently, it can smuggle a request past the first. net/http is lenient
// where RFC 9112 allows it; JXTA peers need no leniency, so each head is checked before net/http sees it.
var (
	errBareLF   = errors.New("a line does not end with CR LF (RFC 9112, 2.2)")
	errFold     = errors.New("a header line is folded (RFC 9112, 5.2)")
	errLengths  = errors.New("more than one Content-Length, or one that is no number (RFC 9112, 6.3)")
	errTwoWays  = errors.New("both Content-Length and Transfer-Encoding (RFC 9112, 6.1)")
	errLongHead = errors.New("a head without an end")
)

// maxHead is more than net/http reads of a head, so that net/http itself refuses a long one.
const maxHead = maxRequestHead + 8<<10

// heads follows the octets of one HTTP connection: the heads, and the length of each body between them.
type heads struct {
	line    []byte // of a head, without its line feed
	begun   bool   // the request line has come
	octets  int    // of this head
	length  int64  // Content-Length; -1: none yet
	coded   bool   // Transfer-Encoding
	body    int64  // octets of a body still to come
	unknown bool   // a body of unknown length follows: no request is accepted after it
}

// read checks octets as they come.
func (h *heads) read(b []byte) error {
	for len(b) > 0 && !h.unknown {
		if h.body > 0 {
			n := min(h.body, int64(len(b)))
			h.body -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part = b[:end]
		}
		h.octets += len(part) + 1
		if h.octets > maxHead {
			return errLongHead
		}
		h.line = append(h.line, part...)
		if end < 0 {
			return nil
		}
		b = b[end+1:]
		if err := h.complete(); err != nil {
			return err
		}
	}
	return nil
}

// complete takes a line that has come in full.
func (h *heads) complete() error {
	line, crlf := bytes.CutSuffix(h.line, []byte{'\r'})
	h.line = h.line[:0]
	switch {
	case !crlf, bytes.IndexByte(line, '\r') >= 0:
		return errBareLF
	case len(line) == 0 && !h.begun: // an empty line before a request, as old clients send behind a POST
		h.octets = 0
		return nil
	case len(line) == 0:
		return h.end()
	case line[0] == ' ' || line[0] == '\t':
		return errFold
	case !h.begun:
		h.begun, h.length = true, -1
		return nil
	}
	name, value, _ := strings.Cut(string(line), ":")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "content-length":
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 || h.length >= 0 {
			return errLengths
		}
		h.length = n
	case "transfer-encoding":
		h.coded = true
	}
	return nil
}

// end completes a head.
func (h *heads) end() error {
	if h.coded && h.length >= 0 {
		return errTwoWays
	}
	h.unknown = h.coded
	h.body = max(h.length, 0)
	h.begun, h.octets, h.coded = false, 0, false
	return nil
}
