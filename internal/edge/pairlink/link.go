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

// Config is the configuration of a machine of a site of two or more.
type Config struct {
	tlslink.Identity
	Listen, Other, Witness netip.AddrPort   // Witness invalid: there is none
	Members                []netip.AddrPort // of a site of three or more, in the same order on all; Other and Witness are then unused
	Journal                *journal.Journal
	Facts                  []Fact
	Ways                   []Way
	Version                string // of the gateway
	Wall                   func() time.Time
	Log                    *slog.Logger
}

// ErrDeposed says that this machine no longer leads.
var ErrDeposed error = deposed{}

type deposed struct{}

func (deposed) Error() string { return "pairlink: the other machine of the site leads, or may" }

// Remedy says what to do about it.
func (deposed) Remedy() string { return "nothing: this machine follows from now on" }

// Link is this machine of a site of two.
type Link struct {
	base
	commits sync.Mutex // one at a time, and none while a snapshot is made; locked before mu
	applies sync.Mutex // held while a follower writes; locked before mu

	// The fields below are guarded by mu.
	m       *pair.Machine
	pos     at   // epoch is unused
	begun   bool // the gateway of this leadership runs: a follower may have a snapshot
	conn    *conn
	recent  recent
	other   greeting // the last that was accepted
	refused string   // why the other machine is refused
	alone   standing // since when this machine is alone, and how much is on its disk only
	third
}

// base is the common part of a machine of two and a member of three or more.
type base struct {
	cfg      Config
	twin     *tls.Config // for connections with the other machines
	listener net.Listener
	metrics  *metrics
	lease    atomic.Pointer[lease]
	wake     chan struct{}
	lifetime

	mu      sync.Mutex
	run     uint64        // this machine's leadership; 0: it does not lead
	since   time.Time     // of the role
	changed chan struct{} // closed when the role changes, or a commit is acknowledged
	failed  error
	broken  time.Duration // when the journal began to fail; 0: it does not
	bounds
	passages passages
	// toLeader is the connection to the machine that this one follows; nil: there is none. Its caller holds mu.
	toLeader func() *conn

	taking taking // not guarded by mu
}

// lifetime stops the goroutines.
type lifetime struct {
	life context.Context
	end  context.CancelFunc
	wait sync.WaitGroup
}

// third is the state of the witness as seen from here.
type third struct {
	anybody *tls.Config
	asking  bool
	heard   time.Time
}

// bounds limit open greetings and log lines.
type bounds struct {
	told     due.Seldom[string]
	greeting int // connections whose other end has not shown its key
}

// lease says until when a leadership may transmit.
type lease struct {
	run   uint64
	until time.Duration
}

// now is a clock of the machine that nobody can set, and that runs while the machine is suspended.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(math.MaxInt64) // no lease holds
	}
	return time.Duration(ts.Nano())
}

// Open starts to look for the other machine. listener listens at cfg.Listen.
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
	if cfg.Listen.Compare(cfg.Other) < 0 { // of the two, one calls
		l.wait.Add(1)
		go l.call(cfg.Other, l.serve)
	}
	if cfg.Witness.IsValid() {
		l.wait.Add(1)
		go l.probe()
	}
	return l, nil
}

// open makes the common part.
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

// restore reads this machine's stored vote, or draws its number.
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
	stored = pair.Stored{Machine: draw(), Whole: j.Incarnation() > 0} // a gateway that was alone until now, or a journal that was put back
	return stored, j.SetVote(appendStored(stored))
}

// draw is a random number that is not 0.
func draw() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) | 1
}

// tick steps the machine when its time comes.
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

// step passes an event to the machine and carries out its orders. The caller holds mu.
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
		l.lease.Store(&lease{}) // if a lease ends, it does so before anything else is done
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

// fail stops this machine's part: it no longer leads, and promises nothing. The caller holds mu.
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

// news reports another role, and that a leader is alone or no longer alone. The caller holds mu.
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

// Leadership is this machine's leadership; 0: it does not lead. The channel is closed when this may have changed.
func (l *base) Leadership() (run uint64, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run, l.changed, l.failed
}

// MayTransmit says whether a leadership may transmit on the link now.
func (l *base) MayTransmit(run uint64) bool {
	held := l.lease.Load()
	return held != nil && run != 0 && held.run == run && (held.until == math.MaxInt64 || now() < held.until)
}

// Lead is the operator's order that this machine leads. If the other machine leads and is connected, it is asked to hand over.
func (l *Link) Lead() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(pair.Lead{})
}

// Retire is the order that the other machine leads; false: it is not connected, lacks commits, or has another address.
func (l *Link) Retire(at netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.m.Ready() || at.IsValid() && at != l.cfg.Other {
		return false
	}
	l.step(pair.Retire{})
	return l.m.Role() != pair.Leading
}

// notReady says that this machine leads, and that the other will soon be able to.
func (l *Link) notReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed == nil && l.m.Role() == pair.Leading && !l.m.Alone() && l.conn != nil
}

// closeTime bounds the last messages.
const closeTime = time.Second

// Close stops this machine's part. A leader with a follower hands over first.
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
