package report

import "io"

// Bench is the results of `gateway bench`, in words, tables and curves.
type Bench struct {
	Title    string
	Notes    []string
	Sections []BenchSection
}

// BenchSection is one benchmark. The first cell of a row names it.
type BenchSection struct {
	Title   string
	Text    []string
	Columns []string
	Rows    [][]string
	Curves  []BenchCurves
}

// BenchCurves are figures over a number, on one pair of axes, both logarithmic.
type BenchCurves struct {
	Title, X, Y string
	Of          []BenchCurve
}

// BenchCurve is one curve: x and y of each point.
type BenchCurve struct {
	Name   string
	Points [][2]float64
}

// HTML writes the page as one file.
func (b Bench) HTML(w io.Writer) error {
	p := Page{Title: b.Title, Tone: tonePlain, Notes: b.Notes}
	for _, s := range b.Sections {
		to := section{Title: s.Title, Text: s.Text}
		for _, c := range s.Curves {
			plot := xyPlot{Title: c.Title, X: c.X, Y: c.Y, LogX: true, LogY: true}
			for _, of := range c.Of {
				plot.Of = append(plot.Of, xyCurve(of))
			}
			to.Plots = append(to.Plots, plot)
		}
		t := tableData{Caption: s.Title, Columns: s.Columns}
		for _, r := range s.Rows {
			t.Rows = append(t.Rows, tableRow{Name: r[0], Cells: r[1:]})
		}
		to.Tables = append(to.Tables, t)
		p.Sections = append(p.Sections, to)
	}
	return p.HTML(w)
}
