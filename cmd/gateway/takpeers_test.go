package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// takProgram runs a program that make tak-peers has installed in field-tests/tak until the test ends, and keeps its lines.
func takProgram(t *testing.T, dir, name string, args ...string) (lines func() string) {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("../../field-tests/tak/.venv/bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v: make tak-peers installs it", err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			mu.Lock()
			said.WriteString(s.Text() + "\n")
			mu.Unlock()
		}
	}()
	lines = func() string {
		mu.Lock()
		defer mu.Unlock()
		return said.String()
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, lines())
		}
	})
	return lines
}

// startTaky runs taky on loopback, and returns its address once it listens.
func startTaky(t *testing.T) string {
	t.Helper()
	dir, address := t.TempDir(), check.FreeAddress(t, "tcp")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[taky]\nbind_ip = %s\nroot_dir = %s\n[cot_server]\nport = %s\n[ssl]\nenabled = false\n", host, dir, port)
	if err := os.WriteFile(filepath.Join(dir, "taky.conf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	takProgram(t, dir, "taky", "-c", filepath.Join(dir, "taky.conf"))
	check.Until(t, patience, "taky listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return address
}

// HQ has taky, whose client its gateway is; the ship's gateway is the server of a pytak client and of a stream like ATAK's.
// Everybody sees everybody, and no event goes round in a loop.
func TestTakyAndPytak(t *testing.T) {
	taky := startTaky(t)
	hq := newTAKSite(t, 1, "")
	ship := newTAKSite(t, 2, hq.key())
	hq.write(t, fmt.Sprintf("server = %q\n", taky), "2")
	ship.write(t, "", "1 "+hq.link)
	r1, r2 := hq.start(t), ship.start(t)
	ashore := dialTAK(t, taky)
	fmt.Fprint(ashore, deviceReport("ANDROID-00000000000000a1", "ALPHA"))
	aboard := dialTAK(t, ship.tak)
	fmt.Fprint(aboard, deviceReport("ANDROID-00000000000000b1", "BRAVO"))
	client := takProgram(t, ".", "python", "../../field-tests/tak/client.py", "tcp://"+ship.tak, "PYTAK-1", "PAPA")
	for _, uid := range []string{"ANDROID-00000000000000b1", "PYTAK-1"} {
		r1.until(t, uid+" is seen through taky", func() bool { return ashore.find(uid) != nil })
	}
	r2.until(t, "the device ashore is seen aboard", func() bool { return aboard.find("ANDROID-00000000000000a1") != nil })
	r2.until(t, "pytak sees the device ashore", func() bool { return strings.Contains(client(), "a-f-G-U-C ANDROID-00000000000000a1 ALPHA") })
	r2.until(t, "pytak sees the device beside", func() bool { return strings.Contains(client(), "ANDROID-00000000000000b1 BRAVO") })
	r2.until(t, "the device aboard sees pytak", func() bool { return aboard.find("PYTAK-1") != nil })
	fmt.Fprint(ashore, takEvent("GeoChat.ANDROID-00000000000000a1.All Chat Rooms.1", "b-t-f",
		`<__chat chatroom="All Chat Rooms" id="All Chat Rooms" senderCallsign="ALPHA"/><remarks>hello</remarks>`))
	r2.until(t, "words to all arrive", func() bool { return aboard.find("GeoChat.ANDROID-00000000000000a1.All Chat Rooms.1") != nil })
	if _, metrics := r1.get("/metrics"); !strings.Contains(metrics, "aldis_tak_near_units 1\n") {
		t.Error("HQ's gateway takes units of the ship for its own")
	}
}
