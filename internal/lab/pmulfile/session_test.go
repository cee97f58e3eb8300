package pmulfile

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/field"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// sessionLink is hf-2400 twenty times as fast, losing 14 % in bursts.
const sessionLink = `name = "session"
summary = "half-duplex channel for tests"
[link]
medium = "shared"
mtu_octets = 1500
turnaround_ms = 100
max_hold_ms = 750
[both]
rate_bps = 48000
delay_ms = 50
queue_octets = 16384
ge_good_to_bad = 0.05
ge_bad_to_good = 0.3
ge_loss_bad_percent = 100.0
ge_loss_good_percent = 0.0
[gateway]
datagram_octets = 508
segment_octets = 448
window = 8
ack_delay_ms = 1200
probe_interval_ms = 1500
gap_age_ms = 500
grtt_ms = 400
bundle_ms = 30
`

// patience bounds each wait for an event that must happen.
const patience = time.Minute

// session is nodes in namespaces on one emulated channel; node i is 10.78.0.(i+1).
type session struct {
	t      *testing.T
	dir    string
	spaces []string
	p      profile.Profile
	hub    *field.Hub
	ctx    context.Context
	ended  []chan struct{}
}

func nodeAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 78, 0, byte(i + 1)}) }
func nodeID(i int) pmul.NodeID  { return Node(nodeAddr(i)) }

func newSession(t *testing.T, nodes int) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir()}
	file := filepath.Join(s.dir, "link.toml")
	err := os.WriteFile(file, []byte(sessionLink), 0o644)
	if err == nil {
		s.p, err = profile.Load(file, os.ReadFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := field.HubConfig{Seed: 1, PcapDir: s.dir}
	for i := range nodes {
		ns := fmt.Sprintf("aldis-pf-%d-%d", os.Getpid(), i)
		s.ip("netns", "add", ns)
		t.Cleanup(func() { s.ip("netns", "del", ns) })
		s.spaces = append(s.spaces, ns)
		s.ip("-n", ns, "link", "set", "lo", "up")
		s.ip("netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1") // its traffic would be counted
		cfg.Nodes = append(cfg.Nodes, field.HubNode{Name: fmt.Sprintf("node%d", i), Netns: ns, Profile: s.p, Addr: netip.PrefixFrom(nodeAddr(i), 24)})
	}
	if s.hub, err = field.StartHub(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.hub.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	t.Cleanup(func() {
		cancel()
		for _, e := range s.ended {
			<-e
		}
	})
	return s
}

func (s *session) ip(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		s.t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (s *session) config(node int, kind string) Config {
	return Config{Group: netip.AddrFrom4([4]byte{239, 1, 1, 1}), ID: nodeAddr(node), Profile: s.p,
		State: filepath.Join(s.dir, fmt.Sprintf("%s%d", kind, node)), Log: slog.New(slog.DiscardHandler)}
}

// in runs f in a node's namespace, on a thread that ends with it: sockets belong where they were opened.
func (s *session) in(node int, f func() error) {
	end := make(chan struct{})
	s.ended = append(s.ended, end)
	go func() {
		defer close(end)
		runtime.LockOSThread()
		ns, err := os.Open("/run/netns/" + s.spaces[node])
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			ns.Close()
		}
		if err == nil {
			err = f()
		}
		if err != nil {
			s.t.Errorf("node %d: %v", node, err)
		}
	}()
}

// ear is a receiver and its events.
type ear struct {
	begun map[pmul.Key]chan struct{} // closed when two fragments are there, or the message
	files chan File
}

func (s *session) receive(node int, runs bool, watch ...pmul.Key) *ear {
	e := &ear{begun: map[pmul.Key]chan struct{}{}, files: make(chan File, 100)}
	cfg := s.config(node, "in")
	cfg.Runs = runs
	ready := make(chan struct{})
	for _, k := range watch {
		e.begun[k] = make(chan struct{})
	}
	seen := map[pmul.Key]bool{}
	begun := func(k pmul.Key) {
		if c := e.begun[k]; c != nil && !seen[k] {
			seen[k] = true
			close(c)
		}
	}
	s.in(node, func() error {
		_, err := Receive(s.ctx, cfg, filepath.Join(s.dir, fmt.Sprintf("files%d", node)), Watch{
			Ready: func() { close(ready) },
			Received: func(f File) {
				begun(pmul.Key{Source: Node(f.From), Message: f.Message}) // it may have come whole between two reports of progress
				e.files <- f
			},
			Progress: func(list []pmul.Incoming) {
				for _, m := range list {
					if m.Has >= 2 {
						begun(m.Key)
					}
				}
			},
		})
		return err
	})
	wait(s.t, ready, "a receiver")
	return e
}

// mouth is a sender to which the test gives events.
type mouth struct {
	events chan pmul.Event
	said   chan pmul.Output
	quiet  chan struct{} // each time that nothing is left to send
	denied atomic.Int32  // Reject_PDUs that it got
}

func (s *session) send(node int, first pmul.MessageID) *mouth {
	m := &mouth{events: make(chan pmul.Event), said: make(chan pmul.Output, 1000), quiet: make(chan struct{}, 100)}
	s.in(node, func() error {
		e, records, err := open(s.config(node, "out"), ackPort)
		if err != nil {
			return err
		}
		defer e.close()
		if err := e.sockets.join(allNodes, requestPort); err != nil {
			return err
		}
		e.engine.FirstMessage = first
		sender, err := pmul.NewSender(e.engine, records)
		if err != nil {
			return err
		}
		var ev pmul.Event
		for busy := false; ; {
			out := sender.Step(time.Now(), ev)
			m.denied.Store(int32(sender.Stats().Rejected))
			if err := e.commit(out.Records); err != nil {
				return err
			}
			if err := e.send(out.Send); err != nil {
				return err
			}
			if len(out.Accepted)+len(out.Fates) > 0 {
				m.said <- out
			}
			if left := len(sender.Messages()) > 0; left != busy {
				if busy = left; !busy {
					m.quiet <- struct{}{}
				}
			}
			var due <-chan time.Time
			if !out.Deadline.IsZero() {
				due = time.After(time.Until(out.Deadline))
			}
			ev = nil
			select {
			case <-s.ctx.Done():
				return nil
			case ev = <-m.events:
			case r := <-e.sockets.inbox:
				if p := e.parse(r); p != nil {
					ev = p
				}
			case <-due:
			}
		}
	})
	return m
}

func wait[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return v
}

// fates waits until so many recipients have their final state.
func (m *mouth) fates(t *testing.T, n int) (all []pmul.Fate) {
	t.Helper()
	for len(all) < n {
		all = append(all, wait(t, m.said, "a fate").Fates...)
	}
	return all
}

// tshark reads a node's own packets from its capture: the fields of each packet, in order.
func (s *session) tshark(node int, fields ...string) (lines [][]string) {
	s.t.Helper()
	args := []string{"-r", filepath.Join(s.dir, fmt.Sprintf("node%d.pcap", node)), "-Y", fmt.Sprintf("ip.src == %v", nodeAddr(node)),
		"-o", "p_mul.relative_msgid:FALSE", "-T", "fields", "-E", "separator=;"}
	for _, port := range []int{requestPort, announcePort, dataPort, ackPort} {
		args = append(args, "-d", fmt.Sprintf("udp.port==%d,p_mul", port))
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for l := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(l, "\n"), ";"))
	}
	return lines
}

// TestSession is one session with all procedures over real sockets: a long message that is repaired by missing lists
// and ranges, a flash message that cuts in, groups of one message that are requested, rejected, announced and released,
// an expiry, Address_PDUs in sets. tshark reads every octet that any node sent and finds no fault.
func TestSession(t *testing.T) {
	const first = 1000
	s := newSession(t, 5)
	key := func(node int, n pmul.MessageID) pmul.Key { return pmul.Key{Source: nodeID(node), Message: first + n} }
	ears := []*ear{s.receive(2, true, key(0, 0), key(0, 2), key(0, 3), key(0, 4), key(0, 5), key(0, 6)), s.receive(3, false), s.receive(4, true)}
	hq, second := s.send(0, first), s.send(1, first)
	payload := func(octets int) []byte {
		b := make([]byte, octets)
		rng := rand.New(rand.NewPCG(1, uint64(octets)))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	expires := func(d time.Duration) time.Time { return time.Now().Add(d) }
	all := []pmul.NodeID{nodeID(2), nodeID(3), nodeID(4)}
	group := pmul.GroupAddr(0xef010102)

	long := pmul.Submit{Payload: payload(12000), To: all, Priority: 1, Expires: expires(time.Hour)}
	hq.events <- long
	wait(t, ears[0].begun[key(0, 0)], "the long message")
	flash := pmul.Submit{Payload: payload(100), To: all, Priority: 5, Expires: expires(time.Hour)}
	hq.events <- flash
	fates := hq.fates(t, 6)
	wait(t, hq.quiet, "the end of both")

	want := map[pmul.Key][]byte{key(0, 0): long.Payload, key(0, 1): flash.Payload}
	tries := pmul.MessageID(0)
	for ; second.denied.Load() == 0 && tries < 5; tries++ { // a Request_PDU or its Reject_PDU may be lost
		grouped := pmul.Submit{Payload: payload(8000 + int(tries)), To: all, Dynamic: true, Group: group, Expires: expires(time.Hour)}
		hq.events <- grouped
		wait(t, ears[0].begun[key(0, 2+tries)], "the message in a group of its own")
		taken := pmul.Submit{Payload: payload(3000 + int(tries)), To: all[:2], Dynamic: true, Group: group, Expires: expires(time.Hour)}
		second.events <- taken
		fates = append(fates, hq.fates(t, 3)...)
		wait(t, hq.quiet, "the end of its group")
		fates = append(fates, second.fates(t, 2)...)
		want[key(0, 2+tries)], want[key(1, tries)] = grouped.Payload, taken.Payload
	}
	for _, f := range fates {
		if f.State != pmul.Delivered {
			t.Errorf("%+v", f)
		}
	}

	nobody := pmul.Submit{Payload: payload(200), Expires: expires(3 * time.Second)}
	for i := range 140 { // more than two Address_PDUs name
		nobody.To = append(nobody.To, nodeID(100)+pmul.NodeID(i))
	}
	hq.events <- nobody
	for _, f := range hq.fates(t, 140) {
		if f.State != pmul.Expired {
			t.Fatalf("%+v", f)
		}
	}
	wait(t, hq.quiet, "the Discard_Message_PDU")
	behind := pmul.Submit{Payload: payload(10), To: all[:1], Expires: expires(time.Hour)}
	hq.events <- behind
	hq.fates(t, 1) // the link has carried all that was before it
	want[key(0, 3+tries)] = behind.Payload
	for i, n := range []int{3 + 2*int(tries), 2 + 2*int(tries), 2 + int(tries)} {
		for range n {
			f := wait(t, ears[i].files, "a file")
			b, err := os.ReadFile(f.Path)
			if err != nil || !bytes.Equal(b, want[pmul.Key{Source: Node(f.From), Message: f.Message}]) {
				t.Errorf("%+v: %d octets, %v", f, len(b), err)
			}
		}
	}
	if err := s.hub.Close(); err != nil {
		t.Fatal(err)
	}

	met := map[string]int{}
	var order []string // of node 0's Data_PDUs, by message
	for node := range s.spaces {
		for _, f := range s.tshark(node, "_ws.col.Protocol", "_ws.malformed", "_ws.expert.severity", "p_mul.checksum_bad", "p_mul.pdu_type",
			"p_mul.message_id", "p_mul.first", "p_mul.last", "p_mul.dest_count", "p_mul.missing_seq_no", "p_mul.missing_seq_range.from") {
			protocol, malformed, severity, bad, kind := f[0], f[1], f[2], f[3], f[4]
			switch {
			case strings.HasPrefix(protocol, "IGMP"):
				continue
			case protocol != "P_MUL" || malformed != "" || strings.Contains(bad, "1") || serious(severity):
				t.Errorf("node %d: tshark finds fault: %q", node, f)
			}
			count := func(what string, is bool) {
				if is {
					met[what]++
				}
			}
			set := f[6] + f[7] // as the dissector names the two bits of MAP: "not first", "not last"
			count(kind, true)
			count("Ack-Ack", kind == "2" && f[8] == "0")
			count("list", f[9] != "")
			count("range", f[10] != "")
			count("first of a set", set == "01")
			count("middle of a set", set == "11")
			count("last of a set", set == "10")
			if node == 0 && kind == "0" {
				order = append(order, f[5])
			}
		}
	}
	t.Logf("tshark: 0 malformed, 0 bad checksums; PDUs by PDU_Type, and what was in them: %v", met)
	for _, k := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "Ack-Ack", "list", "range", "first of a set", "middle of a set", "last of a set"} {
		if met[k] == 0 {
			t.Errorf("none of %s", k)
		}
	}
	at := slices.Index(order, fmt.Sprint(first+1))
	if at <= 0 || slices.Index(order[at:], fmt.Sprint(first)) < 0 {
		t.Errorf("the flash message did not cut in: Data_PDUs by message %v", order)
	}
}

// serious tells whether an expert information of tshark is a warning or worse.
func serious(severities string) bool {
	for _, s := range strings.Split(severities, ",") {
		if n, err := strconv.Atoi(s); err == nil && n >= 0x600000 {
			return true
		}
	}
	return false
}
