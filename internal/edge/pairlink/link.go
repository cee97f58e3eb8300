package pairlink

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/journal"
	"aldis/internal/edge/tlslink"
	"aldis/internal/gateway/pair"
	"aldis/internal/ground/due"
)

// Config is what a machine of a site of two is made of.
type Config struct {
	tlslink.Identity
	Listen, Other, Witness netip.AddrPort   // Witness invalid: there is none
	Members                []netip.AddrPort // of three and more, in the order in which all have them; Other and Witness are not used
	Journal                *journal.Journal
	Facts                  []Fact
	Ways                   []Way
	Version                string // of the gateway
	Wall                   func() time.Time
	Log                    *slog.Logger
}

// ErrDeposed says that this machine does not lead any more.
var ErrDeposed error = deposed{}

type deposed struct{}

func (deposed) Error() string { return "pairlink: the other machine of the site leads, or may" }

// Remedy is what to do about it.
func (deposed) Remedy() string { return "nothing: this machine follows from now on" }

// Link is this machine of the two.
type Link struct {
	base
	commits sync.Mutex // one at a time, and none while a snapshot is taken; before mu
	applies sync.Mutex // what a follower writes; before mu

	// Below, under mu.
	m       *pair.Machine
	pos     at   // epoch is not used
	begun   bool // the gateway of this leadership runs: a follower may have a snapshot
	conn    *conn
	recent  recent
	other   greeting // the last that was taken
	refused string   // why the other machine is not taken
	alone   standing // since when, and what is on one disk alone
	third
}

// base is what a machine of two has, and a member of three and more.
type base struct {
	cfg      Config
	twin     *tls.Config // the other machines
	listener net.Listener
	metrics  *metrics
	lease    atomic.Pointer[lease]
	wake     chan struct{}
	lifetime

	mu      sync.Mutex
	run     uint64        // the leadership of this machine; 0: it does not lead
	since   time.Time     // of the role
	changed chan struct{} // closed when the role is another, or something was acknowledged
	failed  error
	broken  time.Duration // when the journal began to fail; 0: it does not
	bounds
	passages passages
	// toLeader is the connection to the machine that this one follows; nil: there is none. Its caller holds mu.
	toLeader func() *conn

	taking taking // not under mu
}

// lifetime ends what runs.
type lifetime struct {
	life context.Context
	end  context.CancelFunc
	wait sync.WaitGroup
}

// third is the witness.
type third struct {
	anybody *tls.Config
	asking  bool
	heard   time.Time
}

// bounds count what is open, and say what is logged.
type bounds struct {
	told     due.Seldom[string]
	greeting int // connections whose other end has not shown who it is
}

// lease says until when a leadership may transmit.
type lease struct {
	run   uint64
	until time.Duration
}

// now is the machine's clock that nobody sets, and that goes on while it is suspended.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(math.MaxInt64) // no lease holds
	}
	return time.Duration(ts.Nano())
}

// Open begins to look for the other machine. listener is that of cfg.Listen.
func Open(cfg Config, listener net.Listener) (*Link, error) {
	l := &Link{}
	err := l.open(cfg, listener)
	if err != nil {
		return nil, err
	}
	if l.anybody, err = l.cfg.Config(0); err != nil {
		return nil, err
	}
	stored, err := l.restore()
	if err != nil {
		return nil, err
	}
	l.m = pair.New(now(), stored, cfg.Witness.IsValid(), func() (uint64, uint64) { return l.pos.run, l.pos.seq })
	l.toLeader = func() *conn {
		if l.m.Role() != pair.Following {
			return nil
		}
		return l.conn
	}
	l.wait.Add(3)
	go l.tick()
	go l.tell()
	go l.accept(func(host netip.Addr) bool { return host == cfg.Other.Addr() }, l.serve)
	if cfg.Listen.Compare(cfg.Other) < 0 { // one of the two calls
		l.wait.Add(1)
		go l.call(cfg.Other, l.serve)
	}
	if cfg.Witness.IsValid() {
		l.wait.Add(1)
		go l.probe()
	}
	return l, nil
}

// open makes what each machine has.
func (l *base) open(cfg Config, listener net.Listener) (err error) {
	cfg.Twin = true
	l.cfg, l.listener, l.metrics, l.wake, l.changed, l.since = cfg, listener, newMetrics(), make(chan struct{}, 1), make(chan struct{}), time.Now()
	l.bounds = bounds{told: due.Seldom[string]{Every: time.Minute, Most: 64}}
	l.passages = passages{passing: map[net.Conn]*passage{}, gave: make(chan struct{}, 1)}
	l.taking.list = map[netip.AddrPort]taken{}
	l.life, l.end = context.WithCancel(context.Background())
	l.twin, err = cfg.Config(cfg.Self)
	return err
}

// restore reads what this machine has voted, or draws its number.
func (l *Link) restore() (pair.Stored, error) {
	j := l.cfg.Journal
	vote, position := j.Pair()
	stored, ok := parseStored(vote)
	if rest, err := cutNumbers(position, &l.pos.run, &l.pos.seq); err != nil || len(rest) > 0 {
		l.pos = at{}
	}
	if ok {
		return stored, nil
	}
	if vote != nil {
		return stored, errors.New("pairlink: the journal does not say readably what this machine has voted: run gateway journal check")
	}
	l.pos = at{}
	stored = pair.Stored{Machine: draw(), Whole: j.Incarnation() > 0} // a gateway that was the only one, or a journal that was put back
	return stored, j.SetVote(appendStored(stored))
}

// draw is a random number that is not 0.
func draw() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) | 1
}

// tick steps the machine when its time has come.
func (l *Link) tick() {
	defer l.wait.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.life.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		l.mu.Lock()
		wait := l.step(nil)
		l.mu.Unlock()
		timer.Reset(wait)
	}
}

// step gives the machine an event and carries out what it wants. The caller holds mu.
func (l *Link) step(ev pair.Event) (wait time.Duration) {
	if l.failed != nil {
		return time.Hour
	}
	role, epoch, alone := l.m.Role(), l.m.Stored().Epoch, l.m.Alone()
	out := l.m.Step(now(), ev)
	if l.m.Role() == pair.Leading && role != pair.Leading {
		l.run, l.begun = draw(), false
		l.pos = at{run: l.run}
		l.recent = recent{}
	}
	next := &lease{run: l.run}
	until, forever := l.m.Lease()
	if next.until = until; forever {
		next.until = math.MaxInt64
	}
	if l.m.Role() != pair.Leading {
		l.run = 0
	}
	if held := l.lease.Load(); held == nil || next.run != held.run || next.until < held.until {
		l.lease.Store(&lease{}) // a lease that ends does so before anything else
	}
	if out.Store != nil {
		if err := l.cfg.Journal.SetVote(appendStored(*out.Store)); err != nil {
			l.fail(fmt.Errorf("pairlink: what this machine has voted cannot be stored: %w", err))
			return time.Hour
		}
	}
	l.lease.Store(next)
	if l.m.Role() != pair.Following {
		l.endPassing()
	}
	for _, m := range out.Send {
		l.say(appendFrame(nil, kindMessage, appendMessage(m)))
	}
	if out.Ask != nil {
		l.ask(*out.Ask)
	}
	if l.m.Role() != role || l.m.Stored().Epoch != epoch || l.m.Alone() != alone {
		l.news(role, alone)
	}
	if l.m.Followed() && l.begun && l.conn != nil && !l.conn.streaming {
		l.conn.streaming = true
		l.wait.Add(1)
		go l.stream(l.conn)
	}
	if l.conn != nil {
		l.caught(l.conn)
	}
	if ev != nil {
		l.nudge()
	}
	return max(out.Deadline-now(), time.Millisecond)
}

func (l *base) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// fail ends this machine's part: it does not lead, and promises nothing any more. The caller holds mu.
func (l *Link) fail(err error) {
	l.failed = err
	l.lease.Store(&lease{})
	l.cfg.Log.Error("this machine of the site stops: its disk fails", "error", err)
	if l.conn != nil {
		l.conn.close()
	}
	l.broadcast()
}

func (l *base) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// news tells of another role, or that a leader is alone or not. The caller holds mu.
func (l *Link) news(role pair.Role, alone bool) {
	s := l.m.Stored()
	if l.m.Role() != role {
		l.since = time.Now()
		l.cfg.Log.Info("this machine of the site has another part", "role", l.m.Role().String(), "before", role.String(), "epoch", s.Epoch, "voted", s.Voted)
	}
	switch leads := l.m.Role() == pair.Leading; {
	case leads && l.m.Alone() && !(alone && role == pair.Leading):
		l.alone = standing{since: time.Now()}
		l.cfg.Log.Warn("this gateway is alone: what it accepts is on one disk until the other machine follows again", "epoch", s.Epoch)
	case leads && !l.m.Alone() && alone:
		l.alone = standing{}
		l.cfg.Log.Info("the other machine follows: what is accepted is on two disks", "epoch", s.Epoch)
	}
	l.broadcast()
}

// Leadership is this machine's leadership; 0: it does not lead. The channel is closed when that may be another.
func (l *base) Leadership() (run uint64, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run, l.changed, l.failed
}

// MayTransmit says whether a leadership may put something on the link now.
func (l *base) MayTransmit(run uint64) bool {
	held := l.lease.Load()
	return held != nil && run != 0 && held.run == run && (held.until == math.MaxInt64 || now() < held.until)
}

// Lead is the operator's order that this machine leads. Where the other one leads and is heard it is asked to hand over.
func (l *Link) Lead() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(pair.Lead{})
}

// Retire is the order that the other machine leads; false: it is not there, lacks something, or has another address.
func (l *Link) Retire(at netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.m.Ready() || at.IsValid() && at != l.cfg.Other {
		return false
	}
	l.step(pair.Retire{})
	return l.m.Role() != pair.Leading
}

// notReady says of a leader that the other machine will soon be able to lead.
func (l *Link) notReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed == nil && l.m.Role() == pair.Leading && !l.m.Alone() && l.conn != nil
}

// closeTime is how long the last words may take.
const closeTime = time.Second

// Close ends it. A leader with a follower hands over first.
func (l *Link) Close() {
	for end := time.Now().Add(closeTime); !l.Retire(netip.AddrPort{}) && l.notReady() && time.Now().Before(end); {
		time.Sleep(pair.Beat / 10)
	}
	l.mu.Lock()
	if l.conn != nil {
		l.conn.finish(closeTime)
	}
	l.mu.Unlock()
	l.end()
	l.listener.Close()
	l.wait.Wait()
	l.mu.Lock()
	l.lease.Store(&lease{})
	l.mu.Unlock()
}
