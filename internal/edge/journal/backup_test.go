package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// save writes a copy to a file.
func save(t *testing.T, from *os.File, err error) (path string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path = filepath.Join(t.TempDir(), "copy")
	f, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(f, from)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

var noon = time.Unix(2_000_000_000, 0)

// Each copy made while another goroutine commits holds the state after exactly one commit: each commit changes all keys.
func TestBackupWhileCommitsGoOn(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	const keys = 40
	commit := func(n int) {
		var ops []Op
		for k := range keys {
			ops = append(ops, Op{"b", []byte{byte(k)}, []byte(strings.Repeat(fmt.Sprintf("%08d", n), 1+n%50))})
		}
		if err := j.Commit(ops); err != nil {
			t.Error(err)
		}
	}
	commit(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				commit(n)
			}
		}
	}()
	for i := range 30 {
		f, err := j.Backup()
		path := save(t, f, err)
		rep, err := CheckBackup(path)
		if err != nil || !rep.Sound() || rep.Node != ship.Node {
			t.Fatalf("copy %d: %v, %v", i, err, rep.Problems())
		}
		clean := t.TempDir()
		if _, err := Restore(path, clean, ship, noon); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		back := open(t, clean)
		if err := back.Load(func(_ string, _, value []byte) error { seen[string(value)]++; return nil }); err != nil {
			t.Fatal(err)
		}
		back.Close()
		if len(seen) != 1 {
			t.Fatalf("copy %d has values of %d commits", i, len(seen))
		}
	}
	close(stop)
	<-stopped
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("beside journal and mark: %v", left)
	}
}

// The next start after a restore has a greater number than any known one: the copy's, the old journal's, and the clock's.
func TestRestoreKeepsTheGreatestStart(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	number := uint32(noon.Unix())
	for _, err := range []error{j.SetIncarnation(number - 1000), j.Commit([]Op{{"b", []byte("k"), []byte("copied")}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := j.Backup()
	path := save(t, f, err)
	store := j.StoreID()
	if _, err := Restore(path, dir, ship, noon); !errors.Is(err, ErrInUse) {
		t.Errorf("while it is used: %v", err)
	}
	for _, err := range []error{j.SetIncarnation(number - 10), j.Commit([]Op{{"b", []byte("k"), []byte("later")}}), j.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Restore(path, dir, ship, noon.Add(-time.Minute)); err == nil || !strings.Contains(err.Error(), "set the clock first") {
		t.Errorf("with a clock behind the last start: %v", err)
	}
	if _, err := Restore(path, dir, Identity{Node: 3, Name: "hq"}, noon); !errors.Is(err, ErrOther) {
		t.Errorf("for another node: %v", err)
	}
	done, err := Restore(path, dir, ship, noon)
	if err != nil || done.Incarnation != number-10 || done.Old == "" {
		t.Fatalf("%v, %+v", err, done)
	}
	back := open(t, dir)
	if back.Incarnation() != number-10 || back.StoreID() != store {
		t.Errorf("incarnation %d, want %d; store %x, want %x", back.Incarnation(), number-10, back.StoreID(), store)
	}
	if err := back.Load(func(_ string, _, value []byte) error {
		if string(value) != "copied" {
			t.Errorf("%q", value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if old, err := CheckBackup(done.Old); err != nil || old.Incarnation != number-10 {
		t.Errorf("the old journal: %v, %+v", err, old)
	}
}

// A file that is not a sound copy of a known version changes nothing.
func TestRestoreRefuses(t *testing.T) {
	source := t.TempDir()
	j := open(t, source)
	if err := j.Commit([]Op{{"b", []byte("k"), make([]byte, 9000)}}); err != nil {
		t.Fatal(err)
	}
	f, err := j.Backup()
	good := save(t, f, err)
	octets, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	newer := t.TempDir()
	former(t, newer, formatSealed+1)
	for name, tt := range map[string]struct {
		octets []byte
		is     error
		says   string
	}{
		"empty":                  {nil, nil, "is no journal of a gateway"},
		"text":                   {[]byte(strings.Repeat("no journal ", 2000)), nil, ""},
		"the first half":         {octets[:len(octets)/2], ErrBroken, ""},
		"damaged":                {damaged(octets), ErrBroken, ""},
		"of a newer version":     {read(t, filepath.Join(newer, fileName)), ErrNewer, "install the newer gateway"},
		"another program's file": {foreign(t), nil, "is no journal of a gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			path, dir := filepath.Join(t.TempDir(), "copy"), t.TempDir()
			if err := os.WriteFile(path, tt.octets, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Restore(path, dir, ship, noon)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func damaged(octets []byte) []byte {
	b := append([]byte(nil), octets...)
	for at := 8192; at < len(b); at += 100 {
		b[at] ^= 1
	}
	return b
}

// foreign is a bbolt file without a gateway's fields.
func foreign(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("shop")); return err }); err != nil {
		t.Fatal(err)
	}
	db.Close()
	return read(t, path)
}

// The journal of a gateway that does not run can be copied too.
func TestBackupOf(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	if f, err := BackupOf(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("of a journal in use: %v, %v", f, err)
	}
	j.Close()
	f, err := BackupOf(dir)
	if rep, err := CheckBackup(save(t, f, err)); err != nil || !rep.Sound() {
		t.Errorf("%v, %v", err, rep)
	}
	if _, err := BackupOf(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no journal") {
		t.Errorf("of a directory without one: %v", err)
	}
}

// A copy of a sealed journal is sealed. It is checked and restored without its secret, but read only with it.
func TestBackupOfASealedJournal(t *testing.T) {
	j := sealed(t, t.TempDir())
	if err := j.Commit([]Op{{"b", []byte("plain key"), []byte("plain value")}}); err != nil {
		t.Fatal(err)
	}
	f, err := j.Backup()
	path := save(t, f, err)
	rep, err := CheckBackup(path)
	if err != nil || !rep.Sound() || !rep.Sealed {
		t.Fatalf("%+v, %v", rep, err)
	}
	clean := t.TempDir()
	if _, err := Restore(path, clean, ship, noon); err != nil {
		t.Fatal(err)
	}
	octets, err := os.ReadFile(filepath.Join(clean, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"plain", ship.Name} {
		if strings.Contains(string(octets), text) {
			t.Errorf("the restored file shows %q", text)
		}
	}
	if _, err := Open(clean, ship); !errors.Is(err, ErrSealed) {
		t.Errorf("without the secret: %v", err)
	}
	seen := map[string]string{}
	back := sealed(t, clean)
	if err := back.Load(func(_ string, key, value []byte) error { seen[string(key)] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	if seen["plain key"] != "plain value" || len(seen) != 1 {
		t.Errorf("it holds %v", seen)
	}
}
