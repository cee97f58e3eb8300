package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// greeting dials the LAN's address and waits for the welcome line, as a JXTA peer does, which gives up after 5 s.
func greeting(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	return bufio.NewReader(c).ReadString('\n')
}

// children are the processes that a process has made.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue // the thread has exited meanwhile
		}
		for _, f := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// A gateway whose sockets are kept may be killed, restarted or die again and again: at any moment a peer that dials is
// accepted, and gets its welcome within the 5 s that a peer waits.
func TestKeptSocketSurvivesTheGateway(t *testing.T) {
	s := newSite(t, 1, "")
	r := s.startCommand(t, gatewayCommand("run", "-c", s.file, "--keep-socket"))
	first, err := greeting(s.lan)
	if err != nil || !strings.HasPrefix(first, "JXTAHELLO") {
		t.Fatalf("%q, %v", first, err)
	}
	stop, refused := make(chan bool), make(chan error, 1)
	go func() { // dials all the time
		defer close(refused)
		for {
			c, err := net.Dial("tcp", s.lan)
			if err != nil {
				refused <- err
				return
			}
			c.Close()
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		keeper bool
	}{{"the gateway is killed", syscall.SIGKILL, false}, {"it is ended", syscall.SIGTERM, false}, {"the keeper restarts it", syscall.SIGHUP, true}} {
		old := children(t, r.cmd.Process.Pid)
		if len(old) != 1 {
			t.Fatalf("%s: children %v", tt.name, old)
		}
		target := old[0]
		if tt.keeper {
			target = r.cmd.Process.Pid
		}
		if err := syscall.Kill(target, tt.signal); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		line, err := greeting(s.lan)
		for strings.HasPrefix(line, "JXTAHELLO") && err == nil && time.Since(begun) < patience {
			if now := children(t, r.cmd.Process.Pid); len(now) == 1 && now[0] != old[0] {
				break // it is the new gateway's
			}
			line, err = greeting(s.lan)
		}
		// A connection that the old gateway had accepted closes with it; the next one is the new gateway's.
		if err != nil {
			line, err = greeting(s.lan)
		}
		// Source addresses differ, but the gateway's own peer id must not.
		if f, g := strings.Fields(first), strings.Fields(line); err != nil || len(g) < 4 || g[3] != f[3] {
			t.Errorf("%s: %q, %v; before it was %q", tt.name, line, err, first)
		}
		t.Logf("%s: a welcome after %v", tt.name, time.Since(begun).Round(time.Millisecond))
	}
	close(stop)
	if err := <-refused; err != nil {
		t.Errorf("a closed door: %v", err)
	}
	r.until(t, "it is healthy", func() bool { code, _ := r.get("/healthz"); return code == 200 })
	if code := r.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d after SIGTERM: %s", code, r.logged())
	}
	if _, err := net.Dial("tcp", s.lan); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end the socket is still open: %v", err)
	}
}

// If a keeper is killed, its gateway dies with it: whoever started the keeper may start it again.
func TestKilledKeeperLeavesNothing(t *testing.T) {
	s := newSite(t, 1, "")
	for range 10 { // it once depended on the thread on which the gateway began
		r := s.startCommand(t, gatewayCommand("run", "-c", s.file, "--keep-socket"))
		child := children(t, r.cmd.Process.Pid)
		r.stop(t, syscall.SIGKILL)
		check.Until(t, patience, fmt.Sprintf("the gateway %v ends with its keeper", child), func() bool {
			c, err := net.Dial("tcp", s.lan)
			if err == nil {
				c.Close()
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		})
	}
	s.start(t) // with the same journal
}

// A mistake stops the keeper at once; it does not retry.
func TestKeeperAndMistakes(t *testing.T) {
	s := newSite(t, 1, "")
	taken, err := net.Listen("tcp", s.lan)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t, "run", "-c", s.file, "--keep-socket"); code != cli.ExitRefused || !strings.Contains(errs, "lan.tcp") {
		t.Errorf("port in use: exit %d: %s", code, errs)
	}
	taken.Close()
	link, err := net.ListenPacket("udp", s.link)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if code, _, errs := run(t, "run", "-c", s.file, "--keep-socket"); code != cli.ExitRefused || !strings.Contains(errs, "link.listen") {
		t.Errorf("the gateway's own mistake: exit %d: %s", code, errs)
	}
	if code, _, errs := run(t, "run", "-c", s.file+".none", "--keep-socket"); code != cli.ExitRefused || !strings.Contains(errs, "cannot be read") {
		t.Errorf("no configuration: exit %d: %s", code, errs)
	}
}

// Sockets come from systemd as in sd_listen_fds(3); those that are not in the configuration are closed and reported.
func TestInheritedSockets(t *testing.T) {
	s := newSite(t, 1, "")
	ours, err := net.Listen("tcp", s.lan)
	if err != nil {
		t.Fatal(err)
	}
	stray, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cmd := gatewayCommand()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=2 exec " + exe + " run -c " + s.file}
	for _, ln := range []net.Listener{ours, stray} {
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	// A peer that dials before the gateway runs waits for it.
	early := make(chan error, 1)
	go func() {
		line, err := greeting(s.lan)
		if err == nil && !strings.HasPrefix(line, "JXTAHELLO") {
			err = fmt.Errorf("%q", line)
		}
		early <- err
	}()
	r := s.startCommand(t, cmd)
	if err := <-early; err != nil {
		t.Errorf("who dialled early: %v", err)
	}
	if !strings.Contains(r.logged(), stray.Addr().String()) || strings.Contains(r.logged(), "used by another program") {
		t.Errorf("log: %s", r.logged())
	}
}

// A restart is ordered with a bad configuration: the running gateway goes on, and one line says what is wrong and where. Once
// the mistake is corrected, the next order restarts it at once.
func TestKeeperReadsBeforeItStops(t *testing.T) {
	s := newSite(t, 1, "")
	r := s.startCommand(t, gatewayCommand("run", "-c", s.file, "--keep-socket"))
	keeper := r.cmd.Process.Pid
	good, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	child := children(t, keeper)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	mistakes := map[string]string{ // how the file is changed, and the expected report
		"listen =":           "there is no such key; is listen meant?",
		"[lan]":              "there is no such section",
		"tcp = \"" + s.lan:   "is used by another program",
		"data_dir":           "node.data_dir: is missing",
		"geo-satcom-128k":    "no such profile",
		"key_file = \"net.k": "does not exist; put the network's key there",
	}
	bad := map[string]string{"listen =": "lisen =", "[lan]": "[lam]", "tcp = \"" + s.lan: "tcp = \"" + taken.Addr().String(),
		"data_dir": "#data_dir", "geo-satcom-128k": "geo", "key_file = \"net.k": "key_file = \"other.k"}
	for from, says := range mistakes {
		if err := os.WriteFile(s.file, []byte(strings.Replace(string(good), from, bad[from], 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		said := strings.Count(r.logged(), "not restarted")
		if err := syscall.Kill(keeper, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		r.until(t, "it says what is wrong", func() bool { return strings.Contains(r.logged(), says) })
		if n := strings.Count(r.logged(), "not restarted") - said; n != 1 {
			t.Errorf("%s: %d lines in the log, want one", says, n)
		}
		if now := children(t, keeper); len(now) != 1 || now[0] != child[0] {
			t.Fatalf("%s: the gateway was %v and is %v", says, child, now)
		}
	}
	if code, _ := r.get("/healthz"); code != 200 {
		t.Errorf("healthz: %d", code)
	}
	if err := os.WriteFile(s.file, good, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(keeper, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.until(t, "another gateway runs", func() bool {
		now := children(t, keeper)
		code, _ := r.get("/healthz")
		return len(now) == 1 && now[0] != child[0] && code == 200
	})
	if strings.Contains(r.logged(), "ended and starts again") {
		t.Errorf("the order was taken for a death:\n%s", r.logged())
	}
}
