package field

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/baddisk"
	"aldis/internal/lab/fleet"
)

// siteMachines are the machines of a site of several, each in a namespace on the site's LAN, and for a site of two their witness there.
type siteMachines struct {
	w       *world
	ns      []string // for a site of two, the last one is the witness's
	all     []*gatewayProc
	witness *gatewayProc // nil: a site of three or more needs none
	one     sync.Mutex   // held during an accident to the machines

	mu   sync.Mutex
	last []machineSaid
	led  []leadership // in the order in which they were seen
}

// machineSaid is a machine's report of its role, and its time.
type machineSaid struct {
	at     time.Time
	Role   string    `json:"role"`
	Epoch  uint64    `json:"epoch"`
	Since  time.Time `json:"since"`
	Silent bool      `json:"silent"`
	Ready  bool      `json:"ready"`
	Whole  bool      `json:"whole"`
}

// leadership says that a machine has led since a time.
type leadership struct {
	machine int
	epoch   uint64
	since   time.Time
}

const (
	sitePort    = 9733
	siteSwitch  = 10 // host of the LAN, from which TAK devices call
	siteEvery   = 100 * time.Millisecond
	siteSettles = time.Minute
)

// spaces makes the namespaces of the machines at its first call.
func (p *siteMachines) spaces(s *lanSite) error {
	if p.ns != nil {
		return nil
	}
	err := lan(s.ns, lanAddr(s.index, siteSwitch))
	for i := range max(3, len(p.all)) {
		name := fmt.Sprintf("m%d", i+1)
		if i == len(p.all) {
			name = "w"
		}
		var ns string
		if err == nil {
			ns, err = p.w.add(s.name + "-" + name)
			p.ns = append(p.ns, ns)
		}
		if err == nil {
			err = plug(s.ns, ns, name, lanAddr(s.index, 1+i))
		}
	}
	return err
}

// outfitSeveral makes the configurations of two machines and their witness, or of three and more.
func (s *lanSite) outfitSeveral(others []*lanSite, bearers []bearer, binary, dir string) error {
	var at []string
	for i := range s.several.ns {
		at = append(at, fmt.Sprintf("%q", fmt.Sprintf("%s:%d", lanAddr(s.index, 1+i).Addr(), sitePort)))
	}
	for i, ns := range s.several.ns {
		g, err := s.configured(others, bearers, binary, dir, ns, 1+i)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("[cluster]\nmembers = [%s]\n", strings.Join(at, ", "))
		switch {
		case i == len(s.several.all):
			s.several.witness, text = g, fmt.Sprintf("[site]\nlisten = %s\n", at[i])
		case len(s.several.all) == 2:
			text = fmt.Sprintf("[site]\nlisten = %s\nother = %s\nwitness = %s\n", at[i], at[1-i], at[2])
			fallthrough
		default:
			s.several.all[i] = g
		}
		if err := g.configure(text); err != nil {
			return err
		}
	}
	s.gateway = s.several.all[0]
	return nil
}

// machines are the site's gateways.
func (s *lanSite) machines() []*gatewayProc {
	if s.several == nil {
		return []*gatewayProc{s.gateway}
	}
	return s.several.all
}

// leads is the gateway that leads the site, or the first one if no leader is known.
func (s *lanSite) leads() *gatewayProc {
	if s.several == nil {
		return s.gateway
	}
	if i := s.several.leader(); i >= 0 {
		return s.several.all[i]
	}
	return s.gateway
}

// seeds are the seeds of the site's peers: the addresses of all its machines.
func (s *lanSite) seeds() []string {
	list := []string{s.seed()}
	for _, g := range s.machines()[1:] {
		list = append(list, "tcp://"+g.lan)
	}
	return list
}

// turned is the list from its n-th entry on, followed by the entries before that.
func turned(list []string, n int) []string {
	n %= len(list)
	return slices.Concat(list[n:], list[:n])
}

// stop ends the site's gateways in good order. First it stops as many others as the leader can do without, then the leader, which can
// thus still write its last records. At a site of three or more it kills the rest, which can no longer lead.
func (s *lanSite) stop() (err error) {
	if s.several == nil {
		return s.gateway.stop()
	}
	p := s.several
	lead := max(0, p.leader())
	others := slices.Delete(slices.Clone(p.all), lead, lead+1)
	first := len(others) // two machines: the follower stops first, and the leader hands over nothing
	if p.witness == nil {
		first = (len(p.all) - 1) / 2
	}
	for _, g := range others[:first] {
		err = errors.Join(err, g.stop())
	}
	err = errors.Join(err, p.all[lead].stop())
	for _, g := range others[first:] {
		g.kill()
	}
	if p.witness != nil {
		err = errors.Join(err, p.witness.stop())
	}
	return err
}

// start starts the machines of a site and their witness, and waits until a machine leads that the others could replace.
func (p *siteMachines) start(ctx, all context.Context) (err error) {
	if p.witness != nil {
		err = p.witness.launch("site", "witness")
	}
	for _, g := range p.all {
		err = errors.Join(err, g.launch("run"))
	}
	if err != nil {
		return err
	}
	for i := range p.all {
		go p.watch(all, i)
	}
	for _, g := range p.all {
		if err := g.takes(ctx); err != nil {
			return err
		}
	}
	if lead := p.settled(ctx); lead < 0 {
		return fmt.Errorf("lab: of %s nobody leads whom the others could follow: %s", p.all[0].name, p.all[0].tail())
	}
	return nil
}

// watch polls a machine for its role.
func (p *siteMachines) watch(ctx context.Context, i int) {
	for pause(ctx, siteEvery) {
		wait, stop := context.WithTimeout(ctx, time.Second)
		body, err := p.all[i].get(wait, "site")
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

// leader is the machine that leads, by the reports of the last second; -1: none does.
func (p *siteMachines) leader() int {
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

// settled waits until a machine leads and the others could take over, and returns the leader; -1: not within siteSettles.
func (p *siteMachines) settled(ctx context.Context) int {
	for over := time.Now().Add(siteSettles); time.Now().Before(over); {
		if lead := p.leader(); lead >= 0 {
			p.mu.Lock()
			ready := p.last[lead].Ready
			for i, said := range p.last {
				ready = ready && (i == lead || said.Role == "following" && said.Whole && time.Since(said.at) < time.Second)
			}
			p.mu.Unlock()
			if ready {
				return lead
			}
		}
		if !pause(ctx, siteEvery) {
			break
		}
	}
	return -1
}

// mishap is an accident to machines of a site of several, with its consequences.
type mishap struct {
	f       *fleetPlay
	c       *fleetCrew
	a       fleet.Accident
	began   time.Time
	up      time.Time // from then on a machine could lead
	lead    int       // the machine that led before
	both    bool
	unheard map[string]*interval
	res     fleet.Takeover
}

// play runs the accident, and notes its consequences.
func (m *mishap) play(ctx context.Context) {
	f := m.f
	defer f.under.Done()
	var seen sync.WaitGroup
	m.happen(ctx, &seen)
	seen.Wait()
	f.mu.Lock()
	f.took = append(f.took, m.res)
	f.mu.Unlock()
	took := ""
	if m.res.Led {
		took = fmt.Sprintf("another one leads after %.1f s, others hear it after %.1f s, ", m.res.Leads, m.res.Heard)
	}
	f.logf("%s: %speers are served after %v s, octets %v", m.a.Said(), took, m.res.Served, m.res.Octets)
}

// happen begins once a machine leads and the others could take over, and ends when that is so again: the next accident to the site waits
// for it.
func (m *mishap) happen(ctx context.Context, seen *sync.WaitGroup) {
	f, c := m.f, m.c
	c.several.one.Lock()
	defer c.several.one.Unlock()
	m.res = fleet.Takeover{Site: c.name, Cause: m.a.What, What: m.a.Said(), Served: map[string]float64{}, Octets: map[string]int64{}}
	if m.lead = c.several.settled(ctx); m.lead < 0 {
		m.wrong(errors.New("before it nobody leads whom the others could follow"))
		return
	}
	victims := m.victims()
	m.both = len(victims) == 2
	m.res.Led = m.both || victims[0] == m.lead
	f.accounts(func(x fleet.Account) { m.res.Octets[x.Site] -= x.Octets })
	m.began = time.Now()
	m.up = m.began
	if m.both {
		m.up = m.began.Add(m.a.For.Duration)
	}
	m.res.AtS = *seconds(m.up.Sub(f.zero).Round(time.Millisecond))
	f.tell(m.told(victims[0]))
	m.unheard = f.unheard(c, m.began)
	var err error
	for _, v := range victims {
		err = errors.Join(err, m.fall(ctx, v))
	}
	seen.Go(func() { m.cost(ctx) })
	seen.Go(func() { m.served(ctx) })
	if m.res.Led {
		seen.Go(func() { m.takenOver(ctx) })
	}
	if !pause(ctx, time.Until(m.began.Add(m.a.For.Duration))) {
		return
	}
	for _, v := range victims {
		err = errors.Join(err, m.rise(v))
	}
	f.tell(fmt.Sprintf("%s: all machines are up", c.name))
	if c.several.settled(ctx) < 0 {
		err = errors.Join(err, errors.New("after it nobody leads whom the others could follow"))
	}
	m.wrong(err)
}

// victims are the machines that the accident hits.
func (m *mishap) victims() []int {
	switch n := m.a.Number(); {
	case n > 0:
		return []int{n - 1}
	case m.a.Machine == fleet.Both:
		return []int{0, 1}
	case m.a.Machine == fleet.Follower:
		return []int{(m.lead + 1) % len(m.c.several.all)}
	}
	return []int{m.lead}
}

// told describes the accident, with its machine.
func (m *mishap) told(victim int) string {
	led := ""
	if m.a.Number() > 0 && m.res.Led {
		led = ", which led"
	} else if m.a.Number() == 0 {
		led = fmt.Sprintf(" (machine %d)", 1+victim)
	}
	return m.a.Said() + led
}

// wrong notes an error.
func (m *mishap) wrong(err error) {
	if err != nil {
		m.f.mu.Lock()
		defer m.f.mu.Unlock()
		m.f.faults = append(m.f.faults, fmt.Sprintf("%s: %v", m.a.Said(), err))
	}
}

// fall is the beginning of the accident for a machine. A machine without power answers no packets, so its peers see no end of their
// connections. What its disk had not been told to keep by then is lost.
func (m *mishap) fall(ctx context.Context, machine int) (err error) {
	g := m.c.several.all[machine]
	switch m.a.What {
	case fleet.Stop:
		return g.cmd.Process.Signal(unix.SIGSTOP)
	case fleet.Upgrade:
		err := g.stop()
		if g.machine != nil {
			return errors.Join(err, g.machine.install(ctx, m.f.upgrade))
		}
		g.binary = m.f.upgrade
		return err
	}
	if m.a.What == fleet.Power {
		err = m.cable(machine, "down")
	}
	g.kill()
	if g.machine != nil && m.a.What == fleet.Power {
		err = errors.Join(err, g.machine.disk.Fail(baddisk.Failure{Writes: true}))
	}
	return err
}

// rise ends the accident for a machine.
func (m *mishap) rise(machine int) (err error) {
	g := m.c.several.all[machine]
	if m.a.What == fleet.Stop {
		return g.cmd.Process.Signal(unix.SIGCONT)
	}
	if m.a.What == fleet.Power {
		if g.machine != nil {
			err = g.machine.disk.LosePower()
		}
		err = errors.Join(err, m.cable(machine, "up"))
	}
	return errors.Join(err, g.launch("run"))
}

// cable joins a machine and its LAN and bearers, or parts them.
func (m *mishap) cable(machine int, state string) error {
	ns := m.c.several.ns[machine]
	err := ip("-n", ns, "link", "set", "eth0", state)
	for i, x := range m.f.bearers {
		if x.Has(m.c.name) {
			err = errors.Join(err, ip("-n", ns, "link", "set", fmt.Sprintf("link%d", i), state))
		}
	}
	return err
}

// served fills in when messages of the peers were in custody again, for the kinds of peers that talked by then.
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

// cost fills in the octets since the beginning of the accident.
func (m *mishap) cost(ctx context.Context) {
	pause(ctx, time.Until(m.began.Add(fleet.CostWindow)))
	m.f.accounts(func(x fleet.Account) { m.res.Octets[x.Site] += x.Octets })
}

// takenOver fills in when another machine leads, and when another site hears it.
func (m *mishap) takenOver(ctx context.Context) {
	p := m.c.several
	for over := m.up.Add(servedWithin); time.Now().Before(over) && pause(ctx, siteEvery); {
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

// wrongMachine counts the packets that machines of a site of several sent while they did not lead, because another had begun to lead
// since or because they never did.
func wrongMachine(f *fleetPlay, c *fleetCrew) (n int64) {
	if c.several == nil {
		return 0
	}
	c.several.mu.Lock()
	led := slices.Clone(c.several.led)
	c.several.mu.Unlock()
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

// leaderAt is the machine that had begun to lead last before a time, by epochs; -1: none had.
func leaderAt(led []leadership, at time.Time) int {
	lead, epoch := -1, uint64(0)
	for _, l := range led {
		if !l.since.After(at) && l.epoch >= epoch {
			lead, epoch = l.machine, l.epoch
		}
	}
	return lead
}
