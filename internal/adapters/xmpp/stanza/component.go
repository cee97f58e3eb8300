package stanza

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
)

// Handshake is the component's side of one connection to a server (XEP-0114 version 1.6). The zero value with Domain and
// Secret begins a connection.
type Handshake struct {
	Domain, Secret string
	split          Splitter
	asked, ready   bool
}

// ErrRefused says that the server does not accept the component; the text behind it is the server's reason.
var ErrRefused = errors.New("xmpp: the server refuses the component")

// Hello is the head of the stream, which the component sends first.
func (h *Handshake) Hello() []byte {
	e := New(Component, "stream:stream", "xmlns:stream", Streams, "to", h.Domain)
	open := e.Append([]byte("<?xml version='1.0'?>"), "")
	return append(open[:len(open)-2], '>')
}

// Ready says whether the server has accepted the component: from then on Feed gives stanzas to do.
func (h *Handshake) Ready() bool { return h.ready }

// Open says whether the server owes an answer, or the end of a stanza.
func (h *Handshake) Open() bool { return !h.ready || h.split.Open() }

// Feed takes octets of the server, gives stanzas to do like a Splitter, and returns the octets to be sent. After an error
// the connection is useless.
func (h *Handshake) Feed(b []byte, do func(e *Element, fault *Fault)) (reply []byte, err error) {
	var refused error
	err = h.split.Feed(b, func(e *Element, f *Fault) {
		switch {
		case refused != nil:
		case e != nil && e.Space == Streams && e.Name == "stream":
			sum := sha1.Sum([]byte(e.Get("id") + h.Secret))
			reply = fmt.Appendf(reply, "<handshake>%s</handshake>", hex.EncodeToString(sum[:]))
			h.asked = true
		case e != nil && e.Space == Streams && e.Name == "error":
			refused = fmt.Errorf("%w: %s", ErrRefused, ReasonOf(e))
		case h.ready:
			do(e, f)
		case e != nil && h.asked && e.Space == Component && e.Name == "handshake":
			h.ready = true
		}
	})
	if refused != nil {
		err = refused
	}
	return reply, err
}

// ReasonOf is the condition and the text of a stream's error, or of a failure.
func ReasonOf(e *Element) (reason string) {
	for i := range e.Kids {
		switch k := &e.Kids[i]; {
		case k.Name == "text":
			reason += ": " + k.Inside()
		case k.Name != "":
			reason = k.Name + reason
		}
	}
	return reason
}
