package pairlink

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
)

// ErrNoMajority says that a majority of the members does not answer.
var ErrNoMajority = errors.New("pairlink: a majority of the site's members does not answer")

// Cluster is this machine of a site of three or more.
type Cluster struct {
	base
	writes sync.Mutex // of the journal, and of state; locked before mu

	// The fields below are guarded by mu.
	m       *quorum.Machine
	self    int
	members []other // by number; that of this machine is unused
	role    pair.Role
	led     leading // the member that leads
	seq     uint64  // number of the last commit of this leadership
	waiting map[uint64]chan error
	gives   []int // members that are to get a copy of the journal
	state   logState
}

// leading is the member that leads, and since when.
type leading struct {
	by    int
	since time.Time
}

// other is another member.
type other struct {
	conn    *conn
	greeted greeting // the last that was accepted
	refused string
	heard   time.Time
	behind  time.Time // since when it lacks commits; zero: it lacks none
}

// OpenCluster starts to look for the other members. listener listens at cfg.Listen, which is one of cfg.Members.
func OpenCluster(cfg Config, listener net.Listener) (*Cluster, error) {
	c := &Cluster{waiting: map[uint64]chan error{}, self: -1, members: make([]other, len(cfg.Members))}
	for i, at := range cfg.Members {
		if at == cfg.Listen {
			c.self = i
		}
	}
	if c.self < 0 {
		return nil, fmt.Errorf("pairlink: %v is none of the members", cfg.Listen)
	}
	cfg.Facts = append(slices.Clone(cfg.Facts), Fact{Name: "cluster.members", Value: fmt.Sprint(cfg.Members)})
	if err := c.open(cfg, listener); err != nil {
		return nil, err
	}
	if err := c.restore(); err != nil {
		return nil, err
	}
	c.toLeader = func() *conn {
		if at := c.m.Leader(); at >= 0 && at != c.self {
			return c.members[at].conn
		}
		return nil
	}
	c.wait.Add(4)
	go c.tick()
	go c.tell()
	go c.write()
	go c.accept(c.known, func(raw *tls.Conn, done func()) { c.serve(raw, -1, done) })
	for i := c.self + 1; i < len(cfg.Members); i++ { // of each two, one calls
		c.wait.Add(1)
		go c.call(cfg.Members[i], func(raw *tls.Conn, done func()) { c.serve(raw, i, done) })
	}
	return c, nil
}

// known says whether an address is a member's.
func (c *Cluster) known(host netip.Addr) bool {
	for i, at := range c.cfg.Members {
		if i != c.self && at.Addr() == host {
			return true
		}
	}
	return false
}

// tick steps the machine when its time comes.
func (c *Cluster) tick() {
	defer c.wait.Done()
	for {
		c.mu.Lock()
		wait := c.step(nil)
		for i := range c.members {
			switch o := &c.members[i]; {
			case c.run == 0 || c.m.Behind(i) == 0:
				o.behind = time.Time{}
			case o.behind.IsZero():
				o.behind = time.Now()
			}
		}
		c.mu.Unlock()
		select {
		case <-c.life.Done():
			return
		case <-time.After(wait):
		}
	}
}

// step passes an event to the machine, sends its messages, and notes the copies to give. The caller holds mu.
func (c *Cluster) step(ev quorum.Event) time.Duration {
	if c.life.Err() != nil {
		return time.Hour
	}
	out := c.m.Step(now(), ev)
	c.look()
	c.send(out.Send)
	if h, heard := ev.(quorum.Heard); heard && out.Strange != "" {
		c.notTaken(h.From, out.Strange)
	}
	c.gives = append(c.gives, out.Copy...)
	c.nudge()
	return max(out.Deadline-now(), time.Millisecond)
}

// notTaken closes the connection with a member that sends a message which no member would send. The caller holds mu.
func (c *Cluster) notTaken(from int, why string) {
	o := &c.members[from]
	o.refused = "it says what no member says: " + why
	c.metrics.refused.WithLabelValues("message").Inc()
	if c.told.May(time.Now(), "message"+why) {
		c.cfg.Log.Warn(refusedText, "reason", "message", "remote", c.cfg.Members[from], "error", o.refused)
	}
	if o.conn != nil {
		o.conn.say(appendFrame(nil, kindRefuse, []byte(o.refused)))
		o.conn.finish(closeTime)
	}
}

func (c *Cluster) send(list []quorum.Sent) {
	for _, s := range list {
		if to := c.members[s.To].conn; to != nil {
			to.say(appendFrame(nil, kindQuorum, appendQuorum(s.Message)))
		}
	}
}

// look applies the machine's present role. A leadership stops before anything else is done; a new one starts once the journal has
// everything (rise). The caller holds mu.
func (c *Cluster) look() {
	if c.m.Role() != pair.Leading && c.run != 0 {
		c.run, c.waiting = 0, map[uint64]chan error{}
	}
	c.lease.Store(&lease{run: c.run, until: c.m.Lease()})
	if at := c.m.Leader(); at != c.led.by || c.led.since.IsZero() {
		c.led = leading{at, time.Now()}
	}
	if role := c.m.Role(); role != c.role {
		c.cfg.Log.Info("this machine of the site has another part", "role", role.String(), "before", c.role.String(), "epoch", c.m.Stored().Term)
		c.role, c.since = role, time.Now()
		if role != pair.Following {
			c.endPassing()
		}
		c.broadcast()
	}
}

// rise starts a leadership once the journal has everything that was committed. The caller holds mu.
func (c *Cluster) rise() {
	if c.run != 0 || c.m.Role() != pair.Leading || len(c.state.pending) > 0 || c.life.Err() != nil {
		return
	}
	c.run, c.seq = draw(), 0
	c.look()
	c.broadcast()
}

// serve greets the machine at the other end, and runs the connection until it is closed. called is the member that was called; -1: the
// other end has called.
func (c *Cluster) serve(raw *tls.Conn, called int, done func()) {
	k, g, err := c.greet(raw, func() greeting {
		h := c.m.Hello()
		return greeting{Member: &h, Listen: c.cfg.Listen}
	})
	c.mu.Lock()
	done()
	from := -1
	if err == nil {
		if from, err = c.whose(raw, g, called); err == nil {
			if why := c.refusal(from, g); why != "" {
				c.members[from].refused, err = why, errors.New(why)
			}
		}
	}
	if err != nil || c.life.Err() != nil {
		c.mu.Unlock()
		c.turnAway(raw, k, err)
		return
	}
	is := &c.members[from]
	if is.conn != nil {
		is.conn.close()
		c.step(quorum.Parted{From: from})
	}
	is.conn, is.greeted, is.refused, is.heard = k, g, "", time.Now()
	c.step(quorum.Met{From: from, Hello: *g.Member})
	c.mu.Unlock()
	c.wait.Add(1)
	go func() { defer c.wait.Done(); k.write() }()
	err = c.read(k, func(k *conn, kind kind, content []byte) error { return c.hear(from, k, kind, content) })
	k.close()
	if k.filling != nil {
		k.filling.refill.Abandon()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if is.conn == k {
		is.conn = nil
		if c.life.Err() == nil {
			c.cfg.Log.Info("the connection with a member of the site has ended", "member", c.cfg.Members[from], "error", err)
			c.step(quorum.Parted{From: from})
		}
	}
}

// whose is the number of the member at the other end. The member names its address, and must connect from there.
func (c *Cluster) whose(raw *tls.Conn, g greeting, called int) (int, error) {
	if g.Member == nil {
		return -1, errors.New("it is one of two, and this machine a member of [cluster]: give both the same sections")
	}
	for i, at := range c.cfg.Members {
		if at == g.Listen && i != c.self && at.Addr() == hostOf(raw.RemoteAddr()) && (called < 0 || called == i) {
			return i, nil
		}
	}
	return -1, fmt.Errorf("it says that it is %v, which is no other member here: give all the same cluster.members", g.Listen)
}

// refusal says why a member is refused; "": it is accepted.
func (c *Cluster) refusal(from int, g greeting) string {
	own, h := c.m.Hello(), g.Member
	for i := range c.members {
		if is := c.members[i].greeted.Member; i != from && is != nil && is.Machine == h.Machine {
			return fmt.Sprintf("it has a copy of the data directory of the member %v: give it an empty one", c.cfg.Members[i])
		}
	}
	switch by := time.Duration(c.cfg.Wall().Unix()-g.Clock) * time.Second; {
	case g.Protocol != protocol:
		return fmt.Sprintf("it speaks version %d of the protocol between the machines, this one %d: install the same version of the gateway", g.Protocol, protocol)
	case h.Machine == own.Machine:
		return "it has a copy of this machine's data directory: give it an empty one"
	case by.Abs() > mostApart:
		return fmt.Sprintf("its clock and this machine's differ by %v: set the wrong one", by.Abs())
	case h.Term == 0 && own.Term == 0 && h.Whole && own.Whole:
		return "both machines have a journal from before they were members of one site: keep the one that counts, and move node.data_dir of the other away"
	}
	return c.differs(g)
}

func (c *Cluster) hear(from int, k *conn, kind kind, content []byte) error {
	switch kind {
	case kindPing:
		return nil
	case kindRefuse:
		text := string(content[:min(len(content), 500)])
		c.mu.Lock()
		c.members[from].refused = "it refuses this machine: " + text
		c.mu.Unlock()
		return errors.New(text)
	case kindQuorum:
		m, err := parseQuorum(content)
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.members[from].conn == k {
			c.members[from].heard = time.Now()
			c.step(quorum.Heard{From: from, Message: m})
		}
		return nil
	case kindBegin:
		return c.beginCopy(k, content, func(is at) bool {
			return c.members[from].conn == k && c.m.Role() != pair.Leading && c.m.Believes(is.epoch)
		})
	case kindPart:
		return c.fill(k, content)
	case kindEnd:
		return c.endCopy(from, k)
	case kindPassed:
		return c.taking.hear(k, content)
	case kindTaken:
		return c.passages.agreed(&c.mu, content)
	}
	return fmt.Errorf("%w: kind %d", errFrame, kind)
}

// Pass passes the connections of local peers on to the leader, until the listener's deadline passes or it is closed.
func (c *Cluster) Pass(key string, ln net.Listener) {
	c.passAll(ln, func() (to netip.AddrPort, ok bool) {
		if c.toLeader() == nil {
			return to, false
		}
		at := c.m.Leader()
		return wayOf(c.members[at].greeted, key, c.cfg.Members[at]), true
	})
}

// Lead is the operator's order that this machine leads: it asks the leader to hand over.
func (c *Cluster) Lead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(quorum.Lead{})
}

// Retire is the order that another member leads: the one at an address, or else the one that can lead soonest; false: none
// could.
func (c *Cluster) Retire(at netip.AddrPort) bool {
	to := slices.Index(c.cfg.Members, at)
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == c.self || to < 0 && at.IsValid() || !c.m.CouldRetire(to) {
		return false
	}
	c.step(quorum.Retire{To: to})
	return c.m.Role() != pair.Leading
}

// Close stops this member. A leader hands over first, and waits until another member leads.
func (c *Cluster) Close() {
	if c.Retire(netip.AddrPort{}) {
		for end := time.Now().Add(closeTime); time.Now().Before(end); time.Sleep(pair.Beat / 10) {
			c.mu.Lock()
			led := c.m.Leader() >= 0
			c.mu.Unlock()
			if led {
				break
			}
		}
	}
	c.end()
	c.mu.Lock()
	for i := range c.members {
		if k := c.members[i].conn; k != nil {
			k.close()
		}
	}
	c.lease.Store(&lease{})
	c.mu.Unlock()
	c.listener.Close()
	c.wait.Wait()
}

// Status is this machine's state, for operators.
func (c *Cluster) Status() pair.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.m.Stored()
	s := pair.Status{Role: c.role.String(), Epoch: is.Term, Since: c.since, Whole: is.Whole, Ready: c.m.CouldRetire(-1), Passing: len(c.passages.passing),
		Silent: c.run != 0 && !c.MayTransmit(c.run), Refused: c.state.trouble, Stuck: !c.m.Founded()}
	leader := c.m.Leader()
	if leader >= 0 {
		s.LedSince = c.led.since
		s.Other = c.cfg.Members[leader].String()
	}
	for i, at := range c.cfg.Members {
		o := &c.members[i]
		row := pair.Member{At: at.String(), Self: i == c.self, Leads: i == leader, Connected: i == c.self || o.conn != nil, Version: o.greeted.Version, Refused: o.refused, Heard: o.heard}
		if s.Role == pair.Leading.String() && i != c.self {
			row.BehindCommits = c.m.Behind(i)
			row.BehindOctets, row.BehindSince = c.m.BehindOctets(i), o.behind
			s.BehindCommits, s.BehindOctets = max(s.BehindCommits, row.BehindCommits), max(s.BehindOctets, row.BehindOctets)
		}
		s.Connected = s.Connected || i != c.self && o.conn != nil
		s.Members = append(s.Members, row)
	}
	return s
}
