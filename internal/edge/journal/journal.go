package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/edge/atrest"
)

const (
	fileName = "aldis.db"
	// format is 3 since values carry a checksum. In format 2 a message is written once for all its recipients (gateway/mail);
	// format 1 is that of version 0.1. Journals in both are read and converted to format 3, which older versions refuse with a
	// sentence.
	format       = 3
	firstChecked = 3 // the first with checksums
	formatSealed = 4 // as 3, with sealed records: older versions refuse it with a sentence

	// Format is the newest that this version writes: the two gateways of a site must have the same.
	Format   = formatSealed
	lockWait = 500 * time.Millisecond
)

// Buckets of the journal itself; no Op may name them. own sorts before all other buckets, aside after all others of the
// journal.
const (
	own   = "\x00journal"
	aside = "\x00set-aside" // number -> a record that could not be read (asideOp)
	logs  = "\x00log"       // of a site of three and more: index -> an entry that is not in the other buckets yet
)

// isOwn says that a bucket is the journal's own.
func isOwn(bucket string) bool { return bucket == own || bucket == aside || bucket == logs }

var (
	keyFormat      = []byte("format")
	keyNode        = []byte("node")
	keyName        = []byte("name")
	keyStore       = []byte("store")
	keyIncarnation = []byte("boot")
	keyTally       = []byte("tally")
	keySealed      = []byte("sealed") // of a sealed file: its salt, and what shows whether a secret is the right one
)

// Why a data directory is refused. The error of Open says in words what to do.
var (
	ErrInUse  = errors.New("another gateway uses it")
	ErrOther  = errors.New("it belongs to another node")
	ErrNewer  = errors.New("it was written by a newer gateway")
	ErrBroken = errors.New("it is damaged or not a gateway's")
	ErrGone   = errors.New("it is gone")
	ErrSealed = errors.New("it is sealed, and its secret was not given")
	ErrSecret = errors.New("it is sealed with another secret")
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
	*store
	dir string
	key *atrest.Key // nil: the records are not sealed
	// sealedField is keySealed of the file, nil if key is; the mark repeats it, because a lost salt cannot be recovered.
	sealedField []byte
	id          uint32 // of the store
	incarnation atomic.Uint32
	aside       []Damaged
	// doubtful says that the disk has failed: the kernel may have dropped octets that it could not write, of this commit or of
	// the file's metadata, and no later commit would report it.
	doubtful bool
	use      sync.Mutex // of the file: a commit or a copy

	mu   sync.Mutex
	info os.FileInfo // of the file, to recognise it
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// StoreID was drawn when the store was made: two stores of one node, before and after a lost disk, differ in it.
func (j *Journal) StoreID() uint32 { return j.id }

// Incarnation is the incarnation number that was set last; 0 in a new store.
func (j *Journal) Incarnation() uint32 { return j.incarnation.Load() }

// SetIncarnation makes the number of this start durable.
func (j *Journal) SetIncarnation(n uint32) error {
	if err := j.commit([]Op{{own, keyIncarnation, be32(n)}}); err != nil {
		return err
	}
	j.incarnation.Store(n)
	return nil
}

// Commit applies all ops in their order, or none. When it returns nil they survive a crash. An error leaves the
// journal usable: the same ops may be committed again later. An error of the disk has a Remedy. A full disk satisfies
// errors.Is(err, syscall.ENOSPC). After any other failure of the disk the whole file is written anew before the next
// commit, for which it needs as much free space as it has octets.
func (j *Journal) Commit(ops []Op) error {
	for _, op := range ops {
		if isOwn(op.Bucket) {
			return fmt.Errorf("journal: bucket %q is the journal's own", op.Bucket)
		}
	}
	return j.commit(ops)
}

func (j *Journal) commit(ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	ops = sealOps(j.key, ops)
	j.use.Lock()
	defer j.use.Unlock()
	if j.doubtful {
		if err := j.renew(); err != nil {
			return j.trouble(err)
		}
		j.doubtful = false
	}
	if j.spent {
		fresh, err := j.reopen()
		if err != nil {
			return j.trouble(err)
		}
		j.store = fresh
	}
	err := j.update(func(tx *bolt.Tx) error { return put(tx, ops) })
	if err == nil {
		return j.deleted()
	}
	j.doubtful = j.doubt(err)
	return j.trouble(err)
}

// deleted says that the store's file has no name any more: a commit is then gone when the process exits, so it must not be
// reported as safe.
func (j *Journal) deleted() error {
	links := func(info fs.FileInfo) uint64 {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			return uint64(s.Nlink)
		}
		return 1
	}
	info, err := j.file.Stat()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil || links(info) > 0 || links(j.info) == 0 { // a file system that does not count links
		return nil
	}
	return &Trouble{Path: filepath.Join(j.dir, fileName), Err: ErrGone, what: "it was deleted while the gateway runs",
		way: "stop the gateway, then restore a backup (gateway restore) or begin anew (gateway journal new)"}
}

func opError(op Op, err error) error {
	return fmt.Errorf("bucket %q, key %x: %w", op.Bucket, op.Key, err)
}

// Load calls f for each record in the store, bucket by bucket, keys in the order of their octets. key and value are good until
// f returns. The first error of f stops it and is returned.
func (j *Journal) Load(f func(bucket string, key, value []byte) error) error {
	err := j.view(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			bucket := string(name)
			if isOwn(bucket) {
				return nil
			}
			of := opener{key: j.key, bucket: bucket}
			err := b.ForEach(func(k, v []byte) error {
				value, good := unseal(bucket, k, v)
				if !good { // Open has found it good
					return fmt.Errorf("journal: %s: %w: the disk gives other data than a moment ago (bucket %q, key %x); replace the disk, and restore a backup",
						filepath.Join(j.dir, fileName), ErrBroken, bucket, k)
				}
				return of.take(filepath.Join(j.dir, fileName), k, value, f)
			})
			if err != nil {
				return err
			}
			return of.rest(f)
		})
	})
	var unsound *unsoundError
	if errors.As(err, &unsound) {
		return j.trouble(err)
	}
	return err
}

// Size is the length of the store's file. It never shrinks; freed space in it is used again.
func (j *Journal) Size() int64 {
	var n int64
	j.db.View(func(tx *bolt.Tx) error {
		n = tx.Size()
		return nil
	})
	return n
}

// Gone says that the store's file is not where it was: commits go into a file without a name, and are lost when the process
// exits. Any goroutine may call it.
func (j *Journal) Gone() error {
	path := filepath.Join(j.dir, fileName)
	j.mu.Lock()
	defer j.mu.Unlock()
	if now, err := os.Stat(path); err == nil && os.SameFile(now, j.info) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // a failing disk is reported elsewhere
	}
	return fmt.Errorf("journal: %s was removed or replaced while the gateway runs: %w; accepted messages are lost when the gateway stops", path, ErrGone)
}

// Close closes the journal and releases the directory.
func (j *Journal) Close() error { return j.close() }
