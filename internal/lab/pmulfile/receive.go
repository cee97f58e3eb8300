package pmulfile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"aldis/internal/pmul"
)

// File is a file that was received and is on disk.
type File struct {
	From    netip.Addr
	Message pmul.MessageID
	Octets  int
	Path    string
	Expires time.Time
}

// Watch is callbacks for events at a receiver, called from its loop.
type Watch struct {
	Received func(File)
	Progress func([]pmul.Incoming) // about once a second
	Ready    func()                // the receiver listens from now on
}

// Receive writes the files that are sent to us into a directory until ctx ends. Their names are Source_ID and Message_ID, because P_Mul
// carries no names.
func Receive(ctx context.Context, cfg Config, into string, w Watch) (c Counters, err error) {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return c, fmt.Errorf("pmulfile: %w", err)
	}
	e, records, err := open(cfg, 0)
	if err != nil {
		return c, err
	}
	defer func() {
		c = e.counters
		if cerr := e.close(); err == nil {
			err = cerr
		}
	}()
	receiver, err := pmul.NewReceiver(e.engine, records)
	if err != nil {
		return c, err
	}
	err = errors.Join(e.sockets.join(cfg.Group, dataPort), e.sockets.join(cfg.Group, ackPort),
		e.sockets.join(allNodes, announcePort), e.sockets.join(allNodes, requestPort))
	if err != nil {
		return c, err
	}
	w.Ready()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var ev pmul.Event
	var before pmul.ReceiverStats
	for {
		out := receiver.Step(time.Now(), ev)
		e.odd(&before, receiver.Stats())
		var files []File
		for _, m := range out.Deliver { // on disk before the journal records it, and recorded before the Ack
			f, err := write(into, m)
			if err != nil {
				return c, err
			}
			files = append(files, f)
		}
		if err := e.commit(out.Records); err != nil {
			return c, err
		}
		for _, f := range files {
			w.Received(f)
		}
		if err := e.send(out.Send); err != nil {
			return c, err
		}
		for _, g := range out.Join {
			if err := e.sockets.join(addrOf(uint32(g)), dataPort); err != nil {
				e.log("group not joined", "error", err)
			}
		}
		for _, g := range out.Leave {
			if a := addrOf(uint32(g)); a != cfg.Group {
				e.sockets.leave(a, dataPort)
			}
		}
		if ev == nil {
			w.Progress(receiver.Incoming())
		}
		if ev, err = e.wait(ctx, out.Deadline, tick.C); err != nil {
			return c, nil
		}
	}
}

// odd logs events that should not happen on a network: two senders with one Source_ID, forged PDUs, limits reached.
func (e *end) odd(before *pmul.ReceiverStats, now pmul.ReceiverStats) {
	for _, c := range []struct {
		what     string
		was, now int
	}{
		{"a PDU with our own node number: two nodes have it", before.Twin, now.Twin},
		{"a Data_PDU with other octets under a number that is known: two senders have one node number", before.Conflict, now.Conflict},
		{"an Address_PDU says otherwise than the first of its message: two senders have one node number, or it is forged", before.Changed, now.Changed},
		{"a message was discarded by its sender, or in its name", before.Discarded, now.Discarded},
		{"a PDU with a value that makes no sense", before.Illegal, now.Illegal},
		{"a limit is reached, and a PDU was refused", before.Full, now.Full},
	} {
		if c.now > c.was {
			e.log(c.what, "times", c.now)
		}
	}
	*before = now
}

// write puts a message into its file, whole or not at all. A message that comes again after a crash gets the same file again.
func write(into string, m pmul.Message) (File, error) {
	f := File{From: addrOf(uint32(m.Source)), Message: m.Message, Octets: len(m.Payload), Expires: m.Expiry}
	f.Path = filepath.Join(into, fmt.Sprintf("%v-%d", f.From, m.Message))
	tmp, err := os.CreateTemp(into, ".pmul-*")
	if err != nil {
		return f, fmt.Errorf("pmulfile: %w", err)
	}
	_, err = tmp.Write(m.Payload)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err != nil {
		return f, fmt.Errorf("pmulfile: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	d, err := os.Open(into)
	if err != nil {
		return f, fmt.Errorf("pmulfile: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return f, fmt.Errorf("pmulfile: %w", err)
	}
	return f, nil
}
