package daemon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/site"
)

// waiting holds outputs whose records, or those of an earlier output, are not durable yet. The journal writes beside the loop,
// one commit at a time, and each commit takes all records that have gathered since the last.
type waiting struct {
	queue   []api.Output
	put     uint64 // outputs that ever waited; durable counts those that became durable
	durable uint64
	octets  int           // estimated octets of the queue
	blocked map[lane]int  // orders in the queue, by lane, and of all lanes of a connection together
	covered int           // outputs at the head of the queue whose records are being committed
	writing bool          // a commit is in progress
	urgent  bool          // somebody waits for an output that is in the queue and not being committed
	began   time.Duration // when the last commit began, monotonic
}

// commitGap is the time between the last commit and one that nobody waits for; records gather meanwhile. A commit takes about 0.3 ms of
// the processor, however little it writes, and while it waits for the disk the Go runtime polls every 20 µs for its return.
const commitGap = 50 * time.Millisecond

// settle carries out orders that do not depend on the journal, and has the journal write the records of the others.
func (d *Daemon) settle(mono time.Duration) {
	for _, out := range d.outputs {
		if len(d.waits.queue) > 0 && d.failing {
			out = d.withoutDatagrams(out)
		}
		if len(out.Records) == 0 {
			switch {
			case len(d.waits.queue) == 0:
				d.act(out)
				continue
			case d.free(out) && len(out.Datagrams) == 0:
				d.actLAN(out)
				out = api.Output{Norm: out.Norm, Hush: out.Hush}
			}
		}
		d.put(d.early(out))
	}
	d.write(mono)
}

// early carries out those orders of an output that promise nothing and have no earlier order in their lane, and returns the rest.
func (d *Daemon) early(out api.Output) api.Output {
	if !slices.ContainsFunc(out.LAN, func(o api.LANOrder) bool { e, is := o.Order.(site.Early); return is && e.Early() }) {
		return out
	}
	held := map[lane]int{}
	var now, later []api.LANOrder
	for _, o := range out.LAN {
		at := laneOf(o)
		waits := func(l lane) bool { return held[l]+d.waits.blocked[l] > 0 }
		if e, is := o.Order.(site.Early); is && e.Early() && !waits(at) && !waits(at.shared()) && (at.name != "" || !waits(at.any())) {
			now = append(now, o)
		} else {
			later = append(later, o)
			count(held, o, 1)
		}
	}
	if len(now) > 0 {
		d.actLAN(api.Output{LAN: now})
		out.LAN = later
	}
	return out
}

// free says whether an output's orders for local peers may go before the queue: no queued order is for the same connections,
// and the output's orders confirm nothing. So each peer receives everything in order, and if a message comes twice, over two
// connections, the acknowledgement of the second copy does not overtake the commit of the first.
func (d *Daemon) free(out api.Output) bool {
	for _, o := range out.LAN {
		if _, confirms := o.Concerns(); confirms || d.waits.blocked[laneOf(o).any()] > 0 {
			return false
		}
	}
	return true
}

// lane is a lane of a connection of an adapter's LAN (site.Early).
type lane struct {
	adapter site.Adapter
	conn    site.ConnID
	name    string
}

func laneOf(o api.LANOrder) lane {
	conn, _ := o.Concerns()
	l := lane{adapter: o.Adapter, conn: conn}
	if e, is := o.Order.(site.Early); is {
		l.name = e.Lane()
	}
	return l
}

// shared is the lane of a connection's orders that name no lane; any stands for all its lanes.
func (l lane) shared() lane { return lane{adapter: l.adapter, conn: l.conn} }
func (l lane) any() lane    { return lane{adapter: l.adapter, conn: l.conn, name: "\x00any"} }

// count adds an order to the numbers of its lanes, or takes it away.
func count(in map[lane]int, o api.LANOrder, by int) {
	l := laneOf(o)
	if l.conn == 0 {
		return
	}
	for _, l := range []lane{l, l.any()} {
		if in[l] += by; in[l] == 0 {
			delete(in, l)
		}
	}
}

// block counts the orders of an output that enters the queue, or leaves it.
func (d *Daemon) block(out api.Output, by int) {
	for _, o := range out.LAN {
		count(d.waits.blocked, o, by)
	}
}

// urgent says whether somebody waits for an output. A peer on the link does not mind some milliseconds.
func urgent(out api.Output) bool {
	return len(out.Norm)+len(out.Hush) > 0 || slices.ContainsFunc(out.LAN, func(o api.LANOrder) bool { _, patient := o.Order.(site.Early); return !patient })
}

func (d *Daemon) put(out api.Output) {
	n := size(out)
	if n == 0 {
		return
	}
	d.waits.queue = append(d.waits.queue, out)
	d.waits.put++
	d.waits.urgent = d.waits.urgent || urgent(out)
	d.waits.octets += n
	d.block(out, 1)
	d.metrics.held.Set(float64(d.waits.octets))
}

func (d *Daemon) withoutDatagrams(out api.Output) api.Output {
	d.metrics.datagramsLost.Add(float64(len(out.Datagrams)))
	out.Datagrams = nil
	return out
}

// silence takes away the datagrams of earlier outputs for bearers on which a silence has begun: a slow commit may hold them back until long
// after the silence was confirmed. The output of the silence itself keeps its announcement.
func (d *Daemon) silence(bearers []int) {
	quiet := func(g api.Datagram) bool { return slices.Contains(bearers, g.Bearer) }
	for _, list := range [][]api.Output{d.waits.queue, d.outputs} {
		for i, out := range list {
			list[i].Datagrams = slices.DeleteFunc(slices.Clone(out.Datagrams), quiet)
			d.metrics.datagramsLost.Add(float64(len(out.Datagrams) - len(list[i].Datagrams)))
		}
	}
	d.waits.octets = 0
	for _, out := range d.waits.queue {
		d.waits.octets += size(out)
	}
}

// write begins a commit of the whole queue, unless a commit is in progress, the journal rests after a failure, or more records may
// gather first.
func (d *Daemon) write(mono time.Duration) {
	if d.waits.writing || len(d.waits.queue) == 0 || d.failing && mono < d.retryAt || d.gathers() && mono < d.waits.began+commitGap {
		return
	}
	d.waits.writing, d.waits.covered, d.waits.urgent, d.waits.began = true, len(d.waits.queue), false, mono
	records := d.records() // of this commit alone: the loop goes on meanwhile
	go func() { d.written <- d.commit(records) }()
}

// gathers says whether more records may gather before the next commit.
func (d *Daemon) gathers() bool {
	return !d.waits.urgent && !d.closing && !d.failing && d.waits.octets < heldMax/4
}

// gathering says whether records are gathering now; gathered, whether they have done so for commitGap.
func (d *Daemon) gathering() bool {
	return !d.waits.writing && len(d.waits.queue) > 0 && d.gathers()
}

func (d *Daemon) gathered(mono time.Duration) bool {
	return d.gathering() && mono >= d.waits.began+commitGap
}

func (d *Daemon) records() (all []api.Record) {
	for _, out := range d.waits.queue[:d.waits.covered] {
		all = append(all, out.Records...)
	}
	return all
}

func (d *Daemon) commit(records []api.Record) error {
	began := time.Now()
	err := d.parts.Commit(records)
	d.metrics.commit.Observe(time.Since(began).Seconds())
	return err
}

// wrote takes the result of a commit.
func (d *Daemon) wrote(mono time.Duration, err error) {
	d.waits.writing = false
	if err != nil {
		d.fail(mono, err)
		return
	}
	if d.failing {
		d.recover(mono)
	}
	n := d.waits.covered
	for n < len(d.waits.queue) && len(d.waits.queue[n].Records) == 0 {
		n++ // this output only waited for those before it
	}
	d.waits.durable += uint64(n)
	for i, out := range d.waits.queue[:n] {
		d.waits.octets -= size(out)
		d.block(out, -1)
		d.act(out)
		d.waits.queue[i] = api.Output{}
	}
	d.waits.queue = d.waits.queue[n:]
	if len(d.waits.queue) == 0 {
		d.waits.queue, d.waits.octets = nil, 0
	}
	d.metrics.held.Set(float64(d.waits.octets))
	d.write(mono)
}

func (d *Daemon) fail(mono time.Duration, err error) {
	d.metrics.commitFailures.Inc()
	d.retryAt = mono + retryEvery
	for i, out := range d.waits.queue {
		d.waits.octets -= size(out)
		d.waits.queue[i] = d.withoutDatagrams(out)
		d.waits.octets += size(d.waits.queue[i])
	}
	if !d.failing {
		d.failing, d.failedAt, d.told = true, mono, nil
	}
	if do := remedy(err); !slices.Contains(d.told, do) { // each remedy once
		d.told = append(d.told, do)
		d.log.Error("the journal cannot be written; no accepted message is lost, but the gateway sends nothing until it can write", "error", err, "do", do, "retry", retryEvery)
	}
	reason := err.Error()
	d.trouble.Store(&reason) // an operator who learns of the failure finds the line in the log
}

// remedy is what an operator can do about an error of the journal.
func remedy(err error) string {
	var known interface{ Remedy() string }
	if errors.As(err, &known) {
		return known.Remedy()
	}
	return "look at its disk"
}

func (d *Daemon) recover(mono time.Duration) {
	d.log.Info("the journal writes again", "after", mono-d.failedAt, "kept", d.waits.octets)
	d.failing = false
	d.trouble.Store(nil)
}

// When the gateway stops, the loop still listens to local peers until they have been silent for stopQuiet, but not longer than
// stopMost. So they can still confirm messages that they have just received, which are then not delivered again after the next start.
const (
	stopQuiet = 50 * time.Millisecond
	stopMost  = time.Second
)

// hearOut hears the last confirmations of local peers. It no longer hears the link, so no new message is delivered.
func (d *Daemon) hearOut() {
	d.closing = true
	for end := time.After(stopMost); !d.full() && !d.failing; {
		select {
		case ev := <-d.lan:
			d.events = append(d.events[:0], ev)
			d.turn()
		case err := <-d.written:
			_, mono := d.now()
			d.wrote(mono, err)
		case <-time.After(stopQuiet):
			return
		case <-end:
			return
		}
	}
}

// finish passes the engine its last event, Stop, waits for the commit in progress, and writes the records that have gathered
// meanwhile; if the journal fails it tries once more.
func (d *Daemon) finish() error {
	d.hearOut()
	if !d.full() {
		d.events = append(d.events[:0], api.Stop{})
		d.turn()
	}
	_, mono := d.now()
	if d.waits.writing {
		d.wrote(mono, <-d.written)
	}
	for tries := 2; len(d.waits.queue) > 0 && tries > 0; tries-- {
		if !d.waits.writing {
			d.retryAt = mono
			d.write(mono)
		}
		d.wrote(mono, <-d.written)
		if d.failing {
			break
		}
	}
	if len(d.waits.queue) > 0 {
		return fmt.Errorf("daemon: stopped with %d octets not written, messages that local peers had just sent may be among them: %s",
			d.waits.octets, d.Trouble())
	}
	return nil
}

// size estimates the octets that an output takes in memory; 0: it is empty.
func size(out api.Output) int {
	const each = 64
	n := 0
	for _, r := range out.Records {
		n += each + len(r.Bucket) + len(r.Key) + len(r.Value)
	}
	for _, o := range out.LAN {
		n += o.Octets()
	}
	for _, g := range out.Datagrams {
		n += each + len(g.Data)
	}
	n += each * len(out.Hush)
	for _, c := range out.Norm {
		n += each
		switch c := c.(type) {
		case api.NormEnqueue:
			n += len(c.Data)
		case api.NormInject:
			n += len(c.Data)
		}
	}
	return n
}
