package tak

import (
	"aldis/internal/adapters/files"
	"encoding/binary"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Config of an Adapter. The zero value of a field that has a default means the default.
type Config struct {
	Sites   []uint16 // far sites
	Mesh    bool     // the LAN room is a member of the LAN's mesh
	Unicast string   // IP and port where devices of the mesh send events for a single unit; "": nowhere
	Shared  bool     // the link is a radio net: one transmission is for all sites, and nobody confirms what has arrived
	Open    bool     // chat for several sites may go to all members of a group: one message for all, and nobody confirms what has arrived
	Octets  int      // of a batch, about; default 300
	RateBps int      // bits per second of a radio net, which bounds a batch further; 0: unlimited
	Twice   bool     // a batch of reports may go twice: the link does not cost by the octet
	Rules   []rule.Rule
	Wants   []rule.Want   // events that this site wants to receive; empty: all
	Bound   float64       // metres that a unit's far picture may be wrong by; default 50
	Age     time.Duration // longest time between two batches of a site that has units; default 1 min, on a radio net 5 min
	Gather  time.Duration // how long a due report waits for others; default 0.5 s, on a radio net 5 s
	Gap     time.Duration // between two batches on a radio net, half as much more where other sites speak as well; default 20 s
	Cadence time.Duration // between two events of a far unit that moves; default 5 s
	Units   int           // most units of this site; default 2000
	Files   Files         // data packages
	Beside  []string      // IPs of the site's other machines, which pass streams on. A device may have a stream to each machine
	Apart   time.Duration // a device's clock that is wrong by more is not believed; default 2 min
	Taken   bool          // the LAN room says when a device has an event (Taken); false: it has what was ordered
	calm    int           // Octets of a batch on a radio net while nothing urgent is sent
	// Run makes the number of a new table of units; nil: from the time of the first Step.
	Run func() uint16
}

func (c Config) withDefaults() Config {
	wait := func(d *time.Duration, alone, shared time.Duration) {
		if *d == 0 {
			*d = alone
			if c.Shared {
				*d = shared
			}
		}
	}
	wait(&c.Age, time.Minute, 5*time.Minute)
	wait(&c.Gather, time.Second/2, 5*time.Second)
	wait(&c.Gap, 0, 20*time.Second)
	wait(&c.Cadence, 5*time.Second, 5*time.Second)
	wait(&c.Apart, 2*time.Minute, 2*time.Minute)
	if c.Bound == 0 {
		c.Bound = 50
	}
	if c.Files.Most == 0 {
		c.Files.Most = 2 << 20
	}
	if c.Octets == 0 {
		c.Octets = 300
	}
	if c.Shared && c.RateBps > 0 {
		in := func(air time.Duration) int {
			return min(c.Octets, max(leastBatch, int(float64(c.RateBps)*air.Seconds()/8)-aroundBatch))
		}
		c.calm, c.Octets = in(calmAir), in(batchAir)
	}
	if c.Units == 0 {
		c.Units = 2000
	}
	return c
}

// patience is how long a unit's whole event may still be on its way when a later report has come: a radio net repeats lost messages, but
// reports of positions do not wait for them.
func (c *Config) patience() time.Duration {
	if c.Shared {
		return 2 * c.Gap
	}
	return 0
}

// On a radio net an urgent message waits for the batch on the air. So a batch takes batchAir of air time, with about
// aroundBatch octets around it, unless it would be shorter than leastBatch.
const (
	calmAir     = 7 * time.Second // while nothing urgent is sent and there are units that nobody is shown yet
	batchAir    = 4500 * time.Millisecond
	aroundBatch = 70
	leastBatch  = 60
)

// Adapter is the TAK side of a gateway. It is not for concurrent use.
type Adapter struct {
	*step
	devices   *devices
	near      *track.Near
	audiences []*audience
	far       map[uint16]*track.Far
	lost      map[uint16]bool // sites of which something was lost in this run
	kept      kept
	events    *due.Recent[string]
	words     words
	files     *packages
	wants     wants
	unread    []string // keys of memories that could not be read
	known     bool     // the number of the table of units is known: from an earlier run, or since the first Step
	start     uint8    // how often this site has started, modulo 4
	began     bool
	lastCheck time.Time // for stale units
}

// audience is the sites that receive the same batches: one site, or all sites of a radio net.
type audience struct {
	*track.Outlet
	sites []uint16
	late  bool
	batch map[uint64]uint64 // the numbers of batches under way, by token
}

// New restores an adapter from its memories.
func New(cfg Config, memories []site.Memory) (*Adapter, error) {
	cfg = cfg.withDefaults()
	f := &Adapter{step: &step{cfg: cfg, trouble: due.NewTally()}, near: track.NewNear(0, cfg.Units), far: map[uint16]*track.Far{}, lost: map[uint16]bool{},
		kept: newKept(track.Changes(cfg.Age)), events: due.NewRecent[string](mostSeen),
		wants: wants{of: map[uint16][]rule.Want{}, budgets: map[budgetOf]*track.Budget{}}}
	for _, m := range memories {
		if m.Key == keyRun && len(m.Value) == 3 {
			f.near.Run, f.start, f.known = binary.BigEndian.Uint16(m.Value), m.Value[2], true
		}
	}
	f.devices = newDevices(f.step, f.near)
	f.devices.onMap = func(uid string) bool { return onMap(f, uid) }
	f.words = words{step: f.step, devices: f.devices, near: f.near, tokens: map[uint64]uint32{}}
	f.files = newPackages(f.step, f.devices)
	for _, s := range cfg.Sites {
		f.far[s] = track.NewFar(cfg.Cadence, cfg.patience())
	}
	err := f.restore(memories)
	if f.near.Renew() {
		f.known = false
	}
	return f, err
}

// begin does the part of New that needs the time, in the first Step.
func (f *Adapter) begin(now time.Time) {
	f.began = true
	if !f.known {
		run := uint16(now.Unix() / 7)
		if f.cfg.Run != nil {
			run = f.cfg.Run()
		}
		if run == f.near.Run { // far sites keep the units of a run
			run++
		}
		f.known, f.near.Run = true, run
	}
	forgetUnits(f)
	f.start = (f.start + 1) & 3
	for _, far := range f.far {
		far.Resume(now, f.cfg.Age)
	}
	forgetUnread(f)
	f.files.TellAll()
	f.wants.state(f.step)
	f.remember(keyRun, []byte{byte(f.near.Run >> 8), byte(f.near.Run), f.start})
	if f.cfg.Shared {
		pace := paceOf(f)
		pace.Calm, pace.Gap, pace.First = f.cfg.calm, f.cfg.Gap, time.Duration(f.cfg.rank())*apart
		hearing(f, pace, f.cfg.Sites)
		return
	}
	for _, s := range f.cfg.Sites {
		hearing(f, paceOf(f), []uint16{s})
	}
}

func paceOf(f *Adapter) track.Pace {
	return track.Pace{Gather: f.cfg.Gather, Age: f.cfg.Age, Octets: f.cfg.Octets}
}

// hearing makes the two audiences of sites that receive the same batches.
func hearing(f *Adapter, pace track.Pace, sites []uint16) {
	for _, late := range []bool{false, true} {
		f.audiences = append(f.audiences, &audience{Outlet: track.NewOutlet(pace, len(f.audiences)/2, late, f.start), sites: sites, late: late,
			batch: map[uint64]uint64{}})
	}
}

// joined adds a site that the configuration does not name. A site that was lost gets the markers that have changed while it was away.
func joined(f *Adapter, now time.Time, id uint16) {
	all := func(*cot.Event) bool { return true }
	if f.far[id] != nil {
		if f.lost[id] {
			f.placedAgain(now, id, all)
		}
		return
	}
	f.far[id] = track.NewFar(f.cfg.Cadence, f.cfg.patience())
	f.cfg.Sites = append(slices.Clone(f.cfg.Sites), id)
	if !f.cfg.Shared {
		hearing(f, paceOf(f), []uint16{id})
	}
	for _, a := range f.audiences {
		if f.cfg.Shared {
			a.sites = f.cfg.Sites
		}
	}
	careAnew(f, now)
	f.placedAgain(now, id, all)
}

// rank tells the sites of a network apart: each has a different rank if their numbers are consecutive.
func (c *Config) rank() int {
	sum := 0
	for _, id := range c.Sites {
		sum += int(id)
	}
	return sum % min(len(c.Sites)+1, mostRanks)
}

// If several sites of a radio net get units at the same time, their first batches follow each other with apart between them.
const (
	apart     = 8 * time.Second
	mostRanks = 4
)

// heardUrgent makes batches short for a while if an event is urgent, here or at a far site.
func (f *Adapter) heardUrgent(now time.Time, p site.Precedence) {
	if p.Rank() < site.Flash.Rank() {
		return
	}
	for _, a := range f.audiences {
		a.Urgent(now)
	}
}

// Step brings the adapter to now and applies ev.
func (f *Adapter) Step(now time.Time, ev site.Event) site.Output {
	f.out = site.Output{}
	if !f.began {
		f.begin(now)
	}
	switch ev := ev.(type) {
	case Opened:
		f.opened(now, ev)
	case Heard:
		f.heard(now, ev)
	case Overheard:
		f.overheard(now, ev)
	case Direct:
		f.direct(now, ev)
	case Handed:
		f.devices.handed(now, ev)
	case Broken:
		f.devices.broken(now, ev)
	case Taken:
		f.devices.settle(ev.Token, ev.Conn)
	case Closed:
		f.devices.closed(ev)
	case files.Fetched:
		for _, o := range f.files.fetched(now, ev) {
			f.carryEvent(now, o.event, o.sites)
		}
	case files.Loaded:
		f.files.Loaded(now, ev)
	case files.Kept:
		f.files.Kept(now, ev)
	case files.Finished:
		f.files.Finished(now, ev)
	case files.Published:
		if e := f.files.published(now, ev); e != nil {
			f.carryEvent(now, e, f.cfg.Sites)
		}
	case files.Wanted:
		f.files.wanted(now, ev)
	case Met:
		f.trouble.Count("met")
		f.event(now, &client{host: "met", met: true}, ev.Event)
	case Ears:
		f.devices.hear(now, ev)
	case site.FarMessage:
		f.farMessage(now, ev)
	case site.FarItem:
		f.farItem(now, ev.Site, ev.Item)
	case site.SiteLost:
		f.siteLost(now, ev.Site)
	case site.Joined:
		joined(f, now, ev.Site)
	case site.Fate:
		f.fate(now, ev)
		f.words.fate(now, ev)
	}
	f.turn(now)
	f.out.Deadline = f.due()
	return f.out
}

// turn does what is due.
func (f *Adapter) turn(now time.Time) {
	if now.Sub(f.lastCheck) >= checkEvery {
		f.lastCheck = now
		f.checkStale(now)
		f.kept.purge(now, f.remember)
		f.turnPlaced(now)
		f.devices.giveUp(now)
		f.devices.hurry(now)
		f.words.giveUp(now)
		f.files.Purge(now)
		f.devices.tryAgain(now)
	}
	f.devices.tellVersions(now)
	f.showFar(now)
	f.speak(now)
}

const checkEvery = 2 * time.Second

func (f *Adapter) due() (at time.Time) {
	at = f.devices.dueMesh(at)
	for _, a := range f.audiences {
		at = due.Earliest(at, a.Due())
	}
	for _, far := range f.far {
		at = due.Earliest(at, far.Due())
	}
	if !f.near.Empty() || f.kept.len() > 0 || len(f.devices.waiting) > 0 || len(f.devices.giving) > 0 || len(f.words.unread) > 0 || f.files.Len() > 0 {
		at = due.Earliest(at, f.lastCheck.Add(checkEvery))
	}
	return at
}

// speak hands the batches that are due to custody.
func (f *Adapter) speak(now time.Time) {
	for _, a := range f.audiences {
		data, number, matters := a.Batch(now, f.near)
		if data == nil {
			continue
		}
		m := site.Message{Published: true, Scope: scope, Topic: topicUnits, Parts: []site.Part{{Name: topicUnits, Data: data}}}
		m.Expires, m.Twice, m.Fleeting = now.Add(2*f.cfg.Age), f.cfg.Twice && matters, f.cfg.Shared
		if a.late {
			m.Precedence = site.Deferred
		}
		if !f.cfg.Shared {
			f.token++
			m.Token = f.token
			a.batch[f.token] = number
		}
		f.out.Carry = append(f.out.Carry, site.Carry{Sites: a.sites, Message: m})
		f.trouble.Count("batches")
	}
}

// fate takes in the outcome of a batch.
func (f *Adapter) fate(now time.Time, ev site.Fate) {
	for _, a := range f.audiences {
		if number, ok := a.batch[ev.Token]; ok {
			delete(a.batch, ev.Token)
			if ev.Failed() {
				a.Refused(now, number)
			} else {
				a.Ended(now, number, true)
			}
		}
	}
}

// Names in the messages of this adapter.
const (
	scope      = "tak"
	topicUnits = "units"
	topicEvent = "event"
	topicAsk   = "ask"
)

// ask asks sites for units of which a Whole is missing.
func (f *Adapter) ask(now time.Time) {
	for _, id := range f.cfg.Sites {
		far := f.far[id]
		numbers := far.Ask(now)
		if len(numbers) == 0 {
			continue
		}
		data := []byte{byte(far.Run >> 8), byte(far.Run)}
		for _, n := range numbers {
			data = binary.AppendUvarint(data, uint64(n))
		}
		f.trouble.Count("asked")
		f.out.Carry = append(f.out.Carry, site.Carry{Sites: []uint16{id}, Message: site.Message{Published: true, Scope: scope, Topic: topicAsk,
			Parts: []site.Part{{Name: topicAsk, Data: data}}, Mark: site.Mark{Expires: now.Add(5 * time.Minute)}}})
	}
}

// asked takes in that a site lacks units.
func (f *Adapter) asked(now time.Time, from uint16, data []byte) {
	if len(data) < 2 || binary.BigEndian.Uint16(data) != f.near.Run {
		return
	}
	for data = data[2:]; len(data) > 0; {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			return
		}
		data = data[size:]
		for _, a := range f.audiences {
			switch {
			case n >= code.MostUnits || !slices.Contains(a.sites, from):
			case f.near.Left(uint32(n)):
				a.Deny(now, uint32(n))
			default:
				a.Forget(now, uint32(n))
			}
		}
	}
}
