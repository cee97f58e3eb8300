package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// A peer is listed, forgotten, and heard again once it has answered.
func TestPeer(t *testing.T) {
	a, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	code, out, _ := run(t, "peer", "list", "-c", b.file)
	check.Equal(t, "exit", code, 0)
	wants(t, out, "CONFIGURED", "up", a.link, "20")
	code, out, errs := run(t, "peer", "forget", "1", "-c", b.file)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, out, "peer 1", "is forgotten")
	b.until(t, "its peer is up again", func() bool { p := b.peer(t); return p.Link == "up" && p.Start != 0 })
	code, out, _ = run(t, "peer", "forget", b.peer(t).Name, "--any-start", "--json", "-c", b.file)
	check.Equal(t, "exit", code, 0)
	var peers []api.PeerStatus
	if err := json.Unmarshal([]byte(out), &peers); err != nil || len(peers) != 1 || peers[0].Forgotten != 2 {
		t.Errorf("%v: %s", err, out)
	}
	b.until(t, "its peer is up at last", func() bool { return b.peer(t).Link == "up" })
	if code, _, errs := run(t, "peer", "forget", "9", "-c", b.file); code != 1 || !strings.Contains(errs, `no peer with the id or name "9"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, args := range [][]string{{}, {"list", "1"}, {"forget"}, {"forget", "1", "2"}, {"list", "--any-start"}, {"away"}} {
		if code, _, errs := run(t, append([]string{"peer", "-c", b.file}, args...)...); code != 2 || errs == "" {
			t.Errorf("peer %q: exit %d, want 2 and a reason", args, code)
		}
	}
}

// A node that once started with a clock of the next century reports that at each start, and names a remedy.
func TestStartByClock(t *testing.T) {
	a, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	b.stop(t, syscall.SIGTERM)
	setIncarnation := func(number uint32) {
		j, err := journal.Open(filepath.Join(b.dir, "data"), journal.Identity{Node: uint16(b.id), Name: "node2"})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if err := j.SetIncarnation(number); err != nil {
			t.Fatal(err)
		}
	}
	setIncarnation(math.MaxUint32)
	code, _, errs := run(t, "run", "-c", b.file)
	check.Equal(t, "exit", code, 1)
	wants(t, errs, "incarnation numbers are used up", "--start-by-clock", "gateway peer forget")

	setIncarnation(math.MaxUint32 - 10)
	b = b.testSite.start(t)
	b.until(t, "the start is said to be ahead", func() bool { return strings.Contains(b.logged(), "clock is behind its last start") })
	a.until(t, "its peer refuses it in words", func() bool { return strings.Contains(a.logged(), "lies ahead of this clock; the gateway refuses") })
	b.stop(t, syscall.SIGTERM)

	known := a.peer(t).Start
	a.until(t, "the second of the last good start is over", func() bool { return time.Now().Unix() > int64(known) })
	b = b.testSite.startCommand(t, gatewayCommand("run", "-c", b.file, "--start-by-clock"))
	wants(t, b.logged(), "numbered by the clock alone")
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" && a.peer(t).Start == b.status(t).IncarnationNumber })
	check.Equal(t, "exit", b.stop(t, syscall.SIGTERM), 0)
	if code, _, _ := run(t, "run", "-c", b.file, "--keep-socket", "--start-by-clock"); code != 2 {
		t.Errorf("--keep-socket with --start-by-clock: exit %d, want 2", code)
	}
}
