package operator

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/config"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/journal/pages"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/node"
)

const journalAbout = `usage: gateway journal check | stats | export [-c FILE | --dir DIR] [--key-file FILE] [--json]
       gateway journal repair [-c FILE | --dir DIR] [--key-file FILE] [--no-loose] [--force] [--json]
       gateway journal new [-c FILE | --dir DIR]

Looks after the journal (aldis.db) of a gateway that does not run. DIR is its data directory, and otherwise that of
FILE, of which only [node] is read. Every command refuses a directory that is in use.

  check   read all of it as a start does, change nothing, and name everything that is wrong
  stats   what it holds, by bucket, and how large it is
  export  every record as a line of JSON on standard output: values in hexadecimal, and what the record is in words.
          Damaged records and those that were set aside are among them, marked as such
  repair  write a new journal of what can be read. The old file stays beside it as aldis.db.old-TIME. The new one is a
          new store: far gateways send anew what they hold, messages that waited here go, and those that were under way
          go again and may arrive twice. Where pages of the file are lost, records are also looked for outside of its
          tree: a message that had ended may come back. --no-loose leaves those out. A journal that is sound is left
          alone, unless --force says otherwise
  new     put the journal away as aldis.db.old-TIME, so that the next start begins anew without what it held

Of a sealed journal (node.journal_key_file) check and stats can say without its secret what is wrong with pages, checksums and
numbers; export and repair need it. What they write is sealed again, but what export prints is not.

Exit: 0 good (check: sound, or a start goes on without the records named), 1 damaged, refused or failed, 2 wrong usage.
`

// journalTask is one call of the command.
type journalTask struct {
	id             journal.Identity // zero: not known
	dir            string
	secret         atrest.Secret // of a sealed journal; nil: not known
	asJSON         bool
	noLoose, force bool
	stdout, stderr io.Writer
}

func journalCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("journal", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	t := &journalTask{stdout: stdout, stderr: stderr}
	fs.StringVar(&t.dir, "dir", "", "data `directory`; left out: node.data_dir of the configuration")
	fs.BoolVar(&t.asJSON, "json", false, "print JSON; export always does")
	fs.BoolVar(&t.noLoose, "no-loose", false, "repair: leave out what stands outside of the tree")
	fs.BoolVar(&t.force, "force", false, "repair: also a journal that is sound")
	keyFile := fs.String("key-file", "", "the `file` with the secret of a sealed journal; left out: as the configuration says")
	rest, code, done := cli.Parse(fs, args, 1, journalAbout, stdout, stderr)
	if done {
		return code
	}
	tasks := map[string]func() (int, error){"check": t.check, "stats": t.stats, "export": t.export, "repair": t.repair, "new": t.anew}
	if len(rest) != 1 || tasks[rest[0]] == nil {
		fmt.Fprintf(stderr, "gateway journal: say check, stats, export, repair or new\n\n%s", journalAbout)
		return cli.ExitUsage
	}
	if rest[0] != "repair" && (t.noLoose || t.force) {
		fmt.Fprintf(stderr, "gateway journal: --no-loose and --force go with repair\n\n%s", journalAbout)
		return cli.ExitUsage
	}
	named, from := t.dir == "", config.Secret{}
	fs.Visit(func(f *flag.Flag) { named = named || f.Name == "c" })
	if named {
		node, err := config.ReadNode(*file)
		if err != nil {
			return cli.Fail(stderr, "journal "+rest[0], err)
		}
		t.id, from = journal.Identity{Node: node.ID, Name: node.Name}, node.Secret
		if t.dir == "" {
			t.dir = node.DataDir
		}
	}
	var err error
	if rest[0] != "new" {
		t.secret, err = node.SecretFor(*keyFile, from, t.dir, stderr)
	}
	if err == nil {
		code, err = tasks[rest[0]]()
	}
	if err != nil {
		return cli.Fail(stderr, "journal "+rest[0], errors.New(strings.TrimPrefix(err.Error(), "journal: ")))
	}
	return code
}

// progress reports the progress of work that takes longer than two seconds.
func (t *journalTask) progress() journal.Progress {
	next := time.Now().Add(2 * time.Second)
	return func(read, size int64) {
		if now := time.Now(); now.After(next) {
			next = now.Add(2 * time.Second)
			fmt.Fprintf(t.stderr, "read %d of %d MB\n", read>>20, size>>20)
		}
	}
}

// damagedRow is a damaged record as JSON.
type damagedRow struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Octets int    `json:"octets"`
	What   string `json:"what"`
	Why    string `json:"why"`
}

// JournalReport is the JSON output of check and stats.
type JournalReport struct {
	Directory string        `json:"directory"`
	Sound     bool          `json:"sound"`
	Start     string        `json:"start"` // what a start would do: "goes on", "sets records aside", "refuses"
	Refusal   string        `json:"refusal,omitempty"`
	Problems  []string      `json:"problems"`
	Sealed    bool          `json:"sealed"`
	Opened    bool          `json:"opened"` // its secret was there: what is sealed was looked at too
	Faults    []pages.Fault `json:"faults,omitempty"`
	Damaged   []damagedRow  `json:"damaged,omitempty"`

	Format      uint32               `json:"format"`
	Node        uint16               `json:"node"`
	Name        string               `json:"name"`
	Store       string               `json:"store"`
	Incarnation uint32               `json:"incarnation"`
	Octets      int64                `json:"octets"`
	Behind      int64                `json:"octets_behind"` // all that the store has used
	PageSize    int                  `json:"page_octets"`
	Pages       int                  `json:"pages"`
	FreePages   int                  `json:"free_pages"`
	Aside       int                  `json:"set_aside"`
	Buckets     []journal.BucketStat `json:"buckets"`
}

// laidOut is more than a store allocates ahead of its use: bbolt allocates 16 MiB.
const laidOut = 32 << 20

// What a start would do with a journal.
const (
	startGood   = "goes on"
	startSpares = "sets records aside"
	StartNot    = "refuses"
)

// read reads the journal and says what a start would do.
func (t *journalTask) read() (r JournalReport, err error) {
	var to []api.Record // the recipients of messages
	rep, err := journal.Export(t.dir, t.secret, t.progress(), func(x journal.Exported) error {
		if x.Bucket == "to" && !x.Aside && !x.Sealed {
			to = append(to, api.Record{Bucket: x.Bucket, Key: append([]byte(nil), x.Key...)})
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r = JournalReport{Directory: t.dir, Sound: rep.Sound(), Start: startGood, Problems: rep.Problems(), Faults: rep.Faults,
		Format: rep.Format, Node: rep.Node, Name: rep.Name, Store: fmt.Sprintf("%08x", rep.Store), Incarnation: rep.Incarnation,
		Octets: rep.Octets, Behind: rep.Behind, PageSize: rep.PageSize, Pages: rep.Pages, FreePages: rep.Free, Aside: rep.Aside, Buckets: rep.Buckets}
	r.Sealed, r.Opened = rep.Sealed, rep.Sealed && len(t.secret) > 0
	if r.Problems == nil {
		r.Problems = []string{}
	}
	for _, d := range rep.Damaged {
		r.Damaged = append(r.Damaged, damagedRow{d.Bucket, hex.EncodeToString(d.Key), d.Octets, gateway.Words(d.Bucket, d.Key, to), d.Why})
	}
	id := t.id
	if id.Node == 0 {
		id.Node = rep.Node
	}
	if err := rep.Refusal(t.dir, id, gateway.Spare); err != nil {
		r.Start, r.Refusal = StartNot, strings.TrimPrefix(err.Error(), "journal: ")
	} else if len(rep.Damaged) > 0 {
		r.Start = startSpares
	}
	return r, nil
}

func (t *journalTask) printJSON(v any) {
	e := json.NewEncoder(t.stdout)
	e.SetIndent("", "  ")
	e.Encode(v)
}

// report reads the journal, and prints the report if JSON is wanted. code is the exit code of a command that only reads.
func (t *journalTask) report() (r JournalReport, code int, err error) {
	if r, err = t.read(); err != nil {
		return r, cli.ExitRefused, err
	}
	if r.Start == StartNot {
		code = cli.ExitRefused
	}
	if t.asJSON {
		t.printJSON(r)
	}
	return r, code, nil
}

func (t *journalTask) check() (int, error) {
	r, code, err := t.report()
	if err != nil || t.asJSON {
		return code, err
	}
	for _, f := range r.Faults {
		fmt.Fprintln(t.stdout, f.Error())
	}
	for _, d := range r.Damaged {
		fmt.Fprintf(t.stdout, "damaged: %s (bucket %q, key %s, %d octets: %s)\n", d.What, d.Bucket, d.Key, d.Octets, d.Why)
	}
	if r.Sealed && !r.Opened {
		fmt.Fprintln(t.stdout, "the journal is sealed, and its secret was not given (--key-file): pages, checksums and numbers were looked at, and not what its records hold")
	}
	switch r.Start {
	case startGood:
		fmt.Fprintf(t.stdout, "%s: the journal of node %d %q is sound: %d octets, format %d\n", t.dir, r.Node, r.Name, r.Octets-r.Behind, r.Format)
		if r.Behind > laidOut {
			fmt.Fprintf(t.stdout, "its file has %d octets: the %d behind the journal are none of it, and were not written by a gateway; gateway journal repair --force makes a file without them\n", r.Octets, r.Behind)
		}
	case startSpares:
		fmt.Fprintf(t.stdout, "%s: a start goes on without the damaged records, and sets them aside\n", t.dir)
	default:
		fmt.Fprintf(t.stdout, "a start refuses: %s\n", r.Refusal)
	}
	return code, nil
}

func (t *journalTask) stats() (int, error) {
	r, code, err := t.report()
	if err != nil || t.asJSON {
		return code, err
	}
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "node\t%d %q\nstore\t%s\nincarnation\t%d\nformat\t%d\n", r.Node, r.Name, r.Store, r.Incarnation, r.Format)
	fmt.Fprintf(w, "file\t%d octets, %d pages of %d, %d of them free\n", r.Octets, r.Pages, r.PageSize, r.FreePages)
	if r.Sealed {
		fmt.Fprintln(w, "sealed\tyes: octets are those of what is sealed, 42 more a record, and a key has 16")
	}
	fmt.Fprintf(w, "set aside\t%d records\nproblems\t%d\n\n", r.Aside, len(r.Problems))
	fmt.Fprintf(w, "bucket\trecords\toctets\twhat one is\n")
	for _, b := range r.Buckets {
		fmt.Fprintf(w, "%q\t%d\t%d\t%s\n", b.Name, b.Records, b.Octets, gateway.Words(b.Name, nil, nil))
	}
	w.Flush()
	if len(r.Problems) > 0 {
		fmt.Fprintln(t.stdout, "\ngateway journal check says what is wrong")
	}
	return code, nil
}

// ExportRow is one line of an export.
type ExportRow struct {
	Bucket  string `json:"bucket"`
	Key     string `json:"key"`
	Value   string `json:"value"`
	What    string `json:"what"`
	Damaged bool   `json:"damaged,omitempty"`
	Aside   bool   `json:"set_aside,omitempty"`
}

func (t *journalTask) export() (int, error) {
	out := json.NewEncoder(t.stdout)
	rep, err := journal.Export(t.dir, t.secret, t.progress(), func(x journal.Exported) error {
		if x.Sealed {
			return fmt.Errorf("%w: name its file with --key-file, or the configuration with -c", journal.ErrSealed)
		}
		return out.Encode(ExportRow{x.Bucket, hex.EncodeToString(x.Key), hex.EncodeToString(x.Value), gateway.Words(x.Bucket, x.Key, nil), x.Damaged, x.Aside})
	})
	if err != nil {
		return cli.ExitRefused, err
	}
	if !rep.Sound() {
		fmt.Fprintln(t.stderr, "gateway journal export: the journal is damaged, and what is exported may not be all: gateway journal check")
		return cli.ExitRefused, nil
	}
	return cli.ExitGood, nil
}

// repairReport is the JSON output of repair.
type repairReport struct {
	Repaired bool     `json:"repaired"`
	Problems []string `json:"problems"`
	Read     int      `json:"records_read"`
	Loose    int      `json:"records_outside_of_the_tree"`
	Partial  bool     `json:"more_outside_were_not_read,omitempty"`
	Written  int      `json:"records_written"`
	Dropped  int      `json:"records_of_numbers_dropped"`
	Waiting  int      `json:"messages_that_wait"`
	Again    int      `json:"messages_that_go_again"`
	Silent   bool     `json:"silent"`
	Identity bool     `json:"identity_kept"`
	Old      string   `json:"old_file,omitempty"`
	Store    string   `json:"new_store,omitempty"`
}

func (t *journalTask) repair() (int, error) {
	var kept gateway.Kept
	done, err := journal.Repair{Identity: t.id, Buckets: gateway.Buckets(), NoLoose: t.noLoose, Force: t.force, Progress: t.progress(), Secret: t.secret,
		Keep: func(ops []journal.Op, lost func(bucket string) bool) []journal.Op {
			if ofFiles(ops) {
				kept.Known = true // it has none
				return ops
			}
			records := make([]api.Record, len(ops))
			for i, op := range ops {
				records[i] = api.Record(op)
			}
			kept = gateway.AsNewStore(records, lost)
			ops = ops[:0:0]
			for _, r := range kept.Records {
				ops = append(ops, journal.Op(r))
			}
			return ops
		}}.Do(t.dir)
	if err != nil {
		return cli.ExitRefused, err
	}
	r := repairReport{Repaired: done.Done, Problems: done.Problems(), Read: done.Records, Loose: done.Loose, Partial: done.Partial, Written: done.Written,
		Dropped: kept.Dropped, Waiting: kept.Waiting, Again: kept.Again, Silent: kept.Silent, Identity: kept.Known, Old: done.Old}
	if done.Done {
		r.Store = fmt.Sprintf("%08x", done.NewStore)
	}
	if t.asJSON {
		t.printJSON(r)
		return cli.ExitGood, nil
	}
	if !r.Repaired {
		fmt.Fprintf(t.stdout, "%s: the journal is sound, and was left alone\n", t.dir)
		return cli.ExitGood, nil
	}
	for _, p := range r.Problems {
		fmt.Fprintln(t.stdout, "was wrong: "+p)
	}
	fmt.Fprintf(t.stdout, "%d records could be read", r.Read)
	if r.Loose > 0 {
		fmt.Fprintf(t.stdout, ", %d of them outside of the tree: messages among them may have ended before", r.Loose)
	}
	fmt.Fprintf(t.stdout, "\n%d records are in the new journal; %d of numbers that far gateways count as well were dropped\n", r.Written, r.Dropped)
	fmt.Fprintf(t.stdout, "messages for far gateways: %d wait; %d were under way, go again and may arrive twice\n", r.Waiting, r.Again)
	if r.Partial {
		fmt.Fprintln(t.stdout, "the file has more pages outside of its tree than were read")
	}
	if r.Silent {
		fmt.Fprintln(t.stdout, "the gateway starts silent, as ordered or since the order cannot be read: gateway silence off")
	}
	if !r.Identity {
		fmt.Fprintln(t.stdout, "who the gateway is to JXTA peers is lost: they find a new rendezvous, and take it after their lease with the old one")
	}
	fmt.Fprintf(t.stdout, "the journal is a new store (%s): far gateways send anew what they hold\nthe old file is %s\n", r.Store, r.Old)
	return cli.ExitGood, nil
}

// ofFiles says that a journal belongs to gateway pmul, which numbers its records itself.
func ofFiles(ops []journal.Op) bool {
	for _, op := range ops {
		if !strings.HasPrefix(op.Bucket, "pmul-") {
			return false
		}
	}
	return len(ops) > 0
}

func (t *journalTask) anew() (int, error) {
	old, err := journal.NewStart(t.dir)
	if err != nil {
		return cli.ExitRefused, err
	}
	if old == "" {
		fmt.Fprintf(t.stdout, "%s: there is no journal; the next start begins anew\n", t.dir)
	} else {
		fmt.Fprintf(t.stdout, "%s: the next start begins anew; the old journal is %s\n", t.dir, old)
	}
	return cli.ExitGood, nil
}
