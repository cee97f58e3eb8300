// Package cli is the common part of the commands of both programs, and their names: one list, one help, one manual. `gateway` passes
// the commands of the laboratory on to gateway-lab.
//
// # Files
//
//   - cli.go: flags, help and exit codes of a command
//   - commands.go: the list of all commands
//   - files.go: files that several commands read
//   - interrupt.go: what is undone before a signal ends the program
//   - manual.go: `manual`: man pages and completions
//   - plain.go: text for a terminal
//   - program.go: dispatch to a command, and each command's description
//   - second.go: where the other program is, and how it replaces this process
//   - terminal.go: typed input, and whether somebody can type
//   - version.go: `version`: the release and its commit
package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"aldis/internal/edge/config"
)

// Exit codes.
const (
	ExitGood    = 0
	ExitRefused = 1
	ExitUsage   = 2
)

// DefaultConfig is the path of the configuration if no flag names another.
const DefaultConfig = "/etc/aldis/gateway.toml"

// Parse reads flags before, between and behind the other arguments, of which there may be most. It returns these arguments, and
// an exit code if the command is done. If stdout is a description, it gets the flags instead.
func Parse(fs *flag.FlagSet, args []string, most int, about string, stdout, stderr io.Writer) (rest []string, code int, done bool) {
	fs.SetOutput(io.Discard)
	if d, ok := stdout.(*description); ok {
		d.about, d.flags = about, fs
		return nil, ExitGood, true
	}
	wrong := func(format string, args ...any) ([]string, int, bool) {
		usage, _, _ := strings.Cut(about, "\n\n")
		fmt.Fprintf(stderr, "gateway %s: "+format+"\n%s\ngateway %s -h says more\n", slices.Concat([]any{fs.Name()}, args, []any{usage, fs.Name()})...)
		return nil, ExitUsage, true
	}
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			help(fs, about, stdout)
			return nil, ExitGood, true
		case err != nil:
			return wrong("%v%s", err, meantFlag(fs, err))
		case fs.NArg() == 0:
			return rest, 0, false
		case len(rest) == most:
			return wrong("unexpected argument %q", fs.Arg(0))
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// help prints what a command does, and its flags.
func help(fs *flag.FlagSet, about string, w io.Writer) {
	fmt.Fprint(w, about)
	some := false
	fs.VisitAll(func(*flag.Flag) { some = true })
	if some {
		fmt.Fprint(w, "\nFlags:\n")
		fs.SetOutput(w)
		fs.PrintDefaults()
		fs.SetOutput(io.Discard)
	}
}

// meantFlag suggests the flag that was meant if err says that a flag does not exist.
func meantFlag(fs *flag.FlagSet, err error) string {
	_, name, unknown := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return ""
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) {
		if len(f.Name) > 1 {
			names = append(names, "--"+f.Name)
		}
	})
	return config.Nearest("--"+name, names)
}

// Fail says why a command was refused.
func Fail(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "gateway %s: %s\n", name, Printable(err.Error()))
	return ExitRefused
}

// PrintJSON prints v, indented.
func PrintJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}
