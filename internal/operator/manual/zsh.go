package manual

import (
	"fmt"
	"strings"
)

// Zsh is the completion for zsh: a file named _gateway on its fpath.
func (p Program) Zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n\n_words_or_files() { _alternative \"words:word:($*)\" files:file:_files }\n\nlocal -a commands\ncommands=(\n", p.Name)
	for _, c := range p.Commands() {
		if c.outer() {
			fmt.Fprintf(&b, "\t%s\n", quoted(c.Name+":"+c.Summary))
		}
	}
	b.WriteString("\t'help:say more of a command'\n)\nif (( CURRENT == 2 )); then\n\t_describe -t commands command commands\n\treturn\nfi\n\nlocal command=$words[2]\ncase $command in\n")
	for _, c := range p.Commands() {
		if len(p.inner(c)) > 0 {
			fmt.Fprintf(&b, "%s) (( CURRENT > 3 )) && command=\"$command $words[3]\" ;;\n", c.Name)
		}
	}
	b.WriteString("esac\nshift words\n(( CURRENT-- ))\ncase $command in\nhelp) _describe -t commands command commands ;;\n")
	for _, c := range p.Commands() {
		p.zshCommand(&b, c)
	}
	b.WriteString("esac\n")
	return b.String()
}

func (p Program) zshCommand(b *strings.Builder, c Command) {
	pattern, shift := c.Name, ""
	if !c.outer() {
		pattern, shift = quoted(c.Name), "\n\tshift words; (( CURRENT-- ))"
	}
	fmt.Fprintf(b, "%s)%s\n\t_arguments '-h[say what it does]'", pattern, shift)
	for _, f := range c.Flags {
		about := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.About)
		spec, value := f.Typed(), ""
		if f.Value != "" {
			if len(f.Name) > 1 {
				spec += "="
			}
			value = ":" + f.Value + ":" + f.zshAction()
		}
		fmt.Fprintf(b, " \\\n\t\t%s", quoted(spec+"["+about+"]"+value))
	}
	words := c.Words
	for _, d := range p.inner(c) {
		words = append(words, d.last())
	}
	if len(words) > 0 {
		fmt.Fprintf(b, " \\\n\t\t%s", quoted("1:what:("+strings.Join(words, " ")+")"))
	}
	if c.Files {
		fmt.Fprintf(b, " \\\n\t\t'*:file:_files'")
	}
	b.WriteString(" ;;\n")
}

// zshAction is how zsh completes the value.
func (f Flag) zshAction() string {
	switch {
	case len(f.Choices) > 0:
		return " _words_or_files " + strings.Join(f.Choices, " ")
	case f.file():
		return "_files"
	}
	return " "
}

// quoted is s in single quotes, which all three shells understand.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
