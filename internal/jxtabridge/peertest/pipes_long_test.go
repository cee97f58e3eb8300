//go:build long

package peertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
	"aldis/internal/operator/control"
)

// modem is the emulated link of two gateways on this machine: HQ on the wire, the ship behind its satellite.
type modem struct {
	ends [2]*net.UDPConn // dialled by gateway 0 (HQ) and 1 (ship)
	to   [2]*net.UDPAddr // the gateways
	in   chan linkemu.Frame

	mu     sync.Mutex
	octets int // IP octets offered by both
}

var stations = [2]string{"hq", "ship"}

func newModem(t *testing.T, gateways [2]string, name string) *modem {
	t.Helper()
	m := &modem{in: make(chan linkemu.Frame, 1<<12)}
	cfg := linkemu.Config{Seed: 1}
	for i, p := range []string{"wire", name} {
		leg, err := profile.Load(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Nodes = append(cfg.Nodes, linkemu.Node{Name: stations[i], Profile: leg})
		if m.to[i], err = net.ResolveUDPAddr("udp", gateways[i]); err != nil {
			t.Fatal(err)
		}
		if m.ends[i], err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.ends[i].Close() })
	}
	link, err := linkemu.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan bool)
	t.Cleanup(func() { close(stop) })
	for i := range m.ends {
		go func() {
			for {
				b := make([]byte, 2048)
				n, _, err := m.ends[i].ReadFromUDP(b)
				if err != nil {
					return
				}
				select {
				case m.in <- linkemu.Frame{From: stations[i], To: stations[1-i], Octets: 28 + n, Data: b[:n]}:
				case <-stop:
					return
				}
			}
		}()
	}
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			var ev linkemu.Event
			select {
			case <-stop:
				return
			case f := <-m.in:
				ev = f
				m.mu.Lock()
				m.octets += f.Octets
				m.mu.Unlock()
			case <-timer.C:
			}
			out, err := link.Step(time.Now(), ev)
			if err != nil {
				panic(err)
			}
			for _, d := range out.Deliver {
				at := 0
				if d.Node == stations[1] {
					at = 1
				}
				m.ends[at].WriteToUDP(d.Frame.Data, m.to[at]) // the gateway sees the address that it dials
			}
			if timer.Stop(); !out.Deadline.IsZero() {
				timer.Reset(time.Until(out.Deadline))
			}
		}
	}()
	return m
}

func (m *modem) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.octets
}

// quiet waits until nothing has been offered for longer than an acknowledgement waits.
func (m *modem) quiet(t *testing.T, d time.Duration) {
	t.Helper()
	check.Still(t, d, 5*time.Minute, "what is offered to the link", m.total)
}

// Every type of pipe in both directions across iridium-directip, 200 and 20,000 octets: all octets arrive once. Only payload,
// state and their carriers cross; nothing of JXTA's reliability, routing, leases or queries. The log has the
// table of docs/pipes.md.
func TestPipesAcrossIridium(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		name, a, b string
		pipes      []string
	}{
		{"2.7 signed", field.KindJXSE27, field.KindJXSE27, []string{"propagate", "unicast", "bidi", "socket"}},
		{"2.7 signed, TLS", field.KindJXSE27, field.KindJXSE27, []string{"secure"}},
		{"2.7 unsigned", field.KindJXSE27Unsigned, field.KindJXSE27Unsigned, []string{"propagate", "unicast", "bidi", "socket"}},
		{"2.2", field.KindJXTA22, field.KindJXTA22, []string{"propagate", "unicast", "socket"}},
		{"2.2 and 2.7 signed", field.KindJXTA22, field.KindJXSE27, []string{"propagate", "unicast", "socket"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cross(t, binary, tt.name, tt.a, tt.b, tt.pipes)
		})
	}
}

func cross(t *testing.T, binary, name, kindA, kindB string, pipes []string) {
	dir := t.TempDir()
	if out, err := exec.Command(binary, "keys", "new", "-o", filepath.Join(dir, "net.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sides := [2]*side{newSide(t, "A", 1), newSide(t, "B", 2)}
	links, status := [2]string{check.FreeAddress(t, "udp"), check.FreeAddress(t, "udp")}, [2]string{check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp")}
	m := newModem(t, links, "iridium-directip")
	var gw [2]*process
	for i := range gw {
		gw[i] = &process{binary: binary, file: filepath.Join(dir, fmt.Sprintf("gw%d.toml", i))}
		end := "shore"
		if i == 1 {
			end = "terminal"
		}
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\n[link]\nprofile = \"iridium-directip\"\nend = %q\nlisten = %q\nkey_file = \"net.key\"\n[http]\nlisten = %q\n[[link.peer]]\nid = %d\nname = \"node%d\"\naddress = %q\n",
			i+1, i+1, filepath.Join(dir, fmt.Sprint("data", i)), sides[i].cfg.Address, end, links[i], status[i], 2-i, 2-i, m.ends[i].LocalAddr())
		if err := os.WriteFile(gw[i].file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		gw[i].start(t)
		t.Cleanup(func() {
			gw[i].kill()
			if t.Failed() {
				t.Logf("gateway %d:\n%s", i, gw[i].log.String())
			}
		})
	}
	w := newWorld(t, 5*time.Minute)
	a, b := w.peer(sides[0], kindA, "A", 9702), w.peer(sides[1], kindB, "B", 9703)
	secure := false
	for _, p := range pipes {
		switch p {
		case "bidi":
			w.tell(a, "bidi-listen bidi")
			w.tell(b, "find bidi 1000")
		case "socket":
			w.tell(a, "sock-listen socket")
			w.tell(b, "find socket 1000")
		case "propagate":
			w.tell(a, "publish propagate")
			w.tell(b, "find propagate 1000", "listen propagate")
		case "secure":
			secure = true
			fallthrough
		default: // a pipe of each
			w.tell(a, "publish a-"+p+" "+p, "find b-"+p+" 1000")
			w.tell(b, "publish b-"+p+" "+p, "find a-"+p+" 1000")
		}
	}
	if secure {
		w.tell(a, "certificate")
		w.tell(b, "certificate")
		ca, cb := w.await(a, "certificate", ""), w.await(b, "certificate", "")
		w.tell(a, "trust "+cb.Text)
		w.tell(b, "trust "+ca.Text)
		w.await(a, "trusted", "")
		w.await(b, "trusted", "")
	}
	var table strings.Builder
	messages, opened := 0, 0
	for _, p := range pipes {
		toB, toA, verb := p, p, "send "
		switch p {
		case "bidi", "socket":
			w.await(b, "discovered", p)
			verb = p[:4] + "-send "
		case "propagate":
			w.await(b, "pipe_ready", p)
		default:
			toB, toA = "b-"+p, "a-"+p
			w.await(a, "discovered", toB)
			w.await(b, "discovered", toA)
		}
		if messages == 0 {
			m.quiet(t, 7*time.Second) // advertisements and questions of the peers
		}
		before := m.total()
		if p == "bidi" || p == "socket" {
			w.tell(b, p[:4]+"-connect "+p)
			w.await(a, "opened", p)
			opened++
		}
		begun := time.Now()
		w.tell(a, verb+toB+" 200 4 0.2", verb+toB+" 20000 1")
		w.tell(b, verb+toA+" 200 4 0.2", verb+toA+" 20000 1")
		last := begun
		for _, x := range []struct {
			to         *field.Peer
			name, from string
		}{{b, toB, "A"}, {a, toA, "B"}} {
			if e := all(w, x.to, x.name, x.from); e.At().After(last) {
				last = e.At()
			}
		}
		m.quiet(t, 8*time.Second) // acknowledgements wait 6 s
		messages += 2 * 5
		row := fmt.Sprintf("| %s | %s | 4 of 4, 4 of 4 | 1 of 1, 1 of 1 | %.1f | %d |", p, name, last.Sub(begun).Seconds(), m.total()-before)
		t.Log(row)
		table.WriteString(row + "\n")
	}
	// The ledger: its octets are those of the link, to the octet, and all are for the things that it names.
	sum, carried := 0, 0
	kinds := map[string]uint64{}
	for done := false; !done; { // the acknowledgement of a long message may be under way still
		if w.ctx.Err() != nil {
			t.Fatal("not every message has its acknowledgement")
		}
		m.quiet(t, 8*time.Second)
		done = true
		for i := range gw {
			for _, p := range report(t, status[i]).Peers {
				done = done && p.Accepted == p.Delivered
			}
		}
	}
	for i := range gw {
		r := report(t, status[i])
		for _, row := range r.Ledger {
			if row.Direction == "sent" {
				sum += int(row.Octets)
				kinds[row.Kind] += row.Octets
			}
		}
		for _, p := range r.Peers {
			carried += int(p.Accepted)
			if p.Accepted != p.Delivered || p.Refused != 0 {
				t.Errorf("gateway %d: %+v", i, p)
			}
		}
	}
	if total := m.total(); sum != total {
		t.Errorf("the ledgers have %d octets, the link %d", sum, total)
	}
	for kind, octets := range kinds {
		if octets > 0 && !strings.Contains(" payload advertisement state ack repair header key ", " "+kind+" ") {
			t.Errorf("octets of kind %s on the link", kind)
		}
	}
	// One message for each message of an application, one for each stream that was opened: had an acknowledgement, a
	// query, a lease or a route crossed, there would be more. For secure pipes each block of TLS is one: 14 of the handshake
	// (ghosts 7), two of an attempt that crossed it, and no more than three of a message.
	if secure && carried > 14+2+3*messages {
		t.Errorf("%d messages were carried for %d of the applications: blocks cross more than once", carried, messages)
	}
	if !secure && carried != messages+opened {
		t.Errorf("%d messages were carried, the applications sent %d in %d streams", carried, messages, opened)
	}
	t.Logf("\n%s%s: %d messages of applications, %d carried, %d octets on the link: %v", table.String(), name, messages, carried, sum, kinds)
}

func report(t *testing.T, address string) (r control.Report) {
	t.Helper()
	resp, err := http.Get("http://" + address + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// all waits for the messages of one direction, and checks that each came once and whole.
func all(w world, p *field.Peer, name, from string) field.Event {
	w.Helper()
	if _, err := p.Wait(w.ctx, func(field.Event) bool { return len(heard(p, name, from)) >= 5 }); err != nil {
		w.Fatalf("%s has %d of 5 messages of %s on %s: %v", p.Name(), len(heard(p, name, from)), from, name, err)
	}
	seen, sizes := map[int64]bool{}, map[int]int{}
	var last field.Event
	for _, e := range heard(p, name, from) {
		if seen[e.Seq] || !e.OK {
			w.Errorf("%s received %+v, want it whole and once", p.Name(), e)
		}
		seen[e.Seq] = true
		sizes[e.Size]++
		if e.T > last.T {
			last = e
		}
	}
	if sizes[200] != 4 || sizes[20000] != 1 {
		w.Errorf("%s received %v messages by size on %s of %s", p.Name(), sizes, name, from)
	}
	return last
}

func heard(p *field.Peer, name, from string) (es []field.Event) {
	for _, e := range p.Events() {
		if e.Ev == "received" && e.Name == name && e.From == from {
			es = append(es, e)
		}
	}
	return es
}
