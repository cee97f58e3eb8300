package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"aldis/internal/adapters/xmpp/stanza"
)

// nsServer is the namespace of stanzas between servers (RFC 6120, 4.8.3).
const nsServer = "jabber:server"

// external is the mechanism by which servers prove their domain: by the certificate that they have shown (XEP-0178).
const external = "EXTERNAL"

// Errors of Accepting.Feed and Dialling.Feed. After each of them the connection is useless.
var (
	ErrCertificate = errors.New("xmpp: a server without a certificate of its domain")
	ErrForeign     = errors.New("xmpp: a server has spoken for a domain that it has not proved, or to one that is not here")
)

// Accepting is the side of a server to which another server has connected, on one connection up to the proof of a domain. After
// that it cuts the stream into stanzas of that domain. The zero value with the first three fields begins a connection. Trust
// begins one without a handshake.
type Accepting struct {
	Peers []string // domains of the other server
	Here  []string // domains of this side
	ID    func() string

	split    stanza.Splitter
	proves   func(domain string) bool // nil: TLS has not begun
	from     string                   // of the stream; "": none has begun
	of       []string                 // the domains among Peers whose stanzas are taken
	fresh    bool                     // the next octets begin a stream
	proved   bool                     // by EXTERNAL
	ready    bool                     // a stream has begun after the proof
	wantsTLS bool
}

// WantsTLS says whether TLS is to begin after the reply of Feed is written; then the caller calls Secured.
func (a *Accepting) WantsTLS() bool { return a.wantsTLS }

// Secured takes in that TLS has begun. proves says whether the certificate of the other server is trusted and is for a domain.
func (a *Accepting) Secured(proves func(domain string) bool) {
	a.proves, a.wantsTLS = proves, false
	a.restart(maxStranger)
}

// Trust makes the connection begin with stanzas, without a stream's head and a proof (XEP-0361). The caller knows that the
// other side, whichever side has connected, is the server of these domains: by its certificate or its address.
func (a *Accepting) Trust(domains ...string) {
	a.from, a.of, a.ready, a.proved, a.split = domains[0], domains, true, true, stanza.Within(nsServer)
	a.split.Most = MaxStanza
}

func (a *Accepting) restart(most int) { a.split, a.fresh = stanza.Splitter{Most: most}, true }

// From is the domain that the other server has proved; "": none.
func (a *Accepting) From() string {
	if a.ready {
		return a.from
	}
	return ""
}

// Open says whether the other server owes the proof of its domain, or the end of a stanza.
func (a *Accepting) Open() bool { return !a.ready || a.split.Open() }

// Feed takes octets of the other server and gives stanzas of the domain that it has proved to do, in the form of a component's
// stanzas: to is the domain here. With a fault the element is the first tag alone. Feed returns the octets to be sent, also
// with an error.
func (a *Accepting) Feed(b []byte, do func(to string, e *stanza.Element, fault *stanza.Fault)) (reply []byte, err error) {
	if a.split.Most == 0 {
		a.restart(maxStranger)
	}
	var failed error
	end := func(condition string, why error) {
		reply, failed = append(reply, StreamError(condition, "")...), why
	}
	err = a.split.Feed(b, func(e *stanza.Element, f *stanza.Fault) {
		switch {
		case failed != nil || a.wantsTLS: // everything after this was sent too early
		case e != nil && a.ready && (e.Name == "message" || e.Name == "presence" || e.Name == "iq") && e.Space == nsServer:
			_, from, _, ok := stanza.CutAddress(e.Get("from"))
			_, to, _, known := stanza.CutAddress(e.Get("to"))
			switch s := e.In(nsServer, stanza.Component); {
			case !ok || !slices.Contains(a.of, from):
				end("invalid-from", fmt.Errorf("%w: from %.80q", ErrForeign, e.Get("from")))
			case !known || !slices.Contains(a.Here, to):
				end("host-unknown", fmt.Errorf("%w: to %.80q", ErrForeign, e.Get("to")))
			default:
				do(to, &s, f)
			}
		case f != nil:
			failed = f
		case e.Space == stanza.Streams && e.Name == "stream" && a.fresh:
			reply = append(reply, header(nsServer, e.Get("to"), e.Get("from"), a.ID())...)
			a.opened(e, &reply, end)
		case e.Space == stanza.Streams && e.Name == "error":
			failed = fmt.Errorf("%w: %s", stanza.ErrEnded, stanza.ReasonOf(e))
		case !a.fresh && a.proves == nil && e.Space == nsTLS && e.Name == "starttls":
			reply, a.wantsTLS = append(reply, "<proceed xmlns='"+nsTLS+"'/>"...), true
		case !a.fresh && a.proves != nil && !a.proved && e.Space == nsSASL && e.Name == "auth":
			a.auth(e, &reply, end)
		case a.ready:
			end("unsupported-stanza-type", &stanza.Fault{Reason: stanza.Syntax, Text: fmt.Sprintf("<%.40s> is no stanza", e.Name)})
		default:
			end("not-authorized", ErrStranger)
		}
	})
	if failed != nil {
		err = failed
	}
	if f := (*stanza.Fault)(nil); errors.As(err, &f) {
		reply = append(reply, StreamError(conditions[f.Reason], "")...)
	}
	return reply, err
}

// opened begins a stream, and answers with its features.
func (a *Accepting) opened(e *stanza.Element, reply *[]byte, end func(string, error)) {
	_, from, _, ok := stanza.CutAddress(e.Get("from"))
	_, to, _, known := stanza.CutAddress(e.Get("to"))
	features := stanza.New(ns, "stream:features")
	switch {
	case !known || !slices.Contains(a.Here, to):
		end("host-unknown", fmt.Errorf("%w: to %.80q", ErrForeign, e.Get("to")))
		return
	case a.proves == nil:
		features = features.With(stanza.New(nsTLS, "starttls").With(stanza.New(nsTLS, "required")))
	case !ok || !slices.Contains(a.Peers, from) || a.proved && from != a.from:
		end("invalid-from", fmt.Errorf("%w: from %.80q", ErrForeign, e.Get("from")))
		return
	case !a.proves(from):
		end("not-authorized", fmt.Errorf("%w: %s", ErrCertificate, from))
		return
	case a.proved:
		a.ready, a.of = true, []string{from}
	default:
		features = features.With(stanza.New(nsSASL, "mechanisms").With(stanza.New(nsSASL, "mechanism").Says(external)))
	}
	a.from, a.fresh = from, false
	*reply = features.Append(*reply, ns)
}

// auth takes the proof: the certificate was checked when the stream began.
func (a *Accepting) auth(e *stanza.Element, reply *[]byte, end func(string, error)) {
	said, err := base64.StdEncoding.DecodeString(e.Inside())
	if e.Inside() == "=" {
		said, err = nil, nil
	}
	if e.Get("mechanism") != external || err != nil || len(said) > 0 && string(said) != a.from {
		f := stanza.New(nsSASL, "failure").With(stanza.New(nsSASL, "not-authorized"))
		*reply = f.Append(*reply, ns)
		end("policy-violation", fmt.Errorf("%w: it has tried %.40q as %.80q", ErrCertificate, e.Get("mechanism"), said))
		return
	}
	*reply = append(*reply, "<success xmlns='"+nsSASL+"'/>"...)
	a.proved = true
	a.restart(MaxStanza)
}

// Dialling is the side of a server that connects to another server, on one connection. Once Ready, it sends stanzas;
// the other server sends its stanzas on a connection that it has made itself (RFC 6120, 4.5). The zero value with From and To
// begins a connection.
type Dialling struct {
	From, To string // domains

	split                          stanza.Splitter
	secure, proved, ready, started bool
	wantsTLS                       bool
}

// Hello is the head of the stream, which this side sends first, and again after TLS has begun.
func (d *Dialling) Hello() []byte { return header(nsServer, d.From, d.To, "") }

// WantsTLS says whether TLS is to begin now; then the caller calls Secured.
func (d *Dialling) WantsTLS() bool { return d.wantsTLS }

// Secured takes in that TLS has begun, with a server that has proved its domain, and returns the octets to be sent.
func (d *Dialling) Secured() []byte {
	d.secure, d.wantsTLS, d.split = true, false, stanza.Splitter{}
	return d.Hello()
}

// Ready says whether the other server takes stanzas.
func (d *Dialling) Ready() bool { return d.ready }

// Open says whether the other server owes an answer, or the end of an element.
func (d *Dialling) Open() bool { return !d.ready || d.split.Open() }

// Feed takes octets of the other server, and returns the octets to be sent. It never calls do: no stanza comes on this connection.
func (d *Dialling) Feed(b []byte, _ func(e *stanza.Element, fault *stanza.Fault)) (reply []byte, err error) {
	if d.split.Most == 0 {
		d.split.Most = maxStranger
	}
	var failed error
	err = d.split.Feed(b, func(e *stanza.Element, f *stanza.Fault) {
		switch {
		case failed != nil || d.wantsTLS:
		case f != nil:
			failed = f
		case e.Space == stanza.Streams && e.Name == "stream":
		case e.Space == stanza.Streams && e.Name == "error":
			failed = fmt.Errorf("%w: %s", stanza.ErrRefused, stanza.ReasonOf(e))
		case d.ready: // an element of an extension, or a stanza where none belongs
			failed = ErrForeign
		case e.Space == stanza.Streams && e.Name == "features":
			reply, failed = d.features(e, reply)
		case e.Space == nsTLS && e.Name == "proceed" && d.started && !d.secure:
			d.wantsTLS = true
		case e.Space == nsSASL && e.Name == "success" && d.secure && !d.proved:
			d.proved, d.split = true, stanza.Splitter{}
			reply = append(reply, d.Hello()...)
		case e.Name == "failure":
			failed = fmt.Errorf("%w: it does not accept this gateway's certificate as one of %s: %s", stanza.ErrRefused, d.From, stanza.ReasonOf(e))
		default:
			failed = ErrStranger
		}
	})
	if failed != nil {
		err = failed
	}
	return reply, err
}

// features takes the next step that the features of the other server allow.
func (d *Dialling) features(e *stanza.Element, reply []byte) ([]byte, error) {
	offers := func(list *stanza.Element) bool {
		return list != nil && slices.ContainsFunc(list.Kids, func(k stanza.Element) bool { return k.Name == "mechanism" && k.Inside() == external })
	}
	switch {
	case d.proved:
		d.ready, d.split.Most = true, stanza.MaxStanza
		return reply, nil
	case !d.secure && e.Kid(nsTLS, "starttls") == nil:
		return reply, fmt.Errorf("%w: it offers no STARTTLS", stanza.ErrRefused)
	case !d.secure:
		d.started = true
		return append(reply, "<starttls xmlns='"+nsTLS+"'/>"...), nil
	case !offers(e.Kid(nsSASL, "mechanisms")):
		return reply, fmt.Errorf("%w: it does not trust this gateway's certificate, or %s is not in it: it offers no EXTERNAL", stanza.ErrRefused, d.From)
	}
	auth := stanza.New(nsSASL, "auth", "mechanism", external).Says(base64.StdEncoding.EncodeToString([]byte(d.From)))
	return auth.Append(reply, ns), nil
}

// header begins a stream.
func header(space, from, to, id string) []byte {
	o := stanza.New(space, "stream:stream", "xmlns:stream", stanza.Streams, "from", from, "to", to, "id", id, "version", "1.0", "xml:lang", "en")
	text := o.Append([]byte("<?xml version='1.0'?>"), "")
	return append(text[:len(text)-2], '>')
}
