package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// analysed reads one of the captures of internal/lab/trace.
func analysed(t testing.TB, name string) *trace.Report {
	t.Helper()
	f, err := os.Open(filepath.Join("../trace/testdata", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	a := trace.New(trace.Options{})
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return a.Finish()
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Add(p)
	}
}

func write(t testing.TB, p Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// evil are names that a capture may hold.
var evil = []string{
	`</title><script>window.pwned=1</script>`, `"><img src=x onerror=window.pwned=1>`, `</svg></style><script>pwned=1</script>`,
	"line\nbreak\x00\x1b[31m", "right\u202eto left", strings.Repeat("x", 5000), "{{.}} javascript:pwned=1", "\xff\xfe", "'); window.pwned=1; ('",
	strings.Repeat("WWWWWWWW", 20),
}

// hostile is a report of a capture whose every name is evil, with more rows than a page shows.
func hostile() *trace.Report {
	r := &trace.Report{Partial: true, Edge: evil[1], Problems: evil, Setups: 3, CapturedPackets: math.MaxInt64}
	r.Figures = trace.Figures{Connections: math.MaxInt64, TotalS: 1e-9, Packets: 9, DataBytes: math.MaxInt64, SetupMaxS: math.MaxFloat64}
	r.Timeline = &trace.Timeline{SlotS: 1e9, Waiting: []int64{math.MaxInt64, 0}}
	r.SetupS = &trace.Distribution{N: 2, Sorted: []float64{1e-12, 1e12}}
	for i := range 200 {
		name := evil[i%len(evil)]
		r.Discovery = append(r.Discovery, trace.Service{Name: name, S: -float64(i)})
		r.Kinds = append(r.Kinds, trace.Row{Name: name, Tally: trace.Tally{Count: 1, Octets: math.MaxInt64}})
		r.Elements = append(r.Elements, trace.Row{Name: name})
		r.Timeline.Series = append(r.Timeline.Series, trace.Series{Name: name, Octets: []int64{math.MaxInt64, int64(i)}})
	}
	r.Link = &trace.LinkReport{Frames: r.Kinds, Envelopes: r.Kinds, Unopened: r.Kinds, Timeline: r.Timeline, AckS: r.SetupS}
	for range 200 {
		r.Link.Ledger = append(r.Link.Ledger, trace.LinkRow{From: evil[0], To: evil[2], Kind: evil[1]})
	}
	return r
}

// Pages in a real browser: on a desk, on a telephone, in the dark, on paper.
func TestInBrowser(t *testing.T) {
	b := startBrowser(t)
	views := []struct {
		name          string
		width         int
		media, scheme string
	}{{"desk", 1000, "screen", "light"}, {"dark", 1000, "screen", "dark"}, {"telephone", 390, "screen", "light"}, {"paper", 718, "print", "dark"}}
	pages := map[string]Page{
		"jxta22-http-iridium": Analysis("jxta22-http-iridium", analysed(t, "jxta22-http-iridium")),
		"hostile":             Analysis(evil[0], hostile()),
	}
	good, late := played(t, "iridium-directip-shore"), played(t, "hf-300")
	pages["replay"] = Replay(good)
	pages["rehearsal"] = Rehearsal(replay.Judge([]*replay.Result{good}, replay.Judging{Profile: link(t, "iridium-directip-shore"), Deadline: time.Minute,
		Tariff: replay.Tariff{Currency: "EUR", Minute: 1.1, Credit: 0.05, Megabyte: 7}}))
	for i := range late.Samples {
		late.Samples[i].From, late.Samples[i].To = evil[i%len(evil)], evil[(i+1)%len(evil)]
	}
	late.Source, late.Notes = evil[1], evil
	r := replay.Judge([]*replay.Result{late}, replay.Judging{Profile: link(t, "hf-300"), Deadline: time.Minute, Tariff: replay.Tariff{Currency: "<b>", Minute: 1e9}})
	r.Compare([]replay.Other{{Profile: "hf-2400", Summary: "HF", Verdict: replay.Go}})
	pages["rehearsal, hostile"] = Rehearsal(r)
	pages["game"] = OfGame(game(analysed(t, "jxse27-tcp-iridium"), evil[0]))
	pages["game, hostile"] = OfGame(game(hostile(), evil[1]))
	for name, p := range pages {
		file := write(t, p)
		for _, v := range views {
			s := b.check(file, name+"-"+v.name, v.width, v.media, v.scheme)
			if s.Title != p.Title || len(s.Headings) != len(p.Sections) || s.Verdict != p.Verdict {
				t.Errorf("%s, %s: title %q, headings %q, verdict %q", name, v.name, s.Title, s.Headings, s.Verdict)
			}
			if (s.Paper == "rgb(255, 255, 255)") != (v.name != "dark") {
				t.Errorf("%s, %s: the paper is %s", name, v.name, s.Paper)
			}
		}
	}
	file := write(t, pages["jxta22-http-iridium"])
	s := b.check(file, "again", 1000, "screen", "light")
	if len(s.Plots) != 3 || s.Tables != 18 {
		t.Errorf("%d plots and %d tables, want 3 and 18", len(s.Plots), s.Tables)
	}
	for i := range 10 { // the ten tables in their order
		if want := "5." + countText(int64(i+1)); !strings.HasPrefix(s.Captions[i], want) || s.Captions[i][len(want)] < 'A' {
			t.Errorf("table %d is %q", i+1, s.Captions[i])
		}
	}
	for _, want := range []string{"2,132", "39", "133", "567.0", "62,472", "893", "127", "10.89.0.2"} { // published, and here
		if !strings.Contains(s.Text, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	var tree struct {
		Nodes []struct {
			Role, Name struct{ Value any }
		}
	}
	b.Call("Accessibility.getFullAXTree", nil, &tree)
	named := map[string]int{}
	for _, n := range tree.Nodes {
		if role, _ := n.Role.Value.(string); n.Name.Value != "" && n.Name.Value != nil {
			named[role]++
		}
	}
	check.Equal(t, `named["image"]`, named["image"], 3)
	check.True(t, `named["table"] >= 15`, named["table"] >= 15, named["table"])
	check.True(t, `named["columnheader"] >= 60`, named["columnheader"] >= 60, named["columnheader"])
	check.True(t, `named["rowheader"] >= 50`, named["rowheader"] >= 50, named["rowheader"])
	var pdf struct{ Data string }
	b.Call("Page.printToPDF", map[string]any{"paperWidth": 8.27, "paperHeight": 11.69}, &pdf)
	if len(pdf.Data) < 10000 {
		t.Errorf("a PDF of %d octets", len(pdf.Data))
	}
}

// game is a field trial whose run without gateways left a capture.
func game(capture *trace.Report, name string) Game {
	three, ninety := 3.1, 93.0
	g := Game{Link: name, Peers: name, Gateway: name, Seconds: 150, Every: 5, Octets: 200, Ships: 2, Seed: 1, Runs: []GameRun{
		{Sent: 40, Delivered: 19, Up: 90000, Down: 89999, MedianS: &ninety, P95S: &ninety, MostS: &ninety, Idle: 1000, PayloadPct: 1.3, Capture: capture},
		{Aided: true, Sent: 59, Delivered: 59, Up: 3000, Down: 3498, DiscoveryS: &three, FirstS: &three, MedianS: &three, P95S: &three, MostS: &three, PayloadPct: 120},
	}}
	for i := range 150 {
		g.Runs[0].Octets = append(g.Runs[0].Octets, [2]float64{float64(i), float64(i * 1200)})
		g.Runs[1].Octets = append(g.Runs[1].Octets, [2]float64{float64(i), float64(i * 43)})
	}
	for i := range 19 {
		g.Runs[0].Latencies = append(g.Runs[0].Latencies, 30+float64(i)*4)
	}
	for i := range 59 {
		g.Runs[1].Latencies = append(g.Runs[1].Latencies, 1+float64(i)/20)
	}
	return g
}

func link(t testing.TB, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// played is run 3 of the Blue Game on a link.
func played(t testing.TB, name string) *replay.Result {
	t.Helper()
	var b bytes.Buffer
	if _, err := trace.Synth(&b, 3, 1, trace.ContentXML); err != nil {
		t.Fatal(err)
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		t.Fatal(err)
	}
	res, err := replay.Run(t.Context(), f, replay.Options{Profile: link(t, name), Seed: 1})
	if res == nil {
		t.Fatal(err)
	}
	return res
}

// On a terminal the verdict is the first line, and no line is broken by a name.
func TestText(t *testing.T) {
	res := played(t, "hf-300")
	for i := range res.Samples {
		res.Samples[i].From = evil[i%len(evil)]
	}
	var b bytes.Buffer
	r := replay.Judge([]*replay.Result{res}, replay.Judging{Profile: link(t, "hf-300"), Deadline: time.Second})
	if err := Rehearsal(r).Text(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "LATE. ") || strings.ContainsAny(b.String(), "\x00\x1b\u202e") {
		t.Errorf("%s", b.String())
	}
	for _, want := range []string{"In time", "SBD", "What would help", "messages waiting when the trace ends"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The page of a capture says first what is wrong with its link, and how long discovery and first data took.
func TestHeadlineOfPage(t *testing.T) {
	jammed := Analysis("jxta22-http-iridium", analysed(t, "jxta22-http-iridium"))
	check.Equal(t, "tone", jammed.Tone, toneBad)
	check.Contains(t, "verdict", jammed.Verdict, "This link was jammed: 14 % of all packets were sent again, 2 of 15 connections were never set up")
	check.Contains(t, "facts", fmt.Sprint(jammed.Facts), "{Discovery 59.0 s until another peer's service was found} {First data 2 min 12 s after")
	good := Analysis("jxta22-tcp", analysed(t, "jxta22-tcp"))
	check.Equal(t, "tone", good.Tone, toneGood)
	check.Contains(t, "verdict", good.Verdict, "Nothing is wrong with this link")
	nothing := Analysis("none", trace.New(trace.Options{}).Finish())
	check.Equal(t, "tone", nothing.Tone, toneWarn)
	check.Contains(t, "verdict", nothing.Verdict, "The figures are partial")
	check.Contains(t, "notes", fmt.Sprint(nothing.Notes), "the capture has no packets")
}

// Events of TAK devices are on the page, and no markup in them takes effect.
func TestCoTOnPage(t *testing.T) {
	r := &trace.Report{CoT: &trace.CoTReport{Events: 5, Devices: 1, Units: 2, PerMinute: 3.5, Kinds: []trace.Row{{Name: "position", Tally: trace.Tally{Count: 5, Octets: 3000}}},
		Of: []trace.CoTUnit{{UID: evil[0], Callsign: evil[1], Type: "a-f-G", Reports: 5}}}}
	p := Analysis("x", r)
	check.Contains(t, "facts", fmt.Sprint(p.Facts), "{TAK devices 1 and 1 other units} {TAK reports 3.5 a minute")
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	check.Contains(t, "the page", b.String(), "Events by what they are for, each once")
	check.True(t, "no element of a stranger", !strings.Contains(b.String(), "<script") && !strings.Contains(b.String(), "<img"), evil[:2])
}

// A rehearsal with TAK devices has its verdict, its luck and a row for each play.
func TestPictureOnPage(t *testing.T) {
	plays := []trace.CoTCost{{Seed: 1, Events: 7, Reports: 7, Octets: 300, P95M: 12}, {Seed: 2, Events: 7, Reports: 7, Octets: 400, P95M: 80}}
	r := replay.JudgePicture(plays, profile.Profile{Name: "p", Summary: "a link"}, time.Minute, 50)
	r.Source = evil[0]
	p := Picture(r)
	check.Equal(t, "tone", p.Tone, toneWarn)
	check.Contains(t, "verdict", p.Verdict, "LATE. Units are shown up to 80 m off in 95 of 100 reports on p, more than 50 m. It depends on luck")
	for _, p := range []Page{p, TAKReplay(evil[0], "in real time", &plays[0]), (&TAKResult{Profile: evil[0], Gateway: evil[1], Server: evil[2], Runs: map[string]*TAKRun{"gateway": {}, "unaided": {}}}).Page()} {
		var b bytes.Buffer
		if err := p.HTML(&b); err != nil {
			t.Fatal(err)
		}
		check.True(t, "no element of a stranger", !strings.Contains(b.String(), "<script"), evil[0])
	}
}

// Two values make no curve: they are listed.
func TestCurveOfFewValues(t *testing.T) {
	d := curvePlot{Title: "Latency", What: "connections", Of: []sample{{"from SYN to ACK", []float64{0.25, 3}}}}.draw()
	check.Equal(t, "instead of a curve", d.Empty, "Too few connections for a curve, 2: 250 ms (from SYN to ACK), 3.00 s (from SYN to ACK).")
	d = curvePlot{Title: "Latency", What: "connections", Of: []sample{{"a", []float64{1, 2}}, {"b", []float64{1, 2}}}}.draw()
	check.Equal(t, "four values", d.Empty, "")
}

func TestClean(t *testing.T) {
	for _, s := range evil {
		got := clean(s)
		if len(got) > maxText || strings.ContainsAny(got, "\x00\x1b\n\u202e\ufffd") {
			t.Errorf("%q becomes %q", s, got)
		}
	}
	if got := clean("Bergen æøå 航跡"); got != "Bergen æøå 航跡" {
		t.Errorf("%q", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{countText(0), "0"}, {countText(999), "999"}, {countText(-1234567), "-1,234,567"}, {countText(math.MinInt64), "-9,223,372,036,854,775,808"},
		{numberText(1234.56, 2), "1,235"}, {numberText(12.345, 2), "12.3"}, {numberText(0.05, 2), "0.05"}, {numberText(-0.5, 1), "-0.5"}, {numberText(99.999, 1), "100"},
		{short(0), "0"}, {short(0.05), "0.05"}, {short(20000), "20,000"}, {short(2.5), "2.5"},
		{secondsText(0.0421), "42 ms"}, {secondsText(1.5), "1.50 s"}, {secondsText(119.7), "2 min 00 s"}, {secondsText(7260), "2 h 01 min"}, {secondsText(-3), "-3.00 s"},
		{value(1186.2, 3), "1,186.200"}, {value(0.9, 2), "0.90"}, {value(12.6, -1), "13"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// Any values give a drawing in which every number is valid, within its frame.
func TestPlotsOfAnything(t *testing.T) {
	odd := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-9, 1e15, 3600, 86400}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		values := func() (list []float64) {
			for range random.IntN(12) {
				list = append(list, odd[random.IntN(len(odd))])
			}
			return list
		}
		slot := odd[random.IntN(len(odd))]
		stack := stackPlot{Title: "a", Unit: "octets", SlotS: slot, PerS: seed%2 == 0, Limit: odd[random.IntN(len(odd))], Label: "b"}
		for range random.IntN(12) {
			stack.Series = append(stack.Series, plotSeries{"s", values()})
		}
		times := values()
		slices.Sort(times)
		for _, p := range []plot{stack, stepPlot{Title: "q", SlotS: slot, Values: values()}, curvePlot{Title: "l", Of: []sample{{"x", times}}, LimitS: slot}} {
			d := p.draw()
			var b bytes.Buffer
			if err := (Page{Sections: []section{{Plots: []plot{p}}}}).HTML(&b); err != nil {
				t.Fatal(err)
			}
			if d.Empty != "" {
				continue
			}
			for _, bad := range []string{"NaN", "Inf", "ZgotmplZ"} {
				if strings.Contains(b.String(), bad) {
					t.Fatalf("seed %d: %s in %T %+v", seed, bad, p, p)
				}
			}
			if len(b.String()) > 100_000 {
				t.Fatalf("seed %d: %d octets", seed, b.Len())
			}
		}
	}
}
