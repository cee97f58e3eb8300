package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/commands"
	"aldis/internal/operator/node"
	"aldis/internal/site"
)

// journalOf is a site whose gateway has run once, and the paths that its operator works with.
func journalOf(t *testing.T) (s *testSite, dir, db string) {
	t.Helper()
	s = newSite(t, 2, "")
	dir = filepath.Join(s.dir, "data")
	if code := s.start(t).stop(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d", code)
	}
	return s, dir, filepath.Join(dir, "aldis.db")
}

// put writes records behind the gateway's back, with correct checksums.
func put(t *testing.T, dir string, ops ...journal.Op) {
	t.Helper()
	j, err := journal.Open(dir, journal.Identity{Node: 2, Name: "node2"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Commit(ops); err != nil {
		t.Fatal(err)
	}
}

// change replaces a file's content with the result of f.
func change(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// message is a record of a message for peer 1, and the record of its recipients; number 0: it waits.
func message(t *testing.T, id, number uint64, text string) []journal.Op {
	t.Helper()
	full, err := envelope.Append(nil, envelope.Message{Payload: &site.Message{Parts: []site.Part{{Data: []byte(text)}}}}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	key := binary.BigEndian.AppendUint64(nil, id)
	to := binary.BigEndian.AppendUint64([]byte{0}, number)
	to = append(binary.BigEndian.AppendUint64(to, id), 0)
	return []journal.Op{{Bucket: "mail", Key: key, Value: full}, {Bucket: "to", Key: append([]byte{0, 1}, key...), Value: to}}
}

// A damaged record, and one that the gateway does not understand, are reported and set aside; the gateway runs.
func TestJournalRecordSetAside(t *testing.T) {
	s, dir, db := journalOf(t)
	text := strings.Repeat("what the captain said ", 10)
	put(t, dir, append(append(message(t, 7, 0, text), message(t, 8, 0, "another")...), journal.Op{Bucket: "own", Key: []byte("odd"), Value: []byte("no item")})...)
	change(t, db, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("captain"), []byte("capt?in")) })

	code, out, errs := run(t, "journal", "check", "-c", s.file)
	if code != 0 || errs != "" {
		t.Errorf("check: exit %d: %s", code, errs)
	}
	wants(t, out, "damaged: a message for peer 1", `bucket "mail", key 0000000000000007`, "sets them aside")

	s.write(t, dir, "1 127.0.0.1:9")
	r := s.start(t)
	r.until(t, "it runs", func() bool { return strings.Contains(r.logged(), `"running"`) })
	wants(t, r.logged(), node.TextDamaged, "a message for peer 1", "0000000000000007", node.TextRefused, "what this site tells the others")
	if code, _, errs := run(t, "journal", "check", "--dir", dir); code != 1 || !strings.Contains(errs, "another gateway uses it") {
		t.Errorf("check of a journal in use: exit %d: %s", code, errs)
	}
	r.until(t, "the other message is there", func() bool { p := r.peer(t); return p.Waiting+p.UnderWay == 1 })
	if code := r.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	r = s.start(t) // nothing is wrong any more
	r.until(t, "it runs again", func() bool { return strings.Contains(r.logged(), `"running"`) })
	if strings.Contains(r.logged(), "set aside") {
		t.Errorf("the second start: %s", r.logged())
	}
	r.stop(t, syscall.SIGTERM)

	code, out, _ = run(t, "journal", "export", "--dir", dir)
	if code != 0 {
		t.Errorf("export: exit %d", code)
	}
	aside := 0
	for line := range strings.Lines(out) {
		var row operator.ExportRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if row.Aside {
			aside++
		}
	}
	if aside != 3 { // the message, its recipients, and the item
		t.Errorf("%d records are set aside: %s", aside, out)
	}
}

// The content of a message in transmission is lost: its number is still sent, so that the peer does not wait for it for ever.
func TestJournalMessageUnderWay(t *testing.T) {
	s, dir, db := journalOf(t)
	put(t, dir, message(t, 7, 1, "what the captain said")...)
	change(t, db, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("captain"), []byte("capt?in")) })
	s.write(t, dir, "1 127.0.0.1:9")
	r := s.start(t)
	r.until(t, "it runs", func() bool { return strings.Contains(r.logged(), `"running"`) })
	wants(t, r.logged(), node.TextDamaged, "a message for peer 1")
	if got := r.peer(t).UnderWay; got != 1 {
		t.Errorf("%d under way", got)
	}
	r.stop(t, syscall.SIGTERM)
}

// A damaged page is reported in one line with the remedy, and a repair saves the rest.
func TestJournalRepair(t *testing.T) {
	s, dir, db := journalOf(t)
	for id := range uint64(40) {
		put(t, dir, message(t, id+1, 0, strings.Repeat("text ", 100))...)
	}
	code, out, errs := run(t, "journal", "check", "-c", s.file)
	if code != 0 || errs != "" || !strings.Contains(out, "is sound") {
		t.Errorf("check: exit %d: %s%s", code, out, errs)
	}
	code, out, _ = run(t, "journal", "stats", "-c", s.file)
	if code != 0 {
		t.Errorf("stats: exit %d", code)
	}
	wants(t, out, `node         2 "node2"`, "format       3", `"mail"`, "a message of this site")

	change(t, db, func(b []byte) []byte { // a page of the messages in the tree
		var r operator.JournalReport
		for page := 2; ; page++ {
			damaged := bytes.Clone(b)
			copy(damaged[page*4096+100:], make([]byte, 3000))
			if err := os.WriteFile(db, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, out, _ := run(t, "journal", "check", "--dir", dir, "--json")
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			if r.Start == operator.StartNot && len(r.Faults) > 0 {
				return damaged
			}
		}
	})
	errs = refused(t, s)
	wants(t, errs, "it is damaged", "page ", "restore a backup", "gateway journal repair --dir "+dir)
	if strings.Count(errs, "ERROR") != 1 || strings.Contains(errs, "goroutine") {
		t.Error(errs)
	}
	code, out, errs = run(t, "journal", "repair", "-c", s.file)
	if code != 0 {
		t.Fatalf("repair: exit %d: %s", code, errs)
	}
	wants(t, out, "was wrong: page ", "records could be read", "the journal is a new store", "the old file is "+db+".old-")
	code, out, _ = run(t, "journal", "check", "-c", s.file)
	if code != 0 || !strings.Contains(out, "is sound") {
		t.Errorf("after the repair: exit %d: %s", code, out)
	}
	s.write(t, dir, "1 127.0.0.1:9")
	r := s.start(t)
	if p := r.peer(t); p.Waiting+p.UnderWay < 20 {
		t.Errorf("of 40 messages %d wait and %d are under way", p.Waiting, p.UnderWay)
	}
	r.stop(t, syscall.SIGTERM)
}

// Octets behind a journal in its file are reported separately.
func TestJournalWithGapsBehind(t *testing.T) {
	_, dir, db := journalOf(t)
	before, err := os.Stat(db)
	check.NoError(check.Fatal(t), err)
	const gaps = 100 << 30
	check.NoError(t, os.Truncate(db, gaps))
	code, out, errs := run(t, "journal", "check", "--dir", dir)
	check.True(t, "it is good: "+errs, code == 0)
	check.Contains(t, "what is behind", out, "its file has 107374182400 octets")
	var r operator.JournalReport
	_, out, _ = run(t, "journal", "check", "--dir", dir, "--json")
	check.NoError(t, json.Unmarshal([]byte(out), &r))
	check.True(t, "the journal has what it had", r.Octets-r.Behind <= before.Size() && r.Octets-r.Behind > 0, r.Behind)
}

// An empty journal does not count as a new node.
func TestJournalGone(t *testing.T) {
	s, dir, db := journalOf(t)
	change(t, db, func([]byte) []byte { return nil })
	wants(t, refused(t, s), db, "has 0 octets", "restore a backup", "gateway journal new --dir "+dir)
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	wants(t, refused(t, s), db, "is missing", "gateway journal new --dir "+dir)
	code, out, errs := run(t, "journal", "new", "-c", s.file)
	if code != 0 || !strings.Contains(out, "the next start begins anew") {
		t.Errorf("new: exit %d: %s%s", code, out, errs)
	}
	s.start(t).stop(t, syscall.SIGTERM)
}

// The removal of a journal while its gateway runs is reported at once.
func TestJournalRemovedWhileRunning(t *testing.T) {
	s, _, db := journalOf(t)
	r := s.start(t)
	if code, body := r.get("/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, body)
	}
	if err := os.Rename(db, db+".taken"); err != nil {
		t.Fatal(err)
	}
	code, body := r.get("/healthz")
	if code != 503 || !strings.Contains(body, "was removed or replaced while the gateway runs") {
		t.Errorf("healthz: %d %s", code, body)
	}
	if code, _, _ := run(t, "status", "-c", s.file); code != 1 {
		t.Errorf("status: exit %d", code)
	}
	if err := os.Rename(db+".taken", db); err != nil {
		t.Fatal(err)
	}
	if code, body := r.get("/healthz"); code != 200 {
		t.Errorf("healthz with the journal again: %d %s", code, body)
	}
	r.stop(t, syscall.SIGTERM)
}

// If a journal was deleted while its gateway runs, the file that the gateway still has open is a backup, as docs/faults.md
// says.
func TestJournalDeletedWhileRunning(t *testing.T) {
	s, dir, _ := journalOf(t)
	r := s.start(t)
	check.NoError(t, os.RemoveAll(dir))
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.cmd.Process.Pid))
	check.NoError(t, err)
	saved := filepath.Join(s.dir, "saved.db")
	for _, fd := range open {
		if at, err := os.Readlink(fd); err == nil && strings.HasSuffix(at, "aldis.db (deleted)") {
			b, err := os.ReadFile(fd)
			check.NoError(t, err)
			check.NoError(t, os.WriteFile(saved, b, 0o600))
		}
	}
	code, body := r.get("/healthz")
	check.True(t, "it says so: "+body, code == 503)
	r.stop(t, syscall.SIGTERM)
	check.Until(t, time.Minute, "the copy is a backup", func() bool { // two starts in a second: the clock has to come by the number of the last
		code, _, _ := run(t, "restore", saved, "-c", s.file)
		return code == 0
	})
	s.start(t).stop(t, syscall.SIGTERM)
}

func TestJournalUsage(t *testing.T) {
	for _, args := range [][]string{{"journal"}, {"journal", "mend"}, {"journal", "check", "--force"}, {"journal", "check", "twice"}} {
		if code, _, errs := run(t, args...); code != cli.ExitUsage || !strings.Contains(errs, "usage: gateway journal") {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
	}
	if code, _, errs := run(t, "journal", "check", "--dir", t.TempDir()); code != 1 || !strings.Contains(errs, "has no journal") {
		t.Errorf("an empty directory: exit %d: %s", code, errs)
	}
	if !gateway.Spare("mail") || gateway.Spare("peer") || gateway.Spare("silence") {
		t.Error("what a gateway can do without")
	}
}
