package tlslink

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// A peer that does not answer is called again after firstAgain, then after twice as long each time. Each wait is shortened at random, by
// up to half, so that ships which have lost the same shore do not all call it at once. A connection that lasts wellAfter resets the wait.
const (
	firstAgain = time.Second
	lastAgain  = time.Minute
	wellAfter  = 10 * time.Second
	maxAnswer  = 8 << 10 // octets of a proxy's answer
)

// keep calls a peer whenever there is no connection with it.
func (l *Link) keep(id uint16, at netip.AddrPort) {
	defer l.wait.Done()
	again := firstAgain
	for l.life.Err() == nil {
		l.mu.Lock()
		wanted, changed, calls := !l.hushed && l.byPeer[id] == nil, l.changed, l.calls
		l.mu.Unlock()
		if !wanted {
			select {
			case <-l.life.Done():
			case <-changed:
			}
			continue
		}
		began := time.Now()
		n, err := l.call(calls, id, at)
		if err == nil {
			l.serve(n)
		} else if l.may("call " + at.String()) {
			l.cfg.Metrics.refused.WithLabelValues("call").Inc()
			l.cfg.Log.Warn("a peer cannot be called over TLS; the gateway tries again", "bearer", l.cfg.Name, "peer", id, "address", at, "error", err)
		}
		if err == nil && time.Since(began) > wellAfter {
			again = firstAgain
		}
		select {
		case <-l.life.Done():
		case <-time.After(again - rand.N(again/2)):
		}
		again = min(2*again, lastAgain)
	}
}

// call makes a connection with a peer.
func (l *Link) call(calls context.Context, id uint16, at netip.AddrPort) (*conn, error) {
	ctx, cancel := context.WithTimeout(calls, greetTime)
	defer cancel()
	to := at
	if l.cfg.Proxy.IsValid() {
		to = l.cfg.Proxy
	}
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: false}}
	raw, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	raw.SetDeadline(time.Now().Add(greetTime))
	if to != at {
		err = through(raw, at)
	}
	var n *conn
	if err == nil {
		n, err = l.greet(raw, tls.Client(raw, l.cfg.config(l.own, id)), at, false)
	}
	if err != nil {
		raw.Close()
	}
	return n, err
}

// through makes a proxy connect to an address (RFC 9110 9.3.6). Nothing follows the proxy's answer: the node that is called
// speaks second.
func through(raw net.Conn, at netip.AddrPort) error {
	if _, err := fmt.Fprintf(raw, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(raw, maxAnswer)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("the proxy: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the proxy answers %s", answer.Status)
	}
	return nil
}
