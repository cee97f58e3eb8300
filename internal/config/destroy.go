package config

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
)

// Secrets are the files that hold keys, and the data directory, as a configuration names them. It may have mistakes otherwise.
func Secrets(file string) (keys []string, dataDir string, err error) {
	err = asked(file, func(r *reader) {
		for _, at := range [][2]string{{"link", "key_file"}, {"link", "node_key"}, {"http", "token_file"}} {
			s := section{r, r.tree.tables[at[0]], at[0]}
			if _, ok := s.get(at[1]); ok {
				keys = append(keys, r.resolve(s.text(at[1], false)))
			}
		}
		dataDir = r.resolve(section{r, r.tree.tables["node"], "node"}.text("data_dir", true))
	})
	return keys, dataDir, err
}

// ErrRuns says that a gateway uses a file that is to be destroyed.
var ErrRuns = errors.New("a gateway runs on it: stop that one first, or it writes what is destroyed anew")

// Destroyable are the files of a data directory that Destroy is to have: all but the audit log, which says what was done.
func Destroyable(dataDir string) (files []string, err error) {
	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(dataDir, e.Name())
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "audit.log") {
			continue
		}
		if err := unused(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, path)
	}
	return files, err
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

// Destroy writes chance over a file, has the disk take that, and removes it. One that is not there is no mistake.
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
	return fmt.Errorf("%s was removed, but not overwritten: %w", path, withoutPath(err))
}
