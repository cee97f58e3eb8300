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

	"aldis/internal/edge/norm/cell"
	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
)

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
	gone  chan struct{} // closed at the end of the child's stdout
	wg    sync.WaitGroup

	beat    atomic.Pointer[time.Time] // last sign of life; it has a monotonic reading, which nobody can set
	posting atomic.Int32              // readers inside post: then the silence is ours, not the child's
	fail    atomic.Pointer[string]
	stderr  tail
}

// startProcess starts a child in the first of ways that this machine allows, and puts that way first for the next child.
func (s *Supervisor) startProcess(start api.NormStart, tryNet int, ways *[]cell.Way) (*process, error) {
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

// startIn starts a child in one way. refused says that the machine does not allow that way.
func (s *Supervisor) startIn(way cell.Way, legs map[uint16]int, start api.NormStart, tryNet int) (_ *process, refused bool, err error) {
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
		} else { // the child has exited, or is about to: its own words say more
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

// await waits for the end of the child's stdout, but no longer than most.
func (p *process) await(most time.Duration) {
	select {
	case <-p.gone:
	case <-time.After(most):
	}
}

// inCell records the child's report about its cell, and calls Lacks when what is missing has changed.
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

// end kills the child, and returns the reason of its death once nothing of it is left.
func (p *process) end() (reason string) {
	close(p.done)
	p.cmd.Process.Kill() // fails only if it is dead already
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

// apply passes a command to the child; an error means that the child is stuck.
func (p *process) apply(c api.NormCommand) error {
	var r record
	var peer uint16
	switch c := c.(type) {
	case api.NormInject:
		if i, ok := p.legs[c.Peer]; ok {
			// If libnorm's socket is full the packet is lost, as on a link: NORM repairs that.
			p.sock[i].inject(c.Data)
			return nil
		}
		p.s.dropped.Add(1)
		return nil
	case api.NormEnqueue:
		peer, r = c.Peer, record{kind: recEnqueue, data: c.Data}
		if len(c.Data) > elide.MaxObject-elide.PrefixOctets {
			p.s.dropped.Add(1)
			r.data = nil // empty, because its number is promised
		}
	case api.NormRequeue:
		peer, r = c.Peer, record{kind: recRequeue, object: c.Object}
	case api.NormCancel:
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
				return // the reader notices too
			}
		}
	}
}

func (p *process) postEvent(e api.Event) {
	p.posting.Add(1)
	began := time.Now()
	p.s.post(e)
	if now := time.Now(); now.Sub(began) > beatInterval {
		p.alive(now) // nobody could read its heartbeats meanwhile
	}
	p.posting.Add(-1)
}

// read turns the child's records into events until its stdout ends.
func (p *process) read(out io.Reader, start api.NormStart) {
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
			p.postEvent(api.NormUp{Generation: start.Generation})
			close(p.up)
		case r.kind == recSent:
			p.postEvent(api.NormSent{Peer: peer, Object: r.object})
		case r.kind == recObject:
			if generation, id, data, ok := elide.CutPrefix(r.data); ok {
				p.postEvent(api.NormObject{Peer: peer, Generation: generation, Object: id, Data: data})
			}
		}
	}
}

// listen posts packets that libnorm sends to one of the leg's addresses, once the child is up.
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
		p.postEvent(api.NormPacket{Peer: peer, Data: bytes.Clone(buf[:n])})
	}
}

// tail keeps the last octets that a child writes to its stderr.
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
