package lan

import (
	"context"
	"net"
	"net/netip"
	"time"

	"aldis/internal/jxtabridge"
)

const (
	dialTimeout = 3 * time.Second // on a LAN
	maxDials    = 32              // at once
)

// Dial calls a peer. If it answers, Opened follows; if not, nothing. Beyond maxDials it does not call: the peer has to wait for
// a later order.
func (l *LAN) Dial(d jxtabridge.Dial) {
	l.mu.Lock()
	ok := !l.closed && l.dialing < maxDials
	if ok {
		l.dialing++
		l.wait.Add(1)
	}
	l.mu.Unlock()
	if !ok {
		l.metrics.Dials.WithLabelValues("too_many").Inc()
		return
	}
	go func() {
		defer l.wait.Done()
		ctx, cancel := context.WithTimeout(l.life, dialTimeout)
		defer cancel()
		dialer := net.Dialer{KeepAliveConfig: keepAlive}
		if l.cfg.From.IsValid() {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.cfg.From, 0))
		}
		c, err := dialer.DialContext(ctx, "tcp", d.Address)
		l.mu.Lock()
		l.dialing--
		l.mu.Unlock()
		if err != nil {
			l.metrics.Dials.WithLabelValues("failed").Inc()
			l.log.Debug("lan: a peer does not answer at its own address", "remote", d.Address, "error", err)
			return
		}
		l.metrics.Dials.WithLabelValues("connected").Inc()
		l.admit(c)
	}()
}
