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
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		to, ok := l.leaderAt(c, key)
		if !ok {
			c.Close()
			continue
		}
		go l.pass(c, to)
	}
}

// leaderAt is where the leader has what this machine has under a key. A peer's connection is passed on there until this machine does not
// follow any more.
func (l *Link) leaderAt(peer net.Conn, key string) (netip.AddrPort, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m.Role() != pair.Following || l.conn == nil || len(l.passing) >= mostPassing {
		return netip.AddrPort{}, false
	}
	for _, w := range l.other.Ways {
		if w.Key == key {
			l.passing[peer] = struct{}{}
			if w.At.Addr().IsUnspecified() {
				return netip.AddrPortFrom(l.cfg.Other.Addr(), w.At.Port()), true
			}
			return w.At, true
		}
	}
	return netip.AddrPort{}, false
}

// pass joins a local peer's connection with one to the leader.
func (l *Link) pass(peer net.Conn, to netip.AddrPort) {
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
