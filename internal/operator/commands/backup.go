package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/journal"
	"aldis/internal/operator/cli"
)

const backupAbout = `usage: gateway backup FILE [-c FILE] [--json]

Copies the journal of the gateway on this machine to a new FILE, as one commit has left it, while the gateway runs: all
that is in custody, what is known of the far gateways, and the gateway's identity towards JXTA peers. Commits wait for as long as
the copy takes on the disk. The copy is read through before the command ends. A gateway that does not run is copied too.
FILE "-" is standard output, which is not read through.

The configuration and the key file are not in it: keep copies of those by themselves, the key where nobody else reads it.
gateway restore puts the copy back.

Exit: 0 the copy is whole and sound, 1 not so, 2 wrong usage.
`

const restoreAbout = `usage: gateway restore FILE [-c FILE] [--json]

Puts a copy that gateway backup has made in the place of the journal of a gateway that does not run. A journal that is
there is kept beside it as aldis.db.old-TIME. FILE must be of the node of the configuration, and sound.

The next start has a greater number than all that the copy, the journal in the way and the clock know of, so that nothing
is sealed twice with one nonce. A clock that is behind them is refused. Messages that the copy holds go out. One that has
gone out since the copy was made may arrive twice if it had not been on the air then; what was accepted since then and not
sent is lost. docs/decisions/put-back.md says what the far gateways do.

Exit: 0 it is in place, 1 refused and nothing was changed, 2 wrong usage.
`

// backedUp is the JSON output of backup and restore.
type backedUp struct {
	File        string `json:"file,omitempty"`
	Dir         string `json:"data_dir,omitempty"`
	Running     bool   `json:"running"` // the gateway, while the copy was made
	Node        uint16 `json:"node"`
	Name        string `json:"name"`
	Store       string `json:"store"`
	Incarnation uint32 `json:"incarnation"` // of the start that the copy knows, restored: the least that the next one exceeds
	Octets      int64  `json:"octets"`
	Records     int    `json:"records"`
	Old         string `json:"old_file,omitempty"`
}

func backedUpOf(r *journal.Report) backedUp {
	b := backedUp{Node: r.Node, Name: r.Name, Store: fmt.Sprintf("%08x", r.Store), Incarnation: r.Incarnation, Octets: r.Octets}
	for _, bucket := range r.Buckets {
		b.Records += bucket.Records
	}
	return b
}

func backupCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("backup", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	asJSON := fs.Bool("json", false, "say what was copied as JSON")
	rest, code, done := cli.Parse(fs, args, 1, backupAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) != 1 || *asJSON && rest[0] == "-" {
		fmt.Fprintf(stderr, "gateway backup: name the file to write\n\n%s", backupAbout)
		return cli.ExitUsage
	}
	from, runs, err := journalCopy(*file)
	if err != nil {
		return cli.Fail(stderr, "backup", plainJournal(err))
	}
	defer from.Close()
	if rest[0] == "-" {
		if _, err = io.Copy(stdout, from); err != nil {
			return cli.Fail(stderr, "backup", err)
		}
		return cli.ExitGood
	}
	rep, err := writeBackup(rest[0], from)
	if err != nil {
		return cli.Fail(stderr, "backup", plainJournal(err))
	}
	b := backedUpOf(rep)
	b.File, b.Running = rest[0], runs
	if *asJSON {
		err = cli.PrintJSON(stdout, b)
	} else {
		fmt.Fprintf(stdout, "%s: a copy of the journal of node %d %q, sound: %d records in %d octets\n", b.File, b.Node, b.Name, b.Records, b.Octets)
		if !runs {
			fmt.Fprintln(stdout, "no gateway runs here: it is the journal as the last run has left it")
		}
		fmt.Fprintln(stdout, "the configuration and the key file are not in it")
	}
	if err != nil {
		return cli.Fail(stderr, "backup", err)
	}
	return cli.ExitGood
}

func plainJournal(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "journal: ")) }

// journalCopy gets a copy of the journal from the running gateway, or makes one if none runs.
func journalCopy(file string) (from io.ReadCloser, runs bool, err error) {
	desk, err := DeskOf(file, "")
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	resp, err := desk.do(ctx, "POST", "/backup", nil)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		cancel()
		node, err := config.ReadNode(file)
		if err != nil {
			return nil, false, err
		}
		f, err := journal.BackupOf(node.DataDir)
		return f, false, err
	case errors.Is(err, fs.ErrPermission):
		cancel()
		return nil, true, fmt.Errorf("permission denied at %s: run this as root (sudo), as the user that runs the gateway, or as a member of control.group", desk.at)
	case err != nil:
		cancel()
		return nil, true, err
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel()
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return nil, true, fmt.Errorf("the gateway at %s says: %s", desk.at, strings.TrimSpace(string(text)))
	}
	return cancelled{resp.Body, cancel}, true, nil
}

// cancelled is the body of an answer; closing it also cancels the request.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body and cancels the request.
func (c cancelled) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// writeBackup writes a new file that is durable and sound, or none, also if a signal ends the program.
func writeBackup(path string, from io.Reader) (rep *journal.Report, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already, and is not overwritten", path)
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.Remove(path)
		}
	}()
	defer cli.IfInterrupted(func() { os.Remove(path) })()
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if d, derr := os.Open(filepath.Dir(path)); derr == nil { // the name must be durable too
		err = d.Sync()
		d.Close()
	}
	if err == nil {
		rep, err = journal.CheckBackup(path)
	}
	if err == nil && !rep.Sound() {
		err = fmt.Errorf("the copy is damaged: %s; gateway journal check says more while the gateway does not run", rep.Problems()[0])
	}
	return rep, err
}

func restoreCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("restore", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	asJSON := fs.Bool("json", false, "say what was done as JSON")
	rest, code, done := cli.Parse(fs, args, 1, restoreAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) != 1 {
		fmt.Fprintf(stderr, "gateway restore: name the file that gateway backup has written\n\n%s", restoreAbout)
		return cli.ExitUsage
	}
	node, err := config.ReadNode(*file)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	r, err := journal.Restore(rest[0], node.DataDir, journal.Identity{Node: node.ID, Name: node.Name}, time.Now())
	if err != nil {
		return cli.Fail(stderr, "restore", plainJournal(err))
	}
	owned := giveTo(node.DataDir)
	b := backedUpOf(r.Report)
	b.Dir, b.Old, b.Incarnation = node.DataDir, r.Old, r.Incarnation
	if *asJSON {
		err = cli.PrintJSON(stdout, b)
		if err != nil {
			return cli.Fail(stderr, "restore", err)
		}
		return cli.ExitGood
	}
	fmt.Fprintf(stdout, "%s: the journal is the copy of node %d %q that knew the start of %s\n", b.Dir, b.Node, b.Name, time.Unix(int64(r.Report.Incarnation), 0).UTC().Format(time.RFC3339))
	if b.Old != "" {
		fmt.Fprintf(stdout, "the journal that was there is %s\n", b.Old)
	}
	if !owned {
		fmt.Fprintf(stdout, "%s belongs to root: give it to the user that runs the gateway: chown -R aldis %s\n", b.Dir, b.Dir)
	}
	fmt.Fprintln(stdout, "start the gateway; its log and those of the far gateways say what was lost since the copy")
	return cli.ExitGood
}

// giveTo changes the owner of files that root has written in a directory to the directory's owner; false: that is root.
func giveTo(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return true
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 {
		return false
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() && i.Sys().(*syscall.Stat_t).Uid == 0 {
			os.Lchown(filepath.Join(dir, e.Name()), int(owner.Uid), int(owner.Gid))
		}
	}
	return true
}
