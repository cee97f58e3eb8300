package field

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

// HubNode is a station of the emulated link: a namespace that gets the interface HubConfig.Interface with this address. A station of
// several machines has More namespaces with the same interface and address: its modem hands datagrams to the machine that it heard last.
type HubNode struct {
	Name        string
	Netns       string
	More        []string
	Addr        netip.Prefix
	Profile     profile.Profile
	ReceiveOnly bool
	Up, Down    linkemu.Measured // instead of the profile's loss, delay and jitter
}

// HubConfig of an emulated link. With PcapDir, the packets of each node's interface go to the file <name>.pcap there, or
// <name>-<interface>.pcap for an interface other than link0, which is the default. StaticGroups keeps IGMP off the air: on a radio net
// all stations hear each other, and a kernel's reports would each take a turn.
type HubConfig struct {
	Nodes        []HubNode
	Seed         uint64
	Wild         linkemu.Wild
	Interface    string
	PcapDir      string
	StaticGroups bool
}

// HubStats are the emulator's counters.
type HubStats struct {
	Link    linkemu.Stats
	TCP     map[string]int // TCP connections opened over the link, by the node that opened them (SYN without ACK, repeats once)
	Foreign int64          // packets for no node, not IPv4, or IGMP: dropped
	LateMax time.Duration  // the worst delay with which an event was handled
}

// Hub is the link emulator between network namespaces: real packets, the model of internal/lab/linkemu, the real clock.
type Hub struct {
	cfg     HubConfig
	link    *linkemu.Link
	ports   []port
	byAddr  map[netip.Addr]int
	byName  map[string]int
	inbox   chan offered
	calls   chan func(time.Time)
	stop    chan struct{}
	stopped chan struct{}
	readers sync.WaitGroup
	once    sync.Once
	err     error // of close

	// Owned by the loop.
	foreign int64
	late    time.Duration
	syns    map[synKey]bool
	tcp     map[string]int
	heard   map[int]int                 // for stations with several machines: the machine heard last
	carried map[string][2][]transmitted // for those stations, by name: packets that were sent, and packets of theirs that arrived at another station
}

// port is the interface of a machine of a station.
type port struct {
	node, machine int
	tun           *os.File
	cap           *capture
}

const protoUDP = 17 // of IP

// transmitted is a packet of a machine.
type transmitted struct {
	at      time.Time
	machine int
}

// transmittedMax bounds the notes on a station; a slow link carries thousands of packets.
const transmittedMax = 1 << 20

type offered struct {
	port int
	at   time.Time
	data []byte
}

// synKey is one attempt to connect; a repeated SYN has the same sequence number.
type synKey struct {
	src, dst netip.AddrPort
	seq      uint32
}

// firstLink is the interface of a gateway's first bearer.
const firstLink = "link0"

// synMax bounds the memory for SYNs that have been seen; a real link carries a few dozen.
const synMax = 1 << 16

// StartHub opens the interfaces and starts to carry packets.
func StartHub(cfg HubConfig) (*Hub, error) {
	h := &Hub{
		cfg: cfg, byAddr: map[netip.Addr]int{}, byName: map[string]int{}, inbox: make(chan offered, 256),
		calls: make(chan func(time.Time)), stop: make(chan struct{}), stopped: make(chan struct{}),
		syns: map[synKey]bool{}, tcp: map[string]int{}, heard: map[int]int{}, carried: map[string][2][]transmitted{},
	}
	var nodes []linkemu.Node
	for i, n := range cfg.Nodes {
		nodes = append(nodes, linkemu.Node{Name: n.Name, Profile: n.Profile, ReceiveOnly: n.ReceiveOnly, Up: n.Up, Down: n.Down})
		h.byAddr[n.Addr.Addr()] = i
		h.byName[n.Name] = i
	}
	var err error
	if h.link, err = linkemu.New(linkemu.Config{Nodes: nodes, Seed: cfg.Seed, Wild: cfg.Wild}); err != nil {
		return nil, err
	}
	h.cfg.Interface = cmp.Or(cfg.Interface, firstLink)
	for i, n := range cfg.Nodes {
		for machine, ns := range append([]string{n.Netns}, n.More...) {
			if err := h.open(i, machine, ns); err != nil {
				h.closeFiles()
				return nil, err
			}
		}
	}
	for i := range h.ports {
		h.readers.Add(1)
		go h.read(i)
	}
	go h.loop()
	return h, nil
}

// open makes the interface of a machine of the i-th station.
func (h *Hub) open(i, machine int, ns string) error {
	n := h.cfg.Nodes[i]
	tun, err := openTUN(ns, h.cfg.Interface, n.Addr, n.Profile.MTU)
	if err != nil {
		return err
	}
	p := port{node: i, machine: machine, tun: tun}
	if h.cfg.PcapDir != "" {
		file := n.Name
		if machine > 0 {
			file += fmt.Sprintf("-%d", 1+machine)
		}
		if h.cfg.Interface != firstLink {
			file += "-" + h.cfg.Interface
		}
		p.cap, err = newCapture(filepath.Join(h.cfg.PcapDir, file+".pcap"))
	}
	h.ports = append(h.ports, p)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

func (h *Hub) read(port int) {
	defer h.readers.Done()
	buf := make([]byte, 65536)
	for {
		n, err := h.ports[port].tun.Read(buf)
		if err != nil {
			return // closed, or the namespace is gone
		}
		data := make([]byte, n)
		copy(data, buf)
		select {
		case h.inbox <- offered{port, time.Now(), data}:
		case <-h.stop:
			return
		}
	}
}

// loop owns the model.
func (h *Hub) loop() {
	defer close(h.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var deadline time.Time
	for {
		var at time.Time
		var ev linkemu.Event
		select {
		case <-h.stop:
			return
		case f := <-h.calls:
			f(time.Now())
			at = time.Now()
		case o := <-h.inbox:
			at, ev = o.at, h.frame(o)
		case <-timer.C:
			at = time.Now()
			h.late = max(h.late, at.Sub(deadline))
		}
		out, err := h.link.Step(at, ev)
		if err != nil {
			h.foreign++
		}
		h.deliver(out.Deliver)
		deadline = out.Deadline
		if deadline.IsZero() {
			timer.Reset(time.Hour)
		} else {
			timer.Reset(time.Until(deadline))
		}
	}
}

// frame makes an event of a packet; nil when the packet is for no node.
func (h *Hub) frame(o offered) linkemu.Event {
	p := h.ports[o.port]
	p.cap.packet(o.at, o.data)
	const protoIGMP = 2 // between a host and its router; a modem is no router
	if len(o.data) < 20 || o.data[0]>>4 != 4 || o.data[9] == protoIGMP {
		h.foreign++
		return nil
	}
	if h.cfg.StaticGroups && o.data[9] == protoIGMP {
		return nil
	}
	h.noteSYN(o)
	f := linkemu.Frame{From: h.cfg.Nodes[p.node].Name, Octets: len(o.data), Data: o.data, By: p.machine}
	if len(h.cfg.Nodes[p.node].More) > 0 && o.data[9] == protoUDP { // without the kernel's packets from a machine whose gateway does not listen
		h.heard[p.node] = p.machine
		h.note(f.From, 0, transmitted{o.at, p.machine})
	}
	dst := netip.AddrFrom4([4]byte(o.data[16:20]))
	if to, ok := h.byAddr[dst]; ok {
		f.To = h.cfg.Nodes[to].Name
	} else if !dst.IsMulticast() && dst != broadcast {
		h.foreign++
		return nil
	}
	return f
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// noteSYN counts attempts to open a TCP connection.
func (h *Hub) noteSYN(o offered) {
	b := o.data
	head := int(b[0]&15) * 4
	const protoTCP, flagSYN, flagACK = 6, 0x02, 0x10
	fragment := binary.BigEndian.Uint16(b[6:])&0x1fff != 0
	if b[9] != protoTCP || fragment || len(b) < head+14 || b[head+13]&(flagSYN|flagACK) != flagSYN || len(h.syns) >= synMax {
		return
	}
	port := func(i int) uint16 { return binary.BigEndian.Uint16(b[head+i:]) }
	key := synKey{
		netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), port(0)),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), port(2)),
		binary.BigEndian.Uint32(b[head+4:]),
	}
	if !h.syns[key] {
		h.syns[key] = true
		h.tcp[h.cfg.Nodes[h.ports[o.port].node].Name]++
	}
}

func (h *Hub) deliver(list []linkemu.Delivery) {
	for _, d := range list {
		i := h.byName[d.Node]
		if len(h.cfg.Nodes[h.byName[d.Frame.From]].More) > 0 && d.Frame.Data[9] == protoUDP {
			h.note(d.Frame.From, 1, transmitted{d.At, d.Frame.By})
		}
		for _, p := range h.ports {
			if p.node == i && (p.machine == h.heard[i] || d.Frame.To == "") {
				p.cap.packet(d.At, d.Frame.Data)
				// A full or closed interface loses the packet, as any interface would.
				_, _ = p.tun.Write(d.Frame.Data)
			}
		}
	}
}

// note keeps a packet that a station of several machines has sent (0), or one of its packets that arrived (1).
func (h *Hub) note(name string, what int, t transmitted) {
	list := h.carried[name]
	if len(list[what]) < transmittedMax {
		list[what] = append(list[what], t)
	}
	h.carried[name] = list
}

// machines returns the packets that the machines of a station have sent, and those that arrived at another station, each in order.
func (h *Hub) machines(station string) (sent, arrived []transmitted) {
	read := func(time.Time) {
		list := h.carried[station]
		sent, arrived = slices.Clone(list[0]), slices.Clone(list[1])
	}
	if !h.call(read) {
		read(time.Time{})
	}
	return sent, arrived
}

// call runs f in the loop; false when the hub has been closed.
func (h *Hub) call(f func(now time.Time)) bool {
	done := make(chan struct{})
	select {
	case h.calls <- func(now time.Time) { f(now); close(done) }:
		<-done
		return true
	case <-h.stopped:
		return false
	}
}

// Outage takes a node off the air, or puts it back.
func (h *Hub) Outage(node string, down bool) error {
	err := fs.ErrClosed
	h.call(func(now time.Time) {
		var out linkemu.Output
		out, err = h.link.Step(now, linkemu.Outage{Node: node, Down: down})
		h.deliver(out.Deliver)
	})
	return err
}

// Redial gives a node another address on the link, as a carrier behind NAT does when the terminal dials in again. Packets to the old
// address go nowhere from then on.
func (h *Hub) Redial(node string, addr netip.Prefix) error {
	i, ok := h.byName[node] // never changed after the start
	if !ok {
		return fmt.Errorf("lab: no node %q", node)
	}
	ns := h.cfg.Nodes[i].Netns
	if err := ip("-n", ns, "addr", "flush", "dev", h.cfg.Interface); err != nil {
		return err
	}
	if err := ip("-n", ns, "addr", "add", addr.String(), "dev", h.cfg.Interface); err != nil {
		return err
	}
	h.call(func(time.Time) {
		for old, n := range h.byAddr {
			if n == i {
				delete(h.byAddr, old)
			}
		}
		h.byAddr[addr.Addr()] = i
	})
	return nil
}

// Stats copies the counters; also after Close.
func (h *Hub) Stats() HubStats {
	var s HubStats
	read := func(time.Time) {
		s = HubStats{Link: h.link.Stats(), Foreign: h.foreign, LateMax: h.late, TCP: map[string]int{}}
		for k, v := range h.tcp {
			s.TCP[k] = v
		}
	}
	if !h.call(read) {
		read(time.Time{}) // the loop is over and no longer uses the model
	}
	return s
}

// Close stops carrying and closes the interfaces. Further calls do nothing.
func (h *Hub) Close() error {
	h.once.Do(func() {
		close(h.stop)
		<-h.stopped
		h.err = h.closeFiles()
		h.readers.Wait()
	})
	return h.err
}

func (h *Hub) closeFiles() error {
	var errs []error
	for _, p := range h.ports {
		errs = append(errs, p.tun.Close(), p.cap.close())
	}
	return errors.Join(errs...)
}
