package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/xdg-go/scram"

	"aldis/internal/adapters/xmpp/stanza"
)

// Namespaces before a login.
const (
	nsTLS     = "urn:ietf:params:xml:ns:xmpp-tls"
	nsSASL    = "urn:ietf:params:xml:ns:xmpp-sasl"
	nsCB      = "urn:xmpp:sasl-cb:0"                  // XEP-0440
	nsStreams = "urn:ietf:params:xml:ns:xmpp-streams" // RFC 6120, 4.9.3
	nsFraming = "urn:ietf:params:xml:ns:xmpp-framing" // RFC 7395
	plus      = "-PLUS"
	mechanism = "SCRAM-SHA-256"
	binds     = "tls-exporter" // RFC 9266

	maxStranger = 16 << 10 // octets of a stanza before the login
	maxTries    = 3        // on one connection
)

// Errors of Login.Feed. After each of them the connection is useless.
var (
	ErrStranger = errors.New("xmpp: a client has said something before its login")
	ErrLogin    = errors.New("xmpp: a login with a wrong name or password")
)

// Host is the configuration that all Logins of a server share.
type Host struct {
	Domain string
	Users  func(name string) (Keys, bool)
	Secret []byte        // of the process: strangers see keys made from it for users that do not exist
	Fresh  func() []byte // 16 octets that nobody can guess
}

// Login is the server's side of one connection up to the login. After that it cuts the stream into stanzas.
type Login struct {
	*Host
	Framed  bool   // over WebSocket (RFC 7395): Feed gets whole messages
	Secure  bool   // over TLS
	Binding []byte // the tls-exporter value of this connection; nil: none

	split    stanza.Splitter
	fresh    bool // the next octets begin a stream
	conv     *scram.ServerConversation
	user     string // the user that the client has proved to be
	ready    bool   // a stream has begun after the login
	wantsTLS bool
	tries    int
	ended    bool
}

// User is the user who has logged in and begun a stream; "": nobody.
func (l *Login) User() string {
	if l.ready {
		return l.user
	}
	return ""
}

// WantsTLS says whether TLS is to begin after the reply of Feed is written; then the caller calls Secured.
func (l *Login) WantsTLS() bool { return l.wantsTLS }

// Secured takes in that TLS has begun. Everything before it is void.
func (l *Login) Secured(binding []byte) {
	l.Secure, l.Binding, l.wantsTLS = true, binding, false
	l.restart()
}

// Tries is how often a login has failed.
func (l *Login) Tries() int { return l.tries }

// Open says whether the client owes the end of a stanza, or its login.
func (l *Login) Open() bool { return !l.ready || l.split.Open() }

// Ended says whether the client has closed its stream.
func (l *Login) Ended() bool { return l.ended }

func (l *Login) restart() {
	l.split = stanza.Splitter{Most: maxStranger}
	if l.user != "" {
		l.split.Most = MaxStanza
	}
	l.fresh = true
}

// framedHeader replaces the stream's head, which WebSocket does not have.
const framedHeader = "<stream:stream xmlns='" + stanza.Component + "' xmlns:stream='" + stanza.Streams + "'>"

// Feed takes octets of the client, gives stanzas of a user who has logged in to do like a Splitter, and returns the elements to
// be sent, also with an error: each element alone.
func (l *Login) Feed(b []byte, do func(e *stanza.Element, fault *stanza.Fault)) (reply [][]byte, err error) {
	if l.split.Most == 0 {
		l.restart()
	}
	seen := 0
	if l.Framed { // each message is one element
		l.split = stanza.Splitter{Most: l.split.Most}
		b = append([]byte(framedHeader), b...)
	}
	var failed error
	err = l.split.Feed(b, func(e *stanza.Element, f *stanza.Fault) {
		seen++
		switch {
		case failed != nil || l.wantsTLS || l.ended: // everything after this was sent too early
		case l.Framed && seen == 1: // framedHeader
		case l.Framed && seen > 2:
			failed = &stanza.Fault{Reason: stanza.Syntax, Text: "more than one element in a message"}
		case l.ready && (e == nil || e.Space != stanza.Streams && e.Space != nsFraming):
			do(e, f)
		case f != nil:
			failed = f
		default:
			var said [][]byte
			said, failed = l.take(e)
			reply = append(reply, said...)
		}
	})
	if l.Framed && err == nil && failed == nil && (seen < 2 || l.split.Open()) {
		err = &stanza.Fault{Reason: stanza.Syntax, Text: "a message that is no element"}
	}
	if failed != nil {
		err = failed
	}
	if errors.Is(err, stanza.ErrEnded) {
		l.ended = true
	}
	if f := (*stanza.Fault)(nil); errors.As(err, &f) {
		reply = append(reply, StreamError(conditions[f.Reason], ""))
	}
	return reply, err
}

var conditions = map[stanza.Reason]string{stanza.Syntax: "not-well-formed", stanza.TooLong: "policy-violation", stanza.TooDeep: "policy-violation",
	stanza.Doctype: "restricted-xml", stanza.Letters: "not-well-formed"}

// take takes an element that is part of the stream, or of a login.
func (l *Login) take(e *stanza.Element) (reply [][]byte, err error) {
	stream := e.Space == stanza.Streams && e.Name == "stream" || l.Framed && e.Space == nsFraming && e.Name == "open"
	switch {
	case stream && l.fresh:
		return l.open(e)
	case l.Framed && e.Space == nsFraming && e.Name == "close":
		l.ended = true
		return nil, stanza.ErrEnded
	case l.user == "" && !l.fresh && e.Space == nsTLS && e.Name == "starttls" && !l.Secure && !l.Framed:
		l.wantsTLS = true
		return one("<proceed xmlns='" + nsTLS + "'/>"), nil
	case l.user == "" && !l.fresh && e.Space == nsSASL && l.Secure:
		return l.sasl(e)
	}
	return [][]byte{StreamError("not-authorized", "")}, ErrStranger
}

func one(text string) [][]byte { return [][]byte{[]byte(text)} }

// open begins a stream, and answers with its features.
func (l *Login) open(e *stanza.Element) (reply [][]byte, err error) {
	id := fmt.Sprintf("%x", l.Fresh())
	if l.Framed {
		o := stanza.New(nsFraming, "open", "from", l.Domain, "id", id, "version", "1.0", "xml:lang", "en")
		reply = append(reply, o.Append(nil, ""))
	} else {
		reply = append(reply, header(stanza.Client, l.Domain, "", id))
	}
	if _, to, _, ok := stanza.CutAddress(e.Get("to")); e.Get("to") != "" && (!ok || to != l.Domain) {
		return append(reply, StreamError("host-unknown", "")), ErrStranger
	}
	l.fresh = false
	features := stanza.New(ns, "stream:features")
	switch {
	case l.user != "":
		l.ready = true
		features = features.With(stanza.New(nsBind, "bind"), stanza.New(nsSession, "session").With(stanza.New(nsSession, "optional")), stanza.New(nsSM, "sm"))
	case !l.Secure:
		features = features.With(stanza.New(nsTLS, "starttls").With(stanza.New(nsTLS, "required")))
	default:
		list := stanza.New(nsSASL, "mechanisms")
		if l.Binding != nil {
			list = list.With(stanza.New(nsSASL, "mechanism").Says(mechanism + plus))
			features = features.With(stanza.New(nsCB, "sasl-channel-binding").With(stanza.New(nsCB, "channel-binding", "type", binds)))
		}
		features = features.With(list.With(stanza.New(nsSASL, "mechanism").Says(mechanism)))
	}
	return append(reply, features.Append(nil, ns)), nil
}

// sasl takes a step of a login (RFC 6120, 6; RFC 5802).
func (l *Login) sasl(e *stanza.Element) (reply [][]byte, err error) {
	fail := func(condition string) ([][]byte, error) {
		l.conv = nil
		f := stanza.New(nsSASL, "failure").With(stanza.New(nsSASL, condition))
		reply := [][]byte{f.Append(nil, ns)}
		if l.tries++; l.tries >= maxTries {
			return append(reply, StreamError("policy-violation", "too many tries")), ErrLogin
		}
		return reply, nil
	}
	text := e.Inside()
	switch {
	case e.Name == "abort":
		return fail("aborted")
	case e.Name == "auth" && l.conv == nil:
		if l.conv, err = l.begin(e.Get("mechanism")); err != nil {
			return fail("invalid-mechanism")
		}
		if text == "" { // the client waits for a challenge
			return one("<challenge xmlns='" + nsSASL + "'/>"), nil
		}
	case e.Name != "response" || l.conv == nil:
		return fail("malformed-request")
	}
	said, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fail("incorrect-encoding")
	}
	answer, err := l.conv.Step(string(said))
	if err != nil || l.conv.Done() && !l.conv.Valid() {
		return fail("not-authorized")
	}
	name := "challenge"
	if l.conv.Done() {
		user, _ := stanza.Local(l.conv.Username())
		as, domain, _, _ := stanza.CutAddress(l.conv.AuthzID())
		if l.conv.AuthzID() != "" && (as != user || domain != l.Domain) { // nobody logs in as another user
			return fail("invalid-authzid")
		}
		l.user, name = user, "success"
		l.restart()
	}
	a := stanza.New(nsSASL, name).Says(base64.StdEncoding.EncodeToString([]byte(answer)))
	return [][]byte{a.Append(nil, ns)}, nil
}

// begin begins a login. A user that does not exist looks like a user with another password.
func (l *Login) begin(name string) (*scram.ServerConversation, error) {
	s, err := scram.SHA256.NewServer(func(name string) (Keys, error) {
		local, ok := stanza.Local(name)
		if keys, known := l.Users(local); ok && known {
			return keys, nil
		}
		return l.nobody(name), nil
	})
	if err != nil {
		return nil, err
	}
	s = s.WithNonceGenerator(func() string { return base64.StdEncoding.EncodeToString(l.Fresh()) })
	b := scram.ChannelBinding{Type: binds, Data: l.Binding}
	switch {
	case name == mechanism+plus && l.Binding != nil:
		return s.NewConversationWithChannelBindingRequired(b), nil
	case name == mechanism && l.Binding != nil:
		return s.NewConversationWithChannelBinding(b), nil
	case name == mechanism:
		return s.NewConversation(), nil
	}
	return nil, fmt.Errorf("%.40q is no mechanism that is offered", name)
}

// nobody returns keys that no password has: always the same for a name.
func (l *Login) nobody(name string) Keys {
	sum := func(what string) []byte {
		h := hmac.New(sha256.New, l.Secret)
		h.Write([]byte(what + name))
		return h.Sum(nil)
	}
	return Keys{KeyFactors: scram.KeyFactors{Salt: string(sum("salt")[:SaltOctets]), Iters: iterations}, StoredKey: sum("stored"), ServerKey: sum("server")}
}

// StreamError is the text with which a server ends a stream for a reason.
func StreamError(condition, text string, more ...stanza.Element) []byte {
	e := stanza.New(ns, "stream:error").With(stanza.New(nsStreams, condition))
	if text != "" {
		e = e.With(stanza.New(nsStreams, "text", "xml:lang", "en").Says(text))
	}
	e = e.With(more...)
	return e.Append(nil, ns)
}

// Frame is an element of a stream as a message of WebSocket, where each element stands alone.
func Frame(xml []byte) []byte {
	for i, c := range xml {
		if c == ' ' || c == '>' || c == '/' {
			switch name := string(xml[min(1, len(xml)):i]); {
			case name == "message" || name == "presence" || name == "iq":
				return append(append(append([]byte(nil), xml[:i]...), " xmlns='"+stanza.Client+"'"...), xml[i:]...)
			case len(name) > 7 && name[:7] == "stream:":
				return append(append(append([]byte(nil), xml[:i]...), " xmlns:stream='"+stanza.Streams+"'"...), xml[i:]...)
			}
			break
		}
	}
	return xml
}
