package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"aldis/internal/edge/daemon"
	"aldis/internal/edge/keyfile"
	"aldis/internal/edge/radio"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/air"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	words "aldis/internal/site"
)

const (
	firstShip = 2 // node id
	toHQ      = "bench-hq"
)

// shipPipe is the propagate pipe to which a peer on a ship listens.
func shipPipe(i int) string { return edgepeer.NamedPipe(fmt.Sprintf("bench-ship-%d", i)) }

// armada is the ships of a headquarters, all in this process: each has a gateway of its own with its loop and its UDP socket. This
// program acts for their peers. The ships do not die and keep no journal.
type armada struct {
	ships []*ship
	end   context.CancelFunc
	loops sync.WaitGroup
}

// ship is one of the ships, and the adapter of its gateway.
type ship struct {
	number int
	peer   string // the peer on board
	loop   *daemon.Daemon
	radio  *radio.Radio

	mu     sync.Mutex
	listed bool        // its pipe was announced
	stored []time.Time // by number: when HQ had its message; zero: HQ does not have it
	heard  []int       // by number: how often a message of HQ has come
}

// newArmada starts so many ships.
func newArmada(ctx context.Context, keyFile string, n int) (a *armada, err error) {
	p, err := profile.Decode("bare.toml", []byte(barelink))
	if err != nil {
		return nil, err
	}
	key, err := keyfile.LoadKey(keyFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	a = &armada{end: cancel}
	for i := range n {
		s := &ship{number: i, peer: fixed("bench-ship").Edge.ID, loop: daemon.New(slog.New(slog.DiscardHandler), nil)}
		if s.radio, err = radio.Open(netip.MustParseAddrPort("127.0.0.1:0"), s.loop.PostAir); err != nil {
			return a, err
		}
		a.ships = append(a.ships, s)
		g, err := gateway.New(gateway.Config{ID: uint16(firstShip + i), Name: fmt.Sprintf("bench-ship-%d", i), Profile: p, Key: key,
			Peers:       []gateway.PeerConfig{{ID: 1, Name: "bench-1"}},
			Incarnation: seal.Incarnation{Number: uint32(time.Now().Unix()), Salt: uint16(rand.Uint32())}, Store: rand.Uint32(), Rand: newRand(),
			Adapters: map[words.Adapter]func([]words.Memory) (gateway.Adapter, error){words.JXTA: func([]words.Memory) (gateway.Adapter, error) { return s, nil }},
		}, nil)
		if err != nil {
			return a, err
		}
		a.loops.Go(func() {
			_ = s.loop.Run(ctx, daemon.Parts{Engine: g, Radio: s.radio.Send, Gather: s.radio.Gather, Commit: func([]api.Record) error { return nil },
				LAN: func(api.LANOrder) {}, Norm: func(api.NormCommand) {}, Hush: func(api.Hush) {}})
		})
	}
	return a, nil
}

// close ends the ships.
func (a *armada) close() {
	a.end()
	a.loops.Wait()
	for _, s := range a.ships {
		s.radio.Close()
	}
}

// peers are the ships' addresses, for HQ's configuration.
func (a *armada) peers(int, int) (map[int]string, error) {
	list := map[int]string{}
	for i, s := range a.ships {
		list[firstShip+i] = s.radio.Addr().String()
	}
	return list, nil
}

// said is an event: a peer on the ship sends its next message.
type said struct{}

// AdapterEvent marks said as an event of an adapter.
func (said) AdapterEvent() {}

// say has a peer on the ship send a message to HQ.
func (s *ship) say() { s.loop.PostLAN(words.JXTA)(said{}) }

// Step is the gateway's view of the ship's peers.
func (s *ship) Step(now time.Time, ev words.Event) (out words.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.listed = true
		out.Items = []words.Item{{Kind: words.Listener, Scope: "jxta-NetGroup", Owner: s.peer, ID: shipPipe(s.number), Sub: jxtabridge.PipePropagate}}
	}
	switch ev := ev.(type) {
	case said:
		m := air.Track(uint16(firstShip+s.number), edgepeer.NamedPipe(toHQ), len(s.stored), toFar)
		s.stored = append(s.stored, time.Time{})
		m.From, m.Token = s.peer, uint64(len(s.stored))
		out.Carry = []words.Carry{{Sites: []uint16{1}, Message: m}}
	case words.FarMessage:
		out.Done = []uint64{ev.Token}
		var from, n int
		if _, err := fmt.Sscanf(string(ev.Message.Parts[0].Data), "%d;%d;", &from, &n); err == nil && n >= 0 {
			for len(s.heard) <= n {
				s.heard = append(s.heard, 0)
			}
			s.heard[n]++
		}
	case words.Fate:
		if ev.Ending == words.Stored && ev.Token > 0 && int(ev.Token) <= len(s.stored) && s.stored[ev.Token-1].IsZero() {
			s.stored[ev.Token-1] = time.Now()
		}
	}
	return out
}

// DescribeItem describes an item for the rules.
func (s *ship) DescribeItem(it words.Item) words.Subject { return jxtabridge.DescribeItem(it) }

// DescribeMessage describes a message for the rules.
func (s *ship) DescribeMessage(m *words.Message) words.Subject { return jxtabridge.DescribeMessage(m) }

// counts returns the messages that the ship has sent, and those of them that HQ has.
func (s *ship) counts() (said, stored int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.stored {
		if !at.IsZero() {
			stored++
		}
	}
	return len(s.stored), stored
}

// resumed has each ship send a message, and returns the time until HQ has all of them.
func (a *armada) resumed(ctx context.Context, since time.Time) (time.Duration, error) {
	last := make([]int, len(a.ships))
	for i, s := range a.ships {
		last[i], _ = s.counts()
		s.say()
	}
	for end := since.Add(2 * settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		var latest time.Time
		n := 0
		for i, s := range a.ships {
			s.mu.Lock()
			if last[i] < len(s.stored) && !s.stored[last[i]].IsZero() {
				n++
				if at := s.stored[last[i]]; at.After(latest) {
					latest = at
				}
			}
			s.mu.Unlock()
		}
		if n == len(a.ships) {
			return latest.Sub(since), nil
		}
	}
	return 0, errors.Join(ctx.Err(), fmt.Errorf("HQ has not heard all of %d ships within %v", len(a.ships), 2*settling))
}
