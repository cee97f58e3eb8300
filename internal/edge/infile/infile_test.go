package infile

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// A path to anything but a regular file is refused without waiting, and a file longer than the bound is not read.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	ln, err := net.Listen("unix", at("socket"))
	check.NoError(check.Fatal(t), err)
	defer ln.Close()
	check.NoError(t, os.Symlink("/dev/zero", at("zero")))
	check.NoError(t, os.WriteFile(at("file"), []byte("abc"), 0o600))
	for path, want := range map[string]string{
		at("fifo"): "is not a file but a pipe or socket", at("socket"): "is not a file but a pipe or socket", at("zero"): "is not a file but a device", dir: "is a directory, which is not a file",
	} {
		for _, flags := range []int{os.O_RDONLY, os.O_RDWR} {
			_, err := OpenAs(path, flags, 0)
			if flags == os.O_RDWR && path == dir {
				continue // the kernel refuses that
			}
			var of *fs.PathError
			check.True(check.Fatal(t), "the error names the path apart", errors.As(err, &of))
			check.Equal(t, filepath.Base(path), of.Err.Error(), want)
		}
		_, err := Read(path, 10)
		check.True(t, "nor is it read", err != nil)
	}
	b, err := Read(at("file"), 3)
	check.True(t, "three octets", err == nil && bytes.Equal(b, []byte("abc")))
	_, err = Read(at("file"), 2)
	check.Contains(t, "too long", err.Error(), "has 3 octets, at most 2 are read")
	_, err = Read(at("none"), 2)
	check.ErrorIs(t, err, fs.ErrNotExist)
	check.NoError(t, os.WriteFile(at("empty"), nil, 0o600))
	b, err = Read(at("empty"), 2)
	check.True(t, "nothing in it", err == nil && len(b) == 0)
}
