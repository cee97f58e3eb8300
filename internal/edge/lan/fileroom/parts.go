package fileroom

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"aldis/internal/adapters/files"
)

// keep makes a part of a file durable.
func (s *store) keep(hash string, part int, b []byte) error {
	if !isHash(hash) || part < 0 {
		return fmt.Errorf("%q is no file", hash)
	}
	if _, here := s.find(hash); here {
		return nil // it was finished before a crash
	}
	if err := os.MkdirAll(s.path(hash+partsEnd), 0o700); err != nil {
		return err
	}
	return s.write(filepath.Join(hash+partsEnd, strconv.Itoa(part)), b)
}

// finish puts the parts of a file together. It removes them in any case.
func (s *store) finish(o files.Finish, now time.Time) error {
	if !isHash(o.Hash) {
		return fmt.Errorf("%q is no file", o.Hash)
	}
	defer s.forget(o.Hash)
	if _, here := s.find(o.Hash); here {
		return nil
	}
	var all []byte
	for i := 0; int64(len(all)) < o.Size; i++ {
		b, err := s.read(filepath.Join(o.Hash+partsEnd, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return fmt.Errorf("part %d is empty", i)
		}
		all = append(all, b...)
	}
	if got := hashOf(all); got != o.Hash {
		return fmt.Errorf("its SHA-256 is %s", got)
	}
	return s.put(all, meta{Hash: o.Hash, Name: plainName(o.Name), Creator: o.Creator, MIME: cmp.Or(o.MIME, usualMIME), At: now})
}

// forget removes the parts of a file.
func (s *store) forget(hash string) {
	if isHash(hash) {
		os.RemoveAll(s.path(hash + partsEnd))
	}
}

// tidyParts removes parts of a file if none has come for longer than a file lives.
func (s *store) tidyParts(now time.Time) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, d := range list {
		if hash, ok := strings.CutSuffix(d.Name(), partsEnd); ok {
			if info, err := d.Info(); err == nil && now.Sub(info.ModTime()) > s.life {
				s.forget(hash)
			}
		}
	}
}

const (
	usualMIME = "application/x-zip-compressed"
	mostName  = 128
)

// plainName is a file's name made safe to show on a device: no path, and no characters that are invisible or turn the direction
// of writing.
func plainName(name string) string {
	name = strings.ToValidUTF8(name[max(strings.LastIndexByte(name, '/'), strings.LastIndexByte(name, '\\'))+1:], "")
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || strings.ContainsRune(`"*:<>?|`, r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "")
	}
	if strings.Trim(name, ". ") == "" {
		return "package.zip"
	}
	return name
}
