package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/edge/atrest"
	"aldis/internal/lab/check"
)

// A clear record is sealed at the first start with a key, and stays one chain; a thief can read none of it.
func TestSealed(t *testing.T) {
	dir, secret := t.TempDir(), atrest.Secret("a passphrase of tests")
	now := func() time.Time { return time.Unix(1e9, 0) }
	add := func(l *Log, err error, what string) {
		t.Helper()
		check.NoError(check.Fatal(t), err)
		check.NoError(t, l.Add(Entry{Kind: Order, Name: "silence", What: what, By: "uid 1000 (anna)"}))
		l.Close()
	}
	l, err := Open(dir, now)
	add(l, err, "first order")
	l, err = Open(dir, now)
	add(l, err, strings.Repeat("\x01", 600)) // as long as a line gets
	path := filepath.Join(dir, File)
	text, err := os.ReadFile(path)
	check.NoError(t, err)
	check.NoError(t, os.WriteFile(path+".1", text, 0o600)) // an older file
	check.NoError(t, os.Remove(path))
	check.NoError(t, os.WriteFile(path+".3"+".clear", text, 0o600)) // of a start that was killed
	was := filepath.Join(t.TempDir(), "was")
	check.NoError(t, os.Link(path+".1", was))

	key := secret.NewKey()
	l, err = OpenSealed(dir, now, secret, key)
	add(l, err, "second order")
	l, err = OpenSealed(dir, now, secret, secret.NewKey()) // of a journal that was begun anew
	add(l, err, "third order")
	entries, err := os.ReadDir(dir)
	check.NoError(t, err)
	check.Equal(t, "files", len(entries), 2)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		check.NoError(t, err)
		for _, word := range []string{"order", "anna", "silence"} {
			check.True(t, e.Name()+" does not show "+word, !bytes.Contains(text, []byte(word)))
		}
	}
	left, err := os.ReadFile(was)
	check.NoError(t, err)
	check.True(t, "the old octets are overwritten", bytes.Equal(left, make([]byte, len(text))))

	var whats []string
	check.NoError(t, Each(dir, secret, func(l Line) error { whats = append(whats, l.What); return nil }))
	check.Equal(t, "lines", len(whats), 4)
	check.Equal(t, "the last", whats[3], "third order")
	r, err := Verify(dir, secret, "")
	check.NoError(t, err)
	check.Equal(t, "sound lines", r.Last, 4)
	_, err = Verify(dir, nil, "")
	check.ErrorIs(t, err, ErrSealed)
	_, err = Verify(dir, atrest.Secret("another passphrase"), "")
	check.Contains(t, "the error", err.Error(), "not sealed with this secret")
	_, err = Open(dir, now)
	check.ErrorIs(t, err, ErrSealed)
	again, err := os.ReadDir(dir)
	check.NoError(t, err)
	check.Equal(t, "files after a start that was refused", len(again), 2)
}
