package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
)

// recorded is a trace of one of the captures of package trace.
func recorded(t *testing.T, name string) *trace.File {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "trace", "testdata", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	play := func(opt trace.Options) *trace.Report {
		r, err := trace.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		a := trace.New(opt)
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
	first := play(trace.Options{})
	var out bytes.Buffer
	w := trace.NewFileWriter(&out, trace.Header{Content: "data", Duration: first.Seconds()})
	play(trace.Options{Sink: trace.NewRecorder(w, first.Edge, first.EdgePeer).Event})
	if _, err := w.End(first.Seconds(), false); err != nil {
		t.Fatal(err)
	}
	got, err := trace.ReadFile(&out)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Messages that no gateway took, because the news of the listener was lost on the air, differ from messages lost under way.
func TestNobodyKnownToListen(t *testing.T) {
	f := recorded(t, "jxta22-http-iridium")
	p := load(t, "hf-2400")
	p.Up.LossPct, p.Down.LossPct = 50, 50 // with its own losses no news is late in 40 seeds
	res, err := Run(context.Background(), f, Options{Profile: p, Seed: 18})
	if err != nil {
		t.Fatal(err)
	}
	m := res.Messages
	check.True(t, "some are lost", m.Lost > 0, m)
	check.Equal(t, "untaken", m.Untaken, m.Lost)
	check.True(t, "the problem says it", strings.Contains(strings.Join(res.Problems, "\n"), "were never taken: their gateway knew of nobody who listens"), res.Problems)
	for _, s := range res.Samples {
		if s.Untaken != (s.ArrivedS == nil) || s.Untaken != (s.TakenS == nil) {
			t.Errorf("%+v", s)
		}
		if s.TakenS != nil && (*s.TakenS < s.SentS || *s.TakenS > *s.ArrivedS) {
			t.Errorf("sent %.3f, taken %.3f, arrived %.3f", s.SentS, *s.TakenS, *s.ArrivedS)
		}
	}
	var lost int64
	for _, b := range res.Bins {
		lost += b.Lost.Up + b.Lost.Down
	}
	check.Equal(t, "datagrams lost, in bins", lost, res.Lost.Up+res.Lost.Down)
	var text bytes.Buffer
	if err := res.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	check.True(t, "the text says it", strings.Contains(text.String(), "of those lost were never taken: nobody was known to listen"), text.String())
}

// Demand is the octets that the trace needs, without repairs.
func TestDemand(t *testing.T) {
	res, err := Run(context.Background(), recorded(t, "jxta22-http-iridium"), Options{Profile: load(t, "hf-300"), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	sum := res.LinkBytes.Up + res.LinkBytes.Down
	check.True(t, "there are repairs", res.Kinds["repair"] > 0, res.Kinds)
	check.Equal(t, "nothing is left over", res.Messages.Lost, 0)
	check.Equal(t, "demand", res.Demand.Up+res.Demand.Down, sum-res.Kinds["repair"])
	for _, n := range res.Notes {
		check.True(t, "a note is of the trace alone", !strings.Contains(n, "cannot carry"), n)
	}
}
