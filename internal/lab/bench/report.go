package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"aldis/internal/lab/report"
)

// cell is a row's value with its spread.
func (r *Row) cell() string {
	if !r.measured() {
		return "none: " + r.Failed
	}
	s := number(r.Value)
	if r.Series > 1 {
		s += fmt.Sprintf(" (%s to %s)", number(r.Low), number(r.High))
	}
	if r.Lost > 0 {
		s += fmt.Sprintf(", %d lost", r.Lost)
	}
	if r.ByPeers > 0 {
		s += fmt.Sprintf(", %d lost by the peers", r.ByPeers)
	}
	if r.Must > 0 && (r.Less && r.Value > r.Must || !r.Less && r.Value < r.Must) {
		s += ", missed"
	}
	if r.Swapped > 0 {
		s += fmt.Sprintf(", the machine swapped %d pages", r.Swapped)
	}
	return s
}

// sample says how many measurements a cell has.
func (r *Row) sample() string {
	s := number(float64(r.N))
	if r.Series > 1 {
		s += fmt.Sprintf(" in %d", r.Series)
	}
	if r.Warm > 0 {
		s += fmt.Sprintf(" after %s", number(float64(r.Warm)))
	}
	return s
}

func (r *Row) goals() string {
	if r.Must == 0 {
		return ""
	}
	return fmt.Sprintf("%s; %s", number(r.Must), number(cmp.Or(r.Aim, r.Must)))
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n%s, took %s\n", r.Machine, r.Began.Format(time.DateOnly), r.Took.Round(time.Second))
	for _, t := range tables(r.Rows) {
		fmt.Fprintf(b, "\n%s: %s\n", t.bench, t.about)
		for _, l := range t.lines {
			fmt.Fprintf(b, "  %s", l.name)
			if l.published != "" {
				fmt.Fprintf(b, "   [published: %s]", l.published)
			}
			if l.goals != "" {
				fmt.Fprintf(b, "   [must; aim: %s]", l.goals)
			}
			b.WriteByte('\n')
			for i, c := range l.cells {
				if c != nil {
					fmt.Fprintf(b, "    %-12s %s   n %s", t.places[i], c.cell(), c.sample())
					if c.Note != "" {
						fmt.Fprintf(b, "   %s", c.Note)
					}
					b.WriteByte('\n')
				}
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table is one benchmark's cells, a column for each place.
type table struct {
	bench, about string
	places       []string
	lines        []tableLine
	stamps       []string
}

type tableLine struct {
	name, published, goals string
	cells                  []*Row // by place; nil: not measured there
}

// tables arranges rows.
func tables(rows []Row) (list []table) {
	for _, b := range benchmarks {
		t := table{bench: b.name, about: b.about}
		at, loads := map[string]int{}, map[Stamp][2]float64{}
		for i := range rows {
			if rows[i].Bench == b.name && !slices.Contains(t.places, rows[i].Where) {
				t.places = append(t.places, rows[i].Where)
			}
		}
		order := func(place string) int { return slices.IndexFunc(Places, func(p Place) bool { return p.Name == place }) }
		slices.SortFunc(t.places, func(a, b string) int { return order(a) - order(b) })
		for i := range rows {
			r := &rows[i]
			if r.Bench != b.name {
				continue
			}
			k, ok := at[r.line()]
			if !ok {
				k = len(t.lines)
				at[r.line()] = k
				t.lines = append(t.lines, tableLine{name: r.line(), published: publishedText(r), goals: r.goals(), cells: make([]*Row, len(t.places))})
			}
			t.lines[k].cells[slices.Index(t.places, r.Where)] = r
			made := r.Stamp
			made.Load, made.Swapped = 0, 0
			range_, seen := loads[made]
			if !seen {
				range_ = [2]float64{r.Load, r.Load}
			}
			loads[made] = [2]float64{min(range_[0], r.Load), max(range_[1], r.Load)}
		}
		for s, l := range loads {
			text := fmt.Sprintf("`%s`, %s: %s, gateway %s, other programs used %.2f to %.2f cores", s.Command, s.Date, s.Machine, s.Commit, l[0], l[1])
			if s.Load = l[1]; s.busy() {
				text += ", **a busy machine**"
			}
			if s.Quick {
				text += ", **a quick run: not to be quoted**"
			}
			t.stamps = append(t.stamps, text+".")
		}
		slices.Sort(t.stamps)
		if len(t.lines) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// Markdown writes the page docs/bench.md.
func Markdown(w io.Writer, rows []Row) error {
	b := &strings.Builder{}
	b.WriteString(preface)
	for _, p := range Places {
		fmt.Fprintf(b, "- *%s*: %s\n", p.Name, p.About)
	}
	b.WriteString("\n## Five sentences\n\n")
	for _, s := range Advise(rows, PlainUse) {
		fmt.Fprintf(b, "- %s\n", s)
	}
	b.WriteString("\n`gateway bench --advise TRACE` says the same for a trace.\n")
	for _, t := range tables(rows) {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n\n%s\n\n| | %s | published | must; aim |\n|---|%s---|---|\n", t.bench, capital(t.about), strings.Join(t.stamps, "\n"),
			strings.Join(t.places, " | "), strings.Repeat("---|", len(t.places)))
		for _, l := range t.lines {
			fmt.Fprintf(b, "| %s |", l.name)
			for _, c := range l.cells {
				text := "-"
				if c != nil {
					text = strings.ReplaceAll(c.cell(), "|", "/")
					if c.measured() {
						text += "<br>n " + c.sample()
					}
					if c.Note != "" {
						text += "; " + c.Note
					}
				}
				fmt.Fprintf(b, " %s |", text)
			}
			fmt.Fprintf(b, " %s | %s |\n", l.published, l.goals)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

const preface = `# Bench

Made by ` + "`make bench`" + ` (` + "`gateway bench --write docs`" + `); bench.csv beside this page has every cell in full, bench.html the curves. A run replaces the cells of the benchmarks and places that it measures.

Each cell is the median of its series, with the least and the most of them, and *n*: how many measurements, in how many series, after how many to warm up. Other programs used so many cores on average while a benchmark ran at a place; from a tenth of the cores on, the machine counts as busy. Everything runs on loopback, each server in a fresh process, one place after the other, except at the place *link*: that is virtual time, where the machine does not matter and a series is a seed of losses and jitter. "Lost by the peers": the peers' own library lost them, not the gateway or rendezvous; its counters say so. "None" says why there is no figure.

Published figures: the performance model of 2004 (JXTA 1.0 to 2.2, 800 MHz, 100 Mbit/s), the grid study of 2005 (JXTA-J2SE and JXTA-C, gigabit), XML compression of 2007. Most curves of 2004 and 2005 were printed as pictures without numbers: where their text gives none, there is none to show.

Places:

`

// HTML writes the same as one file, with the curves and the published curves on the same axes.
func HTML(w io.Writer, rows []Row) error {
	page := report.Bench{Title: "Bench", Notes: Advise(rows, PlainUse)}
	for _, t := range tables(rows) {
		s := report.BenchSection{Title: t.bench, Text: append([]string{capital(t.about) + "."}, t.stamps...), Columns: append([]string{t.bench}, t.places...), Curves: curves(t)}
		for i, text := range s.Text {
			s.Text[i] = strings.NewReplacer("`", "", "**", "").Replace(text)
		}
		s.Columns = append(s.Columns, "published", "must; aim")
		for _, l := range t.lines {
			line := []string{l.name}
			for _, c := range l.cells {
				if c == nil {
					line = append(line, "-")
				} else {
					line = append(line, c.cell())
				}
			}
			s.Rows = append(s.Rows, append(line, l.published, l.goals))
		}
		page.Sections = append(page.Sections, s)
	}
	return page.HTML(w)
}

// curves are figures over size, and over number, for each row with several.
func curves(t table) (list []report.BenchCurves) {
	type axis struct{ what, unit, x string }
	var order []axis
	points := map[axis]map[string][][2]float64{} // by place
	add := func(a axis, name string, x, y float64) {
		if points[a] == nil {
			points[a] = map[string][][2]float64{}
			order = append(order, a)
		}
		points[a][name] = append(points[a][name], [2]float64{x, y})
	}
	for _, l := range t.lines {
		for _, r := range l.cells {
			if r == nil || !r.measured() {
				continue
			}
			what := r.What
			if r.Size > 0 && r.Number > 0 {
				what += ", " + octetsText(r.Size) // the curve is over the number then
			}
			switch {
			case r.Number > 0:
				add(axis{what, r.Unit, r.Of}, r.Where, float64(r.Number), r.Value)
			case r.Size > 0:
				add(axis{what, r.Unit, "octets"}, r.Where, float64(r.Size), r.Value)
			}
		}
	}
	for _, a := range order {
		for _, p := range publishedFigures {
			if p.Bench != t.bench || p.Value == 0 {
				continue
			}
			if x := float64(p.Size); a.x == "octets" && p.What == a.what && x > 0 {
				add(a, p.Source, x, p.Value)
			} else if x := float64(p.Number); a.x != "octets" && x > 0 && (p.What == a.what || p.Size > 0 && p.What+", "+octetsText(p.Size) == a.what) {
				add(a, p.Source, x, p.Value)
			}
		}
		c := report.BenchCurves{Title: a.what, X: a.x, Y: a.unit}
		several := false
		names := make([]string, 0, len(points[a]))
		for name := range points[a] {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			several = several || len(points[a][name]) > 1
			c.Of = append(c.Of, report.BenchCurve{Name: name, Points: points[a][name]})
		}
		if several {
			list = append(list, c)
		}
	}
	return list
}
