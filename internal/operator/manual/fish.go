package manual

import (
	"fmt"
	"strings"
)

// Fish is the completion for fish.
func (p Program) Fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# fish completion for %[1]s

# The command that is typed is this one.
function __%[1]s_is
	set -l typed (commandline -opc)
	set -l last (math (count $argv) + 1)
	test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv"
end

# The cursor stands at the word behind these.
function __%[1]s_behind
	set -l typed (commandline -opc)
	set -e typed[1]
	test "$typed" = "$argv"
end

complete -c %[1]s -f
complete -c %[1]s -n __%[1]s_behind -l version -d 'print the version'
complete -c %[1]s -n __%[1]s_behind -a help -d 'say more of a command'
`, p.Name)
	for _, c := range p.Commands() {
		if !c.outer() {
			outer, _, _ := strings.Cut(c.Name, " ")
			fmt.Fprintf(&b, "complete -c %s -n '__%s_behind %s' -a %s -d %s\n", p.Name, p.Name, outer, c.last(), quoted(c.Summary))
			continue
		}
		fmt.Fprintf(&b, "complete -c %s -n __%s_behind -a %s -d %s\n", p.Name, p.Name, c.Name, quoted(c.Summary))
		fmt.Fprintf(&b, "complete -c %s -n '__%s_behind help' -a %s -d %s\n", p.Name, p.Name, c.Name, quoted(c.Summary))
	}
	for _, c := range p.Commands() {
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n '__%s_behind %s' -a %s\n", p.Name, p.Name, c.Name, quoted(strings.Join(c.Words, " ")))
		}
		if c.Files {
			fmt.Fprintf(&b, "complete -c %s -n '__%s_is %s' -F\n", p.Name, p.Name, c.Name)
		}
		for _, f := range c.Flags {
			fmt.Fprintf(&b, "complete -c %s -n '__%s_is %s' %s\n", p.Name, p.Name, c.Name, f.fish())
		}
	}
	return b.String()
}

// fish is the flag as arguments of fish's complete.
func (f Flag) fish() string {
	s := "-l " + f.Name
	if len(f.Name) == 1 {
		s = "-s " + f.Name
	}
	switch {
	case f.file():
		s += " -r -F"
	case f.Value != "":
		s += " -x"
	}
	if len(f.Choices) > 0 {
		s += " -a " + quoted(strings.Join(f.Choices, " "))
	}
	return s + " -d " + quoted(f.About)
}
