package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Row is one cell of the report: the measurement, its place, size and number.
type Row struct {
	Bench  string `json:"bench"`
	What   string `json:"what"`
	Where  string `json:"where"`            // a place, see Places
	Size   int    `json:"size,omitempty"`   // octets of a message or document; 0: no single size
	Number int    `json:"number,omitempty"` // of Of; 0: no single number
	Of     string `json:"of,omitempty"`     // "senders"
	Unit   string `json:"unit"`

	Value  float64 `json:"value"` // the median of the series
	Low    float64 `json:"low"`   // the least and the most of the series: the spread
	High   float64 `json:"high"`
	Series int     `json:"series"`
	N      int     `json:"n"` // single measurements behind the value
	Warm   int     `json:"warm_up,omitempty"`
	Lost   int     `json:"lost,omitempty"` // messages or answers that never came
	// ByPeers: messages that never came between two unmodified peers, whichever program lost them. The counters of the
	// gateways show that these did not.
	ByPeers int    `json:"lost_by_peers,omitempty"`
	Note    string `json:"note,omitempty"`   // needed to read the value
	Failed  string `json:"failed,omitempty"` // why there is no value

	Must float64 `json:"must,omitempty"` // 0: there is no such demand
	Aim  float64 `json:"aim,omitempty"`
	Less bool    `json:"less_is_better,omitempty"`

	Stamp
}

// Stamp is the circumstances of a row.
type Stamp struct {
	Load    float64 `json:"load"` // cores that other programs used on average during this benchmark at this place
	Cores   int     `json:"cores"`
	Machine string  `json:"machine"`
	Commit  string  `json:"commit"` // version of the gateway
	Date    string  `json:"date"`
	Command string  `json:"command"`
	Quick   bool    `json:"quick,omitempty"`
	Swapped int     `json:"swapped_pages,omitempty"` // by the machine during the measurement
}

// of gives a row its value and spread by several series; one figure is a series of one.
func (r Row) of(series ...float64) Row {
	if len(series) == 0 {
		return r
	}
	sorted := slices.Sorted(slices.Values(series))
	r.Value, r.Low, r.High, r.Series = (sorted[(len(sorted)-1)/2]+sorted[len(sorted)/2])/2, sorted[0], sorted[len(sorted)-1], len(sorted)
	if r.N == 0 {
		r.N = len(sorted)
	}
	return r
}

// measured says whether there is a value.
func (r *Row) measured() bool { return r.Failed == "" && r.Series > 0 }

// line names the line of a table in which the row is a cell.
func (r *Row) line() string {
	s := r.What
	if r.Size > 0 {
		s += ", " + octetsText(r.Size)
	}
	if r.Number > 0 {
		s += fmt.Sprintf(", %s %s", number(float64(r.Number)), r.Of)
	}
	if r.Unit != "" {
		s += ", " + r.Unit
	}
	return s
}

// key names the cell itself.
func (r *Row) key() string { return r.Bench + "\x00" + r.line() + "\x00" + r.Where }

// octetsText writes a size as the studies do: kB and MB are powers of ten.
func octetsText(n int) string {
	switch {
	case n >= 1e6 && n%1e5 == 0:
		return number(float64(n)/1e6) + " MB"
	case n >= 1000 && n%100 == 0:
		return number(float64(n)/1e3) + " kB"
	case n == 1:
		return "1 octet"
	}
	return number(float64(n)) + " octets"
}

// columns of the CSV: every member of a row, by its name in JSON. Nested members are flattened.
func columns(t reflect.Type) (names []string, index [][]int) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			inner, at := columns(f.Type)
			names = append(names, inner...)
			for _, x := range at {
				index = append(index, append([]int{i}, x...))
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names, index = append(names, name), append(index, []int{i})
	}
	return names, index
}

// WriteCSV writes rows with the published figures next to them, one cell to a line.
func WriteCSV(w io.Writer, rows []Row) error {
	names, index := columns(reflect.TypeFor[Row]())
	c := csv.NewWriter(w)
	if err := c.Write(append(names, "published")); err != nil {
		return err
	}
	for i := range rows {
		v, line := reflect.ValueOf(rows[i]), make([]string, 0, len(names)+1)
		for _, at := range index {
			switch f := v.FieldByIndex(at); f.Kind() {
			case reflect.Float64:
				line = append(line, strconv.FormatFloat(f.Float(), 'g', 6, 64))
			default:
				line = append(line, fmt.Sprint(f.Interface()))
			}
		}
		if err := c.Write(append(line, publishedText(&rows[i]))); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// ReadCSV reads the output of WriteCSV; it skips columns that it does not know.
func ReadCSV(r io.Reader) ([]Row, error) {
	c := csv.NewReader(r)
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("bench: the CSV has no head: %w", err)
	}
	names, index := columns(reflect.TypeFor[Row]())
	var rows []Row
	for {
		line, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		var row Row
		v := reflect.ValueOf(&row).Elem()
		for i, text := range line {
			at := slices.Index(names, head[i])
			if at < 0 {
				continue
			}
			if err := set(v.FieldByIndex(index[at]), text); err != nil {
				n, _ := c.FieldPos(i)
				return nil, fmt.Errorf("bench: line %d: %s: %w", n, head[i], err)
			}
		}
		rows = append(rows, row)
	}
}

func set(f reflect.Value, text string) error {
	switch f.Kind() {
	case reflect.Float64:
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = strconv.ErrRange
		}
		f.SetFloat(v)
		return err
	case reflect.Int:
		v, err := strconv.ParseInt(text, 10, 64)
		f.SetInt(v)
		return err
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		f.SetBool(v)
		return err
	}
	f.SetString(text)
	return nil
}

// Merge puts the rows of a report in place of the old ones of the same benchmarks and places, in the order of the benchmarks. If the run
// was interrupted, it keeps the old rows that the run did not reach.
func (r *Report) Merge(old []Row) []Row {
	again, cells := map[[2]string]bool{}, map[string]bool{}
	rows := r.Rows
	for i := range rows {
		again[[2]string{rows[i].Bench, rows[i].Where}] = true
		cells[rows[i].key()] = true
	}
	all := slices.DeleteFunc(slices.Clone(old), func(o Row) bool {
		at := [2]string{o.Bench, o.Where}
		return again[at] && (at != r.cut || cells[o.key()])
	})
	all = append(all, rows...)
	order := func(bench string) int {
		return slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == bench })
	}
	all = slices.DeleteFunc(all, func(r Row) bool { return order(r.Bench) < 0 })
	slices.SortStableFunc(all, func(a, b Row) int { return order(a.Bench) - order(b.Bench) })
	return all
}

// busy says whether other programs may have disturbed the measurement.
func (s *Stamp) busy() bool { return s.Load >= busyShare*float64(s.Cores) }

// Regressions names the cells that are worse than before by more than both spreads. Only cells of one machine and one kind of
// run are compared, of several series each, and made on a machine that was not busy.
func Regressions(old, rows []Row) (worse []string) {
	before := map[string]*Row{}
	for i := range old {
		before[old[i].key()] = &old[i]
	}
	for i := range rows {
		r, was := &rows[i], before[rows[i].key()]
		if was == nil || !r.measured() || !was.measured() || r.Machine != was.Machine || r.Quick != was.Quick ||
			min(r.Series, was.Series) < 3 || r.busy() || was.busy() {
			continue
		}
		if r.Less && r.Low > was.High || !r.Less && r.High < was.Low {
			worse = append(worse, fmt.Sprintf("%s: %s, %s: %s to %s, before %s to %s", r.Bench, r.line(), r.Where,
				number(r.Low), number(r.High), number(was.Low), number(was.High)))
		}
	}
	return worse
}
