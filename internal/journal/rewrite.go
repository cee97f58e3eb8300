package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// A batch of a rewritten file: memory stays bounded.
const (
	batchOps    = 1000
	batchOctets = 1 << 20
)

// writer writes a store's file anew, beside the old one. Nothing refers to the new one until it is whole.
type writer struct {
	db     *bolt.DB
	path   string
	ops    []Op
	octets int
}

// rewrite begins a new file beside path.
func rewrite(path string) (*writer, error) {
	os.Remove(path + unfinished)
	db, err := openBolt(path+unfinished, nil)
	if err != nil {
		return nil, fmt.Errorf("journal: %s%s: %w", path, unfinished, err)
	}
	db.NoSync = true // once, at the end
	return &writer{db: db, path: path}, nil
}

// add takes an op; its key and value must stay as they are.
func (w *writer) add(op Op) error {
	w.ops = append(w.ops, op)
	w.octets += len(op.Key) + len(op.Value)
	if len(w.ops) < batchOps && w.octets < batchOctets {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	err := w.db.Update(func(tx *bolt.Tx) error { return put(tx, w.ops) })
	w.ops, w.octets = w.ops[:0], 0
	return err
}

// finish makes the file durable. Its name is still that of an unfinished one.
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

// abandon removes what was written.
func (w *writer) abandon() {
	w.db.Close()
	os.Remove(w.path + unfinished)
}

// migrate writes a store of an older format anew, with checksums, puts it in the place of the old one and opens it.
// Killed in the middle, the old file is as it was.
func migrate(f *os.File, size int64) (*bolt.DB, error) {
	path := f.Name()
	w, err := rewrite(path)
	if err == nil {
		if err = w.migrate(f, size); err != nil {
			w.abandon()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %s cannot be brought to format %d: %w; it needs as much free space as it has octets (%d), and is as it was",
			path, format, diskError(err), size)
	}
	return w.db, nil
}

func (w *writer) migrate(f *os.File, size int64) error {
	r, err := examine(f, size, func(r record) error { return w.add(clone(r)) })
	if err != nil {
		return err
	}
	rep := &r.report
	for _, op := range ownOps(Identity{rep.Node, rep.Name}, rep.Store, rep.Boot) {
		if err := w.add(op); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	return errors.Join(os.Rename(w.path+unfinished, w.path), syncDir(filepath.Dir(w.path)))
}

// renew writes the whole store anew and puts it in the place of the old file, so that nothing of it depends on what the
// kernel remembers of a disk that has failed.
func (j *Journal) renew() error {
	path := filepath.Join(j.dir, fileName)
	w, err := rewrite(path)
	if err != nil {
		return err
	}
	if err = j.db.View(w.copy); err == nil {
		err = w.finish()
	}
	if err != nil {
		w.abandon()
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := os.Rename(path+unfinished, path); err != nil {
		w.abandon()
		return err
	}
	j.db.Close() // what it says is of no use any more
	j.db = w.db
	file, err := os.Stat(path)
	if err == nil {
		j.file = file
	}
	return errors.Join(err, syncDir(j.dir))
}

// copy adds all records of another store.
func (w *writer) copy(tx *bolt.Tx) error {
	return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		bucket := string(name)
		return b.ForEach(func(k, v []byte) error {
			if bucket == own && bytes.Equal(k, keyTally) {
				return nil // it follows from the others
			}
			value, good := v, true
			if bucket != own || !bytes.Equal(k, keyFormat) {
				value, good = unseal(bucket, k, v)
			}
			if !good {
				return fmt.Errorf("%w: bucket %q, key %x", ErrBroken, bucket, k)
			}
			return w.add(Op{bucket, bytes.Clone(k), append([]byte{}, value...)})
		})
	})
}
