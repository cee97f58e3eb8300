package xmpplan

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/edge/keyfile"
	"aldis/internal/site"
)

// Peers says how the gateway, as the servers of the far domains, connects with the LAN's server: each side calls the other, and
// sends on the connections that it has made. With Zero there is no handshake (zero.go). Zero values mean the defaults.
type Peers struct {
	Domain   string        // of the LAN's users; the gateway calls its server
	Services []string      // further domains of that server
	Keys     *tls.Config   // of keyfile.PeerTLS; nil with Zero: no TLS
	Zero     bool          // stanzas begin at once (XEP-0361)
	From     []netip.Addr  // with Zero: addresses from which that server may call; none: only Keys tell whether it is that server
	LoginIn  time.Duration // how long a server that calls may take to prove its domain; default 30 s
}

// Bounds of the connections from calling servers: of all that have not proved a domain yet, of one address among them, and of
// those that have proved one.
const (
	mostUnproved   = 64
	mostUnprovedOf = 8
	mostPeers      = 256
)

// peers is the state that all connections between servers share.
type peers struct {
	mu       sync.Mutex // held while events are posted: a stanza is posted between Opened and Closed
	out      map[string]site.ConnID
	changed  chan struct{} // closed when out has a new entry
	unproved map[string]int
	proved   int

	zeroMu sync.Mutex
	zero   []*conn // with Zero: the connections that may carry the gateway's stanzas; the last one does
}

// stands records the connection on which the gateway sends for a domain, or with id 0 that there is none now, and posts ev.
func (l *LAN) stands(domain string, id site.ConnID, ev site.Event) {
	p := &l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == 0 {
		delete(p.out, domain)
	} else {
		p.out[domain] = id
		close(p.changed)
		p.changed = make(chan struct{})
	}
	l.post(ev)
}

// hears passes a stanza for a domain to the adapter, once there is the connection on which the adapter replies. Until then the stanza
// waits, and the octets behind it stay in the socket. false: the gateway stops.
func (l *LAN) hears(to string, e *stanza.Element, f *stanza.Fault) bool {
	p := &l.peers
	for {
		p.mu.Lock()
		id, changed := p.out[to], p.changed
		if id != 0 {
			l.hear(id, e, f)
		}
		p.mu.Unlock()
		if id != 0 {
			return true
		}
		select {
		case <-changed:
		case <-l.life.Done():
			return false
		}
	}
}

// secure begins TLS with the server that the gateway has called, which must prove the LAN's domain.
func (l *LAN) secure(n *conn) error {
	p := l.cfg.Peers
	keys := p.Keys.Clone()
	keys.ServerName = p.Domain
	t := tls.Client(n.net, keys)
	ctx, cancel := context.WithTimeout(l.life, writeStall)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	if err := keyfile.OfDomain(t.ConnectionState().PeerCertificates, p.Keys.RootCAs, p.Domain); err != nil {
		return fmt.Errorf("%w: %s: %w", server.ErrCertificate, p.Domain, err)
	}
	n.net = t
	return nil
}

// ServePeers accepts connections of the LAN's server until Shutdown.
func (l *LAN) ServePeers(ln net.Listener) error {
	return l.accept(ln, func(sock net.Conn) {
		host, _, _ := net.SplitHostPort(sock.RemoteAddr().String())
		p := &l.peers
		p.mu.Lock()
		full := len(p.unproved) >= mostUnproved || p.unproved[host] >= mostUnprovedOf || l.life.Err() != nil
		if !full {
			p.unproved[host]++
			l.wait.Add(1)
		}
		p.mu.Unlock()
		if full {
			l.refused.WithLabelValues("peer_many").Inc()
			sock.Close()
			return
		}
		go func() {
			defer l.wait.Done()
			n, a := &conn{net: sock}, l.accepting()
			proved, err := false, error(nil)
			if l.cfg.Peers.Zero {
				proved, err = l.unasked(n, a, host)
			} else {
				proved, err = l.peer(n, a, host)
			}
			sock.Close()
			if !proved {
				l.proved(host, 0)
			} else {
				l.proved("", -1)
			}
			l.ended(host, err)
		}()
	})
}

// proved adds more to the number of connections that have proved a domain, and takes a connection of address host, unless that is "", off
// the unproved ones; false: there are too many.
func (l *LAN) proved(host string, more int) bool {
	p := &l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if more > 0 && p.proved >= mostPeers {
		return false
	}
	p.proved += more
	if host != "" {
		if p.unproved[host]--; p.unproved[host] == 0 {
			delete(p.unproved, host)
		}
	}
	return true
}

func (l *LAN) accepting() *server.Accepting {
	p := l.cfg.Peers
	return &server.Accepting{Peers: append([]string{p.Domain}, p.Services...), Here: l.cfg.Domains, ID: func() string { return fmt.Sprintf("%x", fresh()) }}
}

// peer serves one connection of a server, from beginning to end; proved says that the server has proved a domain. host is its address if it
// has called, and "" otherwise.
func (l *LAN) peer(n *conn, a *server.Accepting, host string) (proved bool, err error) {
	cfg := l.cfg.Peers
	stop := context.AfterFunc(l.life, func() { n.bye(cfg.Zero) })
	defer stop()
	owes := time.Now().Add(cfg.LoginIn) // when the stanza that it has begun must be complete; zero: it has begun none
	whole := false
	buf := make([]byte, 32<<10)
	for {
		first := !proved && a.From() != ""
		if first {
			if proved = host == "" || l.proved(host, 1); !proved {
				return false, errors.New("xmpp: too many connections of servers")
			}
		}
		switch {
		case !proved:
		case !a.Open():
			owes = time.Time{}
		case whole || first || owes.IsZero():
			owes = time.Now().Add(l.cfg.ReadStall)
		}
		n.net.SetReadDeadline(owes)
		size, err := n.net.Read(buf)
		l.octets.WithLabelValues("in").Add(float64(size))
		whole = false
		reply, fault := a.Feed(buf[:size], func(to string, e *stanza.Element, f *stanza.Fault) { whole = l.hears(to, e, f) })
		if len(reply) > 0 {
			if err := n.write(reply); err != nil {
				return proved, err
			}
		}
		switch {
		case fault != nil:
			if cfg.Zero {
				n.bye(true)
			}
			return proved, fault
		case err != nil:
			return proved, err
		case a.WantsTLS():
			t := tls.Server(n.net, cfg.Keys)
			t.SetDeadline(owes)
			if err := t.HandshakeContext(l.life); err != nil {
				return proved, fmt.Errorf("%w: %w", server.ErrCertificate, err)
			}
			n.net = t
			shown := t.ConnectionState().PeerCertificates
			a.Secured(func(domain string) bool { return keyfile.OfDomain(shown, cfg.Keys.RootCAs, domain) == nil })
		}
	}
}

// ended counts and logs how a connection of a calling server ended. A regular end is not logged.
func (l *LAN) ended(host string, err error) {
	reason := "network"
	switch fault := (*stanza.Fault)(nil); {
	case l.life.Err() != nil || errors.Is(err, stanza.ErrEnded):
		return
	case errors.Is(err, server.ErrCertificate):
		reason = "certificate"
	case errors.Is(err, server.ErrForeign):
		reason = "foreign"
	case errors.Is(err, server.ErrStranger):
		reason = "stranger"
	case errors.As(err, &fault):
		reason = string(fault.Reason)
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "stalled"
	}
	l.refused.WithLabelValues("peer_" + reason).Inc()
	if reason != "network" && l.news("peer "+reason) {
		l.log.Warn("xmpp: a connection of a server was refused", "address", host, "reason", reason, "error", err)
	}
}
