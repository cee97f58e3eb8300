package keyfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"aldis/internal/edge/infile"
)

// KeysIn are the private keys in a directory of certificates, the authority's too: single files, or PKCS #12.
func KeysIn(dir string) (keys []string) {
	entries, err := os.ReadDir(dir)
	if err != nil { // then nobody could use any keys in it
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a link to a file counts
			continue
		}
		if ext := filepath.Ext(path); ext == ".key" || ext == ".p12" {
			keys = append(keys, path)
		}
	}
	return keys
}

// ErrRuns says that a gateway uses a file that is to be destroyed.
var ErrRuns = errors.New("a gateway runs on it: stop that one first, or it writes the destroyed data again")

// Destroyable are the files below a data directory that Destroy shall remove: all but the audit log, which records the destruction. Links to
// files are among them. An error besides ErrRuns says what is not.
func Destroyable(dataDir string) (files []string, err error) {
	root, err := filepath.EvalSymlinks(dataDir) // WalkDir follows no link
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var left error
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			left = errors.Join(left, err)
			return nil
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(e.Name(), "audit.log"):
		case err != nil:
			left = errors.Join(left, err)
		case info.IsDir() && !e.IsDir():
			left = errors.Join(left, fmt.Errorf("%s: a link to a directory, which is not destroyed: do that by hand", path))
		case info.Mode().IsRegular():
			if err := unused(path); errors.Is(err, ErrRuns) {
				return fmt.Errorf("%s: %w", path, err)
			}
			files = append(files, path) // Destroy says why it cannot be opened
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return files, left
}

// unused says that no gateway holds a file.
func unused(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrRuns
	}
	return nil
}

// Destroy overwrites a file with random octets, syncs them to the disk, and removes the file. A missing file is no error.
func Destroy(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, info.Size())
	}
	if err == nil {
		err = f.Sync()
	}
	f.Close()
	if gone := os.Remove(path); gone != nil || err == nil {
		return gone
	}
	return fmt.Errorf("%s was removed, but not overwritten: %w", path, infile.Why(err))
}
