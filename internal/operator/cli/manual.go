package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aldis/internal/operator/manual"
)

const manualAbout = `usage: gateway manual man [--date DATE] DIR
       gateway manual bash|zsh|fish

Writes the man pages of all commands into DIR, or the completion of a shell to standard output. The packages bring both. What
gateway-lab does is described where it is installed.
For a gateway that was built here:

  source <(gateway manual bash)
  gateway manual zsh > ~/.zfunc/_gateway
  gateway manual fish > ~/.config/fish/completions/gateway.fish
`

// manual writes the man pages and completions of both programs.
func (p Program) manual(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("manual", flag.ContinueOnError)
	date := fs.String("date", "", "`date` that the pages show, such as 2006-01-02")
	rest, code, done := Parse(fs, args, 2, manualAbout, stdout, stderr)
	if done {
		return code
	}
	shells := map[string]func(manual.Program) string{"bash": manual.Program.Bash, "zsh": manual.Program.Zsh, "fish": manual.Program.Fish}
	m, err := p.Described()
	if err != nil {
		return Fail(stderr, "manual", err)
	}
	m.Date = *date
	switch {
	case len(rest) == 2 && rest[0] == "man":
		for _, page := range m.Pages() {
			if err := os.WriteFile(filepath.Join(rest[1], page.Name), []byte(page.Text), 0o644); err != nil {
				return Fail(stderr, "manual", err)
			}
		}
	case len(rest) == 1 && shells[rest[0]] != nil && *date == "":
		io.WriteString(stdout, shells[rest[0]](m))
	default:
		fmt.Fprintf(stderr, "gateway manual: say man and a directory, or bash, zsh or fish\n\n%s", manualAbout)
		return ExitUsage
	}
	return ExitGood
}
