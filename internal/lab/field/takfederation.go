package field

import (
	"context"
	"fmt"
	"net"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Without gateways, TAK servers that federate have one TCP connection between them, and pass on each event unchanged to each other site.
// Headquarters' server passes a ship's events on to the other ships.

// takPipe is one direction of such a connection: the events that wait to be written to it.
type takPipe struct{ waits chan string }

// mostPiped is how many events a server keeps for another one.
const mostPiped = 200_000

func noEvent(*cot.Event) {}

// broadcast hands an event to the connections of this server to all others; a connection without room misses it.
func (s *takSite) broadcast(text string) {
	for _, p := range s.pipes {
		p.put(text)
	}
}

func newPipe() *takPipe { return &takPipe{make(chan string, mostPiped)} }

func (p *takPipe) put(text string) {
	select {
	case p.waits <- text:
	default:
	}
}

// feed writes the waiting events until ctx or the connection ends.
func (p *takPipe) feed(ctx context.Context, c net.Conn) {
	for {
		select {
		case text := <-p.waits:
			if _, err := c.Write([]byte(text)); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// federate joins each ship's server with that of headquarters by a connection over the link.
func (g *takGame) federate(all context.Context) error {
	for _, s := range g.sites {
		g.served = append(g.served, takSite{ns: s.ns, plot: newPlot()})
	}
	at := fmt.Sprintf("%s:%d", linkAddr(0).Addr(), takPort)
	var ln net.Listener
	if err := InNetns(g.sites[0].ns, func() (err error) {
		ln, err = net.Listen("tcp4", at)
		return err
	}); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer ln.Close()
	stop := context.AfterFunc(all, func() { ln.Close() })
	defer stop()
	for range g.sites[1:] {
		g.served[0].pipes = append(g.served[0].pipes, newPipe())
	}
	for i := range g.sites[1:] {
		ship, hq, err := g.join(all, ln, g.sites[i+1].ns, at)
		if err != nil {
			return err
		}
		context.AfterFunc(all, func() { ship.Close(); hq.Close() })
		up := newPipe()
		g.served[i+1].pipes = []*takPipe{up}
		go up.feed(all, ship)
		go g.served[0].pipes[i].feed(all, hq)
		go hearEvents(ship, g.served[i+1].plot.saw)
		go hearEvents(hq, func(e *cot.Event) {
			g.served[0].plot.saw(e)
			for n, p := range g.served[0].pipes {
				if n != i {
					p.put(string(e.AppendXML(nil)))
				}
			}
		})
	}
	g.logf("%d TCP connections are open over the link", g.o.Ships)
	return nil
}

// join opens a connection over the link, in as many attempts as it needs.
func (g *takGame) join(ctx context.Context, ln net.Listener, ns, at string) (ship, hq net.Conn, err error) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	for {
		if ship, err = DialIn(ctx, ns, at); err == nil {
			break
		}
		if !pause(ctx, takRedial) {
			return nil, nil, fmt.Errorf("lab: no TCP connection over the link: %w", err)
		}
	}
	hq, err = ln.Accept()
	return ship, hq, err
}
