package norm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/norm/cell"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// noNamespaces makes the test program behave as on a kernel without namespaces.
const noNamespaces = "ALDIS_TEST_NO_NAMESPACES"

// forbidNamespaces is for a process that is root of its own user namespace.
func forbidNamespaces() {
	for _, kind := range []string{"user", "net"} {
		if err := os.WriteFile("/proc/sys/user/max_"+kind+"_namespaces", []byte("0"), 0); err != nil {
			panic(err)
		}
	}
}

// facts are the lines of a thread's /proc/…/status.
func facts(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		m[key] = strings.TrimSpace(value)
	}
	return m
}

// threads are the status files of all threads of a process.
func threads(t *testing.T, pid int) []string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) < 2 {
		t.Fatalf("threads %v, %v; libnorm has one of its own", files, err)
	}
	return files
}

// udpInodes are the UDP sockets of the network that a process is in, by inode, with their local address in hex.
func udpInodes(t *testing.T, process string) map[string]string {
	t.Helper()
	table, err := os.ReadFile("/proc/" + process + "/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, line := range strings.Split(string(table), "\n")[1:] {
		if f := strings.Fields(line); len(f) > 9 {
			m[f[9]] = f[1]
		}
	}
	return m
}

// The child that parses octets from the air is alone: its network has nobody else in it, its user owns nothing, and none of its
// threads has a capability or can get one.
func TestChildIsInItsCell(t *testing.T) {
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 4e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	n.ends[1].send(2, 1, filled(n.rnd, 20_000))
	n.run(10*time.Second, n.delivered) // anything that libnorm does late is done
	ours := udpInodes(t, "thread-self")
	for _, e := range n.ends {
		pid := e.process().Pid
		for _, file := range threads(t, pid) {
			f := facts(t, file)
			check.Equal(t, "NoNewPrivs", f["NoNewPrivs"], "1")
			check.Equal(t, "Seccomp", f["Seccomp"], "2")
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				check.Equal(t, set, f[set], "0000000000000000")
			}
			for _, id := range strings.Fields(f["Uid"] + " " + f["Gid"]) {
				if id == "0" || id == "65534" {
					t.Errorf("user or group %s: others have it too", id)
				}
			}
			check.Equal(t, "Groups", f["Groups"], "")
		}
		for _, kind := range []string{"net", "user"} {
			theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			if mine, _ := os.Readlink("/proc/thread-self/ns/" + kind); err != nil || theirs == mine {
				t.Errorf("namespace %s: %q, %v; ours is %q", kind, theirs, err, mine)
			}
		}
		sockets := udpInodes(t, fmt.Sprint(pid))
		check.Equal(t, "UDP sockets in the child's network", len(sockets), 4)
		for inode, local := range sockets {
			if ours[inode] != "" {
				t.Errorf("the socket at %s is in our network too", local)
			}
		}
		s := e.sup.Stats()
		if s.Cell == nil || !s.Cell.Whole {
			t.Errorf("the supervisor says %+v", s.Cell)
		}
		check.Equal(t, "packets of strangers", s.StrangePacket, 0)
		check.Equal(t, "complaints", len(e.lacks), 0)
	}
}

// The descriptors of the child are three pipes, sockets of its own network, and those that wake its loops. A descriptor that
// somebody left open in the process that became the gateway is not among them.
func TestChildHoldsNoFile(t *testing.T) {
	left, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if _, err := unix.FcntlInt(left.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	n := newNet(t, 0, 1, 100*time.Millisecond, 448, 4e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	dir := fmt.Sprintf("/proc/%d/fd", n.ends[1].process().Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		to, err := os.Readlink(filepath.Join(dir, entry.Name()))
		kind, _, _ := strings.Cut(to, ":")
		// Go's runtime reads the processor share of its control group.
		if !slices.Contains([]string{"pipe", "socket", "anon_inode"}, kind) && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			t.Errorf("descriptor %s: %q, %v", entry.Name(), to, err)
		}
	}
}

// On a machine without namespaces long messages pass, the rest of the cell is there, and the missing parts are reported once.
func TestCellWithoutNamespaces(t *testing.T) {
	var ways []cell.Way // those that this machine allows: only the last one
	if os.Getenv(noNamespaces) == "" {
		ways = []cell.Way{{}}
		refusedByTheKernel(t)
	}
	n := newNetIn(t, ways, 0, 1, 100*time.Millisecond, 448, 4e6, 1, 2)
	n.run(5*time.Second, n.allUp)
	a := n.ends[1]
	for _, file := range threads(t, a.process().Pid) {
		f := facts(t, file)
		check.Equal(t, "NoNewPrivs", f["NoNewPrivs"], "1")
		check.Equal(t, "Seccomp", f["Seccomp"], "2")
		check.Equal(t, "CapEff", f["CapEff"], "0000000000000000")
		check.Equal(t, "CapBnd", f["CapBnd"], "0000000000000000")
	}
	a.send(2, 1, filled(n.rnd, 20_000))
	n.ends[2].send(1, 2, filled(n.rnd, 20_000))
	n.run(10*time.Second, n.delivered)
	a.process().Kill()
	n.run(5*time.Second, func() bool { return a.ups == 2 })
	want := []string{"own user namespace", "own network namespace"}
	check.Same(t, "what the supervisor says", a.sup.Stats().Cell, &Cell{Missing: want})
	check.Same(t, "what was told", a.lacks, [][]string{want})
}

// refusedByTheKernel runs the same test in a user namespace in which nobody may make another.
func refusedByTheKernel(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), noNamespaces+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("without namespaces: %v\n%s", err, out)
	}
}

// As many legs as are possible fit the child's limits: four sockets each, and two for the supervisor while they are handed
// over.
func TestMostPeersFitTheCell(t *testing.T) {
	events := make(chan api.Event, 1024)
	s, err := New(Config{Self: 1000, Segment: 448, GRTT: time.Second, TxRate: 1e5,
		Command: func() *exec.Cmd { return exec.Command("/proc/self/exe", childCommand) }}, func(e api.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	peers := make([]uint16, MaxPeers)
	for i := range peers {
		peers[i] = uint16(i + 1)
	}
	s.Do(api.NormStart{Generation: 1, Peers: peers})
	for e := range events {
		switch e := e.(type) {
		case api.NormDown:
			t.Fatal(e.Reason)
		case api.NormUp:
			if c := s.Stats().Cell; !c.Whole {
				t.Errorf("missing: %q", c.Missing)
			}
			return
		}
	}
}
