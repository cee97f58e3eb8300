package baddisk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A device returns the octets written to it. While it fails, fsync reports the failed write; once it is well again, and mounted anew, it
// has its earlier contents.
func TestDisk(t *testing.T) {
	for _, from := range []int64{DataFrom, 0} {
		at := t.TempDir()
		d, err := New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := d.Mount(at); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(at, "file")
		put := func(b byte) error {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(bytes.Repeat([]byte{b}, 100_000))
			return errors.Join(err, f.Sync(), f.Close())
		}
		has := func(b byte) {
			t.Helper()
			got, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{b}, 100_000)) {
				t.Errorf("from %d: %d octets of %q..., %v; want %q", from, len(got), got[:min(1, len(got))], err, b)
			}
		}
		if err := put('a'); err != nil {
			t.Fatal(err)
		}
		if err := d.Fail(Failure{From: from, Writes: true, Reads: true}); err != nil {
			t.Fatal(err)
		}
		if err := put('b'); !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EROFS) {
			t.Errorf("from %d: a write to a device that fails: %v", from, err)
		}
		if n, err := d.Refused(); n == 0 || err != nil {
			t.Errorf("it has refused %d requests, %v", n, err)
		}
		if err := d.Heal(); err != nil {
			t.Fatal(err)
		}
		if err := d.Remount(); err != nil {
			t.Fatal(err)
		}
		has('a')
		if err := put('c'); err != nil {
			t.Errorf("from %d: a write to a device that is well again: %v", from, err)
		}
		has('c')
	}
}

// A device that loses its power keeps the synced octets, and loses those that were only written.
func TestPower(t *testing.T) {
	at := t.TempDir()
	d, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(at); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(at, "file")
	for _, synced := range []bool{true, false} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.WriteString("line")
		}
		if synced {
			err = errors.Join(err, f.Sync())
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.LosePower(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "line" {
		t.Errorf("after the loss of power the file has %q, %v; want what was synced", got, err)
	}
}
