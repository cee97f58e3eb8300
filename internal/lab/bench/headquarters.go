package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	deathShips  = 64
	deathKills  = 20
	shipEvery   = 2 * time.Second // a message from each ship, and one to it
	growthEvery = 4 * time.Second // between such messages while growth is measured
	localRate   = 1000            // messages a second among local peers
	localPairs  = 4
	renewEvery  = 16 // messages, after which a sender asks for its lease again: the answer shows that HQ has them
	allSettled  = 2 * time.Minute
)

// headquarters is a site and its ships, with the messages between them: each ship has messages for a peer of HQ, which listens on the
// pipe toHQ, and peers of HQ have messages for each ship. All peers join another machine when their connection ends.
type headquarters struct {
	*siteOf
	fleet *armada
	every time.Duration
	end   context.CancelFunc
	all   sync.WaitGroup
	quiet atomic.Bool // no peer starts a message any more

	mu    sync.Mutex
	with  []dialogue
	local struct{ sent, came atomic.Int64 }
}

// dialogue is the messages between HQ's peers and a ship. A message sent before met may have found no listener.
type dialogue struct {
	said     int                    // number of messages sent by a peer of HQ
	accepted map[int]bool           // those of them that HQ has for certain
	came     map[int]map[string]int // messages of the ship, by number: how often each came with each MsgId, by which a peer recognises a copy
	met      [2]int                 // numbers from which on messages to the ship and from it count
}

// newHeadquarters starts a site with ships, and waits until all have heard each other.
func newHeadquarters(ctx context.Context, s *session, machines, ships int, every time.Duration) (*headquarters, error) {
	s.progressf("%d machines of HQ and %d ships", machines, ships)
	key, err := networkKey(ctx, s.run)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(ctx)
	h := &headquarters{every: every, end: cancel, with: make([]dialogue, ships)}
	for i := range h.with {
		h.with[i].accepted, h.with[i].came = map[int]bool{}, map[int]map[string]int{}
	}
	profile, err := bareProfile(s)
	if err != nil {
		return h, err
	}
	if h.fleet, err = newArmada(life, key, ships); err != nil {
		return h, err
	}
	if h.siteOf, err = newSite(ctx, s, machines, profile, h.fleet.peers); err != nil {
		return h, err
	}
	h.all.Go(func() { h.ear(life) })
	for i := range machines {
		h.all.Go(func() { h.mouth(life, i) })
	}
	h.all.Go(func() { h.talk(life) })
	return h, h.meet(ctx)
}

func (h *headquarters) close() {
	h.end()
	h.all.Wait()
	if h.siteOf != nil {
		_ = h.siteOf.close() // a killed one reports an error
	}
	if h.fleet != nil {
		h.fleet.close()
	}
}

// fixed is the configuration of a peer with the same id at each join.
func fixed(name string) tcp.Config {
	return tcp.Config{Edge: edgepeer.Config{ID: edgepeer.New(edgepeer.Config{Name: name, Rand: newRand()}).ID()}}
}

// tagged is a message of HQ's peers to a ship.
func tagged(ship, n int) []jxta.Element {
	e := body(n, toFar)
	copy(e[0].Data, fmt.Sprintf("%d;%d;", ship, n))
	return e
}

// lasts waits until a peer's connection or ctx ends.
func lasts(ctx context.Context, p *tcp.Peer) {
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
}

// ear receives the messages of the ships.
func (h *headquarters) ear(ctx context.Context) {
	cfg := fixed("bench-ear")
	cfg.Pipes = []edgepeer.Listen{{Pipe: edgepeer.NamedPipe(toHQ), Kind: jxta.PipeTypePropagate}}
	cfg.Hear = func(_ *tcp.Peer, n edgepeer.Notice) {
		m, ok := n.(edgepeer.Message)
		var from, number int
		if !ok || len(m.Elements) == 0 {
			return
		} else if _, err := fmt.Sscanf(string(m.Elements[0].Data), "%d;%d;", &from, &number); err != nil || from < firstShip || from >= firstShip+len(h.with) {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		of := h.with[from-firstShip].came
		if of[number] == nil {
			of[number] = map[string]int{}
		}
		of[number][m.MsgID]++
	}
	h.again(ctx, 0, cfg, "bench-ear", func(p *tcp.Peer) { lasts(ctx, p) })
}

// mouth sends messages to some ships, and asks for its lease again to know that HQ has them.
func (h *headquarters) mouth(ctx context.Context, i int) {
	var mine []int
	for k := i; k < len(h.with); k += len(h.machines) {
		mine = append(mine, k)
	}
	if len(mine) == 0 {
		return
	}
	name := fmt.Sprintf("bench-mouth-%d", i)
	next := 0
	h.again(ctx, i, fixed(name), name, func(p *tcp.Peer) {
		tick := time.NewTicker(h.every / time.Duration(len(mine)))
		defer tick.Stop()
		var open [][2]int
		for {
			select {
			case <-p.Done():
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !h.quiet.Load() {
				k := mine[next%len(mine)]
				next++
				h.mu.Lock()
				n := h.with[k].said
				h.with[k].said++
				h.mu.Unlock()
				if _, err := p.Do(edgepeer.Send{Pipe: shipPipe(k), Kind: jxta.PipeTypePropagate, Elements: tagged(firstShip+k, n)}); err != nil {
					return
				}
				open = append(open, [2]int{k, n})
			}
			if len(open) == 0 || len(open) < renewEvery && !h.quiet.Load() {
				continue
			}
			if p.Renew(ctx) != nil {
				return
			}
			h.mu.Lock()
			for _, o := range open {
				h.with[o[0]].accepted[o[1]] = true
			}
			h.mu.Unlock()
			open = open[:0]
		}
	})
}

// talk has a peer on each ship send a message now and then.
func (h *headquarters) talk(ctx context.Context) {
	tick := time.NewTicker(h.every / time.Duration(len(h.fleet.ships)))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !h.quiet.Load() {
			h.fleet.ships[i%len(h.fleet.ships)].say()
		}
	}
}

// gossip has local peers send each other messages, localRate a second, each through two machines.
func (h *headquarters) gossip(ctx context.Context) {
	for i := range localPairs {
		pipe, to := edgepeer.NamedPipe(fmt.Sprintf("bench-local-%d", i)), fixed(fmt.Sprintf("bench-local-to-%d", i))
		to.Pipes = []edgepeer.Listen{{Pipe: pipe, Kind: jxta.PipeTypeUnicast}}
		to.Hear = func(_ *tcp.Peer, n edgepeer.Notice) {
			if _, ok := n.(edgepeer.Message); ok {
				h.local.came.Add(1)
			}
		}
		h.all.Go(func() { h.again(ctx, i, to, "bench-local-to", func(p *tcp.Peer) { lasts(ctx, p) }) })
		h.all.Go(func() {
			h.again(ctx, i+1, tcp.Config{}, "bench-local-from", func(p *tcp.Peer) {
				began := time.Now()
				for n := 0; ctx.Err() == nil; n++ {
					pause(ctx, time.Until(began.Add(time.Duration(n)*localPairs*time.Second/localRate)))
					if _, err := p.Do(edgepeer.Send{Pipe: pipe, To: to.Edge.ID, Elements: body(n, toFar)}); err != nil {
						return
					}
					h.local.sent.Add(1)
				}
			})
		})
	}
}

// meet waits until each ship and HQ have heard each other.
func (h *headquarters) meet(ctx context.Context) error {
	h.s.progressf("%d ships and HQ meet", len(h.with))
	n := 0
	for end := time.Now().Add(allSettled); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		n = 0
		h.mu.Lock()
		for i, s := range h.fleet.ships {
			s.mu.Lock()
			if len(s.heard) > 0 && len(h.with[i].came) > 0 {
				n++
			}
			h.with[i].met = [2]int{h.with[i].said, len(s.stored)}
			s.mu.Unlock()
		}
		h.mu.Unlock()
		if n == len(h.with) {
			return nil
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("%d of %d ships and HQ have met within %v", n, len(h.with), allSettled))
}

// tally counts the messages: those that HQ or a ship's gateway certainly had, those of them that did not come, and those that came twice
// other than as a copy that a peer recognises.
type tally struct {
	sure, twice, copies int
	open                [2]int // not arrived: to ships, and from ships
}

// lost is how many did not come.
func (t tally) lost() int { return t.open[0] + t.open[1] }

func (h *headquarters) tally() (t tally) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range h.fleet.ships {
		with := &h.with[i]
		s.mu.Lock()
		for n := range with.accepted {
			if n < with.met[0] {
				continue
			}
			if t.sure++; n >= len(s.heard) || s.heard[n] == 0 {
				t.open[0]++
			}
		}
		for _, n := range s.heard {
			t.twice += max(0, n-1)
		}
		for n := with.met[1]; n < len(s.stored); n++ { // the ship's gateway has it: it never dies
			if t.sure++; with.came[n] == nil {
				t.open[1]++
			}
		}
		for _, ids := range with.came {
			t.twice += len(ids) - 1
			for _, n := range ids {
				t.copies += n - 1
			}
		}
		s.mu.Unlock()
	}
	return t
}

// settled stops all senders, and waits until every accepted message has come.
func (h *headquarters) settled(ctx context.Context) tally {
	h.quiet.Store(true)
	for end := time.Now().Add(allSettled); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 10*pollEvery) {
		if t := h.tally(); t.lost() == 0 {
			break
		}
	}
	return h.tally()
}

// deathsOfHQ kills the leader of HQ again and again, while ships and peers talk.
func deathsOfHQ(ctx context.Context, s *session, ships, kills int) error {
	h, err := newHeadquarters(ctx, s, members[s.where], ships, shipEvery)
	if h != nil {
		defer h.close()
	}
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	h.gossip(life)
	var took []float64
	for i := range kills {
		s.progressf("HQ's leader is killed, %d of %d", i+1, kills)
		dead, began := h.kill()
		all, err := h.fleet.resumed(ctx, began)
		if err != nil {
			return err
		}
		took = append(took, all.Seconds())
		if err = h.start(ctx, dead); err == nil {
			err = h.settle(ctx)
		}
		if err != nil {
			return err
		}
	}
	cancel()
	t := h.settled(ctx)
	note := fmt.Sprintf("%d messages to ships and of ships, of which %d and %d did not come; %d came again as a copy that peers know; %d of %d local messages came", t.sure, t.open[0], t.open[1], t.copies, h.local.came.Load(), h.local.sent.Load())
	s.put(Row{What: "HQ's leader is killed: HQ has a message of each ship again", Number: len(h.with), Of: "ships", Unit: "s", N: kills, Lost: t.lost(), Must: 15, Aim: 5, Less: true, Note: note}.of(took...))
	s.put(Row{What: "HQ's leader is killed: messages that came twice", Number: len(h.with), Of: "ships", Unit: "messages", N: t.sure, Less: true}.of(float64(t.twice)))
	return nil
}

// growth measures the resources of HQ as its ships become more: each sends and receives a message every growthEvery.
func growth(ctx context.Context, s *session) error {
	for _, ships := range []int{1, 16, 64, 256} {
		if s.Quick && ships > 16 {
			break
		}
		s.attempt(ctx, func() error { return grown(ctx, s, ships) })
	}
	return ctx.Err()
}

// grown is growth with so many ships.
func grown(ctx context.Context, s *session, ships int) error {
	n := members[s.where]
	h, err := newHeadquarters(ctx, s, n, ships, growthEvery)
	if h != nil {
		defer h.close()
	}
	if err != nil {
		return err
	}
	window := time.Duration(s.quick(10, 4)) * time.Second
	put := func(what, unit string, must, value float64) {
		s.put(Row{What: what, Number: ships, Of: "ships", Unit: unit, Less: true, Must: must}.of(value))
	}
	measure := func() (leader, other float64, octets float64, err error) {
		seen, before, began := watchPorts(h.between), h.costs(), time.Now()
		pause(ctx, window)
		a, b := h.since(before)
		sum, err := seen.stop()
		if n == 1 {
			err = nil // no traffic between machines to see
		}
		took := time.Since(began).Seconds()
		return 100 * a.Seconds() / took, 100 * b.Seconds() / took, float64(sum) / took, err
	}
	s.progressf("%d ships talk", ships)
	pause(ctx, 2*growthEvery)
	said := h.tally().sure
	leader, other, octets, err := measure()
	if err != nil {
		return err
	}
	said = h.tally().sure - said
	resident := h.machines[h.leader].cost().resident
	t := h.settled(ctx)
	s.progressf("%d ships are quiet", ships)
	idleLeader, idleOther, idle, err := measure()
	if err != nil {
		return err
	}
	s.put(Row{What: "growth: processor of the leader", Number: ships, Of: "ships", Unit: "% of a core", N: said, Lost: t.lost(), Less: true,
		Note: fmt.Sprintf("%.1f messages a second; %.1f when nobody talks; %d messages came twice", float64(said)/window.Seconds(), idleLeader, t.twice)}.of(leader))
	put("growth: memory of the leader", "MB", 0, resident)
	if n == 1 {
		return nil
	}
	s.put(Row{What: "growth: processor of each other machine", Number: ships, Of: "ships", Unit: "% of a core", N: said, Less: true, Note: fmt.Sprintf("%.1f when nobody talks", idleOther)}.of(other))
	put("growth: octets between the machines in a second in which nobody talks", "octets", 0, idle)
	put("growth: octets between the machines of a message, beside these", "octets", 4096, (octets-idle)*window.Seconds()/float64(max(1, said)))
	return nil
}
