package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
)

var built string // directory of the gateway under test, removed at the end

// underTest is the gateway under test.
var underTest = sync.OnceValues(func() (string, error) {
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
	file, err := underTest()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A real gateway under a small load: everything is measured, nothing lost, nothing left behind.
func TestQuick(t *testing.T) {
	file, temp := gatewayBinary(t), t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	said := 0
	report, err := Run(ctx, Config{Gateway: file, Quick: true, Series: 1, Most: time.Minute, Sizes: []int{1000}, Where: []string{direct, gatewayTCP, gatewaySite, gatewayFive},
		Only: []string{"start", "pipe", "propagate", "relay", "query", "xmpp", "site"}, Progress: func(string) { said++ }})
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "lost", report.Lost(), 0)
	measured := map[string]int{}
	for _, row := range report.Rows {
		if row.Failed != "" && !strings.Contains(row.Failed, "are sustained") {
			t.Errorf("no figure: %s: %s", row.line(), row.Failed)
		}
		if row.measured() {
			measured[row.Bench+" "+row.Where]++
		}
		check.True(t, row.line()+": has no unit, machine or date", row.Unit != "" && row.Machine != "" && row.Date != "" && row.Cores > 0)
	}
	for name, least := range map[string]int{"start gateway": 3, "pipe direct": 9, "pipe gateway": 20, "propagate gateway": 8, "relay gateway": 14, "query gateway": 30, "xmpp gateway": 6, "site gateway": 9, "site gateway-site": 10, "site gateway-five": 14} {
		check.True(t, fmt.Sprintf("%s: %d rows, want %d", name, measured[name], least), measured[name] >= least)
	}
	check.True(t, "progress", said > 20)
	if left, _ := filepath.Glob(filepath.Join(temp, "aldis-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var text, again, page, html bytes.Buffer
	if err := errors.Join(report.WriteText(&text), json.NewEncoder(&again).Encode(report), Markdown(&page, report.Rows), HTML(&html, report.Rows)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{whatRoundTrip, "115 (2004, JXTA 1.0, figure 6.5)", "gateway"} {
		check.Contains(t, "text", text.String(), want)
		check.Contains(t, "page", page.String(), want)
		check.Contains(t, "HTML", html.String(), want)
	}
	check.Contains(t, "HTML", html.String(), "<svg")
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
	for _, cfg := range []Config{{Only: []string{"relay", "beauty"}}, {Where: []string{"moon"}}} {
		if _, err := Run(context.Background(), cfg); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A gateway that does not start, and one whose port is taken: a row says so, and the run goes on.
func TestFailuresAreRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\ncase $1 in run) echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1;; version) echo aldis gateway 1.0 abc1234;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	report, err := Run(context.Background(), Config{Gateway: file, Quick: true, Only: []string{"propagate", "query"}, Where: []string{gatewayTCP}})
	check.NoError(t, err)
	check.Equal(t, "failed rows", len(report.Failed()), 2)
	for _, text := range report.Failed() {
		check.Contains(t, "row", text, "address already in use")
	}
	var page bytes.Buffer
	check.NoError(t, Markdown(&page, report.Rows))
	check.Contains(t, "page", page.String(), "none: ")
}

// A peer that dies in the middle: its cell says so, and earlier cells stay.
func TestPeerDies(t *testing.T) {
	c, err := unwatched(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.limit = 200 * time.Millisecond
	c.echo()
	number := func(i int) []jxta.Element {
		if i == 20 {
			c.b.Close()
		}
		return body(i, 100)
	}
	began := time.Now()
	_, err = c.pings(context.Background(), number, 0, 1, 0, time.Minute)
	if err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("pings to a dead peer: %v after %v", err, time.Since(began))
	}
	c.a.Close()
	s := &session{run: &run{report: &Report{}}, bench: "pipe", where: direct}
	s.put(Row{What: "before", Unit: "us"}.of(1))
	s.failed(context.Background(), Row{What: whatRoundTrip, Unit: "us"}, err)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.failed(ended, Row{What: "of an interrupted run"}, context.Canceled)
	check.Equal(t, "rows", len(s.report.Rows), 2)
}

// Messages that a server swallows are counted as lost, and the benchmark does not wait for them in vain.
func TestLossIsCounted(t *testing.T) {
	c, err := unwatched(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	f, err := c.flow(context.Background(), 100, 8, 1, 100*time.Millisecond)
	if err != nil || f.lost != 0 || f.rates[0] < 100 {
		t.Errorf("directly: %+v, %v", f, err)
	}
	c.limit = 300 * time.Millisecond
	c.there = c.back // no listener is on that one
	if f, err = c.flow(context.Background(), 100, 8, 1, 100*time.Millisecond); err != nil || f.lost != 8 {
		t.Errorf("to nobody: %+v lost, want 8; %v", f, err)
	}
	if _, err := c.pings(context.Background(), func(i int) []jxta.Element { return body(i, 10) }, 0, 1, 0, time.Minute); err == nil {
		t.Error("pings to nobody have answers")
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

// rowsOf are cells for pages.
func rowsOf(load float64, values ...float64) []Row {
	made := Stamp{Cores: 2, Machine: "m", Commit: "c", Date: "2026-11-27", Load: load}
	return []Row{
		Row{Bench: "query", What: whatQuestions, Where: gatewayTCP, Number: 100, Of: "advertisements", Unit: "per second", Must: 100, Stamp: made}.of(values...),
		Row{Bench: "pipe", What: whatRoundTrip, Where: gatewayTCP, Size: 1000, Unit: "us", Less: true, Stamp: made}.of(values...),
		{Bench: "pipe", What: whatRoundTrip, Where: jxse, Size: 1000, Unit: "us", Failed: "a, \"quoted\" reason", Stamp: made},
	}
}

func TestSpread(t *testing.T) {
	r := Row{}.of(5, 1, 3)
	check.Equal(t, "row", r, Row{Value: 3, Low: 1, High: 5, Series: 3, N: 3})
	nothing := Row{}.of()
	check.True(t, "a row of nothing is not measured", !nothing.measured())
}

func TestCSV(t *testing.T) {
	rows := rowsOf(0.05, 1, 2.25, 3)
	var b bytes.Buffer
	check.NoError(t, WriteCSV(&b, rows))
	got, err := ReadCSV(&b)
	check.NoError(t, err)
	check.Equal(t, "read again", fmt.Sprint(got), fmt.Sprint(rows))
	for _, bad := range []string{"", "bench,value\nx,NaN\n", "bench,n\nx,y\n", "bench,n\nx\n"} {
		if _, err := ReadCSV(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// New cells take the place of those of the same benchmark and place; others stay.
func TestMerge(t *testing.T) {
	old, now := rowsOf(0, 1), rowsOf(0, 2)[1:2]
	now[0].What = "another"
	report := &Report{Rows: now}
	all := report.Merge(append(old, Row{Bench: "gone", What: "x"}))
	var names []string
	for i := range all {
		names = append(names, all[i].Bench+" "+all[i].Where+" "+all[i].What)
	}
	check.Equal(t, "cells", strings.Join(names, "; "), "pipe jxse27 "+whatRoundTrip+"; pipe gateway another; query gateway "+whatQuestions)
	report.cut = [2]string{now[0].Bench, now[0].Where} // interrupted: cells that it did not reach stay
	check.Equal(t, "cells of an interrupted run", len(report.Merge(old)), len(old)+1)
}

// The plan lists the measurements, and a run that would take too long makes them shorter.
func TestPlan(t *testing.T) {
	var said []string
	r := &run{Config: Config{Jars: "x", Most: 2 * time.Hour, Progress: func(s string) { said = append(said, s) }}, report: &Report{Began: time.Now()}, pace: 1}
	plan := planOf(r)
	for i := range benchmarks {
		check.True(t, benchmarks[i].name+" has a time", minutes[benchmarks[i].name][0] > 0)
	}
	schedule(r, plan, 0)
	check.Contains(t, "plan", said[0], "ops at 5")
	check.Contains(t, "plan", said[1], fmt.Sprintf("1 of %d: ops, multicast", len(plan)))
	r.pace, r.report.Began = 1, time.Now().Add(-110*time.Minute)
	schedule(r, plan, len(plan)/2)
	check.Equal(t, "pace, late", r.pace, leastPace)
	r.pace, r.report.Began = 1, time.Now().Add(-time.Minute)
	schedule(r, plan, len(plan)-1)
	check.Equal(t, "pace, early", r.pace, 1.0)
	r.Quick, r.Most = true, 10*time.Minute
	t.Logf("full %v, quick %v", takes(false, plan), takes(true, plan))
}

func TestRegressions(t *testing.T) {
	old := rowsOf(0.05, 100, 110, 120)
	for _, tt := range []struct {
		name string
		now  []Row
		want int
	}{
		{"within the spread", rowsOf(0.05, 90, 95, 105), 0},
		{"fewer questions", rowsOf(0.05, 50, 60, 70), 1},
		{"slower answers", rowsOf(0.05, 150, 160, 170), 1},
		{"a busy machine", rowsOf(0.5, 50, 60, 70), 0},
		{"too few series", rowsOf(0.05, 50, 60), 0},
	} {
		check.Equal(t, tt.name, len(Regressions(old, tt.now)), tt.want)
	}
	quick := rowsOf(0.05, 50, 60, 70)
	quick[0].Quick = true
	check.Equal(t, "a quick run beside a full one", len(Regressions(old, quick)), 0)
}

func TestWorkOfOthers(t *testing.T) {
	from := work{at: time.Unix(100, 0), all: 50 * time.Second, own: 10 * time.Second}
	to := work{at: time.Unix(120, 0), all: 80 * time.Second, own: 36 * time.Second}
	check.Equal(t, "cores", others(from, to), 0.2)
	to.own = 60 * time.Second // children of an earlier benchmark have ended
	check.Equal(t, "cores, never below none", others(from, to), 0.0)
	now := workNow()
	check.True(t, "this program is one of all", now.own > 0 && now.own <= now.all)
}

func TestDirty(t *testing.T) {
	for version, want := range map[string]bool{"0.2.0 (commit abc1234)": false, "0.2.0 (commit abc1234-dirty)": true, "0.2.0": true} {
		check.Equal(t, version, Machine{Gateway: version}.dirty() != "", want)
	}
}

func TestPages(t *testing.T) {
	rows := rowsOf(0.5, 10, 20, 30)
	var page, html bytes.Buffer
	check.NoError(t, errors.Join(Markdown(&page, rows), HTML(&html, append(rows, Row{Bench: "pipe", What: whatRoundTrip, Where: gatewayTCP, Size: 1, Unit: "us"}.of(3)))))
	for _, want := range []string{"20 (10 to 30), missed<br>n 3 in 3", "none: a, \"quoted\" reason", "**a busy machine**", "4 a second, with two rendezvous 16 (2004, 6.4.1.2)", "Transport: TCP"} {
		check.Contains(t, "page", page.String(), want)
	}
	check.Contains(t, "HTML", html.String(), "2005, JXTA-C 2.1.1, gigabit, table 4")
	check.Contains(t, "HTML", html.String(), "<svg")
}

// Published figures are next to rows that exist: each names its benchmark.
func TestPublished(t *testing.T) {
	names, _ := Names()
	for _, p := range publishedFigures {
		check.True(t, fmt.Sprintf("%+v", p), slices.Contains(names, p.Bench) && p.Source != "" && (p.Value > 0 || p.Words != ""))
	}
	check.Equal(t, "several cells of a table", publishedText(&Row{Bench: "ops", What: "publish"}), "219 ad hoc, 295 TCP, 308 HTTP (2004, table 6.1)")
}

func TestAdvise(t *testing.T) {
	f := &trace.File{Header: trace.Header{Source: "a trace", Duration: 100}, Lines: []trace.Line{
		{Do: "peer", Peer: "a"}, {Do: "peer", Peer: "b"}, {Do: "pipe", Pipe: "p", Kind: "unicast"}, {Do: trace.EventPublish}, {Do: trace.EventQuery},
		{Do: trace.EventSend, Peer: "a", Pipe: "p", Octets: 200}, {Do: trace.EventSend, Peer: "b", Pipe: "p", Octets: 90_000}}}
	u := UseOf(f)
	check.Equal(t, "use", u, Use{Of: "a trace", Peers: 2, Duration: 100 * time.Second, Questions: 0.01, Messages: 0.02, Octets: 90_000, Largest: 90_000, TwoWay: true, Services: 1})
	u.Octets = 200
	rows := []Row{
		Row{Bench: "layers", What: "socket: " + whatRoundTrip, Where: gatewayTCP, Size: 1000, Unit: "ms"}.of(2),
		Row{Bench: "layers", What: "BiDi pipe: " + whatRoundTrip, Where: gatewayTCP, Size: 1000, Unit: "ms"}.of(3),
		Row{Bench: "pipe", What: whatShare, Where: gatewayTCP, Size: 10_000, Unit: "%"}.of(95),
		Row{Bench: "query", What: whatQuestions, Where: gatewayTCP, Unit: "per second"}.of(5000),
	}
	said := strings.Join(Advise(rows, u), "\n")
	check.Equal(t, "sentences", strings.Count(said, "\n"), 4)
	for _, want := range []string{"Pipe: a socket", "2 ms", "one gateway answers 5,000 a second", "10 min for an advertisement", "messages of 10 kB, and nothing above 64 kB"} {
		check.Contains(t, "advice", said, want)
	}
	u.Questions, u.Many = 4000, 1
	said = strings.Join(Advise(nil, u), "\n")
	check.Contains(t, "advice without figures", said, "not measured")
	check.Contains(t, "advice", said, "propagate pipe")
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{1234567: "1,234,567", 999: "999", 12.34: "12.3", 0.5: "0.5", 0: "0"} {
		check.Equal(t, "number", number(v), want)
	}
	for n, want := range map[int]string{1: "1 octet", 254: "254 octets", 1000: "1 kB", 17290: "17,290 octets", 4_000_000: "4 MB"} {
		check.Equal(t, "size", octetsText(n), want)
	}
}
