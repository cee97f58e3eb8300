package taklan

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"
)

// A server that does not answer is called again after firstAgain, then after twice as long each time.
const (
	firstAgain = time.Second
	lastAgain  = time.Minute
)

// Keep keeps a stream to a server until Shutdown, over TLS where over is not nil.
func (l *LAN) Keep(server netip.AddrPort, over *tls.Config) {
	l.wait.Add(1)
	go func() {
		defer l.wait.Done()
		for again := firstAgain; ; again = min(2*again, lastAgain) {
			d := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive}
			c, err := d.DialContext(l.life, "tcp", server.String())
			if err == nil {
				again = firstAgain / 2
				if over != nil {
					c = tls.Client(c, over)
				}
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
