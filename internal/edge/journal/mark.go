package journal

import (
	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// markName is the file that says that a directory has a journal. Without it nobody could tell a journal that was lost
// from a directory that is new.
const markName = "aldis.store"

const mostMark = 4096 // octets

// markSealed precedes, in the mark, the field that opens a sealed journal.
const markSealed = "\nsealed "

func markOf(id Identity, store uint32, sealed []byte) string {
	first, last := fmt.Sprintf("node %d %q, store %08x", id.Node, id.Name, store), "\n"
	if sealed != nil {
		first, last = fmt.Sprintf("node %d, store %08x", id.Node, store), markSealed+hex.EncodeToString(sealed)+"\n"
	}
	return first + "\nThe journal is aldis.db. To begin anew without what it held: gateway journal new" + last
}

func readMark(dir string) ([]byte, error) {
	return infile.Read(filepath.Join(dir, markName), mostMark)
}

// markedField is the field of a sealed journal that the mark repeats; nil: there is none.
func markedField(dir string) []byte {
	mark, err := readMark(dir)
	if err != nil {
		return nil
	}
	_, text, _ := strings.Cut(string(mark), markSealed)
	field, _ := hex.DecodeString(strings.TrimSpace(text))
	if len(field) == 0 {
		return nil
	}
	return field
}

// writeMark makes the mark durable, unless it is up to date.
func writeMark(dir string, id Identity, store uint32, sealed []byte) error {
	path, text := filepath.Join(dir, markName), markOf(id, store, sealed)
	if b, err := readMark(dir); err == nil && string(b) == text {
		return nil
	}
	err := func() error {
		f, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := os.Rename(path+unfinished, path); err != nil {
			return err
		}
		return atrest.SyncDir(dir)
	}()
	if err == nil {
		return nil
	}
	if what, way := explain(err); errors.Is(err, syscall.EIO) {
		return fmt.Errorf("journal: %s cannot be written: %s: %w; %s", path, what, err, way)
	}
	return fmt.Errorf("journal: %s cannot be written: %w", path, err)
}

// gone says that the directory had a journal and has lost it.
func gone(dir string) error {
	mark, err := readMark(dir)
	if errors.Is(err, syscall.EIO) { // nobody knows whether there was one
		return openError(dir, err)
	} else if err != nil {
		return nil
	}
	path, what := filepath.Join(dir, fileName), "has 0 octets"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "is missing"
	case err != nil || info.Size() > 0:
		return nil
	}
	return fmt.Errorf("journal: %s %s, and %s says that there was a journal (%s): %w; restore a backup, or begin anew without its messages: gateway journal new --dir %s",
		path, what, markName, firstLine(mark), ErrGone, dir)
}

func firstLine(b []byte) string {
	for i, c := range b {
		if c == '\n' || i == 200 {
			return string(b[:i])
		}
	}
	return string(b)
}
