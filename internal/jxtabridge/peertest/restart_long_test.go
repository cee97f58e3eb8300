//go:build long

package peertest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
)

// kept is a real gateway whose listening sockets this test holds, as systemd or gateway run --keep-socket does.
type kept struct {
	process
	socks []*os.File
}

func (k *kept) start(t *testing.T) {
	t.Helper()
	k.cmd = exec.Command(k.binary, "run", "-c", k.file)
	k.cmd.Stderr = &k.log
	k.cmd.ExtraFiles = k.socks
	k.cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(k.socks)), "ALDIS_KEEPER="+strconv.Itoa(os.Getpid()))
	k.cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// A gateway that is restarted or killed and 3 s down serves its peers again within 10 s of its end, those that wait and
// those that send, when its listening sockets are kept meanwhile. The log has the figures of docs/restart.md.
func TestServedAgainAfterRestart(t *testing.T) {
	const (
		down  = 3 * time.Second
		runs  = 3
		limit = 10 * time.Second
	)
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "new", "-o", filepath.Join(dir, "net.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sides := [2]*side{newSide(t, "A", 1), newSide(t, "B", 2)}
	links := [2]string{check.FreeAddress(t, "udp"), check.FreeAddress(t, "udp")}
	var gw [2]*kept
	for i := range gw {
		gw[i] = &kept{process: process{binary: binary, file: filepath.Join(dir, fmt.Sprintf("gw%d.toml", i))}}
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\nhttp = %q\n[link]\nprofile = \"wire\"\nlisten = %q\nkey_file = \"net.key\"\n[[link.peer]]\nid = %d\nname = \"node%d\"\naddress = %q\n",
			i+1, i+1, filepath.Join(dir, fmt.Sprint("data", i)), sides[i].cfg.Address, sides[i].cfg.HTTP, links[i], 2-i, 2-i, links[1-i])
		if err := os.WriteFile(gw[i].file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{sides[i].cfg.Address, sides[i].cfg.HTTP} {
			ln, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ln.(*net.TCPListener).File()
			ln.Close()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			gw[i].socks = append(gw[i].socks, f)
		}
		gw[i].start(t)
		t.Cleanup(func() {
			gw[i].kill()
			if t.Failed() {
				t.Logf("gateway %d:\n%s", i, gw[i].log.String())
			}
		})
	}
	w := newWorld(t, 15*time.Minute)
	b := w.peer(sides[1], field.KindJXSE27, "B", 9703)
	w.tell(b, "publish b-svc")
	type served struct {
		what, kind string
		http, send bool
		peer       *field.Peer
		in, out    []time.Duration // time until it heard, and was heard, in each run
	}
	all := []*served{
		{what: "2.7, idle", kind: field.KindJXSE27}, {what: "2.7, sending", kind: field.KindJXSE27, send: true},
		{what: "2.2, idle", kind: field.KindJXTA22}, {what: "2.2, sending", kind: field.KindJXTA22, send: true},
		{what: "2.7 over HTTP, sending", kind: field.KindJXSE27, http: true, send: true},
		{what: "2.2 over HTTP, sending", kind: field.KindJXTA22, http: true, send: true},
	}
	for i, s := range all {
		start := w.peer
		if s.http {
			start = w.pollingPeer
		}
		s.peer = start(sides[0], s.kind, fmt.Sprint("P", i), 9710+i)
		svc := fmt.Sprint("p", i)
		w.tell(s.peer, "find b-svc 1000", "listen b-svc", "publish "+svc)
		w.tell(b, "find "+svc+" 1000", "listen "+svc)
	}
	var peers []*field.Peer
	for i, s := range all {
		peers = append(peers, s.peer)
		w.await(s.peer, "pipe_ready", "b-svc")
		w.await(b, "pipe_ready", fmt.Sprint("p", i))
	}
	for i, s := range all {
		if s.send {
			w.tell(s.peer, fmt.Sprintf("send p%d 200 0 0.5", i))
		} else {
			w.tell(s.peer, fmt.Sprintf("send p%d 200 1", i))
		}
		first(w, b, s.peer.Name(), time.Time{})
	}
	w.tell(b, "send b-svc 200 0 0.5")
	for _, s := range all {
		first(w, s.peer, "B", time.Time{})
	}
	for _, mode := range []string{"restart", "kill -9"} {
		for run := range runs {
			settled(w, all[0].peer, time.Duration(14+5*run)*time.Second) // an idle 2.7 looks after its relay every 15 s
			begun := time.Now()
			if mode == "restart" {
				gw[0].cmd.Process.Signal(syscall.SIGTERM)
			} else {
				gw[0].cmd.Process.Kill()
			}
			gw[0].cmd.Wait()
			dead := time.Now()
			w.never(down-time.Since(begun), "somebody hears through a gateway that is down", func(e field.Event) bool {
				return e.Ev == "received" && e.From == "B" && e.SentAt().After(dead)
			}, peers...)
			gw[0].start(t)
			var group sync.WaitGroup
			for i, s := range all {
				group.Go(func() {
					s.in = append(s.in, first(w, s.peer, "B", dead).At().Sub(begun))
					if !s.send { // when it has heard something
						w.tell(s.peer, fmt.Sprintf("send p%d 200 1", i))
					}
					s.out = append(s.out, first(w, b, s.peer.Name(), dead).At().Sub(begun))
				})
			}
			group.Wait()
		}
	}
	var table bytes.Buffer
	fmt.Fprintln(&table, "| gateway | peer | hears again after, s | is heard again after, s |\n|---|---|---|---|")
	for m, mode := range []string{"restarted", "killed (-9)"} {
		for _, s := range all {
			fmt.Fprintf(&table, "| %s, 3 s down | %s | %s | %s |\n", mode, s.what, spell(s.in[m*runs:(m+1)*runs]), spell(s.out[m*runs:(m+1)*runs]))
			for _, d := range append(s.in[m*runs:(m+1)*runs:(m+1)*runs], s.out[m*runs:(m+1)*runs]...) {
				if d > limit {
					t.Errorf("%s, %s: served again after %v", mode, s.what, d)
				}
			}
		}
	}
	t.Logf("\n%s", table.String())
}

func spell(ds []time.Duration) string {
	var s []string
	for _, d := range ds {
		s = append(s, fmt.Sprintf("%.1f", d.Seconds()))
	}
	return strings.Join(s, " ")
}

// first waits for the first message of a peer that was sent and received after a time.
func first(w world, p *field.Peer, from string, after time.Time) field.Event {
	w.Helper()
	e, err := p.Wait(w.ctx, func(e field.Event) bool {
		return e.Ev == "received" && e.From == from && e.At().After(after) && e.SentAt().After(after)
	})
	if err != nil {
		w.Errorf("%s hears nothing of %s: %v", p.Name(), from, err)
	}
	return e
}

// settled waits until a peer has heard messages for a while.
func settled(w world, p *field.Peer, d time.Duration) {
	w.Helper()
	until := time.Now().Add(d)
	first(w, p, "B", until)
}
