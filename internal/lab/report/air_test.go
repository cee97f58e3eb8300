package report

import (
	"bytes"
	"strings"
	"testing"

	"aldis/internal/lab/air"
)

// The page on how full links get shows the goals, the measurements and the bounds, and draws a curve for each link.
func TestAirPage(t *testing.T) {
	point := func(x float64) *air.Point { return &air.Point{Plot: "load", Curve: "iridium-<b>", X: x} }
	r := air.Report{Version: "aldis gateway 9", Seeds: []uint64{1, 2, 3}, Results: []air.Result{
		{Table: "load", Link: "iridium-<b>", Rows: []air.Row{
			{What: "50 % offered", Unit: "x the limit", Before: "140 s", Asked: true, Must: 2, Aim: 1.3, Value: 1.1, Least: 1, Most: 1.2, N: 3, Plot: point(50)},
			{What: "100 % offered", Unit: "x the limit", Asked: true, Must: 2, Aim: 1.3, Value: 11.5, Least: 10, Most: 12, N: 3, Bound: 11.4, Plot: point(100)},
			{What: "150 % offered", Unit: "x the limit", Asked: true, Must: 2, Aim: 1.3, Value: 30, Least: 30, Most: 30, N: 3, Plot: point(150)},
		}},
		{Table: "crowd", Link: "dialup", Rows: []air.Row{{What: "goodput", Asked: true, More: true, Must: 75, Aim: 80, Value: 76, N: 1}}},
	}}
	p := Air(r)
	var text, page bytes.Buffer
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := p.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 of 4 rows hold", "seeds 1 to 3", "140 s", "2.00; 1.30", "1.10", "10.0 to 12.0", "aim", "bound", "missed", "must"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
	for _, want := range []string{"Load against latency", "iridium-&lt;b&gt;", "<path class=\"l0\"", "<circle class=\"f0\"", "1.10 at 50.0, 30.0 at 150"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "<b>") {
		t.Error("the name of a link is not escaped")
	}
}

// A page of real gateways says so, and has the virtual figures next to theirs.
func TestAirPageLive(t *testing.T) {
	r := air.Report{Live: true, Version: "gateway 9", Seeds: []uint64{1}, Results: []air.Result{{Table: "burst", Link: "dialup", Rows: []air.Row{
		{What: "the last", Asked: true, Must: 1.3, Aim: 1.15, Value: 1.21, Virtual: 1.17, N: 1}}}}}
	var text bytes.Buffer
	if err := Air(r).Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in real time", "virtual", "1.21", "1.17"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
}

// Values that cannot be drawn are left out, and nothing is drawn outside.
func TestPlotOverANumber(t *testing.T) {
	if d := (xyPlot{Title: "none", Of: []xyCurve{{Name: "empty"}}}).draw(); d.Empty == "" || len(d.Paths) != 0 {
		t.Errorf("a plot without points: %+v", d)
	}
	d := xyPlot{Title: "zero", X: "x", Y: "y", LogY: true, Of: []xyCurve{{Name: "a", Points: [][2]float64{{3, 100}, {0, 0}, {2, 10}}}}}.draw()
	if len(d.Dots) != 3 || len(d.Table.Rows) != 3 || d.Table.Rows[0].Cells[0] != "0.00" {
		t.Errorf("three points in the order of x: %+v", d)
	}
	for _, dot := range d.Dots {
		if strings.Contains(dot.X+dot.Y, "-") || strings.Contains(dot.X+dot.Y, "N") {
			t.Errorf("a dot at %s, %s", dot.X, dot.Y)
		}
	}
}
