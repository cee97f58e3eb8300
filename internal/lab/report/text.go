package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"aldis/internal/lab/trace"
)

const lineLength = 100 // of text on a terminal, characters

// Text writes the page for a terminal: verdict, facts, notes and tables, without plots.
func (p Page) Text(w io.Writer) error {
	out := &textWriter{trace.Writer{W: w}}
	if p.Verdict != "" {
		out.fold("", p.Verdict)
		out.F("\n")
	}
	out.fold("", p.Title)
	if p.Subtitle != "" {
		out.fold("", p.Subtitle)
	}
	if len(p.Facts) > 0 {
		out.F("\n")
	}
	label, amount := 0, 0
	for _, f := range p.Facts {
		label, amount = max(label, utf8.RuneCountInString(f.Label)), max(amount, utf8.RuneCountInString(f.Value))
	}
	for _, f := range p.Facts {
		out.F("%s\n", strings.TrimRight(fmt.Sprintf("  %-*s  %-*s  %s", label, f.Label, amount, f.Value, f.Note), " "))
	}
	if len(p.Notes) > 0 {
		out.F("\n")
	}
	for _, n := range p.Notes {
		out.fold("  ! ", n)
	}
	for _, s := range p.Sections {
		if len(s.Text)+len(s.Tables) == 0 {
			continue
		}
		out.F("\n%s\n", s.Title)
		for _, t := range s.Text {
			out.fold("  - ", t)
		}
		for _, t := range s.Tables {
			out.table(t)
		}
	}
	if len(p.Foot) > 0 {
		out.F("\n")
	}
	for _, t := range p.Foot {
		out.fold("", t)
	}
	return out.Err
}

// textWriter folds lines and lays out tables.
type textWriter struct{ trace.Writer }

// fold writes text in lines of lineLength after a mark.
func (w *textWriter) fold(mark, text string) {
	line := mark
	indent := strings.Repeat(" ", len(mark))
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == mark || line == indent:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineLength:
			w.F("%s\n", line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	w.F("%s\n", line)
}

// table writes columns below each other, numbers to the right.
func (w *textWriter) table(t tableData) {
	rows := [][]string{t.Columns}
	for _, r := range t.Rows {
		rows = append(rows, append([]string{clean(r.Name)}, r.Cells...))
	}
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	if t.Caption != "" {
		w.F("  %s\n", t.Caption)
	}
	for n, r := range rows {
		if n == 0 && strings.Join(r, "") == "" {
			continue
		}
		line := "   "
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 || !numeric(c) && n > 0 {
				line += " " + c + pad + " "
			} else {
				line += " " + pad + c + " "
			}
		}
		w.F("%s\n", strings.TrimRight(line, " "))
	}
	if t.Foot != "" {
		w.fold("    ", t.Foot)
	}
}
