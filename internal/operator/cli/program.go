package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/link/profile"
	"aldis/internal/operator/manual"
)

// Program is one of the two programs.
type Program struct {
	Name     string                                                   // "gateway", or LabName
	Commands map[string]Command                                       // commands that it runs itself
	Inner    func(command string) (about string, flags *flag.FlagSet) // description and flags of subcommands that do not answer -h with them; nil: there are none
}

// lab says whether p is the second program.
func (p Program) lab() bool { return p.Name == LabName }

// Dispatch runs the command that args name, and returns the exit code. Commands of the other program are passed on to it.
func (p Program) Dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, p.listed().Help())
		return ExitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "--help", "help":
		if len(rest) == 0 {
			fmt.Fprint(stdout, p.listed().Help())
			return ExitGood
		}
		name, rest = rest[0], append(slices.Clone(rest[1:]), "-h")
	case "-version", "--version":
		name = "version"
	case describing:
		if p.lab() {
			return p.describeAll(stdout, stderr)
		}
	}
	c := p.find(name)
	if now := renamed[name]; c == nil && now != "" {
		fmt.Fprintf(stderr, "%s: there is no command %q since version 0.2: it is %s %s now\n", p.Name, name, p.Name, now)
		return ExitUsage
	}
	if c == nil {
		fmt.Fprintf(stderr, "%s: there is no command %q%s\n%s help lists the commands\n", p.Name, name, config.Nearest(name, p.names()), p.Name)
		return ExitUsage
	}
	if _, asked := stdout.(*description); !asked && tells[name] && !slices.ContainsFunc(rest, func(a string) bool { return strings.TrimLeft(a, "-") == "json" }) {
		stdout = NewPlain(stdout)
	}
	return c(rest, stdout, stderr)
}

// renamed are the present names of commands of earlier versions.
var renamed = map[string]string{"survey": "probe"}

// tells are the commands that print names and texts that others have chosen.
var tells = map[string]bool{"adverts": true, "bill": true, "check": true, "doctor": true, "drain": true, "journal": true, "message": true, "messages": true,
	"peer": true, "reload": true, "restore": true, "silence": true, "status": true}

// find is the command of this name; nil: there is none.
func (p Program) find(name string) Command {
	switch {
	case p.Commands[name] != nil:
		return p.Commands[name]
	case name == "manual" && !p.lab():
		return p.manual
	case name == "version":
		return p.version
	case !p.lab() && slices.ContainsFunc(p.entries(), func(e entry) bool { return e.lab && e.name == name }):
		return func(args []string, _, stderr io.Writer) int { return RunLab(name, args, stderr) }
	}
	return nil
}

// entries are the commands that p runs or passes on, in the order of the list.
func (p Program) entries() (list []entry) {
	for _, g := range groups() {
		for _, e := range g.entries {
			if e.lab || !p.lab() {
				list = append(list, e)
			}
		}
	}
	return list
}

// names are the commands that are not subcommands.
func (p Program) names() (names []string) {
	for _, e := range p.entries() {
		if !strings.Contains(e.name, " ") {
			names = append(names, e.name)
		}
	}
	return names
}

// description is passed to a command in place of standard output, to collect its flags.
type description struct {
	bytes.Buffer // the help of a command without flags
	about        string
	flags        *flag.FlagSet
}

// choices are the values of flags whose values are names.
var choices = map[string][]string{"profile": profile.Names()}

// describe asks a command of p for its description.
func (p Program) describe(e entry) manual.Command {
	var d description
	if p.Inner != nil {
		d.about, d.flags = p.Inner(e.name)
	}
	if d.flags == nil {
		p.Dispatch(append([]string{"help"}, strings.Fields(e.name)...), &d, io.Discard)
	}
	c := manual.Command{Name: e.name, Summary: e.summary, About: cmp.Or(d.about, d.String()), Words: e.words, Files: e.files}
	if d.flags != nil {
		c.Flags = manual.FlagsOf(d.flags, choices)
	}
	return c
}

// describing is the command by which one program asks the other for the descriptions of its commands.
const describing = "describe-commands"

// describeAll answers describing.
func (p Program) describeAll(stdout, stderr io.Writer) int {
	list := map[string]manual.Command{}
	for _, e := range p.entries() {
		list[e.name] = p.describe(e)
	}
	if err := json.NewEncoder(stdout).Encode(list); err != nil {
		return Fail(stderr, describing, err)
	}
	return ExitGood
}

// labDescriptions are the descriptions of the second program's commands; none if it is not installed.
func labDescriptions() (list map[string]manual.Command, err error) {
	path, err := Lab()
	if err != nil {
		return nil, nil
	}
	out, err := exec.Command(path, describing).Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not say what its commands take: %w", path, err)
	}
	return list, nil
}

// listed is the list of commands as help shows it.
func (p Program) listed() manual.Program {
	return p.programOf(func(e entry) manual.Command { return manual.Command{Name: e.name, Summary: e.summary} })
}

// Described is the list of commands with each command's full description.
func (p Program) Described() (manual.Program, error) {
	lab, err := labDescriptions()
	return p.programOf(func(e entry) manual.Command {
		if !e.lab {
			return p.describe(e)
		}
		if c, ok := lab[e.name]; ok {
			return c
		}
		return manual.Command{Name: e.name, Summary: e.summary, Words: e.words, Files: e.files,
			About: fmt.Sprintf("usage: gateway %s [argument...]\n\nSays more where %s is installed.\n", e.name, LabName)}
	}), err
}

func (p Program) programOf(of func(entry) manual.Command) manual.Program {
	m := manual.Program{
		Name: p.Name, Product: "Aldis " + Version, Summary: "connect JXTA peers of two or more sites over a narrow link",
		About: "Connects JXTA peers and TAK devices of two or more sites over a narrow link.",
		End:   p.Name + " COMMAND -h says more. Exit: 0 good, 1 refused or failed, 2 wrong usage.",
		Files: []manual.File{{Path: DefaultConfig, About: "the configuration, unless -c names another"}},
	}
	if !p.lab() {
		m.Second = manual.Second{Name: LabName, About: "The program gateway-lab does this; the package aldis-gateway-lab brings it."}
	}
	for _, g := range groups() {
		to := manual.Group{Title: g.title}
		for _, e := range g.entries {
			if !e.lab && p.lab() {
				continue
			}
			c := of(e)
			c.Second = e.lab && !p.lab()
			to.Commands = append(to.Commands, c)
		}
		if len(to.Commands) > 0 {
			m.Groups = append(m.Groups, to)
		}
	}
	return m
}
