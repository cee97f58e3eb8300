package audit

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
)

// Files are the files of the record in dir, the oldest first. An error matches os.ErrNotExist where there is none.
func Files(dir string) (paths []string, err error) {
	l := Log{dir: dir}
	for age := filesKept - 1; age >= 0; age-- {
		_, err = os.Lstat(l.path(age))
		switch {
		case err == nil:
			paths = append(paths, l.path(age))
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
	}
	if len(paths) == 0 {
		return nil, err
	}
	return paths, nil
}

// Each calls f with the lines of the record in dir, the oldest first. It stops at the first error of f, at a line that
// parseLine refuses, and where the chain is broken. Half a line at the end of the newest file is left out: the next start cuts
// it off. At a sealed line it returns ErrSealed if there is no secret (nil).
func Each(dir string, secret atrest.Secret, f func(Line) error) error {
	return (&keys{secret: secret}).each(dir, f)
}

func (k *keys) each(dir string, f func(Line) error) error {
	paths, err := Files(dir)
	if err != nil {
		return err
	}
	var before Line
	for _, path := range paths {
		err := k.read(path, func(l Line) error {
			switch {
			case before.Number == 0 && l.Number == 1 && l.Before != zero:
				return errors.New("line 1 follows another: lines before it were taken out")
			case before.Number != 0 && l.Number != before.Number+1:
				return fmt.Errorf("line %d follows line %d: lines between them were taken out, or others put in", l.Number, before.Number)
			case before.Number != 0 && l.Before != before.Hash:
				return fmt.Errorf("line %d does not fit the line before it: one of them was written anew", l.Number)
			}
			before = l
			return f(l)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, infile.Why(err))
		}
	}
	return nil
}

// read calls f with the whole lines of a file.
func (k *keys) read(path string, f func(Line) error) error {
	file, err := infile.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	k.torn = 0
	r := bufio.NewReaderSize(file, int(sealedMost))
	for at := 1; ; at++ {
		text, err := r.ReadSlice('\n')
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("row %d: %w", at, ErrLine)
		default:
			k.torn = len(text)
			return nil // the end, or half a line
		}
		l, err := k.parse(text[:len(text)-1])
		if err != nil {
			return fmt.Errorf("row %d: %w", at, err)
		}
		if err := f(l); err != nil {
			return err
		}
	}
}

// Report is what Verify found.
type Report struct {
	Lines uint64 `json:"lines"`
	First uint64 `json:"first"` // number of the oldest line that is kept
	Last  uint64 `json:"last"`
	Head  string `json:"head"` // the hash of the last line
	// Found says that the record has a line with the noted hash; true if no hash was given.
	Found bool `json:"found"`
}

// Verify reads the record in dir and checks its chain. It also reports missing lines that a gateway never removes itself: those before the
// oldest line, while no old file has been removed yet, and those behind the last. noted is a hash that somebody noted earlier, or "".
// secret opens sealed lines; nil: there is none.
func Verify(dir string, secret atrest.Secret, noted string) (r Report, err error) {
	r.Found = noted == ""
	k := &keys{secret: secret}
	err = k.each(dir, func(l Line) error {
		if r.Lines == 0 {
			r.First = l.Number
		}
		r.Lines, r.Last, r.Head = r.Lines+1, l.Number, l.Hash
		r.Found = r.Found || l.Hash == noted
		return nil
	})
	if err == nil {
		err = r.missing(dir, k.torn)
	}
	return r, err
}

// missing reports lines that were taken out before or behind a sound chain.
func (r *Report) missing(dir string, torn int) error {
	paths, err := Files(dir)
	if err != nil {
		return err
	}
	switch {
	case r.Lines == 0:
		return fmt.Errorf("%s: there is no line in it: it was emptied, or nothing was ever entered", paths[0])
	case r.First > 1 && len(paths) < filesKept:
		return fmt.Errorf("%s: it begins with line %d, and no file was left out of the record yet: the lines before were taken out", paths[0], r.First)
	case torn > 0:
		return fmt.Errorf("%s: behind line %d is half a line, of %d octets: a crash left it, or its rest was taken out", paths[len(paths)-1], r.Last, torn)
	}
	return nil
}
