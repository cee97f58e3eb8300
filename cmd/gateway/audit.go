package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"aldis/internal/atrest"
	"aldis/internal/audit"
	"aldis/internal/config"
	"aldis/internal/gateway"
	"aldis/internal/when"
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
	file := fs.String("c", defaultConfig, "configuration `file`")
	dir := fs.String("dir", "", "data `directory`; left out: node.data_dir of the configuration")
	after := fs.String("after", "", "show: only what came after this `time`")
	head := fs.String("head", "", "verify: a `hash` that was noted earlier")
	asJSON := fs.Bool("json", false, "print JSON")
	keyFile := fs.String("key-file", "", "the `file` with the secret of a sealed record; left out: as the configuration says")
	rest, code, done := parse(fs, args, 1, auditAbout, stdout, stderr)
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
		return exitUsage
	}
	var node config.Node
	if *dir == "" {
		if node, err = config.ReadNode(*file); err != nil {
			return fail(stderr, "audit", err)
		}
		*dir = node.DataDir
	}
	secret, err := secretFor(*keyFile, node.Secret, *dir, stderr)
	if err != nil {
		return fail(stderr, "audit "+rest[0], err)
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
		return fail(stderr, "audit "+rest[0], err)
	}
	return exitGood
}

func showAudit(stdout io.Writer, dir string, secret atrest.Secret, since time.Time, asJSON bool) error {
	return audit.EachSealed(dir, secret, func(l audit.Line) error {
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

// auditText is a line for people. What others said is quoted: it may hold what a terminal obeys.
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
	r, err := audit.VerifySealed(dir, secret, noted)
	if err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(stdout, r); err != nil {
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

// openAudit opens the record of orders. A disk without room is no reason not to start.
func (n *node) openAudit() (err error) {
	n.audit, err = audit.OpenSealed(n.cfg.Node.DataDir, time.Now, n.secret, n.journal.Key())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		n.log.Error("orders are not recorded until the gateway is started again: there is no room for the audit log", "error", err)
		n.audit, err = &audit.Log{}, nil
	}
	return err
}

// keep enters e. That it cannot is logged, and no reason not to obey.
func (n *node) keep(e audit.Entry) {
	if err := n.audit.Add(e); err != nil {
		n.log.Error("the audit log cannot be written: orders are obeyed all the same", "error", err)
	}
}

const (
	refusalsEvery = time.Minute
	refusalsAgain = time.Hour
)

// refusals enters that datagrams of the link were refused.
type refusals struct {
	n       *node
	entered map[string]uint64
	serial  uint32        // of the roster that was entered; 0: none yet
	done    chan struct{} // closed when watch has ended
}

// watch enters them within refusalsEvery, and while that goes on every refusalsAgain, until ctx ends.
func (r *refusals) watch(ctx context.Context) {
	defer close(r.done)
	tick := time.NewTicker(refusalsEvery)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s, err := r.n.snapshot(ctx)
			if err != nil {
				continue
			}
			r.roster(s.Gateway)
			if now.Sub(last) >= refusalsAgain && r.enter(s.Gateway) {
				last = now
			}
		}
	}
}

// roster enters which roster the gateway goes by, whoever gave it.
func (r *refusals) roster(s gateway.Status) {
	if s.Roster != nil && s.Roster.Serial != r.serial {
		r.serial = s.Roster.Serial
		r.n.keep(audit.Entry{Kind: audit.Changed, Name: "roster", What: fmt.Sprintf("goes by roster %d of the net %s", s.Roster.Serial, s.Roster.Net)})
	}
}

// enter enters what was dropped since it was called before, and in whose names somebody else had sealed it; false: there is none.
func (r *refusals) enter(s gateway.Status) bool {
	grown := map[string]uint64{}
	for reason, count := range s.Dropped {
		if more := count - r.entered[reason]; more > 0 && gateway.RefusesDatagrams(reason) {
			grown[reason], r.entered[reason] = more, count
		}
	}
	if len(grown) == 0 {
		return false
	}
	var names []string
	for _, p := range s.Peers {
		account := "in the name of " + p.Name
		if more := p.Forged + p.Strange - r.entered[account]; more > 0 {
			names = append(names, fmt.Sprintf("%s %d", p.Name, more))
			r.entered[account] += more
		}
	}
	what := ""
	if len(names) > 0 {
		what = "not sealed by whom they name: " + strings.Join(names, ", ")
	}
	r.n.keep(audit.Entry{Kind: audit.Refused, What: what, Counts: grown})
	return true
}
