package pairlink

import (
	"io"
	"net"
	"net/netip"
	"time"

	"aldis/internal/gateway/pair"
)

const (
	mostPassing = 4096
	passTime    = 3 * time.Second
)

// Pass passes the connections of local peers on to the leader until the listener's deadline passes or it is closed. key is that of its
// address in the configuration; the leader has one of the same key.
func (l *Link) Pass(key string, ln net.Listener) {
	l.passAll(ln, func() (netip.AddrPort, bool) {
		return wayOf(l.other, key, l.cfg.Other), l.m.Role() == pair.Following && l.conn != nil
	})
}

// passAll passes connections on to where leader says; mu is held meanwhile.
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

// leaderAt is where a peer's connection is passed on to, until this machine does not follow any more.
func (l *base) leaderAt(peer net.Conn, leader func() (netip.AddrPort, bool)) (netip.AddrPort, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, ok := leader()
	if !ok || !to.IsValid() || len(l.passing) >= mostPassing {
		return netip.AddrPort{}, false
	}
	l.passing[peer] = struct{}{}
	return to, true
}

// wayOf is where a machine at an address has what this one has under a key; invalid: it has none.
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

// endPassing ends what was passed on: the leader may hang or have no power, and their peers would see nothing of it. The caller holds mu.
func (l *base) endPassing() {
	for c := range l.passing {
		c.Close()
	}
}

// pass joins a local peer's connection with one to the leader.
func (l *base) pass(peer net.Conn, to netip.AddrPort) {
	defer func() {
		peer.Close()
		l.mu.Lock()
		delete(l.passing, peer)
		l.mu.Unlock()
	}()
	leader, err := net.DialTimeout("tcp", to.String(), passTime)
	if err != nil {
		l.warn("pass", "a local peer's connection could not be passed on to the leader", "leader", to, "error", err)
		return
	}
	defer leader.Close()
	done := make(chan struct{}, 2)
	join := func(a, b net.Conn) {
		io.Copy(a, b)
		if t, ok := a.(*net.TCPConn); ok {
			t.CloseWrite()
		}
		done <- struct{}{}
	}
	go join(leader, peer)
	go join(peer, leader)
	<-done
	select { // what the other direction still has
	case <-done:
	case <-time.After(passTime):
	}
}
