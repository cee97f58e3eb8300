package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// Silence is ordered on the running gateway: nothing is transmitted, a restart changes nothing, and status reports the messages
// that are owed.
func TestSilence(t *testing.T) {
	a, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	code, out, errs := run(t, "silence", "on", "-c", b.file, "--until", "6h", "--announce")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, out, "SILENT until", "when it ends:")
	a.until(t, "the peer knows", func() bool { return a.peer(t).Link == "listening" })
	sent := b.peer(t).DatagramsSent
	b.stop(t, syscall.SIGKILL)
	b = b.testSite.start(t)
	code, out, _ = run(t, "silence", "status", "-c", b.file, "--json")
	if code != 0 {
		t.Errorf("status: exit %d", code)
	}
	wants(t, out, `"on":true`, `"until":"20`)
	if n := b.peer(t).DatagramsSent; n != 0 {
		t.Errorf("%d datagrams sent after the restart (%d before), want none", n, sent)
	}
	_, out, _ = run(t, "status", "-c", b.file)
	wants(t, out, "SILENT until")
	if code, out, _ = run(t, "silence", "off", "-c", b.file); code != 0 {
		t.Errorf("off: exit %d", code)
	}
	wants(t, out, "not silent")
	a.until(t, "the peer is heard again", func() bool { return a.peer(t).Link == "up" })
	for _, args := range [][]string{{}, {"on", "off"}, {"maybe"}, {"off", "--until", "6h"}, {"on", "--until", "soon"}} {
		if code, _, errs := run(t, append([]string{"silence", "-c", b.file}, args...)...); code != 2 || errs == "" {
			t.Errorf("silence %q: exit %d, want 2 and a reason", args, code)
		}
	}
}

// With node.silent a real gateway transmits nothing from its start on, even with the journal moved away, and whatever the
// orders. An order is refused with the reason, and check shows the key.
func TestSilentByConfiguration(t *testing.T) {
	air, err := net.ListenPacket("udp", "127.0.0.1:0") // the far gateway's place
	if err != nil {
		t.Fatal(err)
	}
	defer air.Close()
	s := newSite(t, 2, "")
	data := filepath.Join(s.dir, "data")
	silent := func(key string) {
		s.write(t, data, "1 "+air.LocalAddr().String())
		text, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file, []byte(strings.Replace(string(text), "[node]\n", "[node]\n"+key, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	silent("silent = true\n")
	_, out, _ := run(t, "check", "-c", s.file)
	wants(t, out, "silence", "for ever (node.silent = true)")
	for i := range 2 {
		r := s.start(t)
		code, _, errs := run(t, "silence", "off", "-c", s.file)
		check.Equal(t, "exit code of off", code, cli.ExitRefused)
		check.Contains(t, "what off says", errs, "the configuration says node.silent = true, and no order ends that")
		code, out, _ := run(t, "silence", "on", "--until", "1h", "--announce", "-c", s.file)
		check.Equal(t, "exit code of on", code, cli.ExitGood)
		wants(t, out, "SILENT by the configuration (node.silent = true), which no order ends")
		check.Equal(t, "datagrams sent", r.peer(t).DatagramsSent, 0)
		r.stop(t, syscall.SIGKILL)
		if err := os.Rename(data, fmt.Sprintf("%s.%d", data, i)); err != nil {
			t.Fatal(err)
		}
	}
	silent("")
	s.start(t)
	// The first datagram that arrives in the far gateway's place is one of this start: earlier starts sent none.
	air.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 2048)
	if n, _, err := air.ReadFrom(b); err != nil || n == 0 {
		t.Errorf("%d octets, %v; without the key it speaks", n, err)
	}
}

// Orders are accepted over the socket, with the user's name, and refused over TCP unless they carry the token.
func TestWhoMayOrderSilence(t *testing.T) {
	s := newSite(t, 1, "")
	token := filepath.Join(s.dir, "orders.token")
	if err := os.WriteFile(token, []byte("TCVkDPWmCbUzL0hM\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, append(text, "token_file = \"orders.token\"\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := run(t, "silence", "on", "-c", s.file)
	check.Equal(t, "exit code without a gateway", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "no gateway answers at "+filepath.Join(s.dir, "data", "control.sock"))
	r := s.start(t)
	if code, _, errs = run(t, "silence", "on", "-c", s.file); code != cli.ExitGood {
		t.Fatalf("over the socket: exit %d, %s", code, errs)
	}
	if code, _, errs = run(t, "silence", "off", "--token", token, "-c", s.file); code != cli.ExitGood {
		t.Errorf("with the token: exit %d, %s", code, errs)
	}
	resp, err := http.Post("http://"+s.http+"/silence", "application/json", strings.NewReader(`{"on":true}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("without the token: %d, %v", resp.StatusCode, err)
	}
	wants(t, string(body), "orders are not taken here: give them on its machine with the gateway command", "control.sock", "http.token_file")
	check.True(t, "not silent", !r.status(t).Silence.On)
	wants(t, r.logged(), `"order":"silence","what":"on, announced: false","by":"uid `, `"what":"off","by":"over HTTP from 127.0.0.1:`, `, with the token"`, `"an order was refused"`)
	// Another user of the machine.
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := gatewayCommand("silence", "on", "-c", s.file)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	said, _ := cmd.CombinedOutput() // the exit code decides
	check.Equal(t, "exit code of nobody", cmd.ProcessState.ExitCode(), cli.ExitRefused)
	wants(t, string(said), "permission denied", "run this as root (sudo)")
	check.True(t, "not silent", !r.status(t).Silence.On)
}
