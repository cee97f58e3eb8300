package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
)

var ship = Identity{Node: 2, Name: "ship"}

func open(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir, ship)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// raw changes a store behind the journal's back.
func raw(t *testing.T, dir string, f func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(f); err != nil {
		t.Fatal(err)
	}
}

// former makes a store of format 1 or 2, whose values have no checksums.
func former(t *testing.T, dir string, format uint32, records ...Op) {
	t.Helper()
	raw(t, dir, func(tx *bolt.Tx) error {
		for _, op := range append(records, Op{own, keyFormat, be32(format)}, Op{own, keyNode, be32(2)}, Op{own, keyName, []byte("ship")},
			Op{own, keyStore, be32(0xabcd)}, Op{own, keyIncarnation, be32(77)}) {
			b, err := tx.CreateBucketIfNotExists([]byte(op.Bucket))
			if err != nil {
				return err
			}
			if err := b.Put(op.Key, op.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// A journal of format 1 (version 0.1) or 2 is read, and is of format 3 from then on: older versions then refuse it.
func TestFormerFormat(t *testing.T) {
	for _, f := range []uint32{1, 2} {
		dir := t.TempDir()
		former(t, dir, f, Op{"waiting", []byte("k"), []byte("v")}, Op{"waiting", []byte("empty"), []byte{}})
		for range 2 { // converted to format 3, and read again
			j := open(t, dir)
			if got, want := contents(t, j), (map[string]string{"waiting/k": "v", "waiting/empty": ""}); !maps.Equal(got, want) {
				t.Errorf("format %d: %q is read", f, got)
			}
			if j.Incarnation() != 77 || j.StoreID() != 0xabcd {
				t.Errorf("format %d: incarnation %d, store %x", f, j.Incarnation(), j.StoreID())
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			raw(t, dir, func(tx *bolt.Tx) error {
				if got := tx.Bucket([]byte(own)).Get(keyFormat); !bytes.Equal(got, be32(3)) {
					t.Errorf("format %d: %x in the file", f, got)
				}
				return nil
			})
		}
	}
}

func commit(t *testing.T, j *Journal, ops ...Op) {
	t.Helper()
	if err := j.Commit(ops); err != nil {
		t.Fatal(err)
	}
}

// contents is everything in j as "bucket/key": "value".
func contents(t *testing.T, j *Journal) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := j.Load(func(bucket string, key, value []byte) error {
		m[bucket+"/"+string(key)] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCommitAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	j := open(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: %v, %v", info.Mode(), err)
	}
	if j.Incarnation() != 0 {
		t.Errorf("incarnation of a new store: %d", j.Incarnation())
	}
	store := j.StoreID()
	commit(t, j,
		Op{"out", []byte("b"), []byte("1")},
		Op{"out", []byte("a"), []byte("2")},
		Op{"in", []byte("x"), []byte{}},
		Op{"out", []byte("gone"), []byte("3")},
		Op{"out", []byte("gone"), nil},
		Op{"never made", []byte("k"), nil},
	)
	commit(t, j, Op{"out", []byte("b"), []byte("4")})
	commit(t, j)
	if err := j.SetIncarnation(77); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"in/x": "", "out/a": "2", "out/b": "4"}
	if got := contents(t, j); !maps.Equal(got, want) {
		t.Errorf("before: %v, want %v", got, want)
	}
	j.Close()
	j = open(t, dir)
	if got := contents(t, j); !maps.Equal(got, want) {
		t.Errorf("after: %v, want %v", got, want)
	}
	if j.Incarnation() != 77 || j.StoreID() != store {
		t.Errorf("incarnation %d, store %x; want 77, %x", j.Incarnation(), j.StoreID(), store)
	}
	j.Close()
	if j2 := open(t, t.TempDir()); j2.StoreID() == store {
		t.Error("two stores have one id")
	}
}

func TestCommitIsAllOrNothing(t *testing.T) {
	j := open(t, t.TempDir())
	commit(t, j, Op{"b", []byte("k"), []byte("old")})
	for name, bad := range map[string]Op{
		"no bucket": {"", []byte("k"), []byte("v")},
		"no key":    {"b", nil, []byte("v")},
		"long key":  {"b", make([]byte, 40_000), []byte("v")},
		"own":       {own, keyNode, be32(9)},
	} {
		if err := j.Commit([]Op{{"b", []byte("k"), []byte("new")}, bad}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if got := contents(t, j)["b/k"]; got != "old" {
		t.Errorf("half of a refused commit is there: %q", got)
	}
}

func TestLoadStopsAtError(t *testing.T) {
	j := open(t, t.TempDir())
	commit(t, j, Op{"b", []byte("1"), []byte("v")}, Op{"b", []byte("2"), []byte("v")})
	stop, calls := errors.New("stop"), 0
	err := j.Load(func(string, []byte, []byte) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestOpenRefuses(t *testing.T) {
	made := func(t *testing.T) string { // a directory of node 2
		dir := t.TempDir()
		j, err := Open(dir, ship)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, j, Op{"b", []byte("k"), []byte("v")})
		j.Close()
		return dir
	}
	tests := []struct {
		name  string
		id    Identity
		make  func(t *testing.T) string
		want  error
		words []string
	}{
		{"another node's", Identity{3, "other"}, made, ErrOther, []string{`node 2 "ship"`, `node 3 "other"`, "node.data_dir", "node.id = 2"}},
		{"a newer gateway's", ship, func(t *testing.T) string {
			dir := made(t)
			raw(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte(own)).Put(keyFormat, be32(9)) })
			return dir
		}, ErrNewer, []string{"format 9", "reads 4", "install"}},
		{"in use", ship, func(t *testing.T) string {
			dir := made(t)
			open(t, dir)
			return dir
		}, ErrInUse, []string{"stop that one"}},
		{"another program's", ship, func(t *testing.T) string {
			dir := t.TempDir()
			raw(t, dir, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
			return dir
		}, ErrBroken, []string{"node.data_dir"}},
		{"a lost field", ship, func(t *testing.T) string {
			dir := made(t)
			raw(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte(own)).Delete(keyStore) })
			return dir
		}, ErrBroken, []string{"backup"}},
		{"not a store", ship, func(t *testing.T) string {
			dir := t.TempDir()
			os.WriteFile(filepath.Join(dir, fileName), bytes.Repeat([]byte("text "), 10_000), 0o600)
			return dir
		}, ErrBroken, []string{"aldis.db", "backup"}},
		{"a file", ship, func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "file")
			os.WriteFile(path, nil, 0o600)
			return path
		}, syscall.ENOTDIR, []string{"cannot be made"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.make(t)
			before, _ := os.ReadFile(filepath.Join(dir, fileName))
			j, err := Open(dir, tt.id)
			if err == nil {
				j.Close()
				t.Fatal("accepted")
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			for _, w := range append(tt.words, dir) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if after, _ := os.ReadFile(filepath.Join(dir, fileName)); !bytes.Equal(before, after) {
				t.Error("the refused store was changed")
			}
		})
	}
}

func TestANewNameIsNoOtherNode(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	j, err := Open(dir, Identity{2, "HNoMS Ship"})
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
}

// crashEnv makes the test binary the child of TestKill.
const crashEnv = "ALDIS_JOURNAL_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

// writeForEver commits n = 1, 2, … into two buckets at once and prints n after each commit.
func writeForEver(dir string) {
	j, err := Open(dir, ship)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var n uint32
	j.Load(func(bucket string, key, value []byte) error {
		n = max(n, binary.BigEndian.Uint32(value))
		return nil
	})
	filler := bytes.Repeat([]byte{0xa5}, 3000)
	for {
		n++
		ops := []Op{{"one", []byte("n"), be32(n)}, {"two", []byte("n"), be32(n)},
			{"many", be32(n % 50), append(be32(n), filler...)}, {"many", be32((n + 25) % 50), nil}}
		if err := j.Commit(ops); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// A killed process loses nothing that Commit had confirmed, and leaves no half of a commit.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(9, 9))
	confirmed := 0
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), crashEnv+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 5 + r.IntN(60) {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
		}
		child.Process.Kill()
		for ok := true; ok; ok = lines.Scan() { // lines printed before the kill arrived too
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
			confirmed = n
		}
		child.Wait()

		j := open(t, dir)
		m := contents(t, j)
		one, two := binary.BigEndian.Uint32([]byte(m["one/n"])), binary.BigEndian.Uint32([]byte(m["two/n"]))
		if one != two || int(one) < confirmed || int(one) > confirmed+1 {
			t.Fatalf("round %d: confirmed %d, found %d and %d", round, confirmed, one, two)
		}
		if got := binary.BigEndian.Uint32([]byte(m["many/"+string(be32(one%50))])); got != one {
			t.Fatalf("round %d: confirmed %d, third bucket has %d", round, one, got)
		}
		j.Close()
	}
}

// On a full disk Commit says so, nothing committed is lost, and everything works again once there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("aldis-journal", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatalf("mounting a small tmpfs: %v (this test needs root)", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	j, err := Open(dir, ship)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { j.Close() }()
	value := bytes.Repeat([]byte("v"), 10_000)
	want := map[string]string{}
	put := func(i int) error {
		err := j.Commit([]Op{{"b", be32(uint32(i)), value}})
		if err == nil {
			want["b/"+string(be32(uint32(i)))] = string(value)
		}
		return err
	}
	for i := range 20 {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(filler, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	failed := 0
	for i := 20; i < 60; i++ {
		if err := put(i); err != nil {
			failed++
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("on a full disk: %v", err)
			}
		}
	}
	if failed < 20 {
		t.Errorf("only %d of 40 commits failed on a full disk", failed)
	}
	if got := contents(t, j); !maps.Equal(got, want) {
		t.Errorf("on a full disk %d values are there, want %d", len(got), len(want))
	}
	filler.Close()
	os.Remove(filepath.Join(dir, "filler"))
	for i := 20; i < 60; i++ {
		if err := put(i); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	j.Close()
	if j, err = Open(dir, ship); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, j); !maps.Equal(got, want) || len(got) != 60 {
		t.Errorf("after a restart %d values are there, want %d", len(got), len(want))
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func BenchmarkCommit(b *testing.B) {
	j, err := Open(b.TempDir(), ship)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	value := make([]byte, 300)
	for i := uint32(0); b.Loop(); i++ {
		if err := j.Commit([]Op{{"b", be32(i % 1000), value}}); err != nil {
			b.Fatal(err)
		}
	}
}

// Start with a journal of 100 MB: the part of Open before bbolt maps the file, and all of Open.
func BenchmarkOpen100MB(b *testing.B) {
	dir := b.TempDir()
	j, err := Open(dir, ship)
	if err != nil {
		b.Fatal(err)
	}
	j.db.NoSync = true
	value := make([]byte, 1000)
	for i := range uint32(100) {
		var ops []Op
		for k := range uint32(1000) {
			ops = append(ops, Op{"b", be32(i<<16 | k), value})
		}
		if err := j.Commit(ops); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.db.Sync(); err != nil {
		b.Fatal(err)
	}
	j.Close()
	for b.Loop() {
		j, err := Open(dir, ship)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(j.Size())/1e6, "MB")
		j.Close()
		b.StartTimer()
	}
}
