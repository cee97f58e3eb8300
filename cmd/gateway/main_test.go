package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/commands"
	"aldis/internal/operator/cli"
	operator "aldis/internal/operator/commands"
	"aldis/internal/operator/manual"
)

// asGateway makes the test binary the gateway: tests run it as an operator would.
const asGateway = "ALDIS_TEST_AS_GATEWAY"

func TestMain(m *testing.M) {
	commands.IfCalled()
	if os.Getenv(asGateway) != "" {
		attemptWhenTold()
		main()
	}
	os.Exit(testMain(m))
}

// testMain lets more tests run in parallel than there are processors: they mostly wait.
func testMain(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	http.DefaultClient.Timeout = 2 * patience // a gateway that does not answer fails the test that asks
	return commands.WithLab(m)
}

// patience bounds every wait; a loaded machine is slow.
const patience = 90 * time.Second

// gatewayCommand is the gateway with arguments; standard error is not a terminal.
func gatewayCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asGateway+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = patience // of a child that keeps our pipe
	return cmd
}

// bounded is another program; it is killed when it takes longer than a busy machine can make it, or the test ends.
func bounded(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	within, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(within, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = patience
	return cmd
}

// run runs a command that exits by itself.
func run(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := gatewayCommand(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(4*patience, func() { cmd.Process.Kill() }) // deriving keys from a passphrase is slow on purpose
	defer watch.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("gateway %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// described is the descriptions of the commands of both programs.
func described(t *testing.T) manual.Program {
	t.Helper()
	m, err := program().Described()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// testSite is a directory with a configuration and the network's key.
type testSite struct {
	dir, file, http, link, lan string
	id                         int
	more                       string // lines of [link]
	keys                       string // lines that name the keys; "": net.key
	profile                    string // of the link; "": geo-satcom-128k
}

// newSite makes a site in a network; key "" draws a new network key.
func newSite(t testing.TB, id int, key string) *testSite {
	t.Helper()
	dir := t.TempDir()
	s := &testSite{dir: dir, id: id, file: filepath.Join(dir, "gateway.toml"),
		http: check.FreeAddress(t, "tcp"), lan: check.FreeAddress(t, "tcp"), link: check.FreeAddress(t, "udp")}
	if key == "" {
		if code, _, errs := run(t, "keys", "new", "-o", s.key()); code != 0 {
			t.Fatal(errs)
		}
	} else {
		text, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.key(), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, filepath.Join(dir, "data"))
	return s
}

func (s *testSite) key() string { return filepath.Join(s.dir, "net.key") }

// write writes the configuration; peers are "id address" or "id".
func (s *testSite) write(t testing.TB, dataDir string, peers ...string) {
	t.Helper()
	text := fmt.Sprintf(`[node]
id = %d
name = "node%d"
data_dir = %q
[lan]
tcp = %q
[link]
profile = %q
listen = %q
%s
%s
[http]
listen = %q
`, s.id, s.id, dataDir, s.lan, cmp.Or(s.profile, "geo-satcom-128k"), s.link, cmp.Or(s.keys, `key_file = "net.key"`), s.more, s.http)
	for _, p := range peers {
		id, address, ok := strings.Cut(p, " ")
		text += fmt.Sprintf("[[link.peer]]\nid = %s\nname = \"node%s\"\n", id, id)
		if ok {
			text += fmt.Sprintf("address = %q\n", address)
		}
	}
	if err := os.WriteFile(s.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// running is a running gateway.
type running struct {
	*testSite
	cmd   *exec.Cmd
	ended chan struct{}

	output
}

// output is the output of a program so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	at   time.Time // when the newest octets came
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = time.Now()
	return o.text.Write(b)
}

// newest is when the newest octets came.
func (o *output) newest() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

func (o *output) logged() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a site's gateway until the test ends, and returns once it is healthy.
func (s *testSite) start(t testing.TB) *running {
	t.Helper()
	return s.startCommand(t, gatewayCommand("run", "-c", s.file))
}

func (s *testSite) startCommand(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	r := s.begin(t, cmd)
	r.until(t, "it is healthy", func() bool { code, _ := r.get("/healthz"); return code == 200 })
	return r
}

// begin runs a site's command until the test ends.
func (s *testSite) begin(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{testSite: s, cmd: cmd, ended: make(chan struct{})}
	r.cmd.Stderr = r
	check.NoError(check.Fatal(t), r.cmd.Start())
	go func() {
		r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.ended
		if t.Failed() {
			t.Logf("log of node %d:\n%s", s.id, r.logged())
		}
	})
	return r
}

// until waits for a condition.
func (r *running) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	await(t, r.id, r.ended, patience, what, ok)
}

// await waits for a condition of a node while its process lives.
func await(t testing.TB, node int, ended <-chan struct{}, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("node %d: in %v not so: %s", node, patience, what)
		case <-ended:
			t.Fatalf("node %d ended while waiting: %s", node, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *running) get(path string) (int, string) {
	resp, err := http.Get("http://" + r.http + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (r *running) status(t testing.TB) (report operator.StatusReport) {
	t.Helper()
	code, body := r.get("/status")
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != 200 {
		t.Fatalf("status: %d, %v: %s", code, err, body)
	}
	return report
}

// stop stops the gateway with a signal and returns its exit code.
func (r *running) stop(t testing.TB, signal syscall.Signal) int {
	t.Helper()
	r.cmd.Process.Signal(signal)
	return r.end(t, signal.String())
}

// end waits until the process has ended, and returns its exit code.
func (r *running) end(t testing.TB, why string) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatalf("node %d did not end: %s", r.id, why)
	}
	return r.cmd.ProcessState.ExitCode()
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "usage: gateway COMMAND"},
		{"-h", 0, "usage: gateway COMMAND"},
		{"help", 0, "usage: gateway COMMAND"},
		{"help run", 0, "usage: gateway run [-c FILE]"},
		{"help pmul send", 0, "usage: gateway pmul send"},
		{"help stauts", 2, `there is no command "stauts"; is status meant?`},
		{"--version", 0, "aldis gateway " + cli.Version},
		{"fly", 2, `there is no command "fly"`},
		{"stauts", 2, `there is no command "stauts"; is status meant?`},
		{"status --jsn", 2, "flag provided but not defined: -jsn; is --json meant?\nusage: gateway status [-c FILE] [--json]\ngateway status -h says more\n"},
		{"run -h", 0, "usage: gateway run [-c FILE]"},
		{"check -h", 0, "usage: gateway check [-c FILE]"},
		{"keys -h", 0, "usage: gateway keys new -o FILE"},
		{"keys new -h", 0, "usage: gateway keys new -o FILE"},
		{"status -h", 0, "usage: gateway status [-c FILE] [--json]"},
		{"profiles -h", 0, "usage: gateway profiles [NAME]"},
		{"lab -h", 0, "usage: gateway lab LAB"},
		{"lab blue-game -h", 0, "usage: gateway lab blue-game"},
		{"version -h", 0, "usage: gateway version"},
		{"version", 0, "aldis gateway " + cli.Version},
		{"version now", 2, `unexpected argument "now"`},
		{"run -x", 2, "flag provided but not defined: -x"},
		{"run here", 2, `unexpected argument "here"`},
		{"check -c", 2, "flag needs an argument"},
		{"keys", 2, "say: gateway keys new -o FILE"},
		{"keys new", 2, "say: gateway keys new -o FILE"},
		{"keys old -o x", 2, "say: gateway keys new -o FILE"},
		{"lab", 2, "blue-game"},
		{"profiles a b", 2, `unexpected argument "b"`},
		{"profiles nowhere", 1, "no such profile"},
		{"profiles iridum-dialup", 1, "; is iridium-dialup meant?"},
		{"check -c one.toml two.toml", 2, "two files are named, one.toml and two.toml"},
		{"run -c /nowhere.toml", 1, "/nowhere.toml: cannot be read: no such file"},
		{"check -c /nowhere.toml", 1, "/nowhere.toml: cannot be read: no such file"},
		{"status -c /nowhere.toml", 1, "/nowhere.toml: cannot be read: no such file"},
	} {
		code, out, errs := run(t, strings.Fields(tt.args)...)
		good, other := out, errs
		if tt.code != 0 {
			good, other = errs, out
		}
		if code != tt.code || !strings.Contains(good, tt.says) || other != "" {
			t.Errorf("gateway %s: exit %d, stdout %q, stderr %q; want %d, %q", tt.args, code, out, errs, tt.code, tt.says)
		}
	}
}

func TestProfiles(t *testing.T) {
	_, list, _ := run(t, "profiles")
	for _, name := range []string{"iridium-dialup", "iridium-directip", "iridium-dialup-shore", "iridium-directip-shore",
		"iridium-certus-100", "hf-2400", "hf-300", "vhf-cnr-16k", "geo-satcom-128k"} {
		if !strings.Contains(list, name+" ") {
			t.Errorf("no %s in\n%s", name, list)
		}
		if code, text, _ := run(t, "profiles", name); code != 0 || !strings.Contains(text, "rate_bps") {
			t.Errorf("profiles %s: exit %d\n%s", name, code, text)
		}
	}
}

func TestKeysNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.key")
	if code, out, errs := run(t, "keys", "new", "-o", file); code != 0 || !strings.Contains(out, file) || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	first, _ := os.ReadFile(file)
	if code, _, errs := run(t, "keys", "new", "-o", file); code != 1 || !strings.Contains(errs, "is not overwritten") {
		t.Errorf("a second time: exit %d: %s", code, errs)
	}
	if again, _ := os.ReadFile(file); !bytes.Equal(first, again) {
		t.Error("the key was overwritten")
	}
}

func TestCheck(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:7142", "3")
	code, out, errs := run(t, "check", "-c", s.file)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{`2 "node2"`, s.lan, s.link, "geo-satcom-128k", `1 "node1", at 127.0.0.1:7142`, `3 "node3", address learned`, "http://" + s.http} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "warning") {
		t.Errorf("warnings for a usual configuration:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data")); err == nil {
		t.Error("check made the data directory")
	}
	s.write(t, filepath.Join(s.dir, "data"))
	if code, out, _ := run(t, "check", "-c", s.file); code != 0 || !strings.Contains(out, "warning: no [[link.peer]]") {
		t.Errorf("without peers: exit %d\n%s", code, out)
	}
}
