package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/edge/atrest"
)

// Fields of a site of two gateways (docs/decisions/two-at-a-site.md). They are this machine's own: no snapshot has them.
var (
	keyPair     = []byte("pair")     // what the machine has voted
	keyPosition = []byte("position") // with which commit the journal ends
)

// Pair returns this machine's stored vote, and the commit at which the journal ends; nil: none yet.
func (j *Journal) Pair() (vote, position []byte) {
	_ = j.view(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte(own)); b != nil {
			if v, good := unseal(own, keyPair, b.Get(keyPair)); good {
				vote = bytes.Clone(v)
			}
			if v, good := unseal(own, keyPosition, b.Get(keyPosition)); good {
				position = bytes.Clone(v)
			}
		}
		return nil
	})
	return vote, position
}

// SetVote makes this machine's vote durable.
func (j *Journal) SetVote(vote []byte) error { return j.commit([]Op{{own, keyPair, vote}}) }

// CommitAt is Commit; the journal then ends at this commit.
func (j *Journal) CommitAt(ops []Op, position []byte) error {
	all := append(make([]Op, 0, len(ops)+1), ops...)
	return j.commit(append(all, Op{own, keyPosition, position}))
}

// Records calls f for each record of a copy that Backup has made of this journal, opened, and closes the copy. Key and value are good
// until f returns.
func (j *Journal) Records(copied *os.File, f func(Op) error) error {
	defer copied.Close()
	size, err := copied.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = examine(copied, size, func(r record) error {
		if isOwn(r.bucket) {
			return nil
		}
		op := Op{r.bucket, r.key, r.value}
		if j.key != nil {
			var ok bool
			if op.Key, op.Value, ok = openRecord(j.key, r.bucket, r.key, r.value); !ok {
				return fmt.Errorf("journal: %w: bucket %q, key %x was not sealed with its secret", ErrBroken, r.bucket, r.key)
			}
		}
		if !r.good {
			return fmt.Errorf("journal: %w: bucket %q, key %x", ErrBroken, r.bucket, r.key)
		}
		return f(op)
	})
	return err
}

// Refill is a journal's new content while it is being written. The journal does not change before Finish.
type Refill struct {
	j *Journal
	w *writer
}

// Refill begins the new content of a journal that follows another one.
func (j *Journal) Refill() (*Refill, error) {
	w, err := rewrite(filepath.Join(j.dir, fileName))
	if err != nil {
		return nil, j.trouble(err)
	}
	w.key = j.key
	return &Refill{j, w}, nil
}

// Add takes a record, whose key and value must stay as they are.
func (r *Refill) Add(op Op) error {
	if isOwn(op.Bucket) {
		return fmt.Errorf("journal: bucket %q is the journal's own", op.Bucket)
	}
	return r.w.add(op)
}

// Abandon drops the new content; the journal stays as it was.
func (r *Refill) Abandon() { r.w.abandon() }

// Finish replaces the old content with the new, under the store id and the incarnation of the journal that it copies. With keep the old
// file stays under another name, which Finish returns.
func (r *Refill) Finish(store, incarnation uint32, vote, position []byte, keep bool) (old string, err error) {
	j := r.j
	j.use.Lock()
	defer j.use.Unlock()
	path := filepath.Join(j.dir, fileName)
	id, err := j.identity()
	for _, op := range append(ownOps(id, store, incarnation, j.sealedField), Op{own, keyPair, vote}, Op{own, keyPosition, position}) {
		if err == nil {
			err = r.w.add(op)
		}
	}
	if err == nil {
		err = r.w.finish()
	}
	if err != nil {
		r.w.abandon()
		return "", j.trouble(err)
	}
	fresh, err := r.w.reopen()
	if err == nil && keep {
		old, err = keepOld(path)
	}
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err != nil {
		os.Remove(path + unfinished)
		return "", j.trouble(err)
	}
	info, err := fresh.file.Stat()
	if err != nil {
		return "", j.trouble(err)
	}
	before := j.store
	j.mu.Lock()
	j.store, j.info = fresh, info
	j.mu.Unlock()
	before.close()
	j.incarnation.Store(incarnation)
	j.id, j.doubtful = store, false
	return old, errors.Join(atrest.SyncDir(j.dir), writeMark(j.dir, id, store, j.sealedField))
}

// identity is the node whose store this is.
func (j *Journal) identity() (id Identity, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(own))
		node, good := unseal(own, keyNode, b.Get(keyNode))
		name, named := unseal(own, keyName, b.Get(keyName))
		if !good || !named || len(node) != 4 {
			return &unsoundError{"it does not say whose it is"}
		}
		id = Identity{Node: uint16(node[2])<<8 | uint16(node[3]), Name: string(name)}
		return nil
	})
	return id, err
}
