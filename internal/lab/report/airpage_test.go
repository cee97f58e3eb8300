package report

import (
	"strings"
	"testing"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
)

// A page takes the figures that were played and keeps the others; rows that exist no more are removed.
func TestAirTable(t *testing.T) {
	list, err := air.Scenarios("idle", "channel")
	if err != nil {
		t.Fatal(err)
	}
	first, second := list[0], list[1]
	result := func(s air.Scenario, value float64, missing int) air.Report {
		row := s.Rows[0]
		row.Value, row.Median, row.Least, row.Most, row.N, row.Bound, row.Best, row.Missing = value, value, value-1, value+1, 2, 7, 8, missing
		return air.Report{Seeds: []uint64{3, 4}, Results: []air.Result{{Link: s.Link, Rows: []air.Row{row}}}}
	}
	page := "before\n" + airTables[0].begins + "| old: row | 1 |\n" + airEnds + "after\n"
	for _, r := range []air.Report{result(second, 5, 0), result(first, 25, 1200), result(first, 26, 1200)} {
		if page, err = AirTable(page, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"before\n<!--", "-->\nafter\n", first.Rows[0].What, second.Rows[0].What, "| 26.0 | 27.0 |", "| 5.00 |", "| 7.00; 8.00 |", "1,200 did not arrive", "| 3-4 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "old: row") || strings.Contains(page, "25.0") {
		t.Errorf("the page keeps what is gone:\n%s", page)
	}
	page = "before\n" + airLive.begins + airEnds + page
	live, err := air.LiveScenarios("channel")
	if err != nil {
		t.Fatal(err)
	}
	r := result(live[0], 40, 0)
	r.Live, r.Results[0].Rows[0].Virtual = true, 50
	if page, err = AirTable(page, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{live[0].Rows[0].What + ", % of the rate | 40.0 | 39.0 to 41.0 | 50.0 | -20 % | 3-4 |", "| 26.0 | 27.0 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page with what real gateways did lacks %q:\n%s", want, page)
		}
	}
	fleet, err := air.Scenarios("fleet")
	check.NoError(check.Fatal(t), err)
	other, err := AirTable("before\n"+airTables[1].begins+airEnds, result(fleet[0], 40, 0))
	check.True(t, "a page of its own", err == nil && strings.Contains(other, fleet[0].Rows[0].What), other, err)
	if _, err := AirTable("nothing", air.Report{}); err == nil {
		t.Error("a page without marks was taken")
	}
}

// The paper's points are on the axes of ours, and on none if none of ours was played.
func TestAirPlotsOfPaper(t *testing.T) {
	row := air.Row{What: "x", N: 1, Value: 1200, Plot: &air.Point{Plot: "paper-delay", Curve: "unicast, hf-2400", X: 16}}
	list := airPlots(air.Report{Results: []air.Result{{Rows: []air.Row{row}}}})
	check.Equal(check.Fatal(t), "plots", len(list), 1)
	p := list[0].(xyPlot)
	check.Equal(t, "curves", len(p.Of), 3)
	check.Equal(t, "the last", p.Of[2].Name, "unicast, hf-2400")
	check.Equal(t, "plots of nothing", len(airPlots(air.Report{})), 0)
}
