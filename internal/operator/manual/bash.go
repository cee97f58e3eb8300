package manual

import (
	"fmt"
	"strings"
)

// Bash is the completion for bash. It needs only bash.
func (p Program) Bash() string {
	var b strings.Builder
	var names []string
	outers := strings.Builder{}
	for _, c := range p.Commands() {
		if c.outer() {
			names = append(names, c.Name)
			if len(p.inner(c)) > 0 {
				fmt.Fprintf(&outers, "\t%s) [ \"$COMP_CWORD\" -gt 2 ] && command=\"$command ${COMP_WORDS[2]}\" ;;\n", c.Name)
			}
		}
	}
	names = append(names, "help")
	fmt.Fprintf(&b, `# bash completion for %[1]s
_%[1]s()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
	COMPREPLY=()
	# bash splits --flag=value at the sign.
	[ "$prev" = = ] && [ "$COMP_CWORD" -gt 2 ] && prev=${COMP_WORDS[COMP_CWORD-2]}
	[ "$cur" = = ] && cur=
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W '%[2]s --version' -- "$cur")
		return
	fi
	case $command in
%[3]s	esac
	case $command in
	help) [ "$COMP_CWORD" = 2 ] && words='%[2]s' ;;
`, p.Name, strings.Join(names, " "), outers.String())
	for _, c := range p.Commands() {
		p.bashCommand(&b, c)
	}
	fmt.Fprintf(&b, `	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

# _%[1]s_files WORDS: file names, and these.
_%[1]s_files()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"; compgen -f -- "$cur")
	compopt -o filenames 2>/dev/null
	return 0
}

complete -F _%[1]s %[1]s
`, p.Name)
	return b.String()
}

func (p Program) bashCommand(b *strings.Builder, c Command) {
	pattern := c.Name
	if !c.outer() {
		pattern = "'" + c.Name + "'"
	}
	fmt.Fprintf(b, "\t%s)\n\t\tcase $prev in\n", pattern)
	var typed, bare []string
	for _, f := range c.Flags {
		typed = append(typed, f.Typed())
		switch {
		case f.file():
			fmt.Fprintf(b, "\t\t%s) _%s_files '%s'; return ;;\n", f.pattern(), p.Name, strings.Join(f.Choices, " "))
		case f.Value != "":
			bare = append(bare, f.pattern())
		}
	}
	if len(bare) > 0 {
		fmt.Fprintf(b, "\t\t%s) return ;;\n", strings.Join(bare, "|"))
	}
	b.WriteString("\t\tesac\n")
	words := c.Words
	for _, d := range p.inner(c) {
		words = append(words, d.last())
	}
	switch at := 2 + strings.Count(c.Name, " "); {
	case len(words) > 0:
		fmt.Fprintf(b, "\t\t[ \"$COMP_CWORD\" = %d ] && words='%s'\n", at, strings.Join(words, " "))
	case c.Files:
		fmt.Fprintf(b, "\t\tcase $cur in -*) ;; *) _%s_files ''; return ;; esac\n", p.Name)
	}
	fmt.Fprintf(b, "\t\twords=\"$words %s\" ;;\n", strings.Join(append(typed, "-h"), " "))
}

// pattern matches the flag with one dash or two: both mean the same.
func (f Flag) pattern() string { return "-" + f.Name + "|--" + f.Name }
