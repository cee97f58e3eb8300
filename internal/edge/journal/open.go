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

	berrors "go.etcd.io/bbolt/errors"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
)

// mostAside bounds the damaged records that a start sets aside. A file with more has worse damage than single records.
const mostAside = 16

// Open opens the store in dir for a node, and makes the store if there is none. It changes nothing in a directory that it
// refuses. It refuses any damaged record.
func Open(dir string, id Identity) (*Journal, error) { return OpenSparing(dir, id, nil) }

// OpenSparing is Open for a caller that can do without single records of some buckets; spare says which. Damaged records of
// those buckets are set aside, and Aside names them.
func OpenSparing(dir string, id Identity, spare func(bucket string) bool) (*Journal, error) {
	return OpenSealed(dir, id, nil, spare)
}

// OpenSealed is OpenSparing with the secret that seals the records. It seals a journal that is not sealed yet, which needs as
// much free space as the journal takes. It refuses a sealed journal without a secret, or with another one.
func OpenSealed(dir string, id Identity, secret atrest.Secret, spare func(bucket string) bool) (*Journal, error) {
	if len(secret) > 0 && len(secret) < atrest.LeastSecret {
		return nil, fmt.Errorf("journal: the secret that seals it: %w", atrest.ErrSecret)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: data directory %s cannot be made: %w; make it, owned by the user that runs the gateway", dir, err)
	}
	path := filepath.Join(dir, fileName)
	if err := gone(dir); err != nil {
		return nil, err
	}
	f, err := lock(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, openError(dir, err)
	}
	j, err := openFile(f, dir, id, secret, spare)
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// openFile opens the store in f, which is locked. On success f belongs to the Journal.
func openFile(f *os.File, dir string, id Identity, secret atrest.Secret, spare func(bucket string) bool) (*Journal, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, openError(dir, err)
	}
	rep, last, taken := &Report{Fresh: true}, state{}, false
	if info.Size() > 0 {
		forget(f)
		r, err := examine(f, info.Size(), nil)
		if err != nil {
			return nil, fmt.Errorf("journal: %s: %w", f.Name(), err)
		}
		rep, last = &r.report, state{r.file.Tx(), r.found}
		if older, at := before(f, r); older != nil {
			rep, last, taken = older, at, true
		}
	}
	if err := rep.Refusal(dir, id, spare); err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, id: rep.Store}
	j.incarnation.Store(rep.Incarnation)
	if err = j.unlock(secret, rep); err != nil {
		return nil, secretError(dir, err)
	}
	os.Remove(f.Name() + unfinished) // left by a start that was killed: nothing refers to it
	if !rep.Fresh && rep.Format < firstChecked {
		if j.store, err = migrate(f, info.Size()); err != nil {
			return nil, err
		}
		f.Close()
	} else if taken {
		if j.store, err = takeBack(f, last); err != nil {
			return nil, err
		}
		f.Close()
	} else if j.store, err = openStore(f, last); err != nil {
		return nil, openError(dir, err)
	}
	if err = j.seal(secret); err == nil {
		if j.info, err = os.Stat(filepath.Join(dir, fileName)); err == nil {
			err = j.claim(id, rep)
		}
	}
	if err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// lock opens a store's file for this process alone. It fails if the file was replaced before it had the lock.
func lock(path string, flags int) (*os.File, error) {
	f, err := infile.OpenAs(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(lockWait / 10) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || !time.Now().Before(end) {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				err = berrors.ErrTimeout
			}
			return nil, err
		}
	}
	have, err1 := f.Stat()
	is, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(have, is) {
		f.Close()
		return nil, berrors.ErrTimeout
	}
	return f, nil
}

func openError(dir string, err error) error {
	path := filepath.Join(dir, fileName)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("journal: data directory %s: %w; stop that one, or set another node.data_dir", dir, ErrInUse)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("journal: %s: %w; it must belong to the user that runs the gateway", path, err)
	}
	switch what, way := explain(err); {
	case errors.Is(err, syscall.EROFS), isFull(err):
		return fmt.Errorf("journal: %s: %s: %w; %s", path, what, err, way)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("journal: %s: %s: %w; look at the disk and its cable (dmesg, smartctl), and start again when it is back", path, what, err)
	}
	return fmt.Errorf("journal: %s: %w", path, infile.Why(err))
}

// Refusal says why a store in dir cannot be used as it is by this node; nil: it can.
func (r *Report) Refusal(dir string, id Identity, spare func(bucket string) bool) error {
	path := filepath.Join(dir, fileName)
	switch {
	case r.Fresh:
		return nil
	case r.Foreign:
		return fmt.Errorf("journal: data directory %s: %w; set another node.data_dir", dir, ErrBroken)
	case r.Count == 0 && r.Format > formatSealed:
		return fmt.Errorf("journal: data directory %s: %w (format %d; this gateway reads %d); install the newer gateway, or set another node.data_dir",
			dir, ErrNewer, r.Format, formatSealed)
	case r.broken(), r.Bad > mostAside:
		return r.damage(path)
	case r.Node != id.Node:
		return fmt.Errorf("journal: data directory %s: %w: node %d %q, and this is node %d %q; set another node.data_dir, or node.id = %d",
			dir, ErrOther, r.Node, r.Name, id.Node, id.Name, r.Node)
	}
	for _, d := range r.Damaged {
		if spare == nil || !spare(d.Bucket) {
			return r.damage(path)
		}
	}
	return nil
}

// damage is the error that says what is wrong with a file, and what to do.
func (r *Report) damage(path string) error {
	if r.unread != nil {
		return fmt.Errorf("journal: its disk fails: %w; look at the disk and its cable (dmesg, smartctl), and start again when it is back. If it stays so: restore a backup on another disk, or save what can be read: gateway journal repair --dir %s",
			r.unread, filepath.Dir(path))
	}
	const most = 3
	list := r.Problems()
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("journal: %s: %w: %s; restore a backup, or save what can be read: gateway journal repair --dir %s (gateway journal check names all)",
		path, ErrBroken, strings.Join(list, "; "), filepath.Dir(path))
}

// claim makes a new store this node's, records a changed name, and sets damaged records aside.
func (j *Journal) claim(id Identity, rep *Report) error {
	var ops []Op
	if rep.Fresh {
		j.id = newStoreID()
		ops = ownOps(id, j.id, 0, j.sealedField)
	} else if rep.Name != id.Name && j.key == nil {
		ops = append(ops, Op{own, keyName, []byte(id.Name)})
	}
	if err := j.commit(ops); err != nil {
		return err
	}
	if err := j.setAside(rep.Damaged); err != nil {
		return err
	}
	j.aside = rep.Damaged
	if rep.Fresh {
		if err := atrest.SyncDir(j.dir); err != nil { // otherwise a power cut may lose the new file's name
			return fmt.Errorf("journal: data directory %s: %w", j.dir, err)
		}
	}
	return writeMark(j.dir, Identity{Node: id.Node, Name: id.Name}, j.id, j.sealedField)
}

func newStoreID() uint32 {
	var raw [4]byte
	rand.Read(raw[:])
	return binary.BigEndian.Uint32(raw[:])
}

// ownOps are the journal's own fields. sealed is the field of a sealed journal, nil for another.
func ownOps(id Identity, store, incarnation uint32, sealed []byte) []Op {
	if sealed != nil {
		id.Name = "" // it is in the configuration, and names nobody here
	}
	ops := []Op{{own, keyFormat, be32(format)}, {own, keyNode, be32(uint32(id.Node))}, {own, keyName, []byte(id.Name)},
		{own, keyStore, be32(store)}, {own, keyIncarnation, be32(incarnation)}}
	return append(ops, sealedOps(sealed)...)
}

// Aside are the damaged records that Open has set aside.
func (j *Journal) Aside() []Damaged { return j.aside }
