package journal

import (
	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Backup returns a copy of the store after the last commit, in a file without a name that the caller closes. Commits wait while
// it is made: as long as the disk takes to write as many octets as the store has. Any goroutine may call it.
func (j *Journal) Backup() (*os.File, error) { return j.Freeze()() }

// Freeze makes commits wait from now until the backup is made. The function that it returns makes it, and must be called once.
func (j *Journal) Freeze() (backup func() (*os.File, error)) {
	j.use.Lock()
	return j.copied
}

func (j *Journal) copied() (*os.File, error) {
	defer j.use.Unlock()
	if j.doubtful || j.spent {
		return nil, errors.New("journal: its disk fails: a copy could lack accepted messages; gateway status says what to do")
	}
	size := j.Size()
	return nameless(j.dir, io.NewSectionReader(j.file, 0, size))
}

// BackupOf is Backup of the journal in a directory that nobody uses.
func BackupOf(dir string) (*os.File, error) {
	f, r, err := existing(dir, os.O_RDONLY, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return nameless(dir, io.NewSectionReader(f, 0, r.size))
}

// nameless copies octets into a file without a name, ready to be read.
func nameless(dir string, from io.Reader) (*os.File, error) {
	f, err := withoutName(dir)
	if err == nil {
		if _, err = io.Copy(f, from); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			f.Close()
		}
	}
	switch {
	case err == nil:
		return f, nil
	case isFull(err):
		return nil, fmt.Errorf("journal: there is no room in %s for a second copy of the journal, which a backup needs for a while: %w", dir, err)
	}
	return nil, fmt.Errorf("journal: no copy can be made in %s: %w", dir, err)
}

func withoutName(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "a backup")), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, err
	}
	f, err := os.CreateTemp(dir, fileName+unfinished+"-*") // a file system that has only files with names
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

// CheckBackup reads a file that Backup made, as Check reads a journal.
func CheckBackup(file string) (*Report, error) {
	f, err := infile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return reportOf(f, nil)
}

func reportOf(f *os.File, visit func(record) error) (*Report, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return &Report{Fresh: true}, nil
	}
	r, err := examine(f, info.Size(), visit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return &r.report, nil
}

// Restored is what Restore has done.
type Restored struct {
	*Report            // of the backup
	Old         string // where the journal that was there before is now; "": there was none
	Incarnation uint32 // the greatest known number; the next start's is greater
}

// Restore puts a backup in the place of the journal in a directory that nobody uses, and keeps that journal under another name. The
// incarnation number of the next start is greater than any that the backup, the old journal or the clock knows of, so that the seal
// never repeats a nonce: docs/decisions/incarnations.md. Restore refuses if the clock is behind the known numbers.
func Restore(file, dir string, id Identity, now time.Time) (*Restored, error) {
	in, err := infile.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	rep, err := reportOf(in, nil)
	if err != nil {
		return nil, err
	}
	done := &Restored{Report: rep, Incarnation: rep.Incarnation}
	if err := done.refusal(file, id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: data directory %s cannot be made: %w", dir, err)
	}
	path := filepath.Join(dir, fileName)
	there, err := lock(path, os.O_RDWR)
	switch {
	case err == nil:
		defer there.Close()
		if other, err := reportOf(there, nil); err == nil && other.Node == id.Node {
			done.Incarnation = max(done.Incarnation, other.Incarnation)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, openError(dir, err)
	}
	if known := time.Unix(int64(done.Incarnation), 0); now.Before(known) {
		return nil, fmt.Errorf("the clock says %s, and this node has started at %s: set the clock first, or the far gateways refuse the next start",
			now.UTC().Format(time.RFC3339), known.UTC().Format(time.RFC3339))
	}
	if err := done.write(in, path, id, there != nil); err != nil {
		return nil, fmt.Errorf("journal: %s cannot be restored: %w", path, err)
	}
	return done, writeMark(dir, id, rep.Store, rep.sealed)
}

// refusal says why a backup cannot be restored for a node.
func (d *Restored) refusal(file string, id Identity) error {
	r := d.Report
	switch {
	case r.Fresh, r.Foreign:
		return fmt.Errorf("%s is no journal of a gateway", file)
	case r.Count == 0 && r.Format > formatSealed:
		return fmt.Errorf("%s: %w (format %d; this gateway reads %d); install the newer gateway", file, ErrNewer, r.Format, formatSealed)
	case !r.Sound():
		return fmt.Errorf("%s: %w: %s; take another backup, or put it into a directory as %s and save what can be read: gateway journal repair --dir DIR", file, ErrBroken, r.Problems()[0], fileName)
	case r.Node != id.Node:
		return fmt.Errorf("%s: %w: node %d %q, and this is node %d %q", file, ErrOther, r.Node, r.Name, id.Node, id.Name)
	}
	return nil
}

// write makes the new file beside path, and replaces path with it.
func (d *Restored) write(in *os.File, path string, id Identity, there bool) (err error) {
	w, err := rewrite(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.abandon()
		}
	}()
	if _, err = reportOf(in, func(r record) error { return w.add(clone(r)) }); err != nil {
		return err
	}
	if d.Sealed {
		id.Name = "" // as sealOp has it
	}
	fields := ownOps(id, d.Store, d.Incarnation, d.sealed)
	if d.position != nil { // but no vote: nobody knows how the machine has voted since the backup
		fields = append(fields, Op{own, keyPosition, d.position})
	}
	for _, op := range fields {
		if err = w.add(op); err != nil {
			return err
		}
	}
	if err = w.finish(); err != nil {
		return err
	}
	if err = w.close(); err != nil {
		return err
	}
	if there {
		if d.Old, err = keepOld(path); err != nil {
			return err
		}
	}
	return errors.Join(os.Rename(path+unfinished, path), atrest.SyncDir(filepath.Dir(path)))
}
