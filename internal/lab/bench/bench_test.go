package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var built string // directory of the gateway under test, removed at the end

// binary is the gateway under test.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "aldis-bench-test-")
	if err != nil {
		return "", err
	}
	built = dir
	file := filepath.Join(dir, "gateway")
	out, err := exec.Command("go", "build", "-o", file, "../../../cmd/gateway").CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return file, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func gatewayBinary(t *testing.T) string {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A real gateway under a small load: everything is measured, nothing lost, nothing left behind.
func TestQuick(t *testing.T) {
	file, temp := gatewayBinary(t), t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var said []string
	report, err := Run(ctx, Config{Gateway: file, Quick: true, Only: []string{"query", "relay", "propagate", "xmpp"},
		Progress: func(s string) { said = append(said, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Lost(); n > 0 {
		t.Errorf("%d lost: %+v", n, report.Rows)
	}
	measured := map[string]int{}
	for _, row := range report.Rows {
		if row.Gateway != nil && (row.Gateway.Value > 0 || strings.Contains(row.What, "change")) {
			measured[row.Bench]++
		}
		if row.Direct != nil && row.What != report.Rows[0].What && row.Bench != "relay" {
			t.Errorf("a figure of JXSE without JXSE: %+v", row)
		}
	}
	if measured["query"] < 5 || measured["relay"] < 6 || measured["propagate"] != 2 || measured["xmpp"] != 6 {
		t.Errorf("rows with a figure: %v of %+v", measured, report.Rows)
	}
	if len(said) < 5 {
		t.Errorf("progress: %q", said)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "aldis-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var text, again bytes.Buffer
	if err := errors.Join(report.WriteText(&text), json.NewEncoder(&again).Encode(report)); err != nil {
		t.Fatal(err)
	}
	page := report.Page("")
	for _, want := range []string{"messages of 1 kB at an even rate", "JXSE 2.7", report.Machine.Processor} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s\nor\n%s", want, text.String(), page)
		}
	}
}

func TestInterrupted(t *testing.T) {
	file, temp := gatewayBinary(t), t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	_, err := Run(ctx, Config{Gateway: file, Only: []string{"query"}, Progress: func(s string) {
		if strings.Contains(s, "published") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "aldis-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunRefuses(t *testing.T) {
	var usage *UsageError
	if _, err := Run(context.Background(), Config{Only: []string{"relay", "beauty"}}); !errors.As(err, &usage) {
		t.Errorf("an unknown benchmark: %v", err)
	}
	file := filepath.Join(t.TempDir(), "gateway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho no >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), Config{Gateway: file, Quick: true, Only: []string{"propagate"}}); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("a gateway that does not start: %v", err)
	}
}

// What a server swallows is counted as lost, not waited for in vain.
func TestLossIsCounted(t *testing.T) {
	c, err := direct(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	rate, lost, err := c.flow(context.Background(), 100, 8, 100*time.Millisecond)
	if err != nil || lost != 0 || rate < 100 {
		t.Errorf("directly: %v lost, %v per second, %v", lost, rate, err)
	}
	c.limit = 300 * time.Millisecond
	c.there = c.back // nobody listens on that one
	if _, lost, err = c.flow(context.Background(), 100, 8, 100*time.Millisecond); err != nil || lost != 8 {
		t.Errorf("to nobody: %v lost, want 8; %v", lost, err)
	}
}

func TestWireCounts(t *testing.T) {
	var radios [2]*net.UDPConn
	var ports [2]int
	for i := range radios {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		radios[i], ports[i] = c, c.LocalAddr().(*net.UDPAddr).Port
	}
	w, at, err := newWire(ports)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for i, size := range []int{10, 20} {
		to, err := net.ResolveUDPAddr("udp4", at[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := radios[i].WriteToUDP(make([]byte, size), to); err != nil {
			t.Fatal(err)
		}
		n, from, err := radios[1-i].ReadFromUDP(make([]byte, 100))
		if err != nil || n != size || from.String() != at[1-i] {
			t.Errorf("%d octets from %v, %v; want %d from %s", n, from, err, size, at[1-i])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count != 2 || w.octets != [2]int{38, 48} {
		t.Errorf("%d datagrams of %v octets", w.count, w.octets)
	}
}

// A page keeps what was not measured now, in the order of the benchmarks.
func TestPage(t *testing.T) {
	first := (&Report{Rows: []Row{{Bench: "relay", What: "r1", Gateway: &Figure{Value: 1}}, {Bench: "query", What: "q1", Gateway: &Figure{Value: 2}}}}).Page("")
	second := (&Report{Rows: []Row{{Bench: "query", What: "q2", Gateway: &Figure{Value: 3, Lost: 4, Note: "note"}}}, Only: []string{"query"}, Machine: Machine{Nice: -5}}).Page(first)
	if second != (&Report{}).Page(second) {
		t.Error("a page without news changes")
	}
	q, r := strings.Index(second, "| q2 |"), strings.Index(second, "| r1 |")
	check.True(t, "q >= 0", q >= 0, q)
	check.True(t, "r >= q", r >= q, r, q)
	check.Lacks(t, "second", second, "q1")
	check.Contains(t, "second", second, "3 (4 lost)<br>note")
	check.Equal(t, "times that the command stands there", strings.Count(second, "`nice -n -5 gateway bench --only query`"), 1)
}

func TestLostAndNumbers(t *testing.T) {
	r := Report{Rows: []Row{{Gateway: &Figure{Lost: 2}, Direct: &Figure{Lost: 5}}, {Gateway: &Figure{Lost: 1}}, {}}}
	if r.Lost() != 3 {
		t.Errorf("lost %d", r.Lost())
	}
	for v, want := range map[float64]string{1234567: "1,234,567", 999: "999", 12.34: "12.3", 0.5: "0.5", 0: "0"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
