package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aldis/internal/edge/atrest"
)

// Progress receives how much of a file has been read. It is called often.
type Progress func(read, size int64)

// followed counts the octets that are read of a file.
type followed struct {
	io.ReaderAt
	size, read int64
	progress   Progress
}

func (f *followed) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(b, at)
	f.read += int64(n)
	if f.progress != nil {
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

// Exported is a record of a journal as Export passes it to visit.
type Exported struct {
	Bucket  string
	Key     []byte
	Value   []byte // of a damaged record: the octets in the file
	Damaged bool
	Aside   bool // it was set aside
	Sealed  bool // Key and Value are as in the file: there was no secret
}

// Export reads a journal that nobody uses, as Open does, and changes nothing. It passes every record to visit, if that is not
// nil. Without a secret it passes the records of a sealed journal as they are in the file; with another journal's secret it
// passes none and returns an error. A record that the secret does not open counts as damaged.
func Export(dir string, secret atrest.Secret, progress Progress, visit func(Exported) error) (*Report, error) {
	f, r, err := existing(dir, os.O_RDONLY, progress)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x := exporter{visit: visit}
	if x.sealed, x.key, err = keyOfFile(f, r.size, secret, dir); err != nil {
		return nil, secretError(dir, err)
	}
	e, err := examine(r, r.size, x.record)
	if err != nil {
		return nil, fmt.Errorf("journal: %s: %w", f.Name(), err)
	}
	e.report.Bad += x.bad
	e.report.Damaged = append(e.report.Damaged, x.damaged...)
	return &e.report, nil
}

// exporter opens records before they reach visit.
type exporter struct {
	sealed  bool
	key     *atrest.Key // nil: there was no secret, or nothing is sealed
	visit   func(Exported) error
	damaged []Damaged
	bad     int
}

func (x *exporter) record(r record) error {
	out := Exported{Bucket: r.bucket, Key: r.key, Value: r.value, Damaged: !r.good, Sealed: x.sealed && x.key == nil}
	if r.good && r.bucket == aside && !out.Sealed {
		x.aside(&out)
	} else if r.good && x.key != nil {
		if key, value, ok := openRecord(x.key, r.bucket, r.key, r.value); ok {
			out.Key, out.Value = key, value
		} else {
			out.Damaged = true
			x.bad++
			if x.bad <= MostDamaged {
				x.damaged = append(x.damaged, Damaged{r.bucket, bytes.Clone(r.key), len(r.value), "it was not sealed with this secret"})
			}
		}
	}
	if x.visit == nil {
		return nil
	}
	return x.visit(out)
}

// aside restores a record that was set aside to its earlier form. It may have been set aside before the journal was sealed.
func (x *exporter) aside(out *Exported) {
	blob := out.Value
	if x.key != nil {
		var ok bool
		if blob, ok = x.key.Open(blob, about(aside, out.Key)); !ok {
			out.Damaged = true
			return
		}
	}
	bucket, key, raw, ok := parseAside(blob)
	if !ok {
		return
	}
	value, good := unseal(bucket, key, raw)
	*out = Exported{Bucket: bucket, Key: key, Value: value, Damaged: !good, Aside: true}
	if x.key != nil && good {
		if key, value, ok := openRecord(x.key, bucket, key, value); ok {
			out.Key, out.Value = key, value
		}
	}
}

// Repair says how to repair a journal that a start refuses.
type Repair struct {
	Identity Identity // the node whose journal it must be; zero: the node that the journal names, if that can be read
	Buckets  []string // names that buckets may have
	NoLoose  bool     // leave out records on pages outside the tree
	Force    bool     // also if the file has no fault
	Progress Progress
	Secret   atrest.Secret // of a sealed journal; the new file is sealed with it too
	// Keep chooses the records of the new file. lost says whether records of a bucket may be missing from them.
	Keep func(records []Op, lost func(bucket string) bool) []Op
}

// Repaired is the result of a repair.
type Repaired struct {
	*Report         // of the old file
	Done     bool   // false: the file had no fault
	Records  int    // that could be read
	Loose    int    // those from pages outside the tree
	Partial  bool   // there are more pages outside the tree than were read
	Written  int    // to the new file
	Old      string // where the old file is now
	NewStore uint32
}

// Do writes a new file with all that can be read of the old one, which it keeps under another name. The new file gets a store
// id of its own.
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
	if err := s.open(p.Secret, dir); err != nil {
		return nil, secretError(dir, err)
	}
	done.Records = len(s.records)
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
	return done, writeMark(dir, p.Identity, done.NewStore, s.sealedField)
}

// claim finds out which node's journal it is.
func (p *Repair) claim(s *salvaged, dir string) error {
	rep := &s.report
	node := s.number(keyNode)
	switch {
	case rep.Foreign:
		return fmt.Errorf("journal: data directory %s: %w; it is another program's", dir, ErrBroken)
	case rep.Count == 0 && rep.Format > formatSealed:
		return fmt.Errorf("journal: data directory %s: %w (format %d; this gateway reads %d); install the newer gateway", dir, ErrNewer, rep.Format, formatSealed)
	case node == 0 && p.Identity.Node == 0:
		return fmt.Errorf("journal: %s no longer says to which node it belongs; name the configuration: -c FILE", filepath.Join(dir, fileName))
	case node == 0:
	case p.Identity.Node == 0:
		name, _ := s.field(keyName)
		p.Identity = Identity{uint16(node), string(name)}
	case node != uint32(p.Identity.Node):
		return fmt.Errorf("journal: data directory %s: %w: node %d, and the configuration is of node %d", dir, ErrOther, node, p.Identity.Node)
	}
	return nil
}

// lost says whether records of a bucket may be missing from those that were read.
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
	w.key = s.key
	for _, op := range append(ownOps(p.Identity, store, s.number(keyIncarnation), s.sealedField), records...) {
		if err := w.add(op); err != nil {
			return "", err
		}
	}
	for key, value := range s.inAside {
		if err := w.put(Op{aside, []byte(key), value}); err != nil {
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
	return old, errors.Join(os.Rename(path+unfinished, path), atrest.SyncDir(filepath.Dir(path)))
}

// keepOld gives a file a second name with the time at which it was put away. The first name stays too, unless the file system
// knows no second names.
func keepOld(path string) (old string, err error) {
	stamp := path + ".old-" + time.Now().UTC().Format("20060102-150405")
	for n := 0; ; n++ {
		old = stamp
		if n > 0 {
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

// NewStart puts a journal away, whatever it holds: the next start in its directory is a new node's. It returns where the old
// file is; "": there was none.
func NewStart(dir string) (old string, err error) {
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
	return old, atrest.SyncDir(dir)
}
