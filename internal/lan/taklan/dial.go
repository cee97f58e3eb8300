package taklan

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// A server that does not answer is called again after firstAgain, then after twice as long each time.
const (
	firstAgain = time.Second
	lastAgain  = time.Minute
)

// Keep keeps a stream to a server until Shutdown.
func (l *LAN) Keep(server netip.AddrPort) {
	l.wait.Add(1)
	go func() {
		defer l.wait.Done()
		for again := firstAgain; ; again = min(2*again, lastAgain) {
			d := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive}
			c, err := d.DialContext(l.life, "tcp", server.String())
			if err == nil {
				again = firstAgain / 2
				if n := l.enter(c, true); n != nil {
					n.run()
				}
			} else if l.life.Err() == nil {
				l.refuse("server", server.String(), err)
			}
			select {
			case <-l.life.Done():
				return
			case <-time.After(again):
			}
		}
	}()
}

var noCancel = context.Background()
