package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// xyPlot is figures over a number: points in the order of x, joined by lines.
type xyPlot struct {
	name  string
	Title string
	X, Y  string // names of the axes, with the unit
	LogX  bool
	LogY  bool
	Line  bool // many points: no dot for each, and a table of some
	Of    []xyCurve
}

type xyCurve struct {
	Name   string
	Points [][2]float64
}

func (p xyPlot) draw() drawing {
	d := drawing{Title: p.Title, Empty: "Nothing was measured."}
	leastX, mostX, least, mostY := 0.0, 0.0, 0.0, 0.0
	var shown []xyCurve
	for _, c := range p.Of {
		if len(c.Points) == 0 || len(shown) == curves {
			continue
		}
		c.Points = slices.Clone(c.Points)
		for i, v := range c.Points {
			x, y := sane(v[0]), sane(v[1])
			c.Points[i] = [2]float64{x, y}
			mostX, mostY = max(mostX, x), max(mostY, y)
			if x > 0 && (leastX == 0 || x < leastX) {
				leastX = x
			}
			if y > 0 && (least == 0 || y < least) {
				least = y
			}
		}
		slices.SortFunc(c.Points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
		shown = append(shown, c)
	}
	if len(shown) == 0 {
		return d
	}
	d.Empty = ""
	x, y := linear(mostX, 8), linear(mostY, 5)
	if p.LogX && leastX > 0 {
		x = logarithmic(leastX, mostX)
	}
	if p.LogY && least > 0 {
		y = logarithmic(least, mostY)
	}
	xTick, yTick := ticks(x.max), ticks(y.max)
	if p.LogX { // one prefix does not suit many decades
		own := func(v float64) string { return ticks(v)(v) }
		xTick, yTick = own, own
	}
	d.axes(x, y, xTick, yTick, p.X, p.Y)
	d.Table = tableData{Caption: p.Title, Columns: []string{"", p.X, p.Y}}
	var said []string
	for i, c := range shown {
		var b strings.Builder
		for k, v := range c.Points {
			command := "L"
			if k == 0 {
				command = "M"
			}
			px, py := floor(x, v[0]), floor(y, v[1])
			fmt.Fprintf(&b, "%s%s %s", command, at(x.x(px)), at(y.y(py)))
			if p.Line && k < len(c.Points)-1 {
				if k%((len(c.Points)+tableRows-1)/tableRows) != 0 {
					continue
				}
			} else {
				d.Dots = append(d.Dots, dot{fmt.Sprintf("f%d", i), at(x.x(px)), at(y.y(py))})
			}
			d.Table.Rows = append(d.Table.Rows, tableRow{Name: clean(c.Name), Cells: []string{numberText(v[0], 2), numberText(v[1], 2)}})
		}
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		d.Paths = append(d.Paths, path{fmt.Sprintf("l%d", i), b.String()})
		d.Legend = append(d.Legend, key{fmt.Sprintf("f%d", i), clean(c.Name)})
		said = append(said, fmt.Sprintf("%s: %s at %s, %s at %s", clean(c.Name), numberText(first[1], 2), numberText(first[0], 2), numberText(last[1], 2), numberText(last[0], 2)))
	}
	d.Desc = fmt.Sprintf("%s over %s. %s.", p.Y, p.X, strings.Join(said, ". "))
	return d
}

// floor keeps a value on a logarithmic axis.
func floor(s scale, v float64) float64 {
	if s.log {
		return max(v, s.min)
	}
	return v
}
