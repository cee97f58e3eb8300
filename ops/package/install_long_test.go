//go:build long

package install

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// Versions of the packages, the older one first. "~" sorts before everything.
const older, newer = "0.2.0~1", "0.2.0~2"

// patience bounds a wait for something that takes a second on a quiet machine.
const patience = 2 * time.Minute

// waiting is how many messages wait in the journal when the package is replaced.
const waiting = 10000

// must runs a program of this machine and returns its output.
func must(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// TestTwoBuildsGiveOneHash builds all packages twice: here, and in a copy of the tree at another place, later, with nothing
// compiled before.
func TestTwoBuildsGiveOneHash(t *testing.T) {
	here, there, copied := t.TempDir(), t.TempDir(), t.TempDir()
	first := must(t, []string{"DIST=" + here, "VERSION=" + newer}, "../../scripts/packages")
	must(t, nil, "sh", "-c", `cd ../.. && { git ls-files -co --exclude-standard; echo .git; } | tar -c --ignore-failed-read -T - | tar -x -C "$0"`, copied)
	cache := filepath.Join(t.TempDir(), "cache")
	second := must(t, []string{"DIST=" + there, "VERSION=" + newer, "GOCACHE=" + cache, "TZ=Asia/Tokyo"}, filepath.Join(copied, "scripts/packages"))
	if first != second || strings.Count(first, "\n") != 8 {
		t.Errorf("here\n%sthere\n%s", first, second)
	}
	debs, _ := filepath.Glob(filepath.Join(here, "*.deb"))
	if said := must(t, nil, "lintian", append([]string{"--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"}, debs...)...); said != "" || len(debs) != 4 {
		t.Errorf("lintian says of %v:\n%s", debs, said)
	}
	for _, arch := range []string{"x86_64", "aarch64"} {
		list := must(t, nil, "sh", "-c", "rpm -qpl --requires "+here+"/*."+arch+".rpm")
		for _, want := range []string{"/usr/bin/gateway\n", "/usr/bin/gateway-lab\n", "/usr/lib/systemd/system/aldis-gateway.service\n", "/usr/share/man/man1/gateway-run.1.gz\n", "libnorm.so.1()(64bit)\n"} {
			if !strings.Contains(list, want) {
				t.Errorf("the rpm for %s lacks %s", arch, want)
			}
		}
	}
}

// sources are the lines of sources.list that this machine has its own Debian packages from.
func sources(t *testing.T) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(must(t, nil, "apt-get", "indextargets", "--format", "deb $(REPO_URI) $(CODENAME) $(COMPONENT)",
		"Created-By: Packages", "Origin: Debian")), "\n")
}

// machine is a Debian 12 of its own, which runs systemd in the network of this one.
type machine struct {
	t      *testing.T
	root   string
	leader string // process id of its systemd, seen from here
}

// boot makes a Debian with nothing but systemd in it, from the archive that this machine uses, and starts it.
func boot(t *testing.T) *machine {
	t.Helper()
	return start(t, debian(t))
}

// debian is the directory of one that has not been started.
func debian(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	must(t, nil, "mmdebstrap", append([]string{"--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,man-db", "bookworm", root}, sources(t)...)...)
	return root
}

// start boots the Debian in a directory.
func start(t *testing.T, root string) *machine {
	t.Helper()
	m := &machine{t: t, root: root}
	cmd := exec.Command("systemd-nspawn", "--quiet", "--directory", m.root, "--boot", "--register=no", "--keep-unit", "--console=pipe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if leader, err := strconv.Atoi(m.leader); err == nil {
			syscall.Kill(leader, syscall.SIGKILL) // all processes of the machine end with it
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	check.Until(t, patience, "systemd runs", func() bool {
		b, _ := os.ReadFile(children)
		m.leader = strings.TrimSpace(string(b))
		if m.leader == "" {
			return false
		}
		_, err := os.Stat(filepath.Join("/proc", m.leader, "root/run/systemd/system"))
		return err == nil && exec.Command("nsenter", "-t", m.leader, "-a", "systemctl", "is-system-running", "--wait").Run() == nil
	})
	return m
}

// sh runs a script in the machine, and expects exit code 0.
func (m *machine) sh(script string) string {
	m.t.Helper()
	return must(m.t, []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}, "nsenter", "-t", m.leader, "-a", "sh", "-ec", script)
}

// lacks says which of these files are there.
func (m *machine) lacks(when string, files ...string) {
	m.t.Helper()
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(m.root, f)); err == nil {
			m.t.Errorf("%s there is %s", when, f)
		}
	}
}

// status is what of the gateway's state this test judges.
type status struct {
	Cell *struct {
		Whole bool `json:"whole"`
	} `json:"norm_cell"`
	Peers []struct {
		Waiting, Accepted int
		UnderWay          int `json:"under_way"`
	}
}

func (m *machine) status() (s status) {
	m.t.Helper()
	check.Until(m.t, patience, "the gateway answers", func() bool {
		out, err := exec.Command("nsenter", "-t", m.leader, "-a", "gateway", "status", "--json").Output()
		return err == nil && json.Unmarshal(out, &s) == nil && len(s.Peers) == 1
	})
	return s
}

// ear is HQ's listener, which dials again when its gateway comes back, and counts what it hears.
type ear struct {
	mu    sync.Mutex
	times map[string]int // by text
	peer  *tcp.Peer
}

func (e *ear) dial(t *testing.T, address, pipe string) {
	t.Helper()
	cfg := tcp.Config{Edge: edgepeer.Config{Name: "ear", Rand: rand.New(rand.NewPCG(1, 1))}, Address: address,
		Pipes: []edgepeer.Listen{{Pipe: pipe, Kind: jxta.PipeTypePropagate}},
		Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
			if m, ok := n.(edgepeer.Message); ok {
				e.mu.Lock()
				e.times[string(m.Elements[0].Data)]++
				e.mu.Unlock()
			}
		}}
	e.peer = dialled(t, cfg)
}

// heard is how many different texts that begin so it has heard.
func (e *ear) heard(beginning string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for text := range e.times {
		if strings.HasPrefix(text, beginning) {
			n++
		}
	}
	return n
}

// dialled is a peer with a lease.
func dialled(t *testing.T, cfg tcp.Config) *tcp.Peer {
	t.Helper()
	var p *tcp.Peer
	check.Until(t, patience, cfg.Edge.Name+" has a lease", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var err error
		if p, err = tcp.Dial(ctx, cfg); err != nil {
			return false
		}
		if p.WaitLease(ctx, "") != nil {
			p.Close()
			return false
		}
		return true
	})
	t.Cleanup(p.Close)
	return p
}

// hq starts the far gateway on this machine, with the binary of the package and the ship's key.
func hq(t *testing.T, m *machine, binary, dir, lan, link, ship string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(dir, "hq.toml")
	config := fmt.Sprintf("[node]\nid = 1\nname = \"hq\"\ndata_dir = \"data\"\n[lan]\ntcp = %q\n[link]\nprofile = \"wire\"\nlisten = %q\nkey_file = %q\n"+
		"[[link.peer]]\nid = 2\nname = \"ship\"\naddress = %q\n", lan, link, filepath.Join(m.root, "etc/aldis/net.key"), ship)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "-c", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// The whole life of a package on a Debian 12 that has nothing: installed, filled in, started by systemd in its sandbox,
// replaced by the next version while messages wait, removed, purged.
func TestLifeOfAPackage(t *testing.T) {
	dist := t.TempDir()
	for _, version := range []string{older, newer} {
		must(t, []string{"DIST=" + dist, "VERSION=" + version}, "../../scripts/packages", "amd64")
	}
	m := boot(t)
	must(t, nil, "cp", "-r", dist, filepath.Join(m.root, "root/packages"))
	deb := func(version string) string { return "/root/packages/aldis-gateway_" + version + "_amd64.deb" }

	m.sh("apt-get -qq update; apt-get -qq -y --no-install-recommends install " + deb(older))
	if out := m.sh("stat -c '%U:%G %a' /etc/aldis /etc/aldis/gateway.toml /var/lib/aldis"); out != "root:aldis 750\nroot:aldis 640\naldis:aldis 700\n" {
		t.Errorf("owners and modes:\n%s", out)
	}
	if out := m.sh("id -nG aldis; getent passwd aldis"); !strings.HasPrefix(out, "aldis\n") || !strings.HasSuffix(out, "/usr/sbin/nologin\n") {
		t.Errorf("the user:\n%s", out)
	}
	m.sh("gateway --version; man gateway-run >/dev/null; ! gateway check; ! systemctl is-active aldis-gateway.service; ! systemctl is-enabled aldis-gateway.service")
	missing := m.sh("ldd /usr/bin/gateway | grep 'not found' || true")
	if missing != "" {
		t.Errorf("libraries are missing:\n%s", missing)
	}

	lan, link, http, hqLAN, hqLink := check.FreeAddress(t, "tcp"), check.FreeAddress(t, "udp"), check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp"), check.FreeAddress(t, "udp")
	m.sh(`cd /etc/aldis
		sed -i -e '0,/^id = 0 /s//id = 2 /' -e '0,/^name = ""/s//name = "ship"/' gateway.toml
		sed -i -e 's/^id = 0 /id = 1 /' -e 's/^name = ""/name = "hq"/' -e 's/^tcp = ""/tcp = "` + lan + `"/' -e 's/^profile = ""/profile = "wire"/' \
			-e 's/0.0.0.0:7142/` + link + `/' -e 's/127.0.0.1:9142/` + http + `/' gateway.toml
		sed -i 's/^#address = "192.0.2.1:7142"/address = "` + hqLink + `"/' gateway.toml
		gateway keys new -o net.key
		chown aldis net.key
		sed 's/10.20.0.1:9701/` + lan + `/' /lib/systemd/system/aldis-gateway.socket >/etc/systemd/system/aldis-gateway.socket
		runuser -u aldis -- gateway check
		systemctl enable --now aldis-gateway.socket aldis-gateway.service`)
	if out := m.sh("systemd-analyze security --no-pager --threshold=20 aldis-gateway.service | tail -n 1"); !strings.Contains(out, "Overall exposure level") {
		t.Errorf("systemd says %q", out)
	} else {
		t.Log(strings.TrimSpace(out))
	}
	if out := m.sh("ps=$(systemctl show -P MainPID aldis-gateway.service); stat -c %U /proc/$ps; grep NoNewPrivs /proc/$ps/status"); out != "aldis\nNoNewPrivs:\t1\n" {
		t.Errorf("the process: %q", out)
	}
	check.Until(t, patience, "libnorm's child is in its whole cell", func() bool { c := m.status().Cell; return c != nil && c.Whole })

	m.sh("systemctl reload aldis-gateway.service; gateway reload --dry-run")

	binary := filepath.Join(m.root, "usr/bin/gateway")
	dir := t.TempDir()
	far := hq(t, m, binary, dir, hqLAN, hqLink, link)
	pipe := edgepeer.NamedPipe("packages")
	e := &ear{times: map[string]int{}}
	e.dial(t, hqLAN, pipe)
	talker := dialled(t, tcp.Config{Edge: edgepeer.Config{Name: "talker", Rand: rand.New(rand.NewPCG(2, 2))}, Address: lan})
	say := func(p *tcp.Peer, text string) {
		t.Helper()
		if _, err := p.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "t", Name: "body", Data: []byte(text)}}}); err != nil {
			t.Fatal(err)
		}
	}
	probes := 0
	check.Until(t, patience, "the first message is there", func() bool {
		say(talker, fmt.Sprint("probe ", probes))
		probes++
		return e.heard("probe ") > 0
	})
	check.Until(t, patience, "nothing waits", func() bool { p := m.status().Peers[0]; return p.Waiting+p.UnderWay == 0 })

	far.Process.Signal(syscall.SIGTERM)
	far.Wait()
	before := m.status().Peers[0]
	for i := range waiting {
		say(talker, fmt.Sprintf("message %d", i))
	}
	check.Until(t, patience, "all are in custody", func() bool { return m.status().Peers[0].Accepted == before.Accepted+waiting })
	was := m.sh("systemctl show -P MainPID aldis-gateway.service")
	config := sum(t, filepath.Join(m.root, "etc/aldis/gateway.toml"))
	began := time.Now()
	m.sh("apt-get -qq -y install " + deb(newer))
	t.Logf("replaced in %v with %d messages waiting", time.Since(began).Round(time.Millisecond), waiting)
	if is := m.sh("systemctl show -P MainPID aldis-gateway.service"); is == was || strings.TrimSpace(is) == "0" {
		t.Errorf("the gateway was process %sand is process %s", was, is)
	}
	if out := m.sh("dpkg-query -W -f '${Version}' aldis-gateway"); out != newer {
		t.Errorf("version %s is installed", out)
	}
	if sum(t, filepath.Join(m.root, "etc/aldis/gateway.toml")) != config {
		t.Error("the upgrade has changed the configuration")
	}
	hq(t, m, binary, dir, hqLAN, hqLink, link)
	e.dial(t, hqLAN, pipe)
	check.Until(t, 10*time.Minute, "nothing waits after the upgrade", func() bool { p := m.status().Peers[0]; return p.Waiting+p.UnderWay == 0 })
	check.Until(t, patience, "all were handed over", func() bool { return e.heard("message ") == waiting })
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range waiting {
		if n := e.times[fmt.Sprintf("message %d", i)]; n != 1 {
			t.Errorf("message %d was heard %d times", i, n)
		}
	}

	m.sh("apt-get -qq -y remove aldis-gateway")
	m.lacks("after removal", "usr/bin/gateway", "lib/systemd/system/aldis-gateway.service", "usr/share/man/man1/gateway.1.gz", "etc/systemd/system/multi-user.target.wants/aldis-gateway.service")
	m.sh("! pidof gateway; test -s /etc/aldis/net.key; test -s /var/lib/aldis/aldis.db")
	m.sh("apt-get -qq -y install " + deb(newer) + "; gateway check; gateway journal check")
	m.sh("! gateway replay 2>/tmp/said; grep -q aldis-gateway-lab /tmp/said; apt-get -qq -y install " + strings.Replace(deb(newer), "gateway_", "gateway-lab_", 1) +
		"; gateway synth blue-game --run 1 -o /tmp/run1.trace; gateway replay /tmp/run1.trace --json >/dev/null; man gateway-replay >/dev/null")
	m.sh("apt-get -qq -y purge aldis-gateway aldis-gateway-lab")
	m.lacks("after the purge", "etc/aldis", "var/lib/aldis", "usr/share/aldis-gateway", "etc/systemd/system/aldis-gateway.socket")
	if out := m.sh("dpkg-query -W -f '${db:Status-Status}' aldis-gateway 2>/dev/null || true"); out != "" && out != "not-installed" {
		t.Errorf("after the purge the package is %s", out)
	}
}

func sum(t *testing.T, file string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}
