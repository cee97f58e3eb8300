package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

const (
	datagramHeaders = 28 // IPv4 and UDP, octets
	batchSize       = 16
	// quietFor without a datagram means that all traffic has ended: the profile lets an acknowledgement wait for 6 s.
	quietFor   = 7 * time.Second
	quietLimit = time.Minute
)

// wire carries datagrams between two gateways on loopback and counts them.
type wire struct {
	ends    [2]*net.UDPConn // the addresses at which gateway 0 and gateway 1 see the other
	targets [2]netip.AddrPort
	mu      sync.Mutex
	count   int
	octets  [2]int // by sender, IP and UDP headers included
	last    time.Time
	done    sync.WaitGroup
}

// newWire returns the wire, and the addresses under which gateway 0 finds gateway 1 and the other way round.
func newWire(radio [2]int) (*wire, [2]string, error) {
	w := &wire{last: time.Now()}
	var at [2]string
	for i := range w.ends {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			w.close()
			return nil, at, err
		}
		w.ends[i], at[i] = c, c.LocalAddr().String()
		w.targets[i] = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(radio[i]))
	}
	for i := range w.ends { // datagrams of gateway i come in at end i and leave by the other end, so that they seem to come from there
		w.done.Add(1)
		go func() {
			defer w.done.Done()
			buf := make([]byte, 64<<10)
			for {
				n, err := w.ends[i].Read(buf)
				if err != nil {
					return
				}
				w.mu.Lock()
				w.count++
				w.octets[i] += n + datagramHeaders
				w.last = time.Now()
				w.mu.Unlock()
				_, _ = w.ends[1-i].WriteToUDPAddrPort(buf[:n], w.targets[1-i]) // a link may lose datagrams
			}
		}()
	}
	return w, at, nil
}

func (w *wire) close() {
	for _, c := range w.ends {
		if c != nil {
			c.Close()
		}
	}
	w.done.Wait()
}

// settle waits until nothing has crossed for a while and returns the traffic since the last call.
func (w *wire) settle(ctx context.Context) (datagrams int, octets [2]int, err error) {
	w.mu.Lock()
	w.last = time.Now() // the last datagrams may still be on their way to the link
	w.mu.Unlock()
	for end := time.Now().Add(quietLimit); ; {
		w.mu.Lock()
		quiet := time.Since(w.last)
		if quiet >= quietFor {
			datagrams, octets, w.count, w.octets = w.count, w.octets, 0, [2]int{}
			w.mu.Unlock()
			return datagrams, octets, nil
		}
		w.mu.Unlock()
		if time.Now().After(end) {
			return 0, octets, errors.New("the link does not become quiet")
		}
		pause(ctx, quietFor-quiet)
		if ctx.Err() != nil {
			return 0, octets, ctx.Err()
		}
	}
}

// octets measures the octets on the link for one octet of payload on a pipe, both directions, acknowledgements included.
func (s *session) octets(ctx context.Context) error {
	s.progressf("two gateways and a counted link")
	radio, err := freePorts("udp", 2)
	if err != nil {
		return err
	}
	w, at, err := newWire([2]int(radio))
	if err != nil {
		return err
	}
	defer w.close()
	var gateways [2]*server
	for i := range gateways {
		gateways[i], err = s.gateway(ctx, site{id: i + 1, profile: "iridium-directip", radio: radio[i], peers: map[int]string{2 - i: at[i]}})
		if err != nil {
			return err
		}
		defer gateways[i].stop()
	}
	c, err := behind(ctx, gateways[0], gateways[1])
	if err != nil {
		return err
	}
	defer c.close()
	wirePipe := edgepeer.NamedPipe("bench-wire")
	if _, err := c.b.Do(edgepeer.Listen{Pipe: wirePipe, Kind: jxta.PipeTypePropagate}); err != nil {
		return err
	}
	var got atomic.Int64
	count := func(edgepeer.Message) { got.Add(1) }
	c.atB.Store(&count)
	s.progressf("first contact of the gateways")
	if _, _, err := w.settle(ctx); err != nil {
		return err
	}
	number := 0
	for _, kind := range []string{"propagate", "unicast"} {
		send := edgepeer.Send{Pipe: wirePipe, Kind: jxta.PipeTypePropagate}
		if kind == "unicast" {
			send = edgepeer.Send{Pipe: c.there}
		}
		for _, many := range []int{1, batchSize} {
			s.progressf("%s pipe: %d at a time", kind, many)
			var each []float64
			row := Row{What: whatOneOctet + " on a " + kind + " pipe, alone", Unit: "octets", Must: 100, Aim: 60, Less: true, Warm: many}
			if many > 1 {
				row.What, row.Must, row.Aim = fmt.Sprintf("%s, each of %d at once on a %s pipe", whatOneOctet, many, kind), 24, 16
			}
			for trial := range s.quick(5, 1) + 1 {
				got.Store(0)
				for range many {
					number++
					send.Elements = []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte{byte(number)}}}
					if _, err := c.a.Do(send); err != nil {
						return err
					}
				}
				for end := time.Now().Add(quietLimit); got.Load() < int64(many) && time.Now().Before(end); {
					pause(ctx, time.Millisecond) // the gateway hands a backlog over at a pace
				}
				n, o, err := w.settle(ctx)
				if err != nil {
					return err
				}
				if trial == 0 {
					continue // the first trial names the pipe and its peers; later ones refer to those
				}
				row.Lost += many - int(got.Load())
				row.N += many
				row.Note = fmt.Sprintf("with acknowledgement %.4g, %.2f datagrams", float64(o[0]+o[1])/float64(many), float64(n)/float64(many))
				each = append(each, float64(o[0])/float64(many))
			}
			s.put(row.of(each...))
		}
	}
	return nil
}
