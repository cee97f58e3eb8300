package field

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/fleet"
)

// sitePair is the machines of a site of two, each in a namespace on the site's LAN, and their witness there.
type sitePair struct {
	w       *world
	ns      [3]string // the last one is the witness's
	both    [2]*gatewayProc
	witness *gatewayProc
	one     sync.Mutex // held during an accident to them

	mu   sync.Mutex
	last [2]machineSaid
	led  []leadership // in the order in which they were seen
}

// machineSaid is what a machine said of itself, and when.
type machineSaid struct {
	at     time.Time
	Role   string    `json:"role"`
	Epoch  uint64    `json:"epoch"`
	Since  time.Time `json:"since"`
	Silent bool      `json:"silent"`
	Ready  bool      `json:"ready"`
	Whole  bool      `json:"whole"`
}

// leadership says that a machine has led since then.
type leadership struct {
	machine int
	epoch   uint64
	since   time.Time
}

const (
	pairPort    = 9733
	pairSwitch  = 10 // host of the LAN, from which TAK devices call
	pairEvery   = 100 * time.Millisecond
	pairSettles = time.Minute
)

// spaces are the namespaces of the machines, made when they are asked for first.
func (p *sitePair) spaces(s *lanSite) (first, second string, err error) {
	if p.ns[0] != "" {
		return p.ns[0], p.ns[1], nil
	}
	err = lan(s.ns, lanAddr(s.index, pairSwitch))
	for i, name := range []string{"m1", "m2", "w"} {
		if err == nil {
			p.ns[i], err = p.w.add(s.name + "-" + name)
		}
		if err == nil {
			err = plug(s.ns, p.ns[i], name, lanAddr(s.index, 1+i))
		}
	}
	return p.ns[0], p.ns[1], err
}

// outfitTwo makes the configurations of two machines and their witness.
func (s *lanSite) outfitTwo(others []*lanSite, bearers []bearer, binary, dir string) error {
	at := func(i int) string { return fmt.Sprintf("%s:%d", lanAddr(s.index, 1+i).Addr(), pairPort) }
	for i := range 3 {
		g, err := s.configured(others, bearers, binary, dir, s.pair.ns[i], 1+i)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("[site]\nlisten = %q\n", at(i))
		if i == 2 {
			s.pair.witness = g
		} else {
			s.pair.both[i] = g
			text += fmt.Sprintf("other = %q\nwitness = %q\n", at(1-i), at(2))
		}
		if err := g.configure(text); err != nil {
			return err
		}
	}
	s.gateway = s.pair.both[0]
	return nil
}

// machines are the site's gateways.
func (s *lanSite) machines() []*gatewayProc {
	if s.pair == nil {
		return []*gatewayProc{s.gateway}
	}
	return s.pair.both[:]
}

// leads is the gateway that leads the site, or did when one was seen to.
func (s *lanSite) leads() *gatewayProc {
	if s.pair == nil {
		return s.gateway
	}
	if i := s.pair.leader(); i >= 0 {
		return s.pair.both[i]
	}
	return s.gateway
}

// secondSeed is what the peers of a site of two are given beside seed.
func (s *lanSite) secondSeed() string {
	if s.pair == nil {
		return ""
	}
	return "tcp://" + s.pair.both[1].lan
}

// stop ends the site's gateways in good order: the one that follows first, so that the other hands over nothing.
func (s *lanSite) stop() error {
	if s.pair == nil {
		return s.gateway.stop()
	}
	lead := max(0, s.pair.leader())
	return errors.Join(s.pair.both[1-lead].stop(), s.pair.both[lead].stop(), s.pair.witness.stop())
}

// start starts the machines of a site and their witness, and waits until one leads whom the other could follow.
func (p *sitePair) start(ctx, all context.Context) error {
	err := p.witness.launch("site", "witness")
	for _, g := range p.both {
		err = errors.Join(err, g.launch("run"))
	}
	if err != nil {
		return err
	}
	for i := range p.both {
		go p.watch(all, i)
	}
	for _, g := range p.both {
		if err := g.takes(ctx); err != nil {
			return err
		}
	}
	if lead := p.settled(ctx); lead < 0 {
		return fmt.Errorf("lab: of %s nobody leads whom the other could follow: %s", p.both[0].name, p.both[0].tail())
	}
	return nil
}

// watch asks a machine again and again what it is.
func (p *sitePair) watch(ctx context.Context, i int) {
	for pause(ctx, pairEvery) {
		wait, stop := context.WithTimeout(ctx, time.Second)
		body, err := p.both[i].get(wait, "site")
		stop()
		said := machineSaid{at: time.Now()}
		if err != nil || json.Unmarshal(body, &said) != nil {
			continue
		}
		p.mu.Lock()
		p.last[i] = said
		if said.Role == "leading" && !slices.ContainsFunc(p.led, func(l leadership) bool { return l.epoch == said.Epoch && l.machine == i }) {
			p.led = append(p.led, leadership{i, said.Epoch, said.Since})
		}
		p.mu.Unlock()
	}
}

// leader is the machine that leads by what both have said in the last second; -1: none does.
func (p *sitePair) leader() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	lead := -1
	for i, said := range p.last {
		if said.Role == "leading" && !said.Silent && time.Since(said.at) < time.Second && (lead < 0 || said.Epoch > p.last[lead].Epoch) {
			lead = i
		}
	}
	return lead
}

// settled waits until one leads, and the other could, and says which one leads; -1: not within pairSettles.
func (p *sitePair) settled(ctx context.Context) int {
	for over := time.Now().Add(pairSettles); time.Now().Before(over); {
		if lead := p.leader(); lead >= 0 {
			p.mu.Lock()
			ready := p.last[lead].Ready && p.last[1-lead].Role == "following" && p.last[1-lead].Whole && time.Since(p.last[1-lead].at) < time.Second
			p.mu.Unlock()
			if ready {
				return lead
			}
		}
		if !pause(ctx, pairEvery) {
			break
		}
	}
	return -1
}

// mishap is an accident to machines of a site of two, and what comes of it.
type mishap struct {
	f       *fleetPlay
	c       *fleetCrew
	a       fleet.Accident
	began   time.Time
	up      time.Time // since then a machine could lead
	lead    int       // machine that led before
	both    bool
	unheard map[string]*interval
	res     fleet.Takeover
}

// play notes what happens, and what comes of it.
func (m *mishap) play(ctx context.Context) {
	f := m.f
	defer f.under.Done()
	var seen sync.WaitGroup
	m.happen(ctx, &seen)
	seen.Wait()
	f.mu.Lock()
	f.took = append(f.took, m.res)
	f.mu.Unlock()
	f.logf("%s: the other leads after %.1f s, others hear it after %.1f s, peers are served after %v s, octets %v", m.a.Said(), m.res.Leads, m.res.Heard, m.res.Served, m.res.Octets)
}

// happen begins once one leads and the other could, and ends when it is so again: the next accident to the site waits for that.
func (m *mishap) happen(ctx context.Context, seen *sync.WaitGroup) {
	f, c := m.f, m.c
	c.pair.one.Lock()
	defer c.pair.one.Unlock()
	m.res = fleet.Takeover{What: m.a.Said(), Served: map[string]float64{}, Octets: map[string]int64{}}
	if m.lead = c.pair.settled(ctx); m.lead < 0 {
		m.wrong(errors.New("before it nobody leads whom the other could follow"))
		return
	}
	victims := map[string][]int{fleet.Leader: {m.lead}, fleet.Follower: {1 - m.lead}, fleet.Both: {0, 1}}[cmp.Or(m.a.Machine, fleet.Leader)]
	m.both = len(victims) == 2
	f.accounts(func(x fleet.Account) { m.res.Octets[x.Site] -= x.Octets })
	m.began = time.Now()
	m.up = m.began
	if m.both {
		m.up = m.began.Add(m.a.For.Duration)
	}
	m.res.AtS = *seconds(m.up.Sub(f.zero).Round(time.Millisecond))
	f.tell(fmt.Sprintf("%s (machine %d)", m.a.Said(), 1+victims[0]))
	m.unheard = f.unheard(c, m.began)
	var err error
	for _, v := range victims {
		err = errors.Join(err, m.fall(v))
	}
	seen.Go(func() { m.cost(ctx) })
	seen.Go(func() { m.served(ctx) })
	if victims[0] == m.lead || m.both {
		seen.Go(func() { m.takenOver(ctx) })
	}
	if !pause(ctx, time.Until(m.began.Add(m.a.For.Duration))) {
		return
	}
	for _, v := range victims {
		err = errors.Join(err, m.rise(v))
	}
	f.tell(fmt.Sprintf("%s: both machines are up", c.name))
	if c.pair.settled(ctx) < 0 {
		err = errors.Join(err, errors.New("after it nobody leads whom the other could follow"))
	}
	m.wrong(err)
}

// wrong notes what went wrong.
func (m *mishap) wrong(err error) {
	if err != nil {
		m.f.mu.Lock()
		defer m.f.mu.Unlock()
		m.f.faults = append(m.f.faults, fmt.Sprintf("%s: %v", m.a.Said(), err))
	}
}

// fall is what happens to a machine at the beginning. Without power it answers nobody any more: its peers see no connection end.
func (m *mishap) fall(machine int) (err error) {
	g := m.c.pair.both[machine]
	if m.a.What == fleet.Stop {
		return g.cmd.Process.Signal(unix.SIGSTOP)
	}
	if m.a.What == fleet.Power {
		err = m.cable(machine, "down")
	}
	g.kill()
	return err
}

// rise ends what began with fall.
func (m *mishap) rise(machine int) (err error) {
	g := m.c.pair.both[machine]
	if m.a.What == fleet.Stop {
		return g.cmd.Process.Signal(unix.SIGCONT)
	}
	if m.a.What == fleet.Power {
		err = m.cable(machine, "up")
	}
	return errors.Join(err, g.launch("run"))
}

// cable joins a machine and its LAN and bearers, or parts them.
func (m *mishap) cable(machine int, state string) error {
	ns := m.c.pair.ns[machine]
	err := ip("-n", ns, "link", "set", "eth0", state)
	for i, x := range m.f.bearers {
		if x.Has(m.c.name) {
			err = errors.Join(err, ip("-n", ns, "link", "set", fmt.Sprintf("link%d", i), state))
		}
	}
	return err
}

// served fills in when what the peers say was in custody again, of those that talked by then.
func (m *mishap) served(ctx context.Context) {
	pause(ctx, time.Until(m.up))
	var all sync.WaitGroup
	var mu sync.Mutex
	for peers := range m.f.plays() {
		all.Go(func() {
			first := m.f.served(ctx, m.c, peers, m.unheard[peers], m.up)
			talked := slices.ContainsFunc(m.f.script.Talks, func(t fleet.Talk) bool {
				return (t.Peers == "" || t.Peers == peers) && m.f.zero.Add(t.At.Duration).Before(m.began)
			})
			mu.Lock()
			defer mu.Unlock()
			if !first.IsZero() && talked {
				m.res.Served[peers] = *seconds(first.Sub(m.up).Round(time.Millisecond))
			}
		})
	}
	all.Wait()
}

// cost fills in the octets since the accident.
func (m *mishap) cost(ctx context.Context) {
	pause(ctx, time.Until(m.began.Add(fleet.CostWindow)))
	m.f.accounts(func(x fleet.Account) { m.res.Octets[x.Site] += x.Octets })
}

// takenOver fills in when a machine leads, and when another site hears it.
func (m *mishap) takenOver(ctx context.Context) {
	p := m.c.pair
	for over := m.up.Add(servedWithin); time.Now().Before(over) && pause(ctx, pairEvery); {
		p.mu.Lock()
		i := slices.IndexFunc(p.led, func(l leadership) bool { return (m.both || l.machine != m.lead) && l.since.After(m.up) })
		var led leadership
		if i >= 0 {
			led = p.led[i]
		}
		p.mu.Unlock()
		if i < 0 {
			continue
		}
		m.res.Leads = *seconds(led.since.Sub(m.up).Round(time.Millisecond))
		for i, h := range m.f.hubs {
			if !m.f.bearers[i].Has(m.c.name) {
				continue
			}
			_, arrived := h.machines(m.c.name)
			if n := slices.IndexFunc(arrived, func(x transmitted) bool { return x.machine == led.machine && x.at.After(led.since) }); n >= 0 {
				m.res.Heard = *seconds(arrived[n].at.Sub(m.up).Round(time.Millisecond))
				return
			}
		}
	}
}

// wrongMachine counts what a machine of a site of two sent while it did not lead: the other one had begun to since, or it never has.
func wrongMachine(f *fleetPlay, c *fleetCrew) (n int64) {
	if c.pair == nil {
		return 0
	}
	c.pair.mu.Lock()
	led := slices.Clone(c.pair.led)
	c.pair.mu.Unlock()
	for i, h := range f.hubs {
		if !f.bearers[i].Has(c.name) {
			continue
		}
		sent, _ := h.machines(c.name)
		for _, x := range sent {
			if leaderAt(led, x.at) != x.machine {
				n++
			}
		}
	}
	return n
}

// leaderAt is the machine that had begun to lead last at a time, by epochs; -1: none had.
func leaderAt(led []leadership, at time.Time) int {
	lead, epoch := -1, uint64(0)
	for _, l := range led {
		if !l.since.After(at) && l.epoch >= epoch {
			lead, epoch = l.machine, l.epoch
		}
	}
	return lead
}
