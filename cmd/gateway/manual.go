package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aldis/internal/manual"
)

const manualAbout = `usage: gateway manual man [--date DATE] DIR
       gateway manual bash|zsh|fish

Writes the man pages of all commands into DIR, or the completion of a shell to standard output. The packages bring both.
For a gateway that was built here:

  source <(gateway manual bash)
  gateway manual zsh > ~/.zfunc/_gateway
  gateway manual fish > ~/.config/fish/completions/gateway.fish
`

func manualCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("manual", flag.ContinueOnError)
	date := fs.String("date", "", "`date` that the pages show, such as 2006-01-02")
	rest, code, done := parse(fs, args, 2, manualAbout, stdout, stderr)
	if done {
		return code
	}
	shells := map[string]func(manual.Program) string{"bash": manual.Program.Bash, "zsh": manual.Program.Zsh, "fish": manual.Program.Fish}
	p := described()
	p.Date = *date
	switch {
	case len(rest) == 2 && rest[0] == "man":
		for _, page := range p.Pages() {
			if err := os.WriteFile(filepath.Join(rest[1], page.Name), []byte(page.Text), 0o644); err != nil {
				return fail(stderr, "manual", err)
			}
		}
	case len(rest) == 1 && shells[rest[0]] != nil && *date == "":
		io.WriteString(stdout, shells[rest[0]](p))
	default:
		fmt.Fprintf(stderr, "gateway manual: say man and a directory, or bash, zsh or fish\n\n%s", manualAbout)
		return exitUsage
	}
	return exitGood
}

// program is the list of commands as the help shows it.
func program() manual.Program {
	return programOf(func(e entry) manual.Command {
		return manual.Command{Name: e.name, Summary: e.summary}
	})
}

// described is the list of commands with all that each says of itself.
func described() manual.Program { return programOf(describe) }

func programOf(of func(entry) manual.Command) manual.Program {
	p := manual.Program{
		Name: "gateway", Product: "Aldis " + Version, Summary: "connect JXTA peers of two or more sites over a narrow link",
		About: "Connects JXTA peers and TAK devices of two or more sites over a narrow link.",
		End:   "gateway COMMAND -h says more. Exit: 0 good, 1 refused or failed, 2 wrong usage.",
		Files: []manual.File{{Path: defaultConfig, About: "the configuration, unless -c names another"}},
	}
	for _, g := range groups() {
		to := manual.Group{Title: g.title}
		for _, e := range g.entries {
			to.Commands = append(to.Commands, of(e))
		}
		p.Groups = append(p.Groups, to)
	}
	return p
}
