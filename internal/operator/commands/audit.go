package operator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/audit"
	"aldis/internal/edge/config"
	"aldis/internal/ground/when"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/node"
)

const auditAbout = `usage: gateway audit show [-c FILE | --dir DIR] [--after TIME] [--key-file FILE] [--json]
       gateway audit verify [-c FILE | --dir DIR] [--head HASH] [--key-file FILE] [--json]

The record of who gave which order and when, of starts, of configurations that came into force, and of datagrams that were
refused, by reason. The gateway writes it to audit.log in its data directory DIR; it may run meanwhile. Each line has the
hash of the line before it.

  show    print the lines, the oldest first. TIME is as for gateway messages: 10:32, 251032ZNOV26, 2h
  verify  read all of it and check that no line was changed, taken out or put in; lines off the front are missed as long
          as eight files have not turned over. It prints the last hash. Note that outside of this machine: whoever can
          write the files can write them anew, and only a noted hash shows that.
          With --head HASH it also checks that the line with this hash is still there

Exit: 0 good, 1 changed, not there or not readable, 2 wrong usage.
`

func auditCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("audit", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	dir := fs.String("dir", "", "data `directory`; left out: node.data_dir of the configuration")
	after := fs.String("after", "", "show: only what came after this `time`")
	head := fs.String("head", "", "verify: a `hash` that was noted earlier")
	asJSON := fs.Bool("json", false, "print JSON")
	keyFile := fs.String("key-file", "", "the `file` with the secret of a sealed record; left out: as the configuration says")
	rest, code, done := cli.Parse(fs, args, 1, auditAbout, stdout, stderr)
	if done {
		return code
	}
	var since time.Time
	var err error
	switch {
	case len(rest) != 1 || rest[0] != "show" && rest[0] != "verify":
		err = errors.New("say show or verify")
	case rest[0] == "show" && *head != "" || rest[0] == "verify" && *after != "":
		err = errors.New("--after goes with show, and --head with verify")
	case *after != "":
		since, err = when.Past(*after, time.Now())
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway audit: %v\n\n%s", err, auditAbout)
		return cli.ExitUsage
	}
	var its config.Node
	if *dir == "" {
		if its, err = config.ReadNode(*file); err != nil {
			return cli.Fail(stderr, "audit", err)
		}
		*dir = its.DataDir
	}
	secret, err := node.SecretFor(*keyFile, its.Secret, *dir, stderr)
	if err != nil {
		return cli.Fail(stderr, "audit "+rest[0], err)
	}
	if rest[0] == "show" {
		err = showAudit(stdout, *dir, secret, since, *asJSON)
	} else {
		err = verifyAudit(stdout, *dir, secret, *head, *asJSON)
	}
	if errors.Is(err, audit.ErrSealed) {
		err = fmt.Errorf("%w: name its file with --key-file, or the configuration with -c", err)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s has no audit.log: no gateway of this version has run there", *dir)
	}
	if err != nil {
		return cli.Fail(stderr, "audit "+rest[0], err)
	}
	return cli.ExitGood
}

func showAudit(stdout io.Writer, dir string, secret atrest.Secret, since time.Time, asJSON bool) error {
	return audit.Each(dir, secret, func(l audit.Line) error {
		switch {
		case l.Time.Before(since):
		case asJSON:
			return json.NewEncoder(stdout).Encode(l)
		default:
			_, err := fmt.Fprintln(stdout, auditText(l))
			return err
		}
		return nil
	})
}

// auditText is a line for people. Text from others is quoted: it may contain control characters that a terminal obeys.
func auditText(l audit.Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-13s", l.Time.Format(time.DateTime+"Z"), l.Kind)
	if l.Name != "" {
		fmt.Fprintf(&b, "  %s", l.Name)
	}
	if l.What != "" {
		fmt.Fprintf(&b, "  %q", l.What)
	}
	if l.By != "" {
		fmt.Fprintf(&b, "  by %q", l.By)
	}
	reasons := make([]string, 0, len(l.Counts))
	for reason, n := range l.Counts {
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(reasons)
	if len(reasons) > 0 {
		fmt.Fprintf(&b, "  %s", strings.Join(reasons, ", "))
	}
	if l.LeftOut > 0 {
		fmt.Fprintf(&b, "  (and %d like it)", l.LeftOut)
	}
	return b.String()
}

func verifyAudit(stdout io.Writer, dir string, secret atrest.Secret, noted string, asJSON bool) error {
	r, err := audit.Verify(dir, secret, noted)
	if err != nil {
		return err
	}
	if asJSON {
		if err := cli.PrintJSON(stdout, r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(stdout, "lines %d to %d are sound\nlast hash %s\n", r.First, r.Last, r.Head)
	}
	if !r.Found {
		return fmt.Errorf("no line has the hash %.64q: the record was written anew since, or the line is older than the oldest file", noted)
	}
	return nil
}
