package manual

import (
	"fmt"
	"slices"
	"strings"
)

// Page is a file of section 1 of the manual.
type Page struct {
	Name string // of the file: "gateway-run.1"
	Text string
}

// Pages are the man pages: one for the program and one for each command.
func (p Program) Pages() []Page {
	pages := []Page{{p.Name + ".1", p.overview()}}
	for _, c := range p.Commands() {
		pages = append(pages, Page{p.pageName(c) + ".1", p.page(c)})
	}
	return pages
}

func (p Program) pageName(c Command) string {
	return p.Name + "-" + strings.ReplaceAll(c.Name, " ", "-")
}

// overview is the page of the program.
func (p Program) overview() string {
	var b strings.Builder
	p.head(&b, p.Name, p.Summary)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n.RI [ flags ]\n.SH DESCRIPTION\n%s\n.SH COMMANDS\n", flowing(p.Name), flowing(p.About))
	for _, g := range p.Groups {
		fmt.Fprintf(&b, ".SS %s\n", flowing(g.Title))
		for _, c := range g.Commands {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", literal(p.pageName(c)), flowing(p.summary(c)))
		}
	}
	b.WriteString(".SH EXIT STATUS\n0 good, 1 refused or failed, 2 wrong usage\n")
	files(&b, p.Files)
	return b.String()
}

// page is the page of a command.
func (p Program) page(c Command) string {
	t := read(p.Name, c.About)
	var b strings.Builder
	p.head(&b, p.pageName(c), c.Summary)
	b.WriteString(".SH SYNOPSIS\n")
	for i, u := range t.usage {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, "%s\n", literal(u))
	}
	b.WriteString(".SH DESCRIPTION\n")
	for i, k := range t.body {
		k.write(&b, i == 0)
	}
	if about := p.also(c); about != "" {
		fmt.Fprintf(&b, ".PP\n%s\n", flowing(about))
	}
	if len(c.Flags) > 0 {
		b.WriteString(".SH OPTIONS\n")
		for _, f := range c.Flags {
			f.write(&b)
		}
	}
	exit := t.exit
	if exit == "" {
		exit = "0 good, 1 refused or failed, 2 wrong usage"
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", flowing(exit))
	files(&b, slices.DeleteFunc(slices.Clone(p.Files), func(f File) bool {
		return !slices.ContainsFunc(c.Flags, func(g Flag) bool { return g.Default == f.Path })
	}))
	b.WriteString(".SH SEE ALSO\n")
	also := []string{p.Name}
	for _, d := range p.Commands() {
		if inside := strings.HasPrefix(d.Name, c.Name+" ") || strings.HasPrefix(c.Name, d.Name+" "); inside {
			also = append(also, p.pageName(d))
		}
	}
	for i, name := range also {
		comma := ","
		if i == len(also)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", literal(name), comma)
	}
	return b.String()
}

func (p Program) head(b *strings.Builder, name, summary string) {
	fmt.Fprintf(b, ".TH %s 1 \"%s\" \"%s\" \"%s\"\n.SH NAME\n%s \\- %s\n", literal(strings.ToUpper(name)), p.Date, p.Product, "Aldis manual", literal(name), flowing(summary))
}

func files(b *strings.Builder, list []File) {
	if len(list) == 0 {
		return
	}
	b.WriteString(".SH FILES\n")
	for _, f := range list {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", literal(f.Path), flowing(f.About))
	}
}

// write writes a part of the description. The first needs no space before it.
func (k block) write(b *strings.Builder, first bool) {
	switch k.kind {
	case entry:
		fmt.Fprintf(b, ".TP\n%s\n%s\n", bold(k.term), flowing(k.text))
	case example:
		if k.apart && !first {
			b.WriteString(".PP\n")
		}
		fmt.Fprintf(b, ".RS 4\n.EX\n%s\n.EE\n.RE\n", literal(k.text))
	default:
		if !first {
			b.WriteString(".PP\n")
		}
		fmt.Fprintf(b, "%s\n", flowing(k.text))
	}
}

func (f Flag) write(b *strings.Builder) {
	fmt.Fprintf(b, ".TP\n%s", bold(f.Typed()))
	if f.Value != "" {
		fmt.Fprintf(b, " \\fI%s\\fP", literal(f.Value))
	}
	fmt.Fprintf(b, "\n%s", flowing(f.About))
	if f.Default != "" {
		fmt.Fprintf(b, " (default %s)", literal(f.Default))
	}
	b.WriteByte('\n')
}

func bold(s string) string { return "\\fB" + literal(s) + "\\fP" }

// literal escapes s as typed text: no dash becomes a hyphen, and no quote a curly one.
func literal(s string) string { return escape(s, true) }

// flowing escapes running text. Words that begin with a dash are typed text; other dashes join words.
func flowing(s string) string { return escape(s, false) }

func escape(s string, typed bool) string {
	var b strings.Builder
	for i, word := range strings.Split(s, " ") {
		if i > 0 {
			b.WriteByte(' ')
		}
		minus := typed || strings.HasPrefix(strings.TrimLeft(word, "([\"'"), "-") || strings.Contains(word, "/")
		for _, r := range word {
			switch {
			case r == '\\':
				b.WriteString("\\e")
			case r == '-' && minus:
				b.WriteString("\\-")
			case r == '\'' && typed:
				b.WriteString("\\(aq")
			case r == '`':
				b.WriteString("\\(ga")
			case r == '^':
				b.WriteString("\\(ha")
			case r == '~':
				b.WriteString("\\(ti")
			case r > 126:
				fmt.Fprintf(&b, "\\[u%04X]", r)
			default:
				b.WriteRune(r)
			}
		}
	}
	s = b.String()
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return "\\&" + s // not a request to the formatter
	}
	return s
}
