package lan

import (
	"context"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

const (
	maxRequestHead = 8 << 10  // octets; JXSE 2.7 sends 400
	writeChunk     = 64 << 10 // octets that a peer has to take within WriteStall
)

// socket is a TCP connection of an HTTP peer.
type socket struct {
	net.Conn
	lan  *LAN
	host string
	once sync.Once

	// Requests that have begun and requests that were understood. If the numbers differ when the connection closes, net/http
	// has refused a request. Only the connection's own goroutine uses them.
	begun, understood int

	reading sync.Mutex // net/http reads in a goroutine of its own while a request is answered
	heads   heads
	bad     bool // a head was refused
}

func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.lan.metrics.Octets.WithLabelValues("in").Add(float64(n))
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.bad {
		return 0, io.EOF
	}
	if wrong := s.heads.read(b[:n]); wrong != nil {
		s.bad = true
		s.lan.refuse("http_head", s.RemoteAddr().String(), wrong)
		return 0, wrong // net/http answers 400 and closes
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.lan.metrics.Octets.WithLabelValues("out").Add(float64(n))
	return n, err
}

func (s *socket) Close() error {
	s.once.Do(func() {
		s.lan.mu.Lock()
		s.lan.leave(s.host)
		s.lan.mu.Unlock()
	})
	return s.Conn.Close()
}

// gate admits connections to the HTTP server, as Serve does for TCP.
type gate struct {
	net.Listener
	lan *LAN
}

func (g gate) Accept() (net.Conn, error) {
	for {
		c, err := g.lan.accept(g.Listener)
		if err != nil {
			return nil, err
		}
		remote := c.RemoteAddr().String()
		host := hostOf(remote)
		g.lan.mu.Lock()
		reason := g.lan.enter(host)
		g.lan.mu.Unlock()
		if reason == "" {
			return &socket{Conn: c, lan: g.lan, host: host}, nil
		}
		c.Close()
		g.lan.refuse(reason, remote, nil)
	}
}

type socketKey struct{}

// ServePolling accepts peers over HTTP until the listener is closed, by Shutdown or from outside; then it returns nil.
func (l *LAN) ServePolling(ln net.Listener) error {
	srv := &http.Server{
		Handler:                      http.HandlerFunc(l.request),
		ReadHeaderTimeout:            l.cfg.WelcomeTimeout,
		IdleTimeout:                  l.cfg.IdleTimeout,
		MaxHeaderBytes:               maxRequestHead,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // what it refuses is counted in state
		ConnState:                    l.state,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, socketKey{}, c)
		},
		Protocols: new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		ln.Close()
		return nil
	}
	l.servers[srv] = true
	l.mu.Unlock()
	err := srv.Serve(gate{ln, l})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// state counts requests that net/http refuses itself: octets that are not HTTP, and a head that is too long or too slow.
func (l *LAN) state(c net.Conn, st http.ConnState) {
	s := c.(*socket)
	switch st {
	case http.StateActive:
		s.begun++
	case http.StateClosed:
		s.reading.Lock()
		counted := s.bad
		s.reading.Unlock()
		if s.begun > s.understood && !counted {
			l.refuse("http_request", s.RemoteAddr().String(), nil)
		}
		s.Close()
	}
}

// request serves one request of the classic polling transport (wire 3.1).
func (l *LAN) request(w http.ResponseWriter, r *http.Request) {
	sock := r.Context().Value(socketKey{}).(*socket)
	sock.understood++
	sock.SetWriteDeadline(time.Now().Add(l.cfg.WriteStall))
	unique, err := pathPeer(r.URL.Path)
	switch {
	case err != nil:
		l.deny(w, r, http.StatusNotFound, "http_path", err)
	case r.Method == http.MethodPost:
		l.message(w, r, sock, unique)
	case r.Method != http.MethodGet:
		l.deny(w, r, http.StatusMethodNotAllowed, "http_method", nil)
	case r.ContentLength != 0: // a body where none belongs: another request may hide in it
		l.deny(w, r, http.StatusBadRequest, "http_body", nil)
	case unique == "":
		w.Header().Set("Content-Type", `text/plain;charset="UTF-8"`)
		io.WriteString(w, l.cfg.Peer)
	default:
		l.poll(w, r, sock, unique)
	}
}

// deny refuses a request, and allows no other on this connection.
func (l *LAN) deny(w http.ResponseWriter, r *http.Request, status int, reason string, err error) {
	l.refuse(reason, r.RemoteAddr, err)
	// net/http would wait for the rest of the body, for as long as the peer likes.
	r.Context().Value(socketKey{}).(*socket).SetReadDeadline(time.Now())
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// pathPeer is the peer that a path names; "" for the root.
func pathPeer(path string) (string, error) {
	name := strings.TrimPrefix(path, "/")
	if name == "" {
		return "", nil
	}
	unique, err := jxta.Normalize(name)
	if err != nil {
		return "", err
	}
	if jxta.IDKind(unique) != jxta.KindPeer {
		return "", &jxta.ParseError{What: "request", Field: "path", Err: jxta.ErrMismatch}
	}
	return unique, nil
}

// message receives one message. The message itself says who sent it, or else the path.
func (l *LAN) message(w http.ResponseWriter, r *http.Request, sock *socket, unique string) {
	switch {
	case r.ContentLength < 0: // chunked: a peer knows the length of its message, and this way no endless one can begin
		l.deny(w, r, http.StatusLengthRequired, "http_length", nil)
		return
	case r.ContentLength > int64(l.cfg.MaxBody):
		l.deny(w, r, http.StatusRequestEntityTooLarge, "body_too_long", nil)
		return
	}
	bill := &bill{host: sock.host, cut: func() { sock.SetReadDeadline(time.Now()) }}
	defer l.room.free(bill)
	body, err := l.body(r.Body, sock.SetReadDeadline, r.Context().Done(), bill, int(r.ContentLength))
	if err == nil {
		err = sock.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.deny(w, r, http.StatusRequestTimeout, "body_timeout", nil)
		return
	case errors.Is(err, errMemory):
		l.deny(w, r, http.StatusServiceUnavailable, "memory", nil)
		return
	case err != nil:
		l.deny(w, r, http.StatusBadRequest, "body_cut", nil)
		return
	}
	from, err := sender(body)
	if err != nil {
		l.deny(w, r, http.StatusBadRequest, "http_message", err)
		return
	}
	if from == "" {
		from = unique
	}
	if from == "" || jxta.IDKind(from) != jxta.KindPeer {
		l.deny(w, r, http.StatusBadRequest, "http_sender", nil)
		return
	}
	debt, ok := l.accounts.enter(time.Now, sock.host, body, r.Context().Done())
	if !ok {
		l.deny(w, r, http.StatusServiceUnavailable, "body_cut", nil) // it has hung up
		return
	}
	s, reason := l.session(caller{from, sock.host})
	if s == nil {
		l.accounts.drop(debt)
		l.deny(w, r, http.StatusServiceUnavailable, reason, nil)
		return
	}
	l.metrics.Messages.WithLabelValues("in").Inc()
	s.received(body, r.RemoteAddr, "http://"+r.Host, debt)
	s.order.Unlock()
	sock.SetWriteDeadline(time.Now().Add(l.cfg.WriteStall)) // posting may have taken long
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// sender is the peer at the other end of the hop over which a message came: the router message's Last, or else the source
// address, as both generations write it over HTTP (ghosts 8). "": the message names neither.
func sender(body []byte) (string, error) {
	m, _, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	if err != nil {
		return "", err
	}
	from := ""
	for _, e := range m.Elements {
		if e.Namespace != "jxta" {
			continue
		}
		switch e.Name {
		case "EndpointRouterMsg":
			router, err := jxta.ParseRouterMessage(e.Data)
			if err != nil {
				return "", err
			}
			if router.Last != "" {
				return router.Last, nil
			}
		case "EndpointSourceAddress":
			if a, err := jxta.ParseAddress(string(e.Data)); err == nil && a.Scheme == "jxta" {
				from = a.Host
			}
		}
	}
	return from, nil
}

// poll is a back channel: messages to the peer leave as the response to its request.
type poll struct {
	outbox
	session *session
}

// terms are the parameters of a poll: responseTimeout,extraTimeout,destination.
type terms struct {
	first time.Duration // longest wait for a message
	more  time.Duration // how long further messages may follow; negative: none may
	none  bool          // no response is wanted
	dest  string        // the address that the peer called, which may contain a relay request
}

// parseTerms reads the query of a poll. Times are milliseconds; 0, a missing value and one that is too great all mean limit.
func parseTerms(query string, limit time.Duration) (t terms, err error) {
	t = terms{first: limit, more: limit}
	f := strings.SplitN(query, ",", 3)
	number := func(i int, d *time.Duration) (negative bool) {
		if i >= len(f) || f[i] == "" {
			return false
		}
		ms, e := strconv.ParseInt(f[i], 10, 64)
		switch {
		case e != nil:
			err = &jxta.ParseError{What: "poll", Field: "timeout", Err: jxta.ErrSyntax}
		case ms < 0:
			return true
		case ms > 0 && ms < math.MaxInt32:
			*d = min(limit, time.Duration(ms)*time.Millisecond)
		}
		return false
	}
	t.none = number(0, &t.first)
	if number(1, &t.more) {
		t.more = -1
	}
	if len(f) == 3 {
		if t.dest, err = url.PathUnescape(f[2]); err != nil || strings.ContainsAny(t.dest, " \t\r\n") {
			err = &jxta.ParseError{What: "poll", Field: "destination", Err: jxta.ErrSyntax}
		}
	}
	return t, err
}

// poll holds a request open and sends messages in its response as they come.
func (l *LAN) poll(w http.ResponseWriter, r *http.Request, sock *socket, unique string) {
	t, err := parseTerms(r.URL.RawQuery, l.cfg.PollHold)
	if err != nil {
		l.deny(w, r, http.StatusBadRequest, "http_query", err)
		return
	}
	w.Header().Set("Content-Type", jxta.MessageType)
	if t.none {
		w.Header().Set("Content-Length", "0")
		return
	}
	begin := time.Now()
	s, reason := l.session(caller{unique, sock.host})
	if s == nil {
		l.deny(w, r, http.StatusServiceUnavailable, reason, nil)
		return
	}
	p := &poll{session: s}
	p.outbox.init(l, site.ConnID(l.nextID.Add(1)), r.RemoteAddr, func() { sock.Close() })
	p.bare, p.single = true, t.more < 0
	s.open(p, t.dest)
	s.order.Unlock()
	defer s.close(p)
	defer context.AfterFunc(r.Context(), p.close)() // the peer has hung up, or Shutdown
	end := time.AfterFunc(time.Until(begin.Add(t.first)), p.finish)
	defer end.Stop()
	began := false
	for batch := p.nextBatch(); batch != nil; batch = p.nextBatch() {
		if p.single {
			w.Header().Set("Content-Length", strconv.Itoa(batch[0].size()))
		}
		if err := l.answer(w, sock, batch); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				l.refuse("never_reads", r.RemoteAddr, nil)
			}
			p.close()
			return
		}
		p.written(batch)
		first := !began
		began = true
		if p.single {
			break
		}
		if first {
			end.Reset(min(t.more, time.Until(begin.Add(l.cfg.PollHold))))
		}
	}
	sock.SetWriteDeadline(time.Now().Add(l.cfg.WriteStall))
	if !began {
		w.Header().Set("Content-Length", "0")
	}
}

// answer writes a batch to an open poll. Each time the peer takes octets the deadline is renewed.
func (l *LAN) answer(w http.ResponseWriter, sock *socket, batch []outgoing) error {
	for _, o := range batch {
		for _, b := range append([][]byte{o.octets}, o.rest...) {
			for chunk := range slices.Chunk(b, writeChunk) {
				if err := sock.SetWriteDeadline(time.Now().Add(l.cfg.WriteStall)); err != nil {
					return err
				}
				if _, err := w.Write(chunk); err != nil {
					return err
				}
			}
		}
	}
	return http.NewResponseController(w).Flush()
}
