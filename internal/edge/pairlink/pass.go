package pairlink

import (
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	mostPassing = 4096
	passTime    = 3 * time.Second
)

// Pass passes the connections of local peers on to the leader, until the listener's deadline passes or it is closed. key is the
// configuration key of the listener's address; the leader listens under the same key.
func (l *Link) Pass(key string, ln net.Listener) {
	l.passAll(ln, func() (netip.AddrPort, bool) { return wayOf(l.other, key, l.cfg.Other), l.toLeader() != nil })
}

// passAll passes connections on to the address that leader returns; it is called with mu held.
func (l *base) passAll(ln net.Listener, leader func() (netip.AddrPort, bool)) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		to, ok := l.leaderAt(c, leader)
		if !ok {
			c.Close()
			continue
		}
		go l.pass(c, to)
	}
}

// leaderAt is the address to which a peer's connection is passed on. It records the connection until endPassage.
func (l *base) leaderAt(peer net.Conn, leader func() (netip.AddrPort, bool)) (netip.AddrPort, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, ok := leader()
	if !ok || !to.IsValid() || len(l.passages.passing) >= mostPassing {
		return netip.AddrPort{}, false
	}
	l.passages.passing[peer] = &passage{peer: peer, agreed: make(chan struct{})}
	return to, true
}

// wayOf is the address at which a machine listens under a key; invalid: it does not.
func wayOf(g greeting, key string, at netip.AddrPort) netip.AddrPort {
	for _, w := range g.Ways {
		if w.Key == key {
			if w.At.Addr().IsUnspecified() {
				return netip.AddrPortFrom(at.Addr(), w.At.Port())
			}
			return w.At
		}
	}
	return netip.AddrPort{}
}

// endPassing closes the connections that are passed on: the leader may hang or have lost power, which their peers would not notice. The
// caller holds mu.
func (l *base) endPassing() {
	for c := range l.passages.passing {
		c.Close()
	}
}

// pass joins a local peer's connection with one to the leader. The leader knows that it is passed on before the peer's first octet
// arrives.
func (l *base) pass(peer net.Conn, to netip.AddrPort) {
	defer func() {
		peer.Close()
		l.mu.Lock()
		l.endPassage(peer)
		l.mu.Unlock()
	}()
	leader, err := net.DialTimeout("tcp", to.String(), passTime)
	if err == nil {
		defer leader.Close()
		err = l.agree(peer, leader)
	}
	if err != nil {
		l.warn("pass", "a local peer's connection could not be passed on to the leader", "leader", to, "error", err)
		return
	}
	done := make(chan struct{}, 2)
	join := func(a, b net.Conn, copies func(io.Writer, io.Reader) (int64, error)) {
		copies(a, b)
		if t, ok := a.(*net.TCPConn); ok {
			t.CloseWrite()
		}
		done <- struct{}{}
	}
	go join(leader, peer, io.Copy)
	go join(peer, leader, func(io.Writer, io.Reader) (int64, error) { return l.give(peer, leader) })
	<-done
	select { // octets that are left in the other direction
	case <-done:
	case <-time.After(passTime):
	}
}
