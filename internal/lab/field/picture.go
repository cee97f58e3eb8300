package field

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
)

const sampleEvery = time.Second // of the octets on the link

// picture is the data for a page of a run besides its figures.
type picture struct {
	octets    [][2]float64 // on the air since the run began, by seconds from the start of the ship's peer
	latencies []float64    // s, of the delivered messages
	capture   *trace.Report
}

// sample notes the octets on the air so far.
func (g *game) sample(now time.Time) {
	up, down := g.traffic()
	g.picture.octets = append(g.picture.octets, [2]float64{now.Sub(g.zero).Seconds(), float64(up.Octets + down.Octets)})
}

// finishPicture reads the capture of the first ship's interface, once it is complete.
func (g *game) finishPicture(run *Run) error {
	if g.picture == nil || run == nil {
		return nil
	}
	run.picture = g.picture
	hq, ships := g.records()
	assess(&Run{picture: g.picture}, hq, ships, g.zero, g.o.Bulk)
	var opt trace.Options
	if g.kind == "gateway" {
		key, err := keyfile.LoadKey(filepath.Join(g.dir, "net.key"))
		if err != nil {
			return err
		}
		opt.Key = &key
	}
	f, err := os.Open(filepath.Join(g.dir, g.sites[1].name+".pcap"))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", f.Name(), err)
	}
	a := trace.New(opt)
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			g.picture.capture = a.Finish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("lab: %s: %w", f.Name(), err)
		}
		a.Add(p)
	}
}

// Page is a page with the figures of a game that was played with Options.Pictured.
func (r *Result) Page() report.Page {
	g := report.Game{
		Link: r.Profile, Gateway: r.Gateway, Peers: r.Peers + " over " + strings.ToUpper(r.Transport),
		Seconds: r.DurationS, Every: r.RateS, Octets: r.Size, Ships: r.Ships, Seed: r.Seed,
	}
	for _, kind := range []string{"unaided", "gateway"} {
		run := r.Runs[kind]
		if run == nil {
			continue
		}
		w := report.GameRun{
			Aided: kind == "gateway", Sent: run.MessagesSent, Delivered: run.MessagesDelivered, Wrong: run.Duplicates + run.Corrupted,
			Up: run.LinkBytes.Up, Down: run.LinkBytes.Down, DiscoveryS: run.DiscoveryS, FirstS: run.FirstDataS,
			MedianS: run.Latency.Median, P95S: run.Latency.P95, MostS: run.Latency.Max, Idle: run.Background, PayloadPct: run.PayloadRatio,
		}
		if p := run.picture; p != nil {
			w.Octets, w.Latencies, w.Capture = p.octets, slices.Sorted(slices.Values(p.latencies)), p.capture
		}
		g.Runs = append(g.Runs, w)
	}
	return report.OfGame(g)
}

// writePage writes the page, and says in which file.
func writePage(res result, path string, text io.Writer) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(res.Page().HTML(f), f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(text, "\nThe same as a picture: file://%s\n", path)
	return err
}
