package manual

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// Program is a program with commands.
type Program struct {
	Name    string // the typed name: "gateway"
	Product string // the product that it belongs to, with version: "Aldis 0.2.0"
	Date    string // of the pages, such as 2026-11-22; "": not known
	Summary string // a phrase without a full stop
	About   string // one sentence
	End     string // the last line of the help
	Groups  []Group
	Files   []File
	Second  Second // the program that has some of the commands; zero: all are in this one
}

// Second is a second program, to which the first passes commands on.
type Second struct {
	Name  string
	About string // a sentence on where to get it
}

// Group is commands for one purpose.
type Group struct {
	Title    string
	Commands []Command
}

// Command describes a command for operators. A subcommand, such as "pmul send", follows its command.
type Command struct {
	Name    string // the words after the program's name
	Summary string // a phrase without a full stop
	About   string // lines of usage, and after an empty line paragraphs of text
	Words   []string
	Files   bool // file names may follow the flags
	Flags   []Flag
	Second  bool // the second program has it
}

// Flag is one flag of a command.
type Flag struct {
	Name    string   // without dashes
	Value   string   // the kind of value: "file", "duration"; "" for a flag without value
	About   string   // a phrase
	Default string   // "" for none
	Choices []string // suggested values, besides others
}

// File is a file that commands read or write.
type File struct{ Path, About string }

// FlagsOf describes the flags of a flag set, in the order of their names. choices are values by flag name.
func FlagsOf(fs *flag.FlagSet, choices map[string][]string) (flags []Flag) {
	fs.VisitAll(func(f *flag.Flag) {
		value, about := flag.UnquoteUsage(f)
		d := f.DefValue
		if d == "0" || d == "false" || d == "0s" {
			d = ""
		}
		flags = append(flags, Flag{Name: f.Name, Value: value, About: about, Default: d, Choices: choices[f.Name]})
	})
	return flags
}

// Typed is the flag with its usual dashes.
func (f Flag) Typed() string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// file says whether the value is the name of a file or directory.
func (f Flag) file() bool {
	return slices.Contains([]string{"file", "FILE", "directory", "DIR", "path"}, f.Value) || len(f.Choices) > 0
}

// inner are the subcommands of c.
func (p Program) inner(c Command) (inner []Command) {
	for _, d := range p.Commands() {
		if strings.HasPrefix(d.Name, c.Name+" ") {
			inner = append(inner, d)
		}
	}
	return inner
}

// outer says that a command is no subcommand.
func (c Command) outer() bool { return !strings.Contains(c.Name, " ") }

// last is the last word of the name.
func (c Command) last() string { return c.Name[strings.LastIndexByte(c.Name, ' ')+1:] }

// Commands are the commands of all groups.
func (p Program) Commands() (all []Command) {
	for _, g := range p.Groups {
		all = append(all, g.Commands...)
	}
	return all
}

// Help is the output of the program when it is called without a command.
func (p Program) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s COMMAND [flags]\n\n%s\n", p.Name, p.About)
	width := 0
	for _, c := range p.Commands() {
		if c.outer() {
			width = max(width, len(c.Name))
		}
	}
	for _, g := range p.Groups {
		b.WriteByte('\n')
		for _, c := range g.Commands {
			if c.outer() {
				fmt.Fprintf(&b, "  %-*s  %s\n", width, c.Name, p.summary(c))
			}
		}
	}
	if p.Second.Name != "" {
		fmt.Fprintf(&b, "\n%s: %s\n", p.Second.mark(), p.Second.About)
	}
	fmt.Fprintf(&b, "\n%s\n", p.End)
	return b.String()
}

// summary is the text about a command in a list.
func (p Program) summary(c Command) string {
	if c.Second {
		return c.Summary + " " + p.Second.mark()
	}
	return c.Summary
}

// mark follows the commands of the second program.
func (s Second) mark() string { return "[" + s.Name + "]" }

// also says where to get the second program, if the command is one of its; "" for others.
func (p Program) also(c Command) string {
	if c.Second {
		return p.Second.About
	}
	return ""
}
