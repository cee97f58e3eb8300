package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Progress hears how much of a file has been read. It is called often.
type Progress func(read, size int64)

// followed counts what is read of a file.
type followed struct {
	io.ReaderAt
	size, read int64
	progress   Progress
}

func (f *followed) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(b, at)
	if f.read += int64(n); f.progress != nil {
		f.progress(min(f.read, f.size), f.size)
	}
	return n, err
}

// existing opens the file of a journal that nobody uses.
func existing(dir string, flags int, progress Progress) (*os.File, *followed, error) {
	path := filepath.Join(dir, fileName)
	if err := gone(dir); err != nil {
		return nil, nil, err
	}
	f, err := lock(path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("journal: data directory %s has no journal (%s)", dir, fileName)
	} else if err != nil {
		return nil, nil, openError(dir, err)
	}
	forget(f)
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, openError(dir, err)
	}
	return f, &followed{ReaderAt: f, size: info.Size(), progress: progress}, nil
}

// Check reads the journal of a directory that nobody uses, as Open does, and changes nothing.
func Check(dir string, progress Progress) (*Report, error) {
	return Export(dir, progress, nil)
}

// Exported is a record of a journal as Export gives it.
type Exported struct {
	Bucket  string
	Key     []byte
	Value   []byte // of a damaged one what the file has
	Damaged bool
	Aside   bool // it was set aside
}

// Export is Check, and gives every record to visit on its way.
func Export(dir string, progress Progress, visit func(Exported) error) (*Report, error) {
	f, r, err := existing(dir, os.O_RDONLY, progress)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := examine(r, r.size, func(r record) error {
		if visit == nil {
			return nil
		}
		x := Exported{Bucket: r.bucket, Key: r.key, Value: r.value, Damaged: !r.good}
		if r.bucket == aside && r.good {
			if bucket, key, raw, ok := parseAside(r.value); ok {
				value, good := unseal(bucket, key, raw)
				x = Exported{Bucket: bucket, Key: key, Value: value, Damaged: !good, Aside: true}
			}
		}
		return visit(x)
	})
	if err != nil {
		return nil, fmt.Errorf("journal: %s: %w", f.Name(), err)
	}
	return &e.report, nil
}

// Repair is what to do with a journal that a start refuses.
type Repair struct {
	Identity Identity // whose it must be; the journal's own where it can be read and this is zero
	Buckets  []string // that there may be
	NoLoose  bool     // leave out what stands on pages outside of the tree
	Force    bool     // also where nothing is wrong with the file
	Progress Progress
	// Keep chooses what the new file holds. lost: records of that bucket may be missing among them.
	Keep func(records []Op, lost func(bucket string) bool) []Op
}

// Repaired is what a repair has done.
type Repaired struct {
	*Report         // of the old file
	Done     bool   // false: nothing was wrong
	Records  int    // that could be read
	Loose    int    // of them, on pages outside of the tree
	Partial  bool   // there are more such pages than were read
	Written  int    // to the new file
	Old      string // where the old file is now
	NewStore uint32
}

// Do writes a new file of what can be read of the old one, which it keeps under another name. The new one has a store id
// of its own.
func (p Repair) Do(dir string) (*Repaired, error) {
	f, r, err := existing(dir, os.O_RDWR, p.Progress)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := salvage(r, r.size, p.Buckets, !p.NoLoose)
	if err != nil {
		return nil, fmt.Errorf("journal: %s: %w", f.Name(), err)
	}
	done := &Repaired{Report: &s.report, Records: len(s.records), Loose: s.loose, Partial: s.most}
	if s.report.Sound() && !p.Force {
		return done, nil
	}
	if err := p.claim(s, dir); err != nil {
		return nil, err
	}
	records := s.records
	if p.Keep != nil {
		records = p.Keep(records, s.lost)
	}
	done.Done, done.Written, done.NewStore = true, len(records), newStoreID()
	done.Old, err = p.write(s, f.Name(), records, done.NewStore)
	if err != nil {
		return nil, fmt.Errorf("journal: %s cannot be repaired: %w; it is as it was", f.Name(), err)
	}
	return done, writeMark(dir, p.Identity, done.NewStore)
}

// claim finds out whose journal it is.
func (p *Repair) claim(s *salvaged, dir string) error {
	rep := &s.report
	node := s.number(keyNode)
	switch {
	case rep.Foreign:
		return fmt.Errorf("journal: data directory %s: %w; it is another program's", dir, ErrBroken)
	case rep.Count == 0 && rep.Format > format:
		return fmt.Errorf("journal: data directory %s: %w (format %d; this gateway reads %d); install the newer gateway", dir, ErrNewer, rep.Format, format)
	case node == 0 && p.Identity.Node == 0:
		return fmt.Errorf("journal: %s does not say any more which node's it is; name the configuration: -c FILE", filepath.Join(dir, fileName))
	case node == 0:
	case p.Identity.Node == 0:
		name, _ := s.field(keyName)
		p.Identity = Identity{uint16(node), string(name)}
	case node != uint32(p.Identity.Node):
		return fmt.Errorf("journal: data directory %s: %w: node %d, and the configuration is of node %d", dir, ErrOther, node, p.Identity.Node)
	}
	return nil
}

// lost says whether records of a bucket may be missing among what was read.
func (s *salvaged) lost(bucket string) bool {
	for _, l := range s.walked.Lost {
		if l.All || l.Bucket == bucket {
			return true
		}
	}
	for _, d := range s.damaged {
		if d.Bucket == bucket {
			return true
		}
	}
	return s.report.Missing > 0 || s.report.Stale || s.report.Bad > len(s.damaged)
}

// write makes the new file and puts it in the place of the old one.
func (p Repair) write(s *salvaged, path string, records []Op, store uint32) (old string, err error) {
	w, err := rewrite(path)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			w.abandon()
		}
	}()
	for _, op := range append(ownOps(p.Identity, store, s.number(keyBoot)), records...) {
		if err := w.add(op); err != nil {
			return "", err
		}
	}
	for key, value := range s.inAside {
		if err := w.add(Op{aside, []byte(key), value}); err != nil {
			return "", err
		}
	}
	if err := w.finish(); err != nil {
		return "", err
	}
	if err := w.close(); err != nil {
		return "", err
	}
	if old, err = keepOld(path); err != nil {
		return "", err
	}
	return old, errors.Join(os.Rename(path+unfinished, path), syncDir(filepath.Dir(path)))
}

// keepOld gives a file a second name that tells when it was put away. The first still leads to it, but on a disk that
// knows no second names.
func keepOld(path string) (old string, err error) {
	stamp := path + ".old-" + time.Now().UTC().Format("20060102-150405")
	for n := 0; ; n++ {
		if old = stamp; n > 0 {
			old = fmt.Sprintf("%s-%d", stamp, n)
		}
		switch err = os.Link(path, old); {
		case err == nil:
			return old, nil
		case !errors.Is(err, fs.ErrExist):
			return old, os.Rename(path, old)
		}
	}
}

// Anew puts a journal away, whatever it holds, so that the next start of its directory is that of a new node. It returns
// where the old file is; "": there was none.
func Anew(dir string) (old string, err error) {
	path := filepath.Join(dir, fileName)
	f, err := lock(path, os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", openError(dir, err)
	default:
		defer f.Close()
		if old, err = keepOld(path); err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("journal: %s: %w", path, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, markName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return old, fmt.Errorf("journal: %w", err)
	}
	return old, syncDir(dir)
}
