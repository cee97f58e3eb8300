package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes of a drawing, in units of its view box; about pixels.
const (
	width, height            = 800, 280
	left, right, top, bottom = 70, 18, 12, 46
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	colours                  = 8  // of stacked series; the last is for all others
	curves                   = 8  // colours of curves
	tableRows                = 24 // of the table below a plot over time
	maxBars                  = 4096
)

// drawing is the data that the template writes as SVG.
type drawing struct {
	Title, Desc   string
	Empty         string // the reason for which there is no drawing
	Width, Height int
	Lines         []line
	Paths         []path
	Dots          []dot
	Texts         []text
	Legend        []key
	Table         tableData
}

type line struct {
	Class          string
	X1, Y1, X2, Y2 string
}
type path struct{ Class, D string }
type dot struct{ Class, X, Y string }
type text struct{ Class, X, Y, Anchor, Turn, Text string }
type key struct{ Class, Text string }

// plotSeries is one series over time: a value for every slot.
type plotSeries struct {
	Name   string
	Values []float64
}

// stackPlot is values over time, stacked. Slots are equal and begin at 0.
type stackPlot struct {
	Title  string
	Unit   string  // of the values, "octets"
	SlotS  float64 // s
	Series []plotSeries
	PerS   bool    // the axis shows values per second
	Limit  float64 // in the axis' unit: a line, such as the link's rate; 0: none
	Label  string  // of the limit
}

// stepPlot is one count over time, the number of waiting messages. It is drawn from slot to slot.
type stepPlot struct {
	Title, Unit string
	SlotS       float64
	Values      []float64
	Limit       float64
	Label       string
}

// curvePlot are distributions: the share of values that are at most so long.
type curvePlot struct {
	Title  string
	What   string // the things with these times, in the plural: "messages"
	Of     []sample
	LimitS float64 // a deadline, s; 0: none
	Label  string
}

// sample is times in seconds, in ascending order.
type sample struct {
	Name   string
	Sorted []float64
}

func at(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	return strings.TrimSuffix(s, ".0")
}

// scale maps values to places on an axis.
type scale struct {
	min, max float64
	log      bool
	ticks    []float64
}

func (s scale) part(v float64) float64 {
	if s.log {
		return (math.Log(v) - math.Log(s.min)) / (math.Log(s.max) - math.Log(s.min))
	}
	return (v - s.min) / (s.max - s.min)
}

func (s scale) x(v float64) float64 { return left + plotWidth*min(1, max(0, s.part(v))) }
func (s scale) y(v float64) float64 { return top + plotHeight*(1-min(1, max(0, s.part(v)))) }

// linear is a scale from 0 to a round number of at least most, with about n ticks.
func linear(most float64, n int) scale {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if step*f*float64(n) >= most*0.999999 {
			step *= f
			break
		}
	}
	s := scale{max: step * math.Ceil(most/step*0.999999)}
	for i := 0; float64(i)*step <= s.max*1.000001; i++ {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

// clock is a scale of time from 0 to s seconds, with the unit of its numbers.
func clock(s float64) (sc scale, unit float64, name string) {
	unit, name = 1, "s"
	switch {
	case s > 4*3600:
		unit, name = 3600, "h"
	case s > 240:
		unit, name = 60, "min"
	}
	sc.max = max(s, 1e-3)
	round := linear(sc.max/unit, 10)
	if unit > 1 && sc.max/unit > 10 { // times of more than ten units have ticks at whole minutes or hours
		for _, step := range []float64{2, 5, 10, 15, 20, 30, 60, 120, 240} {
			if sc.max/unit/step <= 10 {
				round.ticks = nil
				for t := 0.0; t <= sc.max/unit; t += step {
					round.ticks = append(round.ticks, t)
				}
				break
			}
		}
	}
	for _, t := range round.ticks {
		if t*unit <= sc.max*1.000001 {
			sc.ticks = append(sc.ticks, t*unit)
		}
	}
	return sc, unit, name
}

// logarithmic is a scale of times.
func logarithmic(least, most float64) scale {
	s := scale{log: true, min: math.Pow(10, math.Floor(math.Log10(least))), max: math.Pow(10, math.Ceil(math.Log10(most)))}
	if s.max <= s.min {
		s.max = 10 * s.min
	}
	decades := math.Round(math.Log10(s.max / s.min))
	fine, step := decades <= 4, math.Pow(10, math.Ceil(decades/9))
	for t := s.min; t <= s.max*1.000001; t *= step {
		s.ticks = append(s.ticks, t)
		for _, f := range []float64{2, 5} {
			if fine && t*f < s.max {
				s.ticks = append(s.ticks, t*f)
			}
		}
	}
	return s
}

// axes draws grid, ticks and the names of both axes.
func (d *drawing) axes(x, y scale, xTick, yTick func(float64) string, xName, yName string) {
	d.Width, d.Height = width, height
	for _, t := range y.ticks {
		d.Lines = append(d.Lines, line{"grid", at(left), at(y.y(t)), at(width - right), at(y.y(t))})
		d.Texts = append(d.Texts, text{"", at(left - 8), at(y.y(t) + 4), "end", "", yTick(t)})
	}
	for _, t := range x.ticks {
		if x.log {
			d.Lines = append(d.Lines, line{"grid", at(x.x(t)), at(top), at(x.x(t)), at(top + plotHeight)})
		}
		d.Lines = append(d.Lines, line{"axis", at(x.x(t)), at(top + plotHeight), at(x.x(t)), at(top + plotHeight + 5)})
		d.Texts = append(d.Texts, text{"", at(x.x(t)), at(top + plotHeight + 19), "middle", "", xTick(t)})
	}
	d.Lines = append(d.Lines, line{"axis", at(left), at(top + plotHeight), at(width - right), at(top + plotHeight)})
	d.Texts = append(d.Texts,
		text{"label", at(left + plotWidth/2), at(height - 8), "middle", "", xName},
		text{"label", "14", at(top + plotHeight/2), "middle", fmt.Sprintf("rotate(-90 14 %d)", top+plotHeight/2), yName})
}

// limit draws a line across, with its name above.
func (d *drawing) limit(y scale, v float64, label string) {
	if v > 0 && v <= y.max {
		d.Lines = append(d.Lines, line{"mark", at(left), at(y.y(v)), at(width - right), at(y.y(v))})
		place := y.y(v) - 5
		if place < top+12 {
			place = y.y(v) + 15 // below, so that it is not cut off
		}
		d.Texts = append(d.Texts, text{"label", at(width - right - 4), at(place), "end", "", label})
	}
}

// ticks returns a function that writes the numbers of an axis, with a prefix when they are large.
func ticks(most float64) func(float64) string {
	for _, p := range []struct {
		of   float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if most >= 100*p.of || most >= p.of && p.of > 1e3 {
			return func(v float64) string {
				if v == 0 {
					return "0"
				}
				return short(v/p.of) + p.name
			}
		}
	}
	return short
}

// short writes a tick without zeros after the point.
func short(v float64) string {
	s := numberText(v, 6)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// sane makes a value drawable: between 0 and 1e15, nothing finer than 1e-9.
func sane(v float64) float64 {
	if !(v >= 1e-9) {
		return 0
	}
	return min(v, 1e15)
}

// rest folds all series but the largest into one, so that each series has a colour.
func rest(series []plotSeries, slots int) []plotSeries {
	sums := func(s plotSeries) (n float64) {
		for _, v := range s.Values {
			n += sane(v)
		}
		return n
	}
	list := slices.Clone(series)
	slices.SortStableFunc(list, func(a, b plotSeries) int { return cmp.Compare(sums(b), sums(a)) })
	if len(list) <= colours {
		return list
	}
	others := plotSeries{fmt.Sprintf("%d others", len(list)-colours+1), make([]float64, slots)}
	for _, s := range list[colours-1:] {
		for i := range min(slots, len(s.Values)) {
			others.Values[i] += sane(s.Values[i])
		}
	}
	return append(list[:colours-1:colours-1], others)
}

func (p stackPlot) draw() drawing {
	slots := 0
	for _, s := range p.Series {
		slots = max(slots, min(len(s.Values), maxBars))
	}
	d := drawing{Title: p.Title, Empty: "Nothing was sent."}
	p.SlotS, p.Limit = sane(p.SlotS), sane(p.Limit)
	if slots == 0 || p.SlotS == 0 {
		return d
	}
	per, unit := 1.0, p.Unit
	if p.PerS {
		per, unit = p.SlotS, p.Unit+"/s"
	}
	series := rest(p.Series, slots)
	heights := make([][]float64, len(series)+1) // the sum of the series below each one; below the first it is zero
	heights[0] = make([]float64, slots)
	totals := make([]float64, len(series))
	sum, most := 0.0, 0.0
	for i, s := range series {
		heights[i+1] = slices.Clone(heights[i])
		for k := range min(slots, len(s.Values)) {
			heights[i+1][k] += sane(s.Values[k]) / per
			totals[i] += sane(s.Values[k])
		}
		sum += totals[i]
		most = max(most, slices.Max(heights[i+1]))
	}
	if sum == 0 {
		return d
	}
	d.Empty = ""
	x, xUnit, xName := clock(float64(slots) * p.SlotS)
	y := linear(max(most, min(p.Limit, 4*most)), 5)
	d.axes(x, y, func(t float64) string { return short(t / xUnit) }, ticks(y.max), "time, "+xName, unit)
	for i := range series {
		var b strings.Builder
		for k := range slots { // along the top
			command := "L"
			if k == 0 {
				command = "M"
			}
			fmt.Fprintf(&b, "%s%s %sH%s", command, at(x.x(float64(k)*p.SlotS)), at(y.y(heights[i+1][k])), at(x.x(float64(k+1)*p.SlotS)))
		}
		for k := slots - 1; k >= 0; k-- { // and back along the bottom
			fmt.Fprintf(&b, "V%sH%s", at(y.y(heights[i][k])), at(x.x(float64(k)*p.SlotS)))
		}
		class := fmt.Sprintf("f%d", i)
		d.Paths = append(d.Paths, path{class, b.String() + "Z"})
		d.Legend = append(d.Legend, key{class, fmt.Sprintf("%s: %s %s, %.1f %%", clean(series[i].Name), numberText(totals[i], 0), p.Unit, 100*totals[i]/sum)})
	}
	d.limit(y, p.Limit, p.Label)
	d.Desc = fmt.Sprintf("Stacked over %s in steps of %s: %s %s in all, at most %s %s. Largest: %s.", secondsText(float64(slots)*p.SlotS), secondsText(p.SlotS),
		numberText(sum, 0), p.Unit, numberText(most, 1), unit, clean(series[0].Name))
	d.Table = overTime(p.Title, p.Unit, p.SlotS, slots, series, func(a, b float64) float64 { return a + b })
	return d
}

// overTime is a table of series in a few rows; join makes one value of two slots.
func overTime(title, unit string, slotS float64, slots int, series []plotSeries, join func(a, b float64) float64) tableData {
	t := tableData{Caption: title + ", " + unit, Columns: []string{"from"}}
	for _, s := range series {
		t.Columns = append(t.Columns, clean(s.Name))
	}
	each := (slots + tableRows - 1) / tableRows
	for from := 0; from < slots; from += each {
		row := tableRow{Name: secondsText(float64(from) * slotS)}
		for _, s := range series {
			v := 0.0
			for i := from; i < min(from+each, slots, len(s.Values)); i++ {
				v = join(v, sane(s.Values[i]))
			}
			row.Cells = append(row.Cells, numberText(v, 0))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (p stepPlot) draw() drawing {
	d := drawing{Title: p.Title, Empty: "Nothing was waiting."}
	slots := min(len(p.Values), maxBars)
	p.SlotS, p.Limit = sane(p.SlotS), sane(p.Limit)
	if slots == 0 || p.SlotS == 0 {
		return d
	}
	values := make([]float64, slots)
	for i := range values {
		values[i] = sane(p.Values[i])
	}
	most := slices.Max(values)
	if most == 0 {
		return d
	}
	d.Empty = ""
	x, xUnit, xName := clock(float64(slots) * p.SlotS)
	y := linear(max(most, min(p.Limit, 2*most), 5), 5) // no ticks between 0 and 1
	d.axes(x, y, func(t float64) string { return short(t / xUnit) }, ticks(y.max), "time, "+xName, p.Unit)
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", at(left), at(y.y(0)))
	for k, v := range values {
		fmt.Fprintf(&b, "V%sH%s", at(y.y(v)), at(x.x(float64(k+1)*p.SlotS)))
	}
	d.Paths = append(d.Paths, path{"f0", b.String() + "V" + at(y.y(0)) + "Z"})
	d.limit(y, p.Limit, p.Label)
	when := slices.Index(values, most)
	d.Desc = fmt.Sprintf("At most %s %s, first after %s; %s at the end, after %s.", numberText(most, 0), p.Unit, secondsText(float64(when)*p.SlotS),
		numberText(values[slots-1], 0), secondsText(float64(slots)*p.SlotS))
	d.Table = overTime(p.Title, p.Unit, p.SlotS, slots, []plotSeries{{"most", values}}, math.Max)
	return d
}

// fewValues is how many values make a curve worth drawing.
const fewValues = 4

// tooFew names the values of samples that are too few for a curve; "" when they suffice.
func tooFew(what string, of []sample) string {
	n := 0
	var parts []string
	for _, s := range of {
		n += len(s.Sorted)
		for _, v := range s.Sorted[:min(len(s.Sorted), fewValues)] {
			parts = append(parts, secondsText(v)+" ("+s.Name+")")
		}
	}
	if n >= fewValues {
		return ""
	}
	return fmt.Sprintf("Too few %s for a curve, %d: %s.", what, n, strings.Join(parts, ", "))
}

func (p curvePlot) draw() drawing {
	d := drawing{Title: p.Title, Empty: "There were none."}
	least, most := math.Inf(1), 0.0
	var shown []sample
	for _, s := range p.Of {
		if len(s.Sorted) == 0 || len(shown) == curves {
			continue
		}
		s.Sorted = slices.Clone(s.Sorted)
		for i, v := range s.Sorted {
			s.Sorted[i] = sane(v)
		}
		slices.Sort(s.Sorted)
		shown = append(shown, s)
		least, most = min(least, max(s.Sorted[0], 1e-4)), max(most, s.Sorted[len(s.Sorted)-1])
	}
	if len(shown) == 0 {
		return d
	}
	d.Empty = tooFew(p.What, shown)
	if d.Empty != "" {
		return d
	}
	p.LimitS = sane(p.LimitS)
	most = max(most, least)
	x := linear(max(most, min(p.LimitS, 2*most)), 8)
	if most > 20*least {
		x = logarithmic(least, max(most, min(p.LimitS, 2*most)))
	}
	y := scale{max: 100, ticks: []float64{0, 25, 50, 75, 100}}
	d.axes(x, y, ticks(x.max), short, "at most so many seconds", p.What+", %")
	d.Table = tableData{Caption: p.Title, Columns: []string{p.What, "number", "least, s", "median, s", "95 %, s", "most, s"}}
	var said []string
	for i, s := range shown {
		n := len(s.Sorted)
		var b strings.Builder
		fmt.Fprintf(&b, "M%s %s", at(x.x(max(s.Sorted[0], x.min))), at(y.y(0)))
		for k, step := 0, max(1, n/400); k < n; k += step {
			end := min(n, k+step)
			fmt.Fprintf(&b, "H%sV%s", at(x.x(max(s.Sorted[end-1], x.min))), at(y.y(100*float64(end)/float64(n))))
		}
		b.WriteString("H" + at(width-right))
		class := fmt.Sprintf("l%d", i)
		d.Paths = append(d.Paths, path{class, b.String()})
		cells := []string{countText(int64(n)), numberText(s.Sorted[0], 3)}
		for _, q := range []float64{0.5, 0.95} {
			v := s.Sorted[max(0, int(math.Ceil(q*float64(n)))-1)]
			d.Dots = append(d.Dots, dot{fmt.Sprintf("f%d", i), at(x.x(max(v, x.min))), at(y.y(100 * q))})
			cells = append(cells, numberText(v, 3))
		}
		cells = append(cells, numberText(s.Sorted[n-1], 3))
		d.Table.Rows = append(d.Table.Rows, tableRow{Name: clean(s.Name), Cells: cells})
		said = append(said, fmt.Sprintf("%s: median %s s, 95 %% within %s s, most %s s", clean(s.Name), cells[2], cells[3], cells[4]))
		d.Legend = append(d.Legend, key{fmt.Sprintf("f%d", i), said[i]})
	}
	if p.LimitS > 0 && p.LimitS >= x.min && p.LimitS <= x.max {
		v := at(x.x(p.LimitS))
		d.Lines = append(d.Lines, line{"mark", v, at(top), v, at(top + plotHeight)})
		d.Texts = append(d.Texts, text{"label", at(x.x(p.LimitS) + 5), at(top + 12), "start", "", p.Label})
	}
	d.Desc = fmt.Sprintf("Share of %s that took at most a time, dots at the median and at 95 %%. %s.", p.What, strings.Join(said, ". "))
	return d
}

// spot is the place of a value between the least and the most of others, for a small drawing in a table.
type spot struct {
	X, Mean string
	Arrow   string // the value is outside: a path that points to it
}

func spotOf(w *within) spot {
	const from, to = 12.0, 100.0
	place := func(v float64) float64 {
		if w.Most <= w.Least {
			return (from + to) / 2
		}
		return from + (to-from)*(v-w.Least)/(w.Most-w.Least)
	}
	s := spot{X: at(place(w.Value)), Mean: at(min(to, max(from, place(w.Mean))))}
	switch {
	case w.Value < w.Least:
		s.Arrow = "M9 3L1 7L9 11Z"
	case w.Value > w.Most:
		s.Arrow = "M103 3L111 7L103 11Z"
	}
	return s
}
