package report

import (
	"fmt"
	"strings"

	"aldis/internal/lab/air"
)

// airTable is a table between two marks of a page.
type airTable struct {
	begins, head string
	scenarios    func(only ...string) ([]air.Scenario, error)
	line         func(link string, row air.Row, seeds []uint64) string
}

const airEnds = "<!-- End of the table. -->\n"

// airHead is the head of tables of virtual time.
const airHead = "| what | before | must; aim | median | worst seed | bound; best size | | seeds |\n|---|---|---|---|---|---|---|---|\n"

// airTables are the tables of virtual time, each on a page of its own.
var airTables = []airTable{
	{"<!-- Written by: gateway air --only channel,star --seeds 1-5 --write docs/air.md -->\n", airHead, air.Scenarios, airLine},
	{"<!-- Written by: gateway air --only groups --seeds 1-20 --write docs/groups.md -->\n", airHead, air.Scenarios, airLine},
	{"<!-- Written by: gateway air --only fleet --seeds 1-20 --write docs/fleet.md -->\n", airHead, air.Scenarios, airLine},
	{"<!-- Written by: gateway air --only site --seeds 1-20 --write docs/site.md -->\n", airHead, air.Scenarios, airLine},
}

// airLive is the table of real gateways.
var airLive = airTable{"<!-- Written by: sudo gateway air --live --only channel --seeds 1-3 --write docs/air.md -->\n",
	"| what | live | least to most | virtual, same seeds | apart | seeds |\n|---|---|---|---|---|---|\n", air.LiveScenarios, airLiveLine}

// AirTable puts the figures of a report into its table of a page: of real gateways, or of virtual time. Rows that were not played keep
// their figures; rows that are in no scenario any more are removed. It is an error if the page lacks the marks.
func AirTable(page string, r air.Report) (string, error) {
	t := airTables[0]
	for _, other := range airTables[1:] {
		if strings.Contains(page, other.begins) {
			t = other
		}
	}
	if r.Live {
		t = airLive
	}
	before, rest, begins := strings.Cut(page, t.begins)
	old, after, ends := strings.Cut(rest, airEnds)
	if !begins || !ends {
		return "", fmt.Errorf("the page lacks the line %q or, behind it, %q", t.begins, airEnds)
	}
	lines := map[string]string{} // by their first cell
	take := func(line string) {
		if cells := strings.SplitN(line, " | ", 2); len(cells) == 2 {
			lines[cells[0]] = line
		}
	}
	for line := range strings.Lines(old) {
		take(line)
	}
	for _, result := range r.Results {
		for _, row := range result.Rows {
			take(t.line(result.Link, row, r.Seeds))
		}
	}
	scenarios, err := t.scenarios()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n" + t.head)
	for _, s := range scenarios {
		for _, row := range s.Rows {
			b.WriteString(lines[airName(s.Link, row)])
		}
	}
	b.WriteString("\n")
	return before + t.begins + b.String() + airEnds + after, nil
}

func airName(link string, row air.Row) string {
	name := "| " + link + ": " + row.What
	if !strings.HasSuffix(row.What, row.Unit) {
		name += ", " + row.Unit
	}
	return name
}

// airLine is a row of the table. The figure of the worst seed, with its number, is next to the median of all.
func airLine(link string, row air.Row, seeds []uint64) string {
	cells := airCells(row)
	verdict := cells[5]
	if fate := airFate(row); fate != "" {
		verdict += "; " + fate
	}
	figures := []string{airName(link, row), cells[0], cells[1], numberText(row.Median, 2), numberText(row.Worst(), 2), cells[4], verdict, airSpan(seeds)}
	return strings.Join(figures, " | ") + " |\n"
}

func airSpan(seeds []uint64) string {
	if n := len(seeds); n > 1 {
		return fmt.Sprintf("%d-%d", seeds[0], seeds[n-1])
	}
	return fmt.Sprint(seeds[0])
}

// airLiveLine is a row of the table of real gateways, with the medians of virtual time.
func airLiveLine(link string, row air.Row, seeds []uint64) string {
	apart := "-"
	if row.Virtual != 0 {
		apart = fmt.Sprintf("%+.0f %%", 100*(row.Median/row.Virtual-1))
	}
	figures := []string{airName(link, row), numberText(row.Median, 2), numberText(row.Least, 2) + " to " + numberText(row.Most, 2),
		numberText(row.Virtual, 2), apart, airSpan(seeds)}
	return strings.Join(figures, " | ") + " |\n"
}

// airFate says how many deliveries did not arrive, or not once; "" if all did.
func airFate(row air.Row) string {
	var list []string
	if row.Missing > 0 {
		list = append(list, countText(int64(row.Missing))+" did not arrive")
	}
	if row.Wrong > 0 {
		list = append(list, countText(int64(row.Wrong))+" wrong")
	}
	return strings.Join(list, ", ")
}
