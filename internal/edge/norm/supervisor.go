package norm

import (
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"

	"aldis/internal/edge/norm/cell"
	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
)

// Config is the profile's settings, and how to start a child.
type Config struct {
	Self    uint16        // node id of this gateway, 1..65535
	Segment int           // octets, the same at all members
	GRTT    time.Duration // the same at all members
	TxRate  float64       // bits per second of NORM octets to each peer: see elide.TxRate
	// Command returns a child that has not been started: the gateway's own binary with the hidden subcommand that calls
	// ChildMain.
	Command func() *exec.Cmd
	// Ways are the ways to confine a child, the best first; nil means cell.Ways.
	Ways []cell.Way
	// Lacks, if not nil, is called with the parts of the cell that this machine does not offer, once and when they change.
	Lacks func(missing []string)
}

const (
	hangAfter   = 5 * time.Second // without a heartbeat
	checkEvery  = 500 * time.Millisecond
	queueLen    = 4096     // commands that may wait; if they are more, the child does not read
	queueOctets = 64 << 20 // of them
	minPause    = time.Second
	maxPause    = 16 * time.Second
	stderrTail  = 512 // octets kept of a child's stderr
)

// Stats are the supervisor's counters.
type Stats struct {
	Starts, Downs uint64
	StrangePacket uint64 // packets at our loopback sockets from another address: dropped
	Dropped       uint64 // commands for a child that is down or a peer that it does not have
	// Cell is the state of the cell of the last child that was up; nil before the first.
	Cell *Cell
}

// Cell says which parts of its cell a child has.
type Cell struct {
	Whole   bool     `json:"whole"`
	Missing []string `json:"missing,omitempty"`
}

// Supervisor owns the child. Do never blocks. Events come through post, one at a time and in order for each peer, from several
// goroutines. post may block for a while, and the child then waits; it must return before Close can.
//
// An object that was canceled before libnorm had it, or that is longer than elide.MaxObject allows, goes out empty, so that the
// numbers of later objects stay right; at the far end it is a NormObject without Data.
//
// Events of a child come between its NormUp and NormDown (or the NormUp of the next). After NormDown all commands are dropped
// until a NormStart: the supervisor does not restart on its own. If children die young, the next start waits for up to 16
// seconds.
type Supervisor struct {
	cfg  Config
	post func(api.Event)

	commands chan api.NormCommand
	held     atomic.Int64 // octets in commands and in the child's queue
	overflow atomic.Bool
	stop     chan struct{}
	stopped  chan struct{}

	starts, downs, strange, dropped atomic.Uint64
	cell                            atomic.Pointer[Cell]
}

// New starts the supervisor without a child.
func New(cfg Config, post func(api.Event)) (*Supervisor, error) {
	switch {
	case cfg.Self == 0:
		return nil, errors.New("norm: node id 0")
	case cfg.Segment < 64 || cfg.Segment > elide.MaxSegment:
		return nil, fmt.Errorf("norm: segment of %d octets: 64..%d", cfg.Segment, elide.MaxSegment)
	case cfg.GRTT < time.Millisecond || cfg.GRTT > 900*time.Second:
		return nil, fmt.Errorf("norm: GRTT %v: 1ms..900s", cfg.GRTT)
	case !(cfg.TxRate >= 1):
		return nil, fmt.Errorf("norm: rate %v bit/s", cfg.TxRate)
	}
	if cfg.Ways == nil {
		cfg.Ways = cell.Ways()
	}
	s := &Supervisor{cfg: cfg, post: post, commands: make(chan api.NormCommand, queueLen),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.run()
	return s, nil
}

// Do takes a command. It never blocks: a full queue means a hung child.
func (s *Supervisor) Do(c api.NormCommand) {
	if s.held.Load() > queueOctets {
		s.overflow.Store(true)
		return
	}
	s.held.Add(octets(c))
	select {
	case s.commands <- c:
	default:
		s.held.Add(-octets(c))
		s.overflow.Store(true)
	}
}

// Stats may be called at any time.
func (s *Supervisor) Stats() Stats {
	return Stats{s.starts.Load(), s.downs.Load(), s.strange.Load(), s.dropped.Load(), s.cell.Load()}
}

// Close stops the child, and returns when nothing more is posted.
func (s *Supervisor) Close() {
	close(s.stop)
	<-s.stopped
}

func octets(c api.NormCommand) int64 {
	switch c := c.(type) {
	case api.NormEnqueue:
		return int64(len(c.Data))
	case api.NormInject:
		return int64(len(c.Data))
	}
	return 0
}

func (s *Supervisor) run() {
	defer close(s.stopped)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var (
		now      *process       // nil: none
		pending  *api.NormStart // ordered, but not due yet
		due      time.Time
		pause    = minPause
		lastNet  = firstNet
		down     func(reason string)
		gone     <-chan struct{}
		begin    func()
		lastBorn time.Time
		ways     = s.cfg.Ways // the first is tried next
	)
	down = func(reason string) {
		now.end()
		now, gone = nil, nil
		s.downs.Add(1)
		s.post(api.NormDown{Reason: reason})
	}
	begin = func() {
		start := *pending
		pending = nil
		if time.Since(lastBorn) > maxPause {
			pause = minPause
		}
		lastBorn = time.Now()
		s.starts.Add(1)
		p, err := s.startProcess(start, lastNet, &ways)
		if err != nil {
			s.downs.Add(1)
			s.post(api.NormDown{Reason: err.Error()})
			return
		}
		now, gone, lastNet = p, p.gone, p.net
	}
	for {
		select {
		case <-s.stop:
			if now != nil {
				now.end()
			}
			return
		case c := <-s.commands:
			s.held.Add(-octets(c))
			if start, ok := c.(api.NormStart); ok {
				if now != nil {
					now.end()
					now, gone = nil, nil
				}
				pending, due = &start, time.Now()
				if wait := lastBorn.Add(pause); s.starts.Load() > 1 && wait.After(due) {
					due = wait // the last child did not live long: do not spin
					pause = min(2*pause, maxPause)
				}
			} else if now == nil {
				s.dropped.Add(1)
			} else if err := now.apply(c); err != nil {
				down(err.Error())
			}
		case <-gone:
			reason := now.end()
			now, gone = nil, nil
			s.downs.Add(1)
			s.post(api.NormDown{Reason: reason})
		case <-tick.C:
			if s.overflow.Swap(false) && now != nil {
				down("norm: child does not take commands")
			} else if now != nil && now.hung(time.Now()) {
				down(fmt.Sprintf("norm: no heartbeat for %v", hangAfter))
			}
		}
		if pending != nil && now == nil && !time.Now().Before(due) {
			begin()
		}
	}
}

// legsOf gives each peer its leg.
func (s *Supervisor) legsOf(peers []uint16) (map[uint16]int, error) {
	if len(peers) == 0 || len(peers) > MaxPeers {
		return nil, fmt.Errorf("norm: %d peers: 1..%d", len(peers), MaxPeers)
	}
	legs := make(map[uint16]int, len(peers))
	for i, peer := range peers {
		if _, twice := legs[peer]; twice || peer == 0 || peer == s.cfg.Self {
			return nil, fmt.Errorf("norm: peer %d is named twice, zero or ourselves", peer)
		}
		legs[peer] = i
	}
	return legs, nil
}

var errStuck = errors.New("norm: child does not read its commands")
