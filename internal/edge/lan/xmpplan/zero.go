package xmpplan

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/keyfile"
	"aldis/internal/site"
)

// Zero handshake (XEP-0361): one connection carries stanzas of all domains of both sides, from its first octet on. If the gateway calls
// the server, it sends on the connection that it has made, otherwise on the newest connection of the other server. It reads every
// connection.

// goodBye is how long a server may take to read that the gateway closes the connection.
const goodBye = time.Second

// callZero makes and serves one connection.
func (l *LAN) callZero() (taken bool, err error) {
	c, err := l.dial()
	if err != nil {
		return false, err
	}
	defer c.Close()
	n, a := &conn{net: c}, l.accepting()
	if l.cfg.Peers.Keys != nil {
		if err := l.secure(n); err != nil {
			return false, err
		}
	}
	a.Trust(l.shown(n)...)
	defer l.speak(n)()
	began := time.Now()
	_, err = l.peer(n, a, "")
	return time.Since(began) > lastAgain, err // a server that does not accept the gateway closes at once
}

// unasked serves one connection that the other server has made; known says that it is that server.
func (l *LAN) unasked(n *conn, a *server.Accepting, host string) (known bool, err error) {
	p := l.cfg.Peers
	if at, err := netip.ParseAddr(host); len(p.From) > 0 && (err != nil || !slices.Contains(p.From, at.Unmap().WithZone(""))) {
		return false, fmt.Errorf("%w: its address is not one of %v", server.ErrStranger, p.From)
	}
	if p.Keys != nil {
		stop := context.AfterFunc(l.life, func() { n.net.Close() })
		defer stop()
		t := tls.Server(n.net, p.Keys)
		t.SetDeadline(time.Now().Add(p.LoginIn))
		if err := t.HandshakeContext(l.life); err != nil {
			return false, fmt.Errorf("%w: %w", server.ErrCertificate, err)
		}
		t.SetDeadline(time.Time{})
		n.net = t
	}
	domains := l.shown(n)
	if len(domains) == 0 {
		return false, fmt.Errorf("%w: %s", server.ErrCertificate, p.Domain)
	}
	a.Trust(domains...)
	if !l.cfg.Server.IsValid() {
		defer l.speak(n)()
	}
	return l.peer(n, a, host)
}

// shown are the other server's domains that a connection may use: those that its certificate proves, or all without TLS.
func (l *LAN) shown(n *conn) []string {
	p := l.cfg.Peers
	domains := append([]string{p.Domain}, p.Services...)
	t, ok := n.net.(*tls.Conn)
	if !ok {
		return domains
	}
	certs := t.ConnectionState().PeerCertificates
	return slices.DeleteFunc(domains, func(domain string) bool { return !proves(certs, p.Keys.RootCAs, domain) })
}

func proves(certs []*x509.Certificate, roots *x509.CertPool, domain string) bool {
	return keyfile.OfDomain(certs, roots, domain) == nil
}

// speak makes the adapter send on a connection from now on, until the returned function is called.
func (l *LAN) speak(n *conn) (end func()) {
	n.most, n.wake = l.cfg.MaxQueue, make(chan struct{}, 1)
	written := make(chan struct{})
	go func() {
		defer close(written)
		n.loop(l)
	}()
	p := &l.peers
	p.zeroMu.Lock()
	l.unsay()
	p.zero = append(p.zero, n)
	l.say(n)
	p.zeroMu.Unlock()
	return func() {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.nudge()
		n.net.Close()
		<-written
		p.zeroMu.Lock()
		defer p.zeroMu.Unlock()
		last := len(p.zero) - 1
		if p.zero[last] != n {
			p.zero = slices.DeleteFunc(p.zero, func(o *conn) bool { return o == n })
			return
		}
		l.unsay()
		if p.zero = p.zero[:last]; last > 0 {
			l.say(p.zero[last-1])
		}
	}
}

// say tells the adapter that this connection serves each domain.
func (l *LAN) say(n *conn) {
	for _, domain := range l.cfg.Domains {
		id := site.ConnID(l.nextID.Add(1))
		l.mu.Lock()
		l.conns[id] = n
		l.mu.Unlock()
		l.stands(domain, id, xmpp.Opened{Conn: id, Domain: domain})
	}
}

// unsay tells the adapter that the connection no longer serves any domain.
func (l *LAN) unsay() {
	for _, domain := range l.cfg.Domains {
		if id := l.peers.out[domain]; id != 0 {
			l.mu.Lock()
			delete(l.conns, id)
			l.mu.Unlock()
			l.stands(domain, 0, xmpp.Closed{Conn: id})
		}
	}
}

// bye closes a connection; polite: it ends the stream first.
func (n *conn) bye(polite bool) {
	if polite {
		n.net.SetWriteDeadline(time.Now().Add(goodBye))
		io.WriteString(n.net, "</stream:stream>")
	}
	n.net.Close()
}
