package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	fileName = "aldis.db"
	// format is 2 since a message is written once for all its recipients (gateway/mail). Format 1 is that of version 0.1: it
	// is read, and is 2 from then on, so that version 0.1 refuses what it would not find again.
	format   = 2
	lockWait = 500 * time.Millisecond
)

// own is the bucket of the journal itself; no Op may name it.
const own = "\x00journal"

var (
	keyFormat = []byte("format")
	keyNode   = []byte("node")
	keyName   = []byte("name")
	keyStore  = []byte("store")
	keyBoot   = []byte("boot")
)

// Why a data directory is refused. The error of Open says in words what to do.
var (
	ErrInUse  = errors.New("another gateway uses it")
	ErrOther  = errors.New("it belongs to another node")
	ErrNewer  = errors.New("it was written by a newer gateway")
	ErrBroken = errors.New("it is damaged or not a gateway's")
)

// Identity is the node whose store it is.
type Identity struct {
	Node uint16
	Name string // for people: a changed name is no other node
}

// Op is one change; a nil Value deletes the Key. An empty, non-nil Value is a value. Keys have 1 to 32768 octets.
type Op struct {
	Bucket string
	Key    []byte
	Value  []byte
}

// Journal is an open store.
type Journal struct {
	db    *bolt.DB
	dir   string
	store uint32
	boot  uint32
}

// Open opens the store in dir for a node and makes what is missing. It changes nothing in a directory that it refuses.
func Open(dir string, id Identity) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: data directory %s cannot be made: %w; make it, owned by the user that runs the gateway", dir, err)
	}
	path := filepath.Join(dir, fileName)
	_, statErr := os.Stat(path)
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:        lockWait,
		NoFreelistSync: true, // one write less per commit; the list is rebuilt at the start
		FreelistType:   bolt.FreelistMapType,
		NoStatistics:   true,
	})
	if err != nil {
		return nil, openError(dir, err)
	}
	j := &Journal{db: db, dir: dir}
	if err := j.claim(id); err != nil {
		db.Close()
		return nil, err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		if err := syncDir(dir); err != nil { // else a power cut may take the new file's name away
			db.Close()
			return nil, fmt.Errorf("journal: data directory %s: %w", dir, err)
		}
	}
	return j, nil
}

func openError(dir string, err error) error {
	path := filepath.Join(dir, fileName)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("journal: data directory %s: %w; stop that one, or set another node.data_dir", dir, ErrInUse)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("journal: %s: %w (%v); put a backup back, or move the file away and begin anew without what it held", path, ErrBroken, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("journal: %s: %w; it must belong to the user that runs the gateway", path, err)
	}
	return fmt.Errorf("journal: %s: %w", path, err)
}

// claim checks whose the store is, and makes it ours when it is new.
func (j *Journal) claim(id Identity) error {
	var fresh bool
	err := j.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(own))
		if b == nil {
			fresh = true
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("journal: data directory %s: %w; set another node.data_dir", j.dir, ErrBroken)
			}
			return nil
		}
		f, ok1 := number(b, keyFormat)
		node, ok2 := number(b, keyNode)
		store, ok3 := number(b, keyStore)
		boot, ok4 := number(b, keyBoot)
		switch {
		case ok1 && f > format:
			return fmt.Errorf("journal: data directory %s: %w (format %d; this gateway reads %d); install the newer gateway, or set another node.data_dir",
				j.dir, ErrNewer, f, format)
		case !ok1 || !ok2 || !ok3 || !ok4 || f == 0:
			return fmt.Errorf("journal: data directory %s: %w; put a backup back, or set another node.data_dir", j.dir, ErrBroken)
		case node != uint32(id.Node):
			return fmt.Errorf("journal: data directory %s: %w: node %d %q, and this is node %d %q; set another node.data_dir, or node.id = %d",
				j.dir, ErrOther, node, b.Get(keyName), id.Node, id.Name, node)
		}
		j.store, j.boot = store, boot
		return nil
	})
	if err != nil {
		return err
	}
	if fresh {
		var raw [4]byte
		rand.Read(raw[:])
		j.store = binary.BigEndian.Uint32(raw[:])
	}
	ops := []Op{{own, keyName, []byte(id.Name)}, {own, keyFormat, be32(format)}}
	if fresh {
		ops = append(ops, Op{own, keyNode, be32(uint32(id.Node))},
			Op{own, keyStore, be32(j.store)}, Op{own, keyBoot, be32(0)})
	}
	return j.commit(ops)
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func number(b *bolt.Bucket, key []byte) (uint32, bool) {
	v := b.Get(key)
	if len(v) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(v), true
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// StoreID was drawn when the store was made: two stores of one node, before and after a lost disk, differ in it.
func (j *Journal) StoreID() uint32 { return j.store }

// Boot is the boot number that was set last; 0 in a new store.
func (j *Journal) Boot() uint32 { return j.boot }

// SetBoot makes the number of this start durable.
func (j *Journal) SetBoot(n uint32) error {
	if err := j.commit([]Op{{own, keyBoot, be32(n)}}); err != nil {
		return err
	}
	j.boot = n
	return nil
}

// Commit applies all ops in their order, or none. When it returns nil they survive a crash. An error leaves the
// journal usable: the same ops may be committed again later. A full disk satisfies errors.Is(err, syscall.ENOSPC).
func (j *Journal) Commit(ops []Op) error {
	for _, op := range ops {
		if op.Bucket == own {
			return fmt.Errorf("journal: bucket %q is the journal's own", own)
		}
	}
	return j.commit(ops)
}

func (j *Journal) commit(ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	err := j.db.Update(func(tx *bolt.Tx) error {
		for _, op := range ops {
			if err := apply(tx, op); err != nil {
				return fmt.Errorf("bucket %q, key %x: %w", op.Bucket, op.Key, err)
			}
		}
		return nil
	})
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), syscall.ENOSPC.Error()) && !errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("%w (%v)", syscall.ENOSPC, err) // bbolt drops the cause where it grows the file
	}
	return fmt.Errorf("journal: %w", err)
}

func apply(tx *bolt.Tx, op Op) error {
	if op.Value == nil {
		if b := tx.Bucket([]byte(op.Bucket)); b != nil {
			return b.Delete(op.Key)
		}
		return nil
	}
	b, err := tx.CreateBucketIfNotExists([]byte(op.Bucket))
	if err != nil {
		return err
	}
	return b.Put(op.Key, op.Value)
}

// Load calls f for everything in the store, bucket by bucket, keys in the order of their octets. key and value are
// good until f returns. The first error of f ends it and is returned.
func (j *Journal) Load(f func(bucket string, key, value []byte) error) error {
	return j.db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			bucket := string(name)
			if bucket == own {
				return nil
			}
			return b.ForEach(func(k, v []byte) error { return f(bucket, k, v) })
		})
	})
}

// Size is the length of the store's file; it never shrinks, freed space in it is used again.
func (j *Journal) Size() int64 {
	var n int64
	j.db.View(func(tx *bolt.Tx) error {
		n = tx.Size()
		return nil
	})
	return n
}

// Close gives the directory free.
func (j *Journal) Close() error { return j.db.Close() }
