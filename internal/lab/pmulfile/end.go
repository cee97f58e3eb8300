package pmulfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// Config is the configuration of either end.
type Config struct {
	Group   netip.Addr      // IPv4 multicast
	ID      netip.Addr      // our node number
	Profile profile.Profile // of the link: all timers and the pace come from it
	Shore   bool            // the end that sends down a star: its pace is the profile's down rate
	State   string          // directory of the journal
	Runs    bool            // a receiver's missing lists may have runs: shorter, but not every sender reads them
	Log     *slog.Logger    // for drops, at a bounded rate
}

// Counters of datagrams.
type Counters struct {
	Sent, SentOctets         int // with IP and UDP headers
	Received, ReceivedOctets int
	Refused                  int // that are no PDUs
	InternetChecksum         int // PDUs that had the Internet checksum and not Fletcher's
	Failed                   int // that the network did not accept
}

// end is the common part of a sender and a receiver.
type end struct {
	cfg      Config
	engine   pmul.Config
	journal  *journal.Journal
	sockets  *sockets
	from     map[pmul.NodeID]netip.Addr // the address from which the last PDUs of a node came
	counters Counters
	unlogged int // refusals since the last line in the log
	loggedAt time.Time
}

const (
	dynamicGroups = 16 // the addresses after the network's group are for groups of one message
	mostAddresses = 4096
	logEvery      = 10 * time.Second
)

// open claims the state and makes the engine's configuration.
func open(cfg Config, port uint16) (*end, []pmul.Record, error) {
	if !cfg.ID.Is4() || !cfg.Group.Is4() || !cfg.Group.IsMulticast() {
		return nil, nil, fmt.Errorf("pmulfile: group %v, id %v: an IPv4 multicast group and an IPv4 address are needed", cfg.Group, cfg.ID)
	}
	b := cfg.ID.As4()
	j, err := journal.Open(cfg.State, journal.Identity{Node: uint16(b[2])<<8 | uint16(b[3]), Name: cfg.ID.String()})
	if err != nil {
		return nil, nil, fmt.Errorf("pmulfile: state of node %v: %w", cfg.ID, err)
	}
	e := &end{cfg: cfg, journal: j, from: map[pmul.NodeID]netip.Addr{}}
	e.engine = pmul.ConfigFor(cfg.Profile, Node(cfg.ID), pmul.ACP142, 0, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(Node(cfg.ID)))))
	e.engine.Group, e.engine.Runs = pmul.GroupAddr(Node(cfg.Group)), cfg.Runs
	if cfg.Shore {
		e.engine.RateBps = cfg.Profile.Down.RateBps
	}
	for i := range dynamicGroups {
		e.engine.GroupPool = append(e.engine.GroupPool, e.engine.Group+1+pmul.GroupAddr(i))
	}
	var records []pmul.Record
	err = j.Load(func(bucket string, key, value []byte) error {
		records = append(records, pmul.Record{Bucket: bucket, Key: append([]byte(nil), key...), Value: append([]byte(nil), value...)})
		return nil
	})
	if err == nil {
		e.sockets, err = openSockets(cfg.ID, port)
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return e, records, nil
}

func (e *end) close() error {
	e.sockets.close()
	return e.journal.Close()
}

// commit makes records durable.
func (e *end) commit(records []pmul.Record) error {
	ops := make([]journal.Op, 0, len(records))
	for _, r := range records {
		ops = append(ops, journal.Op{Bucket: r.Bucket, Key: r.Key, Value: r.Value})
	}
	return e.journal.Commit(ops)
}

// send puts packets on the network. Those that it does not accept are lost as on any link.
func (e *end) send(packets []pmul.Packet) error {
	for _, p := range packets {
		data, err := e.engine.Encode(nil, p)
		if err != nil {
			return fmt.Errorf("pmulfile: %w", err)
		}
		to := allNodes
		switch {
		case p.To != 0:
			to = e.from[p.To]
			if !to.IsValid() {
				to = addrOf(uint32(p.To))
			}
		case p.Group != 0:
			to = addrOf(uint32(p.Group))
		}
		if err := e.sockets.send(to, ports[p.Port], data); err != nil {
			e.counters.Failed++
			e.log("not sent", "to", to, "error", err)
			continue
		}
		e.counters.Sent++
		e.counters.SentOctets += len(data) + profile.IPUDPOctets
	}
	return nil
}

// parse reads a datagram; nil when it is no PDU.
func (e *end) parse(r received) pmul.Event {
	e.counters.Received++
	e.counters.ReceivedOctets += len(r.data) + profile.IPUDPOctets
	p, sum, err := pmul.Parse(r.data)
	if err != nil {
		e.counters.Refused++
		e.log("datagram refused", "from", r.from, "error", err)
		return nil
	}
	if sum == pmul.Internet {
		e.counters.InternetChecksum++
	}
	var source pmul.NodeID
	switch p := p.(type) {
	case pmul.AddressPDU:
		source = p.Source
	case pmul.DataPDU:
		source = p.Source
	case pmul.AnnouncePDU:
		source = p.Source
	case pmul.RequestPDU:
		source = p.Source
	case pmul.AckPDU:
		if r.own {
			return pmul.Told{AckPDU: p}
		}
		return p
	default:
		return p
	}
	if _, known := e.from[source]; known || len(e.from) < mostAddresses {
		e.from[source] = r.from
	}
	return p
}

// log writes at most a line every ten seconds, with the number of lines that it left out.
func (e *end) log(msg string, args ...any) {
	if now := time.Now(); now.Sub(e.loggedAt) >= logEvery {
		e.cfg.Log.Warn(msg, append(args, "left_out", e.unlogged)...)
		e.loggedAt, e.unlogged = now, 0
		return
	}
	e.unlogged++
}

// wait waits for the next datagram, the deadline, a tick for progress or the end of ctx. A nil event: only time passed.
func (e *end) wait(ctx context.Context, deadline time.Time, tick <-chan time.Time) (pmul.Event, error) {
	var timer <-chan time.Time
	if !deadline.IsZero() {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		timer = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-e.sockets.inbox:
			if ev := e.parse(r); ev != nil {
				return ev, nil
			}
		case <-timer:
			return nil, nil
		case <-tick:
			return nil, nil
		}
	}
}
