package commands

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// pmulNet is nodes in network namespaces on an emulated link; node i is 10.77.0.(i+1).
type pmulNet struct {
	spaces []string
	dir    string // of captures and files
	file   string // of the profile
	hub    *field.Hub
	p      profile.Profile
}

func ipCommand(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// newPMULNet makes the namespaces and the link; both go with the test. text is the profile's file.
func newPMULNet(t *testing.T, nodes int, seed uint64, text string) *pmulNet {
	t.Helper()
	n := &pmulNet{dir: t.TempDir()}
	n.file = filepath.Join(n.dir, "link.toml")
	if err := os.WriteFile(n.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Load(n.file, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	n.p = p
	cfg := field.HubConfig{Seed: seed, PcapDir: n.dir}
	for i := range nodes {
		ns := fmt.Sprintf("aldis-pm-%d-%d-%d", os.Getpid(), seed, i)
		if err := ipCommand("netns", "add", ns); err != nil {
			t.Fatal(err)
		}
		n.spaces = append(n.spaces, ns)
		t.Cleanup(func() {
			if err := ipCommand("netns", "del", ns); err != nil {
				t.Error(err)
			}
		})
		if err := ipCommand("-n", ns, "link", "set", "lo", "up"); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1").Run(); err != nil {
			t.Fatal(err) // its neighbour discovery would be counted on the link
		}
		cfg.Nodes = append(cfg.Nodes, field.HubNode{Name: fmt.Sprintf("node%d", i), Netns: ns, Profile: p,
			Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), 24)})
	}
	if n.hub, err = field.StartHub(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.hub.Close() }) // the second time does nothing
	return n
}

// command runs the gateway in a node's namespace.
func (n *pmulNet) command(t *testing.T, node int, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.spaces[node], self}, args...)...)
	cmd.Env = append(os.Environ(), asGateway+"=1", "XDG_STATE_HOME="+filepath.Join(n.dir, "state"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// pmulReceiver is a running receiver, and the lines that it prints.
type pmulReceiver struct {
	cmd   *exec.Cmd
	lines chan pmulReceiveJSON
	into  string
}

func (n *pmulNet) receive(t *testing.T, node int) *pmulReceiver {
	t.Helper()
	r := &pmulReceiver{lines: make(chan pmulReceiveJSON, 1000), into: filepath.Join(n.dir, fmt.Sprintf("in%d", node))}
	r.cmd = n.command(t, node, "pmul", "receive", "--group", "239.1.1.1", "--id", fmt.Sprintf("10.77.0.%d", node+1), "--into", r.into, "--profile", n.file, "--json")
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	r.cmd.Stderr = &errs
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var j pmulReceiveJSON
			if err := json.Unmarshal(s.Bytes(), &j); err != nil {
				t.Errorf("%s: %v", s.Text(), err)
			}
			r.lines <- j
		}
	}()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		if t.Failed() {
			t.Logf("node %d: %s", node, errs.String())
		}
	})
	r.wait(t, "ready")
	return r
}

// wait waits for a line of an event.
func (r *pmulReceiver) wait(t *testing.T, event string) pmulReceiveJSON {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case j, ok := <-r.lines:
			if !ok {
				t.Fatalf("the receiver ended before %q", event)
			}
			if j.Event == event {
				return j
			}
		case <-timeout:
			t.Fatalf("no %q from the receiver", event)
		}
	}
}

// end ends the receiver as Ctrl-C does and returns its exit code.
func (r *pmulReceiver) end(t *testing.T) int {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "end")
	r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

// pmulPayload writes a file to send.
func (n *pmulNet) pmulPayload(t *testing.T, octets int) (string, []byte) {
	t.Helper()
	b := make([]byte, octets)
	rng := rand.New(rand.NewPCG(1, uint64(octets)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	name := filepath.Join(n.dir, "payload")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name, b
}

// send runs a sender on node 0 to its end and gives its exit code and its last JSON line.
func (n *pmulNet) send(t *testing.T, wait time.Duration, args ...string) (int, pmulSendJSON) {
	t.Helper()
	cmd := n.command(t, 0, append([]string{"pmul", "send", "--group", "239.1.1.1", "--id", "10.77.0.1", "--profile", n.file, "--json"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(wait, func() { cmd.Process.Kill() })
	defer watch.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var j pmulSendJSON
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &j); err != nil || j.Event != "end" {
		t.Fatalf("exit %d, %q, %v\n%s", cmd.ProcessState.ExitCode(), lines[len(lines)-1], err, errs.String())
	}
	return cmd.ProcessState.ExitCode(), j
}

// tshark reads a node's capture: everything is P_Mul without a fault, and these PDU types were met.
func (n *pmulNet) tshark(t *testing.T, node int, types ...string) map[string]int {
	t.Helper()
	if err := n.hub.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(filter string, fields ...string) string {
		args := []string{"-r", filepath.Join(n.dir, fmt.Sprintf("node%d.pcap", node)), "-o", "p_mul.relative_msgid:FALSE", "-Y", filter}
		for _, port := range []string{"2751", "2752", "2753", "2754"} {
			args = append(args, "-d", "udp.port=="+port+",p_mul")
		}
		if len(fields) > 0 {
			args = append(args, "-T", "fields", "-e", fields[0])
		}
		out, err := exec.Command("tshark", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if bad := read("_ws.malformed || p_mul.checksum_bad == 1 || p_mul && _ws.expert.severity >= 0x600000"); bad != "" {
		t.Errorf("tshark finds fault:\n%s", bad)
	}
	if foreign := read("!p_mul && !igmp"); foreign != "" {
		t.Errorf("not P_Mul:\n%s", foreign)
	}
	met := map[string]int{}
	for _, k := range strings.Fields(read("p_mul", "p_mul.pdu_type")) {
		met[k]++
	}
	t.Logf("node%d.pcap, PDUs by type: %v; 0 malformed, 0 bad checksums", node, met)
	for _, k := range types {
		if met[k] == 0 {
			t.Errorf("no PDU of type %s in %v", k, met)
		}
	}
	return met
}

// pmulFast is hf-2400 twenty times as fast, with independent loss.
const pmulFast = `name = "fast"
summary = "half-duplex channel for tests"
[link]
medium = "shared"
mtu_octets = 1500
turnaround_ms = 100
max_hold_ms = 750
[both]
rate_bps = 48000
delay_ms = 50
queue_octets = 8192
loss_percent = %d.0
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

// TestPMULTransfer: a file to four receivers over a lossy channel; tshark agrees with every PDU.
func TestPMULTransfer(t *testing.T) {
	n := newPMULNet(t, 5, 1, fmt.Sprintf(pmulFast, 10))
	name, want := n.pmulPayload(t, 20000)
	var receivers []*pmulReceiver
	for i := 1; i < 5; i++ {
		receivers = append(receivers, n.receive(t, i))
	}
	code, j := n.send(t, patience, "--to", "10.77.0.2,10.77.0.3,10.77.0.4,10.77.0.5", "--priority", "4", name)
	if code != cli.ExitGood {
		t.Errorf("exit %d: %+v", code, j)
	}
	for _, r := range receivers {
		got := r.wait(t, "received")
		b, err := os.ReadFile(got.File)
		check.NoError(check.Fatal(t), err)
		check.True(t, "bytes.Equal(b, want)", bytes.Equal(b, want))
		check.Equal(t, "got.From", got.From, "10.77.0.1")
		check.Equal(t, "got.Message", got.Message, j.Message)
		if code := r.end(t); code != cli.ExitGood {
			t.Errorf("receiver's exit %d", code)
		}
	}
	if again, second := n.send(t, patience, "--to", "10.77.0.9", "--expires", "2s", name); again != cli.ExitRefused || second.Message == j.Message || second.To[0].State != "expired" {
		t.Errorf("to nobody: exit %d, %+v; the first was message %d", again, second, j.Message)
	}
	n.tshark(t, 0, "0", "1", "2", "3")
	n.tshark(t, 4, "0", "2")
}

// TestPMULSilent: a recipient that its operator calls silent gets no requests; the file waits for its acknowledgement.
func TestPMULSilent(t *testing.T) {
	n := newPMULNet(t, 3, 5, fmt.Sprintf(pmulFast, 0))
	name, want := n.pmulPayload(t, 5000)
	r := n.receive(t, 1)
	code, j := n.send(t, patience, "--to", "10.77.0.2,10.77.0.3", "--silent", "10.77.0.3", "--expires", "9s", name)
	check.Equal(t, "code", code, cli.ExitRefused)
	check.Equal(check.Fatal(t), "len(j.To)", len(j.To), 2)
	check.Equal(t, "j.To[0].State", j.To[0].State, "delivered")
	check.Equal(t, "j.To[1].State", j.To[1].State, "expired")
	got := r.wait(t, "received")
	if b, err := os.ReadFile(got.File); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if met := n.tshark(t, 0, "0", "1", "2", "3"); met["0"] < 2*11 {
		t.Errorf("PDUs %v; want all 11 Data_PDUs, and again blindly", met)
	}
}

// TestPMULReceiverKilled: kill -9 in the middle; the received part is kept, and the file comes once.
func TestPMULReceiverKilled(t *testing.T) {
	n := newPMULNet(t, 2, 2, fmt.Sprintf(pmulFast, 0))
	name, want := n.pmulPayload(t, 30000)
	r := n.receive(t, 1)
	done := make(chan int, 1)
	go func() {
		code, _ := n.send(t, patience, "--to", "10.77.0.2", name)
		done <- code
	}()
	for r.wait(t, "progress").Has < 5 {
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.cmd.Wait()
	r = n.receive(t, 1)
	first := r.wait(t, "progress")
	if first.Has < 5 {
		t.Errorf("%d fragments after the restart", first.Has)
	}
	got := r.wait(t, "received")
	if b, err := os.ReadFile(got.File); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if code := <-done; code != cli.ExitGood {
		t.Errorf("exit %d", code)
	}
	files, err := filepath.Glob(filepath.Join(r.into, "1*"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestPMULCancelled: Ctrl-C ends a transfer, and the receivers learn of it.
func TestPMULCancelled(t *testing.T) {
	n := newPMULNet(t, 2, 3, fmt.Sprintf(pmulFast, 0))
	name, _ := n.pmulPayload(t, 60000)
	r := n.receive(t, 1)
	cmd := n.command(t, 0, "pmul", "send", "--group", "239.1.1.1", "--id", "10.77.0.1", "--to", "10.77.0.2", "--profile", n.file, name)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "progress")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitRefused || !strings.Contains(out.String(), "10.77.0.2 cancelled after") ||
		!strings.Contains(out.String(), "0 of 1 recipients have it") {
		t.Errorf("exit %d: %s", code, out.String())
	}
	r.end(t)
	n.tshark(t, 0, "0", "2", "3")
}

// TestPMULUsage: every mistake is reported at once.
func TestPMULUsage(t *testing.T) {
	tests := []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"pmul"}, cli.ExitUsage, []string{"usage: gateway pmul"}},
		{[]string{"pmul", "-h"}, cli.ExitGood, []string{"usage: gateway pmul"}},
		{[]string{"pmul", "fly"}, cli.ExitUsage, []string{`no command "fly"`}},
		{[]string{"pmul", "send", "-h"}, cli.ExitGood, []string{"Exit: 0 all recipients", "-expires", "-priority"}},
		{[]string{"pmul", "receive", "-h"}, cli.ExitGood, []string{"Exit: 0 ended", "-into"}},
		{[]string{"pmul", "send", "--group", "10.0.0.1", "--id", "ship", "--to", "10.77.0.2,x", "--profile", "hf-9", "--expires", "-1s", "--priority", "256"}, cli.ExitUsage,
			[]string{"--group", "--id", "--to", "--profile", "--expires", "--priority", "FILE: missing"}},
		{[]string{"pmul", "send", "-h"}, cli.ExitGood, []string{"-silent", "-dynamic"}},
		{[]string{"pmul", "receive", "-h"}, cli.ExitGood, []string{"-runs"}},
		{[]string{"pmul", "send", "--id", "10.77.0.1", "--to", "10.77.0.1,10.77.0.2,10.77.0.2", "--silent", "10.77.0.3,ship", "x"}, cli.ExitUsage,
			[]string{"--to: 10.77.0.1 is this node itself", "--to: 10.77.0.2 is there twice", "--silent: 10.77.0.3 is no recipient: --to has 10.77.0.1,10.77.0.2", `--silent: "ship" is no node number`}},
		{[]string{"pmul", "receive"}, cli.ExitUsage, []string{"--group", "--id", "--into", "--profile"}},
		{[]string{"pmul", "send", "--to", "10.0.0.1", "/nowhere/at/all"}, cli.ExitUsage, []string{"/nowhere/at/all"}},
	}
	for _, tt := range tests {
		code, out, errs := run(t, tt.args...)
		for _, w := range tt.want {
			if code != tt.code || !strings.Contains(out+errs, w) {
				t.Errorf("%v: exit %d, want %d and %q in:\n%s%s", tt.args, code, tt.code, w, out, errs)
			}
		}
	}
}

// openTerminal makes a pseudo-terminal: octets written to tty can be read from the returned file.
func openTerminal(t *testing.T) (control, tty *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return control, tty
}

// TestPMULProgress: on a terminal the sender shows its progress, and each fate on a line of its own.
func TestPMULProgress(t *testing.T) {
	n := newPMULNet(t, 2, 4, fmt.Sprintf(pmulFast, 0))
	name, _ := n.pmulPayload(t, 12000)
	n.receive(t, 1)
	control, tty := openTerminal(t)
	cmd := n.command(t, 0, "pmul", "send", "--group", "239.1.1.1", "--id", "10.77.0.1", "--to", "10.77.0.2", "--profile", n.file, name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	var seen bytes.Buffer
	io.Copy(&seen, control) // until the last holder of tty has ended
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitGood || !strings.Contains(seen.String(), "of 25, 10.77.0.2 has 0") || !strings.HasSuffix(seen.String(), "\r\x1b[K") {
		t.Errorf("exit %d; the terminal saw %q", code, seen.String())
	}
	if !strings.Contains(out.String(), "10.77.0.2 delivered after ") || !strings.Contains(out.String(), "1 of 1 recipients have it") {
		t.Errorf("it said %q", out.String())
	}
}
