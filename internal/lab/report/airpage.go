package report

import (
	"fmt"
	"strings"

	"aldis/internal/lab/air"
)

const (
	airBegins = "<!-- Written by: gateway air --only channel,star --seeds 1-5 --write docs/air.md -->\n"
	airEnds   = "<!-- End of the table. -->\n"
)

// AirTable puts the figures of a report into the table between two marks of a page. Rows that were not played keep theirs; rows that
// no scenario has any more go. It is an error if the page lacks the marks.
func AirTable(page string, r air.Report) (string, error) {
	before, rest, begins := strings.Cut(page, airBegins)
	old, after, ends := strings.Cut(rest, airEnds)
	if !begins || !ends {
		return "", fmt.Errorf("the page lacks the line %q or, behind it, %q", airBegins, airEnds)
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
			take(airLine(result.Link, row, r.Seeds))
		}
	}
	scenarios, err := air.Scenarios()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n| what | before | must; aim | median | worst seed | bound; best size | | seeds |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range scenarios {
		for _, row := range s.Rows {
			b.WriteString(lines[airName(s.Link, row)])
		}
	}
	b.WriteString("\n")
	return before + airBegins + b.String() + airEnds + after, nil
}

func airName(link string, row air.Row) string {
	name := "| " + link + ": " + row.What
	if !strings.HasSuffix(row.What, row.Unit) {
		name += ", " + row.Unit
	}
	return name
}

// airLine is a row of the table. The seed whose figure is worst stands beside the median of all.
func airLine(link string, row air.Row, seeds []uint64) string {
	cells := airCells(row)
	verdict := cells[5]
	if fate := airFate(row); fate != "" {
		verdict += "; " + fate
	}
	span := fmt.Sprint(seeds[0])
	if n := len(seeds); n > 1 {
		span = fmt.Sprintf("%d-%d", seeds[0], seeds[n-1])
	}
	figures := []string{airName(link, row), cells[0], cells[1], numberText(row.Median, 2), numberText(row.Worst(), 2), cells[4], verdict, span}
	return strings.Join(figures, " | ") + " |\n"
}

// airFate says what did not arrive, or not once; "" if all did.
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
