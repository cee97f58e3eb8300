package norm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"aldis/internal/edge/norm/cell"
	"aldis/internal/link/elide"
)

// beatInterval is how often a child shows that libnorm's thread is alive.
const beatInterval = time.Second

// ChildMain is the hidden subcommand: it enters its cell, serves its parent on stdin and stdout, and exits when stdin ends.
// args are the arguments behind the subcommand.
func ChildMain(args []string) int {
	if cell.IsFirst(args) {
		fmt.Fprintln(os.Stderr, cell.Enter(args, socketPipe+1))
		return cell.ExitRefused
	}
	if err := serve(os.Stdin, os.Stdout, socketPipe); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type child struct {
	lib    *library
	cfg    childConfig
	mu     sync.Mutex // guards out and waiting
	out    *bufio.Writer
	outErr error
	wait   [][][]byte // per leg: objects that libnorm's cache had no room for, in order
}

// lastObject is the last object id of a generation: before ids start again, a new generation must start.
const lastObject = 65000

var errExhausted = errors.New("norm: object numbers of this generation are used up")

// serve opens both ends' sockets, gives the parent its own through pipe, and confines itself before libnorm exists.
func serve(in io.Reader, out io.Writer, pipe int) error {
	reader := bufio.NewReaderSize(in, 64<<10)
	first, err := readRecord(reader)
	if err != nil {
		return err
	}
	cfg, err := decodeConfig(first)
	if err != nil {
		return err
	}
	netNo, err := handOver(pipe, cfg.Net, len(cfg.Peers))
	if err != nil {
		return err
	}
	cfg.Net = netNo
	missing := cell.Lock()
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	c := &child{lib: lib, cfg: cfg, out: bufio.NewWriter(out), wait: make([][][]byte, len(cfg.Peers))}
	for i := range cfg.Peers {
		err := lib.addLeg(legConfig{
			Session: alias(cfg.Net, i, memberAll), Bind: alias(cfg.Net, i, memberSelf),
			Port: portSession, TxPort: portTx, Node: cfg.Self, Generation: cfg.Generation,
			Segment: cfg.Segment, GRTT: cfg.GRTT, TxRateBps: cfg.TxRateBps,
		})
		if err != nil {
			return err
		}
		// The marker, object 0: the gateway swallows its packet, and the far end makes it again.
		if lib.enqueue(i, []byte{0}) {
			return fmt.Errorf("norm: no marker to node %d", cfg.Peers[i])
		}
	}
	c.send(record{kind: recReady, data: []byte(strings.Join(missing, "\n"))})
	go c.beats()
	go c.events()
	for {
		r, err := readRecord(reader)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.apply(r); err != nil {
			return err
		}
	}
}

func (c *child) apply(r record) error {
	if int(r.leg) >= len(c.wait) {
		return errRecord
	}
	leg := int(r.leg)
	switch r.kind {
	case recEnqueue:
		c.mu.Lock()
		c.wait[leg] = append(c.wait[leg], r.data)
		full := c.lib.nextID(leg)+uint32(len(c.wait[leg])) > lastObject
		c.mu.Unlock()
		if full {
			return errExhausted
		}
		c.feed(leg)
	case recRequeue:
		c.lib.requeue(leg, r.object)
	case recCancel:
		c.cancel(leg, r.object)
	default:
		return errRecord
	}
	return nil
}

// feed passes waiting objects to libnorm until its cache is full.
func (c *child) feed(leg int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.wait[leg]) > 0 {
		data := c.wait[leg][0]
		object := elide.AppendPrefix(make([]byte, 0, elide.PrefixOctets+len(data)), c.cfg.Generation,
			uint16(c.lib.nextID(leg)))
		if c.lib.enqueue(leg, append(object, data...)) {
			return
		}
		c.wait[leg] = c.wait[leg][1:]
	}
}

// cancel empties an object that still waits: its number is promised and must be used.
func (c *child) cancel(leg int, object uint16) {
	c.mu.Lock()
	if i := int(object) - int(c.lib.nextID(leg)); i >= 0 && i < len(c.wait[leg]) {
		c.wait[leg][i] = nil
	}
	c.mu.Unlock()
	c.lib.cancel(leg, object)
}

// beats proves once a second that libnorm's thread yields its lock, and feeds objects that a missed event may have left
// waiting.
func (c *child) beats() {
	for range time.Tick(beatInterval) {
		c.lib.touch()
		c.send(record{kind: recBeat})
		for leg := range c.wait {
			c.feed(leg)
		}
	}
}

func (c *child) events() {
	for {
		e, ok := c.lib.next()
		if !ok {
			fmt.Fprintln(os.Stderr, "norm: libnorm gives no more events")
			os.Exit(1)
		}
		switch e.kind {
		case eventSent:
			if e.object != 0 {
				c.send(record{kind: recSent, leg: uint8(e.leg), object: e.object})
			}
		case eventRoom:
			c.feed(e.leg)
		case eventObject:
			c.send(record{kind: recObject, leg: uint8(e.leg), data: e.data})
		}
	}
}

func (c *child) send(r record) {
	b := appendRecord(nil, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outErr == nil {
		_, c.outErr = c.out.Write(b)
		if c.outErr == nil {
			c.outErr = c.out.Flush()
		}
	}
}
