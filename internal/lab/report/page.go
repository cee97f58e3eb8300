package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"
)

// tone is the tone of a verdict.
type tone string

// The tones.
const (
	tonePlain tone = "plain"
	toneGood  tone = "good"
	toneWarn  tone = "warn"
	toneBad   tone = "bad"
)

// Page is a report from top to bottom.
type Page struct {
	Title    string
	Subtitle string
	Tone     tone
	Verdict  string // the first line; empty: there is no verdict
	Facts    []fact // the few numbers that matter
	Notes    []string
	Sections []section
	Foot     []string
}

// fact is a number with its label.
type fact struct{ Label, Value, Note string }

// section is tables and plots under one heading.
type section struct {
	Title  string
	Text   []string
	Tables []tableData
	Plots  []plot
}

// tableData is a caption over rows. The first column names the row.
type tableData struct {
	Number  string // as in "5.1"; empty: none
	Caption string
	Columns []string
	Rows    []tableRow
	Foot    string
}

// tableRow is one line of a table.
type tableRow struct {
	Name   string
	Cells  []string
	Within *within // where the first cell is among others; nil: not shown
}

// within places a value in the range of others.
type within struct{ Value, Least, Mean, Most float64 }

// plot is a value that can be drawn.
type plot interface{ draw() drawing }

const (
	maxText     = 160 // octets of a name
	maxSentence = 600 // octets of a line of words
)

// clean makes a text from a network fit to be shown: no control or direction characters, no more than maxText octets.
func clean(s string) string { return shown(s, maxText) }

// sentence does the same for a line of words with names in it.
func sentence(s string) string { return shown(s, maxSentence) }

func shown(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) }, // ours, without a value from outside
	"draw":  func(p plot) drawing { return p.draw() },
	"spot":  spotOf,
	"ranks": func(rows []tableRow) bool {
		for _, r := range rows {
			if r.Within != nil {
				return true
			}
		}
		return false
	},
	"numeric": numeric,
	"words":   words,
	"id":      func() int { return 0 },
}).Parse(pageText))

// HTML writes the page as one file.
func (p Page) HTML(w io.Writer) error {
	ids := 0
	return template.Must(pageTemplate.Clone()).Funcs(template.FuncMap{
		"id": func() int { ids++; return ids },
	}).Execute(w, p)
}

// words says whether a column holds text: by its first cell.
func words(t tableData, column int) bool {
	return column > 0 && len(t.Rows) > 0 && column <= len(t.Rows[0].Cells) && !numeric(t.Rows[0].Cells[column-1])
}

// numeric says whether a cell is set to the right.
func numeric(s string) bool {
	s = strings.TrimLeft(s, "-+<>≥≤ ")
	return s == "" || s[0] >= '0' && s[0] <= '9'
}

// countText writes a whole number with commas between thousands.
func countText(n int64) string {
	s := fmt.Sprint(n)
	digits := strings.TrimPrefix(s, "-")
	var b strings.Builder
	b.WriteString(s[:len(s)-len(digits)])
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// numberText writes a value with the decimals that suit its size, at most most.
func numberText(v float64, most int) string {
	decimals := most
	for limit := 10.0; decimals > 0 && (v >= limit || v <= -limit); limit *= 10 {
		decimals--
	}
	whole := fmt.Sprintf("%.*f", decimals, v)
	digits, fraction, _ := strings.Cut(whole, ".")
	var n int64
	if _, err := fmt.Sscan(digits, &n); err != nil || n == 0 {
		return whole
	}
	if fraction != "" {
		return countText(n) + "." + fraction
	}
	return countText(n)
}

// secondsText writes a time as people write it.
func secondsText(s float64) string {
	switch {
	case s < 0:
		return "-" + secondsText(-s)
	case s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 119.5:
		return numberText(s, 2) + " s"
	case s < 2*3600:
		return fmt.Sprintf("%d min %02d s", int(s+0.5)/60, int(s+0.5)%60)
	}
	return fmt.Sprintf("%d h %02d min", int(s/60+0.5)/60, int(s/60+0.5)%60)
}
