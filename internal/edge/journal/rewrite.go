package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/edge/atrest"
)

// unfinished is the suffix of a file that is being written.
const unfinished = ".new"

// Bounds of a batch of a rewritten file, which bound the memory.
const (
	batchOps    = 1000
	batchOctets = 1 << 20
)

// writer writes a store's file anew, beside the old one. Nothing refers to the new one until it is whole.
type writer struct {
	*store
	path   string
	key    *atrest.Key // seals the ops that are added; nil: they are sealed already, or stay unsealed
	ops    []Op
	octets int
}

// rewrite begins a new file beside path.
func rewrite(path string) (*writer, error) {
	os.Remove(path + unfinished)
	f, err := lock(path+unfinished, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	s, err := openStore(f, state{})
	if err != nil {
		f.Close()
		return nil, err
	}
	s.db.NoSync = true // synced once, at the end
	return &writer{store: s, path: path}, nil
}

// add takes an op, and seals it if there is a key; the op's key and value must not change afterwards.
func (w *writer) add(op Op) error {
	if w.key != nil {
		op = sealOp(w.key, op)
	}
	return w.put(op)
}

// put takes an op as the file stores it.
func (w *writer) put(op Op) error {
	w.ops = append(w.ops, op)
	w.octets += len(op.Key) + len(op.Value)
	if len(w.ops) < batchOps && w.octets < batchOctets {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	err := w.update(func(tx *bolt.Tx) error { return put(tx, w.ops) })
	w.ops, w.octets = w.ops[:0], 0
	return err
}

// finish makes the file durable. Its name still has the suffix unfinished.
func (w *writer) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.db.Sync(); err != nil {
		return err
	}
	w.db.NoSync = false
	return nil
}

// abandon removes the unfinished file.
func (w *writer) abandon() {
	w.close()
	os.Remove(w.path + unfinished)
}

// migrate rewrites a store of an older format with checksums, replaces the old file and opens the new one. If it is killed in
// the middle, the old file is unchanged.
func migrate(f *os.File, size int64) (*store, error) {
	path := f.Name()
	w, err := rewrite(path)
	if err == nil {
		if err = w.migrate(f, size); err != nil {
			w.abandon()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %s cannot be brought to format %d: %w; it needs as much free space as it has octets (%d), and is as it was",
			path, format, err, size)
	}
	return w.store, nil
}

func (w *writer) migrate(f *os.File, size int64) error {
	r, err := examine(f, size, func(r record) error { return w.add(clone(r)) })
	if err != nil {
		return err
	}
	rep := &r.report
	for _, op := range ownOps(Identity{rep.Node, rep.Name}, rep.Store, rep.Incarnation, nil) {
		if err := w.add(op); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	w.dense = fill(w.file) == nil
	return errors.Join(os.Rename(w.path+unfinished, w.path), atrest.SyncDir(filepath.Dir(w.path)))
}

// renew rewrites the whole store and replaces the old file, so that nothing depends on the kernel's cache of a disk that has
// failed. It reads the old file at the last durable transaction, and no page of it through bbolt's map. The new file counts
// once the disk has returned all of it.
func (j *Journal) renew() error {
	path := filepath.Join(j.dir, fileName)
	switch now, err := os.Stat(path); {
	case err != nil:
		return err
	case !os.SameFile(now, j.info):
		return fmt.Errorf("%w: another file is in its place", ErrGone)
	}
	fresh, err := replace(path, j.store)
	if err != nil {
		return err
	}
	old := j.store
	info, err := fresh.file.Stat()
	j.mu.Lock()
	j.store, j.info = fresh, info
	j.mu.Unlock()
	old.close() // its error does not matter any more
	return errors.Join(err, atrest.SyncDir(j.dir))
}

// replace writes a new file with all that a store held after its last transaction, and puts it in the place of the old one. The
// caller makes the name durable.
func replace(path string, from *store) (*store, error) {
	w, err := rewrite(path)
	if err != nil {
		return nil, err
	}
	if err = w.copy(from); err == nil {
		err = w.finish()
	}
	if err != nil {
		w.abandon()
		return nil, err
	}
	fresh, err := w.reopen()
	if err == nil {
		if err = os.Rename(path+unfinished, path); err != nil {
			fresh.close()
		}
	}
	if err != nil {
		os.Remove(path + unfinished)
		return nil, err
	}
	return fresh, nil
}

// takeBack opens a file whose newest transaction lacks pages that never reached the disk, in its state before that transaction.
// Nobody received a confirmation of that transaction, because a commit looks for such pages first.
func takeBack(f *os.File, before state) (*store, error) {
	s, err := replace(f.Name(), &store{file: f, last: before})
	if err != nil {
		return nil, fmt.Errorf("journal: %s: the disk lost pages of the last, unconfirmed transaction, and the file cannot be rewritten without them: %w", f.Name(), err)
	}
	return s, atrest.SyncDir(filepath.Dir(f.Name()))
}

// before is the state of a file before its newest transaction, and its report; nil: that transaction was confirmed, as far as
// one can see, or the earlier state cannot be read either.
func before(f *os.File, newest *reader) (*Report, state) {
	if at, err := dropped(f); err != nil || at == nil || newest.report.Sound() {
		return nil, state{}
	}
	for _, m := range newest.file.Metas {
		if !m.Valid || m.Tx >= newest.file.Tx() {
			continue
		}
		e, err := examineAt(f, newest.report.Octets, m.Tx, nil)
		if err == nil && e.report.Sound() && !e.report.Fresh && e.report.Format >= firstChecked {
			return &e.report, state{m.Tx, e.found}
		}
	}
	return nil, state{}
}

// reopen opens the finished file anew, after the disk has returned all of it.
func (w *writer) reopen() (*store, error) {
	want := w.last
	if err := w.close(); err != nil {
		return nil, err
	}
	f, err := lock(w.path+unfinished, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	forget(f)
	s, err := openAt(f, want)
	if err != nil {
		f.Close()
	}
	return s, err
}

// openAt opens a file if the disk returns the state that is wanted.
func openAt(f *os.File, want state) (*store, error) {
	e, err := examineState(f, want, nil)
	if err != nil {
		return nil, err
	}
	if e.file.Newest() != want.tx {
		return nil, &unsoundError{"the disk gives another file than was written"}
	}
	return openStore(f, want)
}

// examineState reads a file at a state, and returns an error if anything of that state is missing.
func examineState(f *os.File, want state, visit func(record) error) (*reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	e, err := examineAt(f, info.Size(), want.tx, visit)
	switch {
	case err != nil:
		return nil, err
	case !e.report.Sound():
		return nil, &unsoundError{e.report.Problems()[0]}
	case e.found != want.tally:
		return nil, &unsoundError{"the disk gives other records than were written"}
	}
	return e, nil
}

// copy adds all records that another store held after its last transaction.
func (w *writer) copy(from *store) error {
	e, err := examineState(from.file, from.last, func(r record) error {
		if !r.good {
			return &unsoundError{fmt.Sprintf("bucket %q, key %x is not as it was written", r.bucket, r.key)}
		}
		return w.add(clone(r))
	})
	if err != nil {
		return err
	}
	for name, sealed := range e.own {
		key := []byte(name)
		if value, ok := e.field(key); !bytes.Equal(key, keyTally) && ok {
			if err := w.add(Op{own, key, value}); err != nil {
				return err
			}
		} else if !ok {
			return &unsoundError{fmt.Sprintf("the field %q is not as it was written (%x)", name, sealed)}
		}
	}
	return nil
}
