package xmpplan

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/edge/infile"
	"aldis/internal/site"
)

// Clients says how the gateway serves clients itself. Zero values mean the defaults.
type Clients struct {
	Domain   string
	Keys     *tls.Config
	File     string // of accounts; a change counts within a second
	Accounts server.Accounts
	Most     int           // most connections; default 2,000. One address may have a quarter of them
	LoginIn  time.Duration // how long a login may take; default 30 s
}

// Bounds of clients.
const (
	mostStrangers = 32 // connections of one address on which nobody has logged in
	mostTries     = 20 // wrong passwords of one address in triesIn
	triesIn       = time.Minute
	clientQueue   = 4 << 20 // octets that wait for one client
	perSecond     = 100     // stanzas, or pieces of 4 KiB, that are read of one client; more wait in its socket
	atOnce        = 400
	pieceOctets   = 4 << 10
	lookAgain     = time.Second
)

// served is the state that all clients share.
type served struct {
	host     server.Host
	accounts atomic.Pointer[server.Accounts]

	mu        sync.Mutex
	listeners []io.Closer
	all       map[*client]bool
	of        map[string]*address
	web       map[net.Conn]string // addresses of connections that are no WebSocket yet
	webOf     map[string]int      // how many of these an address has
}

// address counts the clients of one address.
type address struct {
	conns, strangers int
	tries            int
	since            time.Time // of tries
}

func (s *served) open(c *Clients) {
	if c == nil {
		return
	}
	if c.Most == 0 {
		c.Most = 2000
	}
	if c.LoginIn == 0 {
		c.LoginIn = 30 * time.Second
	}
	s.of, s.all, s.web, s.webOf = map[string]*address{}, map[*client]bool{}, map[net.Conn]string{}, map[string]int{}
	s.accounts.Store(&c.Accounts)
	s.host = server.Host{Domain: c.Domain, Secret: fresh(), Fresh: fresh, Users: func(name string) (server.Keys, bool) {
		k, ok := (*s.accounts.Load())[name]
		return k, ok
	}}
}

// fresh are 16 random octets.
func fresh() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return b
}

// client is a connection of a client.
type client struct {
	l     *LAN
	n     *conn
	id    site.ConnID // 0: it has not logged in
	login server.Login
	from  string    // its address
	paced time.Time // when it has paid for everything read so far, at perSecond
	read  int       // stanzas that were read
	done  chan struct{}
}

// enter admits a connection; nil: there are too many.
func (l *LAN) enter(n *conn, remote string) *client {
	from := hostOf(remote)
	s := &l.served
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.of[from]
	if a == nil {
		if len(s.of) > 4*l.cfg.Clients.Most { // too many addresses: those without connections are forgotten, with their tries
			for host, a := range s.of {
				if a.conns == 0 {
					delete(s.of, host)
				}
			}
		}
		a = &address{}
		s.of[from] = a
	}
	if time.Since(a.since) > triesIn {
		a.tries = 0
	}
	reason := ""
	switch {
	case len(s.all) >= l.cfg.Clients.Most || a.conns >= max(1, l.cfg.Clients.Most/4) || a.strangers >= mostStrangers:
		reason = "client_many"
	case a.tries >= mostTries:
		reason = "client_tries"
	case l.life.Err() != nil:
		return nil
	}
	if reason != "" {
		l.refused.WithLabelValues(reason).Inc()
		return nil
	}
	a.conns++
	a.strangers++
	c := &client{l: l, n: n, from: from, login: server.Login{Host: &s.host}, done: make(chan struct{})}
	n.most = clientQueue
	s.all[c] = true
	l.wait.Add(1)
	return c
}

// hostOf is an address without its port.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// leave ends a connection; err is the reason.
func (c *client) leave(err error) {
	l, s := c.l, &c.l.served
	if c.id != 0 {
		c.n.mu.Lock()
		c.n.closed = true
		c.n.mu.Unlock()
		c.n.nudge()
		c.n.close()
		<-c.done
		l.mu.Lock()
		delete(l.conns, c.id)
		l.mu.Unlock()
		l.post(server.Gone{Conn: c.id, Ended: c.login.Ended()})
	} else {
		c.n.close()
	}
	s.mu.Lock()
	a := s.of[c.from]
	a.conns--
	if c.id == 0 {
		a.strangers--
	}
	if tries := c.login.Tries(); tries > 0 {
		if a.tries < mostTries && a.tries+tries >= mostTries {
			l.log.Warn("xmpp: an address has no more tries to log in for a minute", "address", c.from)
		}
		a.tries += tries
		a.since = time.Now()
	}
	if a.conns == 0 && a.tries == 0 {
		delete(s.of, c.from)
	}
	delete(s.all, c)
	s.mu.Unlock()
	reason := "client_network"
	switch fault := (*stanza.Fault)(nil); {
	case c.login.Ended():
		reason = "client_ended"
	case errors.Is(err, server.ErrLogin) || c.id == 0 && c.login.Tries() > 0:
		reason = "client_login"
	case errors.Is(err, server.ErrStranger):
		reason = "client_stranger"
	case errors.As(err, &fault):
		reason = "client_" + string(fault.Reason)
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "client_stalled"
	}
	l.refused.WithLabelValues(reason).Inc()
	l.wait.Done()
}

// feed processes octets of the client.
func (c *client) feed(b []byte) error {
	c.l.octets.WithLabelValues("in").Add(float64(len(b)))
	var got []server.Said
	reply, err := c.login.Feed(b, func(e *stanza.Element, f *stanza.Fault) {
		said := server.Said{Fault: f}
		if e != nil {
			said.Element = *e
		}
		got = append(got, said)
	})
	if c.id == 0 {
		if fault := c.n.say(reply, err != nil); fault != nil && err == nil {
			err = fault
		}
		if user := c.login.User(); user != "" && err == nil {
			c.began(user)
		}
	} else if len(reply) > 0 || err != nil {
		c.l.Do(server.Send{Conn: c.id, XML: bytes.Join(reply, nil), End: err != nil}) // at most one reply
	}
	c.read += len(got)
	for _, said := range got {
		said.Conn = c.id
		c.l.post(said)
	}
	c.pace(max(len(got), len(b)/pieceOctets))
	if err != nil && c.id != 0 { // the last reply to the client goes first
		select {
		case <-c.done:
		case <-time.After(writeStall):
		}
	}
	return err
}

// began starts the session of a user.
func (c *client) began(user string) {
	l := c.l
	c.id = site.ConnID(l.nextID.Add(1))
	l.mu.Lock()
	l.conns[c.id] = c.n
	l.mu.Unlock()
	l.served.mu.Lock()
	l.served.of[c.from].strangers--
	l.served.mu.Unlock()
	l.post(server.Came{Conn: c.id, User: user, Seed: fresh()})
	go func() {
		defer close(c.done)
		c.n.loop(l)
	}()
}

// pace waits until the client may be read again.
func (c *client) pace(cost int) {
	if now := time.Now(); now.Add(-atOnce * time.Second / perSecond).After(c.paced) {
		c.paced = now.Add(-atOnce * time.Second / perSecond)
	}
	c.paced = c.paced.Add(time.Duration(cost) * time.Second / perSecond)
	if wait := time.Until(c.paced); wait > 0 {
		select {
		case <-c.l.life.Done():
		case <-time.After(wait):
		}
	}
}

// ServeClients serves clients over TCP until Shutdown. With direct, TLS begins at once; otherwise when a client asks for it.
func (l *LAN) ServeClients(ln net.Listener, direct bool) error {
	return l.accept(ln, func(sock net.Conn) {
		c := l.enter(&conn{net: sock, wake: make(chan struct{}, 1)}, sock.RemoteAddr().String())
		if c == nil {
			sock.Close()
			return
		}
		go func() { c.leave(c.stream(direct)) }()
	})
}

// accept passes connections to take until Shutdown.
func (l *LAN) accept(ln net.Listener, take func(net.Conn)) error {
	l.served.mu.Lock()
	l.served.listeners = append(l.served.listeners, ln)
	l.served.mu.Unlock()
	for {
		sock, err := ln.Accept()
		switch {
		case l.life.Err() != nil:
			if err == nil {
				sock.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no descriptors left, for example
			select {
			case <-l.life.Done():
			case <-time.After(lookAgain):
			}
			continue
		}
		if t, ok := sock.(*net.TCPConn); ok {
			t.SetKeepAliveConfig(keepAlive)
		}
		take(sock)
	}
}

// stream serves one connection over TCP, from beginning to end.
func (c *client) stream(direct bool) error {
	l := c.l
	sock := c.n.net
	stop := context.AfterFunc(l.life, func() { sock.Close() })
	defer stop()
	began := time.Now()
	if direct {
		if err := c.secure(began.Add(l.cfg.Clients.LoginIn)); err != nil {
			return err
		}
	}
	buf := make([]byte, pieceOctets)
	stalls := began.Add(l.cfg.Clients.LoginIn)
	for {
		c.n.net.SetReadDeadline(stalls)
		size, err := c.n.net.Read(buf)
		stranger, before := c.id == 0, c.read
		if size > 0 {
			if fault := c.feed(buf[:size]); fault != nil {
				return fault
			}
		}
		if err != nil {
			return err
		}
		if c.login.WantsTLS() {
			if err := c.secure(stalls); err != nil {
				return err
			}
		}
		switch {
		case c.id == 0:
		case !c.login.Open():
			stalls = time.Time{}
		case stranger || stalls.IsZero() || c.read > before: // another stanza has begun
			stalls = time.Now().Add(l.cfg.ReadStall)
		}
	}
}

// secure begins TLS.
func (c *client) secure(by time.Time) error {
	t := tls.Server(c.n.net, c.l.cfg.Clients.Keys)
	c.n.net.SetDeadline(by)
	if err := t.HandshakeContext(c.l.life); err != nil {
		return err
	}
	c.n.net.SetDeadline(time.Time{})
	state := t.ConnectionState()
	binding, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil || state.Version < tls.VersionTLS13 {
		binding = nil
	}
	c.n.net = t
	c.login.Secured(binding)
	return nil
}

// WebPath is the path at which clients find the gateway over WebSocket.
const WebPath = "/xmpp-websocket"

// ServeWeb serves clients over WebSocket (RFC 7395) with TLS until Shutdown.
func (l *LAN) ServeWeb(ln net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc(WebPath, l.web)
	s := &http.Server{Handler: mux, TLSConfig: l.cfg.Clients.Keys.Clone(), ReadHeaderTimeout: l.cfg.Clients.LoginIn, IdleTimeout: l.cfg.Clients.LoginIn, MaxHeaderBytes: 16 << 10,
		ConnState: l.webState, ErrorLog: log.New(io.Discard, "", 0), // what it refuses is a stranger's
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	l.served.mu.Lock()
	l.served.listeners = append(l.served.listeners, s)
	l.served.mu.Unlock()
	if err := s.ServeTLS(ln, "", ""); l.life.Err() == nil {
		return err
	}
	return nil
}

// webState bounds the connections that are no WebSocket: enter counts the others.
func (l *LAN) webState(sock net.Conn, st http.ConnState) {
	s := &l.served
	s.mu.Lock()
	defer s.mu.Unlock()
	switch st {
	case http.StateNew:
		from := hostOf(sock.RemoteAddr().String())
		if len(s.web) >= l.cfg.Clients.Most || s.webOf[from] >= mostStrangers {
			l.refused.WithLabelValues("client_many").Inc()
			sock.Close()
			return
		}
		s.web[sock] = from
		s.webOf[from]++
	case http.StateHijacked, http.StateClosed:
		from, counted := s.web[sock]
		if !counted {
			return
		}
		delete(s.web, sock)
		if s.webOf[from]--; s.webOf[from] == 0 {
			delete(s.webOf, from)
		}
	}
}

// web serves one connection over WebSocket. A client must log in with a password, so it does not matter which page's script connects.
func (l *LAN) web(w http.ResponseWriter, r *http.Request) {
	sock, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"xmpp"}, InsecureSkipVerify: true})
	if err != nil {
		return
	}
	sock.SetReadLimit(server.MaxStanza)
	c := l.enter(&conn{web: sock, wake: make(chan struct{}, 1)}, r.RemoteAddr)
	if c == nil {
		sock.Close(websocket.StatusTryAgainLater, "")
		return
	}
	c.login.Framed, c.login.Secure = true, true
	c.leave(c.messages())
}

// messages reads the messages of a WebSocket until it closes.
func (c *client) messages() error {
	login, cancel := context.WithTimeout(c.l.life, c.l.cfg.Clients.LoginIn)
	defer cancel()
	for {
		b, err := c.message(login)
		if err != nil {
			return err
		}
		if err := c.feed(b); err != nil {
			return err
		}
		if c.id != 0 {
			login = c.l.life
		}
	}
}

// message reads one whole message. Once begun, it must be complete within ReadStall, like a stanza.
func (c *client) message(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kind, r, err := c.n.web.Reader(ctx)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageText {
		return nil, &stanza.Fault{Reason: stanza.Syntax, Text: "a message that is no text"}
	}
	stall := time.AfterFunc(c.l.cfg.ReadStall, cancel)
	defer stall.Stop()
	return io.ReadAll(r)
}

// watch looks for changes of the accounts until Shutdown. A file that cannot be read is tried again.
func (l *LAN) watch() {
	file := l.cfg.Clients.File
	seen, _ := os.Stat(file)
	told := time.Time{}
	for {
		select {
		case <-l.life.Done():
			return
		case <-time.After(lookAgain):
		}
		is, err := os.Stat(file)
		if err != nil || seen != nil && is.ModTime().Equal(seen.ModTime()) && is.Size() == seen.Size() && os.SameFile(is, seen) {
			continue
		}
		text, err := infile.Read(file, server.MaxAccountsFile)
		var all server.Accounts
		if err == nil {
			all, err = server.ParseAccounts(text)
		}
		if err != nil { // the accounts stay as they were
			if time.Since(told) > logAgain {
				told = time.Now()
				l.log.Warn("xmpp: the file of users cannot be read: all stays as it was", "file", file, "error", err)
			}
			continue
		}
		seen = is
		l.served.accounts.Store(&all)
		l.post(server.Users{Names: all.Names()})
	}
}

// shutClients closes the listeners and WebSockets of clients.
func (l *LAN) shutClients() {
	l.served.mu.Lock()
	defer l.served.mu.Unlock()
	for _, ln := range l.served.listeners {
		ln.Close()
	}
	for c := range l.served.all {
		if c.n.web != nil {
			go c.n.web.CloseNow()
		}
	}
}
