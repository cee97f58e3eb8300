package manual

import (
	"fmt"
	"strings"
)

// Markdown is the reference of all commands as one page.
func (p Program) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands\n\n%s `%s COMMAND -h` says the same at a terminal, `man %s-COMMAND` where a package is installed.\n", p.About, p.Name, p.Name)
	for _, g := range p.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| command | does |\n|---|---|\n", g.Title)
		for _, c := range g.Commands {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.Name, anchor(p.Name+" "+c.Name), cell(p.summary(c)))
		}
		for _, c := range g.Commands {
			p.markdown(&b, c)
		}
	}
	return b.String()
}

func (p Program) markdown(b *strings.Builder, c Command) {
	t := read(p.Name, c.About)
	fmt.Fprintf(b, "\n### %s %s\n\n", p.Name, c.Name)
	for _, u := range t.usage {
		fmt.Fprintf(b, "    %s\n", u)
	}
	var last blockKind = -1
	for _, k := range t.body {
		if k.kind == paragraph || k.kind != last || k.apart {
			b.WriteByte('\n')
		}
		last = k.kind
		switch k.kind {
		case paragraph:
			fmt.Fprintf(b, "%s\n", plain(k.text))
		case example:
			fmt.Fprintf(b, "    %s\n", k.text)
		case entry:
			fmt.Fprintf(b, "- `%s`: %s\n", k.term, plain(k.text))
		}
	}
	if about := p.also(c); about != "" {
		fmt.Fprintf(b, "\n%s\n", plain(about))
	}
	if len(c.Flags) > 0 {
		b.WriteString("\n| flag | meaning | default |\n|---|---|---|\n")
		for _, f := range c.Flags {
			typed := f.Typed()
			if f.Value != "" {
				typed += " " + f.Value
			}
			value := ""
			if f.Default != "" {
				value = "`" + cell(f.Default) + "`"
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", cell(typed), cell(plain(f.About)), value)
		}
	}
	if t.exit != "" {
		fmt.Fprintf(b, "\nExit: %s\n", plain(t.exit))
	}
}

// plain escapes a text so that Markdown shows it unchanged.
func plain(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`, "`", "\\`").Replace(s)
}

// cell escapes a text for a table.
func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }

// anchor is the link target of a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, heading)
}
