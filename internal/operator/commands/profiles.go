package operator

import (
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"aldis/internal/edge/config"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const profilesAbout = `usage: gateway profiles [NAME]

Lists the links that link.profile can name. With NAME it prints that profile: every number with its unit and origin.
To change one, save it to a file, edit it, and give the file's path as link.profile.
`

func profilesCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("profiles", flag.ContinueOnError)
	rest, code, done := cli.Parse(fs, args, 1, profilesAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) == 1 {
		source, err := profile.Source(rest[0])
		if err != nil {
			return cli.Fail(stderr, "profiles", fmt.Errorf("%w%s", err, config.Nearest(rest[0], profile.Names())))
		}
		stdout.Write(source)
		return cli.ExitGood
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, name := range profile.Names() {
		p, err := profile.Load(name, nil)
		if err != nil {
			return cli.Fail(stderr, "profiles", err)
		}
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Summary)
	}
	w.Flush()
	return cli.ExitGood
}
