package norm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/norm/cell"
	"aldis/internal/norm/elide"
)

// Config is the profile's part and how to start a child.
type Config struct {
	Self    uint16        // node id of this gateway, 1..65535
	Segment int           // octets, the same at all members
	GRTT    time.Duration // the same at all members
	TxRate  float64       // bits per second of NORM octets to each peer: see elide.TxRate
	// Command gives a child that has not been started: the gateway's own binary with the hidden subcommand that calls
	// ChildMain.
	Command func() *exec.Cmd
	// Ways are those of shutting a child in, the best first; nil means cell.Ways.
	Ways []cell.Way
	// Lacks, when not nil, is told in words what of the cell this machine does not give, once and when that changes.
	Lacks func(missing []string)
}

const (
	hangAfter   = 5 * time.Second // without a heartbeat
	checkEvery  = 500 * time.Millisecond
	queueLen    = 4096     // commands that wait; full means that the child does not read
	queueOctets = 64 << 20 // of them
	minPause    = time.Second
	maxPause    = 16 * time.Second
	stderrTail  = 512 // octets kept of what a child says before it dies
)

// Stats are the supervisor's counters.
type Stats struct {
	Starts, Downs uint64
	StrangePacket uint64 // at our loopback sockets from another address: dropped
	Dropped       uint64 // commands for a child that is down or a peer that it does not have
	// Cell is what is known of the cell of the last child that was up: nil before the first.
	Cell *Cell
}

// Cell says what of its cell a child has.
type Cell struct {
	Whole   bool     `json:"whole"`
	Missing []string `json:"missing,omitempty"`
}

// Supervisor owns the child. Do never blocks; what happens comes through post, one event at a time in order for each
// peer, from several goroutines. post may block for a while: the child then waits. It must return
// before Close can.
//
// An object that was canceled before libnorm had it, or is longer than elide.MaxObject allows, goes out empty, so
// that the numbers of those behind it hold; at the far end it is a NormObject without Data.
//
// Events of a child come between its NormUp and NormDown (or the NormUp of the next). After NormDown all commands are
// dropped until a NormStart: the supervisor does not restart on its own. When children die young, the next waits for
// up to 16 seconds.
type Supervisor struct {
	cfg  Config
	post func(gateway.Event)

	commands chan gateway.NormCommand
	held     atomic.Int64 // octets in commands and in the child's queue
	overflow atomic.Bool
	stop     chan struct{}
	stopped  chan struct{}

	starts, downs, strange, dropped atomic.Uint64
	cell                            atomic.Pointer[Cell]
}

// New starts the supervisor without a child.
func New(cfg Config, post func(gateway.Event)) (*Supervisor, error) {
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
	s := &Supervisor{cfg: cfg, post: post, commands: make(chan gateway.NormCommand, queueLen),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.run()
	return s, nil
}

// Do takes a command. It never blocks: a queue that is full counts as a hung child.
func (s *Supervisor) Do(c gateway.NormCommand) {
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

// Close ends the child and returns when nothing more is posted.
func (s *Supervisor) Close() {
	close(s.stop)
	<-s.stopped
}

func octets(c gateway.NormCommand) int64 {
	switch c := c.(type) {
	case gateway.NormEnqueue:
		return int64(len(c.Data))
	case gateway.NormInject:
		return int64(len(c.Data))
	}
	return 0
}

func (s *Supervisor) run() {
	defer close(s.stopped)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var (
		now      *process           // nil: none
		pending  *gateway.NormStart // asked for, not yet due
		due      time.Time
		pause    = minPause
		lastNet  = firstNet
		down     func(reason string)
		gone     <-chan struct{}
		begin    func()
		lastBorn time.Time
		ways     = s.cfg.Ways // the first is the one to try
	)
	down = func(reason string) {
		now.end()
		now, gone = nil, nil
		s.downs.Add(1)
		s.post(gateway.NormDown{Reason: reason})
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
			s.post(gateway.NormDown{Reason: err.Error()})
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
			if start, ok := c.(gateway.NormStart); ok {
				if now != nil {
					now.end()
					now, gone = nil, nil
				}
				pending, due = &start, time.Now()
				if wait := lastBorn.Add(pause); s.starts.Load() > 1 && wait.After(due) {
					due = wait // the last one did not live long: do not spin
					pause = min(2*pause, maxPause)
				}
			} else if now == nil {
				s.dropped.Add(1)
			} else if err := now.obey(c); err != nil {
				down(err.Error())
			}
		case <-gone:
			reason := now.end()
			now, gone = nil, nil
			s.downs.Add(1)
			s.post(gateway.NormDown{Reason: reason})
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

// process is one child and the sockets of its generation.
type process struct {
	s     *Supervisor
	way   cell.Way
	cmd   *exec.Cmd
	net   int
	legs  map[uint16]int
	sock  []legSockets
	in    io.WriteCloser
	queue chan record   // to the child's stdin
	up    chan struct{} // closed once NormUp is posted
	done  chan struct{} // closed by end
	gone  chan struct{} // closed when the child's stdout ends
	wg    sync.WaitGroup

	beat    atomic.Pointer[time.Time] // of the last sign of life; it has a monotonic reading, so that nobody sets it
	posting atomic.Int32              // readers inside post: silence is then ours, not the child's
	fail    atomic.Pointer[string]
	stderr  tail
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

// startProcess starts a child in the first of ways that this machine gives, which then is the first for the next child.
func (s *Supervisor) startProcess(start gateway.NormStart, tryNet int, ways *[]cell.Way) (*process, error) {
	legs, err := s.legsOf(start.Peers)
	if err != nil {
		return nil, err
	}
	for {
		way := (*ways)[0]
		p, refused, err := s.startIn(way, legs, start, tryNet)
		if !refused || len(*ways) == 1 {
			return p, err
		}
		*ways = (*ways)[1:]
	}
}

// startIn starts a child in one way. refused says that the machine does not give that way.
func (s *Supervisor) startIn(way cell.Way, legs map[uint16]int, start gateway.NormStart, tryNet int) (_ *process, refused bool, err error) {
	config, err := json.Marshal(childConfig{Net: tryNet, Self: s.cfg.Self, Generation: start.Generation,
		Peers: start.Peers, Segment: s.cfg.Segment, GRTT: s.cfg.GRTT, TxRateBps: s.cfg.TxRate})
	if err != nil {
		return nil, false, fmt.Errorf("norm: %w", err)
	}
	ours, childs, err := socketPair()
	if err != nil {
		return nil, false, err
	}
	defer ours.Close()
	p := &process{s: s, way: way, legs: legs, queue: make(chan record, queueLen), up: make(chan struct{}),
		done: make(chan struct{}), gone: make(chan struct{})}
	p.cmd = s.cfg.Command()
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = []*os.File{childs}
	way.Apply(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	childs.Close()
	if err != nil {
		return nil, true, fmt.Errorf("norm: child does not start: %w", err)
	}
	p.alive(time.Now())
	p.queue <- record{kind: recConfig, data: config}
	p.wg.Add(2)
	go p.write()
	go p.read(out, start)
	if p.net, p.sock, err = takeOver(ours, len(start.Peers), hangAfter); err != nil {
		if !errors.Is(err, io.EOF) {
			p.fail.CompareAndSwap(nil, ptr(err.Error()))
		} else { // it has ended, or is about to: its own words say more
			p.await(hangAfter)
		}
		reason := p.end()
		return nil, p.cmd.ProcessState.ExitCode() == cell.ExitRefused, errors.New(reason)
	}
	p.wg.Add(2 * len(p.sock))
	for i, peer := range start.Peers {
		go p.listen(p.sock[i].all, i, peer)
		go p.listen(p.sock[i].peer, i, peer)
	}
	return p, false, nil
}

func ptr[T any](v T) *T { return &v }

// await waits until the child's stdout has ended, but not for ever.
func (p *process) await(most time.Duration) {
	select {
	case <-p.gone:
	case <-time.After(most):
	}
}

// inCell notes what the child's cell has, as it says itself, and tells what is missing when that is news.
func (p *process) inCell(said []byte) {
	missing := p.way.Missing()
	if len(said) > 0 {
		missing = append(missing, strings.Split(string(said), "\n")...)
	}
	now := &Cell{Whole: len(missing) == 0, Missing: missing}
	before := p.s.cell.Swap(now)
	if (before == nil || !slices.Equal(before.Missing, missing)) && !now.Whole && p.s.cfg.Lacks != nil {
		p.s.cfg.Lacks(missing)
	}
}

// end kills the child and returns when nothing of it is left, with the reason of its death.
func (p *process) end() (reason string) {
	close(p.done)
	p.cmd.Process.Kill() // fails only when it is dead already
	closeSockets(p.sock)
	p.in.Close()
	<-p.gone
	err := p.cmd.Wait()
	p.wg.Wait()
	for len(p.queue) > 0 {
		if r := <-p.queue; r.kind != recConfig {
			p.s.held.Add(-int64(len(r.data)))
		}
	}
	if f := p.fail.Load(); f != nil {
		return *f
	}
	reason = "norm: child ended"
	if err != nil {
		reason += ": " + err.Error()
	}
	if last := p.stderr.line(); last != "" {
		reason += ": " + last
	}
	return reason
}

var errStuck = errors.New("norm: child does not read its commands")

// obey passes a command on; an error means that the child is stuck.
func (p *process) obey(c gateway.NormCommand) error {
	var r record
	var peer uint16
	switch c := c.(type) {
	case gateway.NormInject:
		if i, ok := p.legs[c.Peer]; ok {
			// A full socket of libnorm's loses the packet, as a link would: NORM repairs it.
			p.sock[i].inject(c.Data)
			return nil
		}
		p.s.dropped.Add(1)
		return nil
	case gateway.NormEnqueue:
		peer, r = c.Peer, record{kind: recEnqueue, data: c.Data}
		if len(c.Data) > elide.MaxObject-elide.PrefixOctets {
			p.s.dropped.Add(1)
			r.data = nil // empty, for its number is promised
		}
	case gateway.NormRequeue:
		peer, r = c.Peer, record{kind: recRequeue, object: c.Object}
	case gateway.NormCancel:
		peer, r = c.Peer, record{kind: recCancel, object: c.Object}
	}
	i, ok := p.legs[peer]
	if !ok {
		p.s.dropped.Add(1)
		return nil
	}
	r.leg = uint8(i)
	select {
	case p.queue <- r:
		p.s.held.Add(int64(len(r.data)))
		return nil
	default:
		return errStuck
	}
}

func (p *process) alive(now time.Time) { p.beat.Store(&now) }

func (p *process) hung(now time.Time) bool {
	return p.posting.Load() == 0 && now.Sub(*p.beat.Load()) > hangAfter
}

// write feeds the child's stdin; a child that does not read blocks only this goroutine.
func (p *process) write() {
	defer p.wg.Done()
	var buf []byte
	for {
		select {
		case <-p.done:
			return
		case r := <-p.queue:
			if r.kind != recConfig {
				p.s.held.Add(-int64(len(r.data)))
			}
			buf = appendRecord(buf[:0], r)
			if _, err := p.in.Write(buf); err != nil {
				return // the reader sees the end too
			}
		}
	}
}

func (p *process) postEvent(e gateway.Event) {
	p.posting.Add(1)
	began := time.Now()
	p.s.post(e)
	if now := time.Now(); now.Sub(began) > beatInterval {
		p.alive(now) // nobody read its heartbeats meanwhile
	}
	p.posting.Add(-1)
}

// read turns the child's records into events until its stdout ends.
func (p *process) read(out io.Reader, start gateway.NormStart) {
	defer p.wg.Done()
	defer close(p.gone)
	ready := false
	for {
		r, err := readRecord(out)
		if err != nil || int(r.leg) >= len(start.Peers) {
			if err == nil || errors.Is(err, errRecord) {
				reason := errRecord.Error()
				p.fail.Store(&reason)
			}
			return
		}
		p.alive(time.Now())
		select {
		case <-p.done:
			return
		default:
		}
		switch peer := start.Peers[r.leg]; {
		case r.kind == recReady && !ready:
			ready = true
			p.inCell(r.data)
			p.postEvent(gateway.NormUp{Generation: start.Generation})
			close(p.up)
		case r.kind == recSent:
			p.postEvent(gateway.NormSent{Peer: peer, Object: r.object})
		case r.kind == recObject:
			if generation, id, data, ok := elide.CutPrefix(r.data); ok {
				p.postEvent(gateway.NormObject{Peer: peer, Generation: generation, Object: id, Data: data})
			}
		}
	}
}

// listen posts what libnorm sends to one of the leg's addresses, once the child is up.
func (p *process) listen(conn *net.UDPConn, leg int, peer uint16) {
	defer p.wg.Done()
	select {
	case <-p.up:
	case <-p.done:
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			reason := "norm: loopback: " + err.Error()
			p.fail.Store(&reason)
			p.cmd.Process.Kill()
			return
		case netip.AddrPortFrom(from.Addr().Unmap(), from.Port()) != p.sock[leg].from:
			p.s.strange.Add(1)
			continue
		}
		p.postEvent(gateway.NormPacket{Peer: peer, Data: bytes.Clone(buf[:n])})
	}
}

// tail keeps the end of what a child writes to its stderr.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[max(0, len(b)-stderrTail):]...)
	t.b = bytes.Clone(t.b[max(0, len(t.b)-stderrTail):])
	return len(b), nil
}

// line is the last line, printable.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.b))
	s = s[strings.LastIndexByte(s, '\n')+1:]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffd {
			return -1
		}
		return r
	}, s)
}
