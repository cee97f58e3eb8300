package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// flow is a peer behind b that sends numbered messages to a peer behind a.
type flow struct {
	*talk
	a, b *running
	mu   sync.Mutex
	said int
	// errored is the last error of the sender; a kill causes one.
	errored error
}

// newFlow makes both peers, and returns when a first message has arrived.
func newFlow(t *testing.T) *flow {
	t.Helper()
	f := &flow{}
	f.a, f.b = two(t)
	f.talk = newTalk(t, f.a, f.b)
	f.say()
	f.b.until(t, "the first message is there", func() bool { return f.count()[flowText(1)] == 1 })
	return f
}

func flowText(i int) string { return fmt.Sprintf("m-%06d", i) }

func (f *flow) say() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said++
	if err := f.talk.say(flowText(f.said)); err != nil {
		f.errored = err
	}
}

// count is how often each text has arrived.
func (f *flow) count() map[string]int {
	n := map[string]int{}
	for _, t := range strings.Fields(f.there.all()) {
		n[t]++
	}
	return n
}

// heldBy are the messages in a copy of a journal, and whether each has been transmitted.
func heldBy(t *testing.T, file string) (gone map[string]bool) {
	t.Helper()
	dir := t.TempDir()
	octets, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "aldis.db"), octets, 0o600)
	}
	texts, numbers := map[string]string{}, map[string]bool{}
	if err == nil {
		_, err = journal.Export(dir, nil, nil, func(x journal.Exported) error {
			switch x.Bucket {
			case "mail":
				if i := bytes.Index(x.Value, []byte("m-0")); i >= 0 {
					texts[string(x.Key)] = string(x.Value[i : i+len(flowText(0))])
				}
			case "to":
				numbers[string(x.Key[2:])] = binary.BigEndian.Uint64(x.Value[1:]) != 0
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	gone = map[string]bool{}
	for key, is := range numbers {
		if texts[key] != "" {
			gone[texts[key]] = is
		}
	}
	return gone
}

// A copy is made while messages flow, the gateway is killed, and started in a clean directory with the copy. No message in the
// copy is lost, only messages that the copy has as not transmitted arrive twice, and the far side goes on.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	copies := filepath.Join(f.b.dir, "copy.db")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				f.say()
			}
		}
	}()
	f.b.until(t, "messages wait", func() bool { return f.b.peer(t).Waiting > 50 })
	code, out, errs := run(t, "backup", copies, "-c", f.b.file)
	check.Equal(t, "exit code of backup, and "+errs, code, cli.ExitGood)
	wants(t, out, "a copy of the journal of node 2", "sound")
	atCopy := f.b.peer(t)
	f.b.until(t, "messages go on", func() bool { return f.b.peer(t).Delivered > atCopy.Delivered+20 })
	before := f.b.status(t).IncarnationNumber
	f.b.stop(t, syscall.SIGKILL)
	close(stop)
	<-stopped
	check.Equal(t, "exit code of backup to a file that is there", runCode(t, "backup", copies, "-c", f.b.file), cli.ExitRefused)

	held := heldBy(t, copies)
	check.True(t, "the copy holds messages", len(held) > 20, len(held))
	heardBefore := f.count()
	if err := os.RemoveAll(filepath.Join(f.b.dir, "data")); err != nil {
		t.Fatal(err)
	}
	code, out, errs = run(t, "restore", copies, "-c", f.b.file)
	check.Equal(t, "exit code of restore, and "+errs, code, cli.ExitGood)
	wants(t, out, "copy of node 2")
	check.Until(t, patience, "the second of the last start is over", func() bool { return time.Now().Unix() > int64(before) })
	b := f.b.testSite.start(t)
	check.True(t, "the start has a greater number", b.status(t).IncarnationNumber > before, b.status(t).IncarnationNumber, before)
	b.until(t, "all that the copy held has arrived", func() bool {
		p := b.peer(t)
		if p.Link != "up" || p.Waiting+p.UnderWay > 0 {
			return false
		}
		n := f.count()
		for text := range held {
			if n[text] == 0 {
				return false
			}
		}
		return true
	})
	check.Still(t, time.Second, patience, "what arrives", func() int { return len(strings.Fields(f.there.all())) })
	lost, twice, unexplained := 0, 0, 0
	for text, n := range f.count() {
		if n > 1 {
			twice++
			if gone, there := held[text]; gone || !there {
				unexplained++
			}
		}
	}
	for text := range held {
		if f.count()[text] == 0 {
			lost++
		}
	}
	t.Logf("said %d, heard before the kill %d, the copy held %d: lost %d, twice %d", f.said, len(heardBefore), len(held), lost, twice)
	check.Equal(t, "lost of what the copy held", lost, 0)
	check.Equal(t, "twice though it had been on the air, or not in the copy", unexplained, 0)
	f.a.until(t, "the far side knows the start", func() bool { return f.a.peer(t).Start == b.status(t).IncarnationNumber })

	// The flow continues.
	f.sender, f.b = dialPeer(t, b, "ops again", 3, nil), b
	f.say()
	last := flowText(f.said)
	b.until(t, "a new message arrives", func() bool { return f.count()[last] == 1 })
}

// Messages that wait during silence are in the copy, and arrive once; faults of a copy are reported before anything changes.
func TestRestore(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	copies := filepath.Join(f.b.dir, "copy.db")
	if code, _, errs := run(t, "silence", "on", "-c", f.b.file); code != 0 {
		t.Fatal(errs)
	}
	for range 40 {
		f.say()
	}
	f.b.until(t, "40 wait", func() bool { return f.b.peer(t).Waiting >= 40 })
	check.Equal(t, "exit code of backup", runCode(t, "backup", copies, "-c", f.b.file, "--json"), cli.ExitGood)
	code, _, errs := run(t, "restore", copies, "-c", f.b.file)
	check.Equal(t, "exit code of restore while the gateway runs", code, cli.ExitRefused)
	wants(t, errs, "another gateway uses it")
	f.b.stop(t, syscall.SIGTERM)

	code, _, errs = run(t, "restore", copies, "-c", f.a.file)
	check.Equal(t, "exit code of restore of another node's copy", code, cli.ExitRefused)
	wants(t, errs, "it belongs to another node")
	broken := filepath.Join(f.b.dir, "broken.db")
	octets, err := os.ReadFile(copies)
	if err != nil {
		t.Fatal(err)
	}
	octets[len(octets)/2]++
	for at := 4096 * 2; at < len(octets); at += 512 {
		octets[at] ^= 0x40
	}
	if err := os.WriteFile(broken, octets, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = run(t, "restore", broken, "-c", f.b.file)
	check.Equal(t, "exit code of restore of a broken copy", code, cli.ExitRefused)
	wants(t, errs, "damaged")
	check.Equal(t, "exit code of restore of what is no copy", runCode(t, "restore", f.b.file, "-c", f.b.file), cli.ExitRefused)

	code, out, errs := run(t, "restore", copies, "-c", f.b.file)
	check.Equal(t, "exit code of restore over the journal, and "+errs, code, cli.ExitGood)
	wants(t, out, "the journal that was there is ", "aldis.db.old-")
	b := f.b.testSite.start(t)
	if code, _, errs := run(t, "silence", "off", "-c", b.file); code != 0 {
		t.Fatal(errs)
	}
	b.until(t, "all 41 have arrived", func() bool { return len(f.count()) == 41 })
	b.until(t, "nothing is under way", func() bool { p := b.peer(t); return p.Waiting+p.UnderWay == 0 })
	for text, n := range f.count() {
		check.Equal(t, "times that "+text+" was heard", n, 1)
	}

	// Without a gateway, to standard output, and with no file named.
	b.stop(t, syscall.SIGTERM)
	code, out, _ = run(t, "backup", "-", "-c", b.file)
	check.Equal(t, "exit code of backup to standard output", code, cli.ExitGood)
	check.True(t, "it is a journal", len(out) > 4096, len(out))
	check.Equal(t, "exit code of backup without a file", runCode(t, "backup", "-c", b.file), cli.ExitUsage)
	check.Equal(t, "exit code of restore without a file", runCode(t, "restore", "-c", b.file), cli.ExitUsage)
}
