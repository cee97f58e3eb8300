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
		if ext := filepath.Ext(e.Name()); e.Type().IsRegular() && (ext == ".key" || ext == ".p12") {
			keys = append(keys, filepath.Join(dir, e.Name()))
		}
	}
	return keys
}

// ErrRuns says that a gateway uses a file that is to be destroyed.
var ErrRuns = errors.New("a gateway runs on it: stop that one first, or it writes the destroyed data again")

// Destroyable are the files below a data directory that Destroy shall remove: all but the audit log, which records the destruction.
func Destroyable(dataDir string) (files []string, err error) {
	err = filepath.WalkDir(dataDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "audit.log") {
			return err
		}
		if err := unused(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, path)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return files, nil
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
