package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// clock is a time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func open(t *testing.T, dir string, c *clock) *Log {
	t.Helper()
	l, err := Open(dir, c.now)
	check.NoError(check.Fatal(t), err)
	t.Cleanup(l.Close)
	return l
}

// filled is a directory with a record of n orders.
func filled(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir, &clock{noon})
	for i := range n {
		check.NoError(check.Fatal(t), l.Add(Entry{Kind: Order, Name: "silence", What: fmt.Sprintf("on, %d <&>", i), By: "uid 0 (root)"}))
	}
	l.Close()
	return dir
}

func TestChain(t *testing.T) {
	dir := filled(t, 3)
	r, err := Verify(dir, nil, "")
	check.NoError(t, err)
	check.Equal(t, "lines", r.Lines, 3)
	noted := r.Head
	l := open(t, dir, &clock{noon.Add(time.Hour)})
	number, hash := l.Head()
	check.Equal(t, "number after a start", number, 3)
	check.Equal(t, "hash after a start", hash, noted)
	check.NoError(t, l.Add(Entry{Kind: End}))
	r, err = Verify(dir, nil, noted)
	check.NoError(t, err)
	check.Equal(t, "the noted hash is there", r.Found, true)
	check.Equal(t, "last", r.Last, 4)
	r, err = Verify(dir, nil, strings.Repeat("ab", 32))
	check.NoError(t, err)
	check.Equal(t, "another hash is there", r.Found, false)
}

// Whichever bit of a record is flipped, Verify reports it. The one exception is a bit that makes the last line a torn one, which
// the noted hash shows.
func TestEveryOctetCounts(t *testing.T) {
	dir := filled(t, 3)
	path := filepath.Join(dir, File)
	whole, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	was, err := Verify(dir, nil, "")
	check.NoError(t, err)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 7)
		check.NoError(check.Fatal(t), os.WriteFile(path, b, 0o600))
		if r, err := Verify(dir, nil, was.Head); err == nil && r.Found {
			t.Fatalf("octet %d changed: Verify finds nothing wrong", i)
		}
	}
}

func TestLinesTakenOutAndWrittenAnew(t *testing.T) {
	dir := filled(t, 4)
	path := filepath.Join(dir, File)
	whole, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	lines := bytes.SplitAfter(whole, []byte("\n"))[:4]
	other, err := os.ReadFile(filepath.Join(filled(t, 2), File))
	check.NoError(check.Fatal(t), err)
	forged := bytes.SplitAfter(bytes.ReplaceAll(other, []byte("on, "), []byte("on, ")), []byte("\n"))
	for _, tt := range []struct {
		name string
		text [][]byte
		want string
	}{
		{"second out", [][]byte{lines[0], lines[2], lines[3]}, "taken out"},
		{"swapped", [][]byte{lines[0], lines[2], lines[1], lines[3]}, "taken out"},
		{"twice", [][]byte{lines[0], lines[1], lines[1]}, "put in"},
		{"no line", [][]byte{lines[0], []byte("{}\n"), lines[1]}, "no line"},
		{"too long", [][]byte{lines[0], append(bytes.Repeat([]byte(" "), lineMost), '\n')}, "no line"},
		{"of another record", [][]byte{forged[0], lines[1]}, ""},
	} {
		check.NoError(check.Fatal(t), os.WriteFile(path, bytes.Join(tt.text, nil), 0o600))
		_, err := Verify(dir, nil, "")
		if tt.want == "" { // the same line: the same order at the same time by the same man
			check.NoError(check.In(t, tt.name), err)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Lines taken off the front or the end of a record are reported as missing, with a noted hash and without.
func TestWhatIsMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		cut  func(text []byte) []byte
		says string
	}{
		"two lines off the front": {func(b []byte) []byte { return bytes.SplitAfterN(b, []byte("\n"), 3)[2] }, "it begins with line 3"},
		"all but the last line":   {func(b []byte) []byte { return bytes.SplitAfterN(b, []byte("\n"), 7)[6] }, "it begins with line 7"},
		"emptied":                 {func([]byte) []byte { return nil }, "there is no line in it"},
		"half a last line":        {func(b []byte) []byte { return b[:len(b)-20] }, "behind line 6 is half a line"},
	} {
		in := check.In(t, name)
		dir := filled(t, 7)
		whole, err := Verify(dir, nil, "")
		check.NoError(in, err)
		path := filepath.Join(dir, File)
		b, err := os.ReadFile(path)
		check.NoError(in, err)
		check.NoError(in, os.WriteFile(path, tt.cut(b), 0o600))
		for _, noted := range []string{"", whole.Head} {
			_, err = Verify(dir, nil, noted)
			check.True(in, "it is said", err != nil && strings.Contains(err.Error(), tt.says), err)
		}
	}
}

// A crash may cut the file anywhere: the next start continues after the last whole line, and enters that it did.
func TestTorn(t *testing.T) {
	dir := filled(t, 2)
	path := filepath.Join(dir, File)
	whole, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := range len(whole) {
		check.NoError(check.Fatal(t), os.WriteFile(path, whole[:cut], 0o600))
		l := open(t, dir, &clock{noon})
		check.NoError(check.Fatal(t), l.Add(Entry{Kind: Start}))
		l.Close()
		var kinds []Kind
		check.NoError(check.Fatal(t), Each(dir, nil, func(l Line) error { kinds = append(kinds, l.Kind); return nil }))
		want := []Kind{Torn, Start}
		switch {
		case cut == 0 || cut == first:
			want = want[1:]
		}
		if cut >= first {
			want = append([]Kind{Order}, want...)
		}
		check.Equal(check.In(t, fmt.Sprint(cut)), "kinds", fmt.Sprint(kinds), fmt.Sprint(want))
	}
}

// A damaged last line does not keep a gateway from starting: all files are put aside, and the new record says so.
func TestDamagedEnd(t *testing.T) {
	dir := filled(t, 2)
	path := filepath.Join(dir, File)
	whole, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(filepath.Join(dir, File+".1"), whole, 0o600))
	whole[len(whole)-20] ^= 1
	check.NoError(t, os.WriteFile(path, whole, 0o600))
	open(t, dir, &clock{noon})
	var found []Line
	check.NoError(t, Each(dir, nil, func(l Line) error { found = append(found, l); return nil }))
	check.Equal(check.Fatal(t), "lines", len(found), 1)
	check.Equal(t, "kind", found[0].Kind, Damaged)
	for _, name := range []string{File, File + ".1"} {
		_, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%s.damaged-%d", name, noon.Unix())))
		check.NoError(t, err)
	}
}

// Full files are renamed and stay below their bound, and the chain connects all of them, across starts too.
func TestFilesTurn(t *testing.T) {
	dir := t.TempDir()
	c := &clock{noon}
	l := open(t, dir, c)
	long := strings.Repeat("x", MaxText+100)
	l.size = fileMost
	for i := range 3 * filesKept {
		check.NoError(check.Fatal(t), l.Add(Entry{Kind: Order, What: long}))
		if i%5 == 0 {
			l.Close()
			l = open(t, dir, c)
		}
		l.size = fileMost // as if it were full
	}
	l.Close()
	paths, err := Files(dir)
	check.NoError(t, err)
	check.Equal(t, "files", len(paths), filesKept)
	r, err := Verify(dir, nil, "")
	check.NoError(t, err)
	check.Equal(t, "last", r.Last, 3*filesKept)
	check.Equal(t, "lines", r.Lines, filesKept)
	check.NoError(t, Each(dir, nil, func(l Line) error {
		check.Equal(t, "octets kept of a text", len(l.What), MaxText+len("..."))
		return nil
	}))
}

// Users that may not give orders cannot fill the record with refusals.
func TestRefusedOrdersAreBounded(t *testing.T) {
	dir := t.TempDir()
	c := &clock{noon}
	l := open(t, dir, c)
	for range 1000 {
		check.NoError(t, l.Add(Entry{Kind: OrderRefused}))
	}
	check.NoError(t, l.Add(Entry{Kind: Order}))
	c.at = c.at.Add(period)
	check.NoError(t, l.Add(Entry{Kind: OrderRefused}))
	kinds, leftOut := map[Kind]int{}, 0
	check.NoError(t, Each(dir, nil, func(l Line) error { kinds[l.Kind]++; leftOut += l.LeftOut; return nil }))
	check.Equal(t, "refused", kinds[OrderRefused], periodMost+1)
	check.Equal(t, "orders", kinds[Order], 1)
	check.Equal(t, "left out", leftOut, 1000-periodMost)
}

func TestClosedAndAbsent(t *testing.T) {
	if err := new(Log).Add(Entry{Kind: Start}); err == nil {
		t.Error("a log that was never opened took an entry")
	}
	_, err := Verify(t.TempDir(), nil, "")
	check.Equal(t, "no record is os.ErrNotExist", errors.Is(err, os.ErrNotExist), true)
}

func FuzzParseLine(f *testing.F) {
	dir := f.TempDir()
	l, err := Open(dir, (&clock{noon}).now)
	check.NoError(check.Fatal(f), err)
	check.NoError(f, l.Add(Entry{Kind: Refused, Counts: map[string]uint64{"replay": 2}}))
	whole, _ := os.ReadFile(filepath.Join(dir, File))
	f.Add(bytes.TrimSpace(whole))
	f.Fuzz(func(t *testing.T, text []byte) {
		if line, err := parseLine(text); err == nil && line.Hash != line.sum() {
			t.Error("taken with a wrong hash")
		}
	})
}
