package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"aldis/internal/edge/atrest"
)

// In a sealed file a record's key is the hash of its name (atrest.Key.Name). Its value is sealed: the length of the true key in
// two octets, that key, the true value. A sealed value is bound to its bucket and to its key there. Records that were set aside
// keep their number as key, and their value is sealed as a whole. The journal's own fields are not sealed.

// sealedText is the sealed text that keySealed holds besides the salt: any text would do.
const sealedText = "aldis journal"

// sealedField is the value of keySealed.
func sealedField(key *atrest.Key) []byte {
	return append(bytes.Clone(key.Salt()), key.Seal([]byte(sealedText), []byte(own))...)
}

// keyOf makes the key of a file that has this field.
func keyOf(secret atrest.Secret, field []byte) (*atrest.Key, error) {
	if len(secret) == 0 {
		return nil, ErrSealed
	}
	salt := field[:min(len(field), atrest.SaltLen)]
	key, ok := secret.Key(salt)
	if !ok {
		return nil, ErrBroken
	}
	if text, ok := key.Open(field[atrest.SaltLen:], []byte(own)); !ok || string(text) != sealedText {
		return nil, ErrSecret
	}
	return key, nil
}

// secretError is an error of keyOf as a sentence about the journal in dir.
func secretError(dir string, err error) error {
	path := filepath.Join(dir, fileName)
	switch {
	case errors.Is(err, ErrSealed):
		return fmt.Errorf("journal: %s: %w; name its file in node.journal_key_file, or set node.journal_passphrase = true", path, err)
	case errors.Is(err, ErrSecret):
		return fmt.Errorf("journal: %s: %w; nothing was changed. Give the secret that sealed it; without it the journal cannot be read, and gateway journal new begins anew", path, err)
	case errors.Is(err, ErrBroken):
		return fmt.Errorf("journal: %s: %w: the field that checks its secret; restore a backup", path, err)
	}
	return fmt.Errorf("journal: %s: %w", path, err)
}

// about names the bucket and key to which a sealed value is bound.
func about(bucket string, key []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(bucket)))
	return append(append(b, bucket...), key...)
}

// sealOps are the ops in the form of a sealed file. Without a key they stay as they are.
func sealOps(key *atrest.Key, ops []Op) []Op {
	if key == nil {
		return ops
	}
	ops = slices.Clone(ops)
	for i, op := range ops {
		ops[i] = sealOp(key, op)
	}
	return ops
}

func sealOp(key *atrest.Key, op Op) Op {
	switch op.Bucket {
	case own:
		if bytes.Equal(op.Key, keyName) {
			op.Value = []byte{} // as ownOps has it
		}
		return op
	case aside:
		op.Value = key.Seal(op.Value, about(aside, op.Key))
		return op
	}
	name := key.Name(op.Bucket, op.Key)
	if op.Value != nil {
		b := make([]byte, 0, 2+len(op.Key)+len(op.Value))
		b = binary.BigEndian.AppendUint16(b, uint16(len(op.Key)))
		b = append(append(b, op.Key...), op.Value...)
		op.Value = key.Seal(b, about(op.Bucket, name))
	}
	op.Key = name
	return op
}

// openRecord undoes sealOps for a record that is not the journal's own.
func openRecord(key *atrest.Key, bucket string, name, sealed []byte) (k, value []byte, ok bool) {
	b, ok := key.Open(sealed, about(bucket, name))
	if !ok || len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return nil, nil, false
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:n], b[n:], bytes.Equal(key.Name(bucket, b[2:n]), name)
}

// keyOfFile says whether a journal's file is sealed, and returns its key; nil: there is no secret.
func keyOfFile(f *os.File, size int64, secret atrest.Secret, dir string) (sealed bool, key *atrest.Key, err error) {
	e, err := examine(f, size, nil)
	if err != nil || !e.report.Sealed || len(secret) == 0 {
		return err == nil && e.report.Sealed, nil, err
	}
	key, err = keyOf(secret, fieldOf(&e.report, dir))
	return true, key, err
}

// opener opens the records of a bucket, and passes them on in the order of their true keys.
type opener struct {
	key    *atrest.Key
	bucket string
	opened []Op
}

// take passes a record to f at once if the file is not sealed, and otherwise keeps it.
func (o *opener) take(path string, k, v []byte, f func(string, []byte, []byte) error) error {
	if o.key == nil {
		return f(o.bucket, k, v)
	}
	key, value, ok := openRecord(o.key, o.bucket, k, v)
	if !ok {
		return fmt.Errorf("journal: %s: %w: bucket %q, key %x was not sealed with its secret: somebody has written to the file; restore a backup",
			path, ErrBroken, o.bucket, k)
	}
	o.opened = append(o.opened, Op{o.bucket, key, value})
	return nil
}

// rest passes on the records that take has kept.
func (o *opener) rest(f func(string, []byte, []byte) error) error {
	slices.SortFunc(o.opened, func(a, b Op) int { return bytes.Compare(a.Key, b.Key) })
	for _, op := range o.opened {
		if err := f(op.Bucket, op.Key, op.Value); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf is keySealed of a file, or the copy in its mark: a lost salt cannot be recovered.
func fieldOf(rep *Report, dir string) []byte {
	if rep.sealed != nil {
		return rep.sealed
	}
	return markedField(dir)
}

// unlock finds the key of a sealed journal, or makes one for a new journal if there is a secret.
func (j *Journal) unlock(secret atrest.Secret, rep *Report) (err error) {
	switch {
	case rep.Sealed:
		j.sealedField = rep.sealed
		j.key, err = keyOf(secret, rep.sealed)
	case rep.Fresh && len(secret) > 0:
		j.key = secret.NewKey()
		j.sealedField = sealedField(j.key)
	}
	return err
}

// seal seals a journal that is not sealed yet if there is a secret, and completes a sealing that was interrupted.
func (j *Journal) seal(secret atrest.Secret) error {
	if j.key == nil && len(secret) > 0 {
		return j.enclose(secret.NewKey())
	} else if j.key != nil {
		if err := atrest.WipeLeft(filepath.Join(j.dir, fileName)); err != nil {
			return fmt.Errorf("journal: the unsealed copy cannot be overwritten and removed: %w", err)
		}
	}
	return nil
}

// sealedOps mark a file as sealed, with this field. They follow the journal's other own fields; nil: none.
func sealedOps(field []byte) []Op {
	if field == nil {
		return nil
	}
	return []Op{{own, keyFormat, be32(formatSealed)}, {own, keySealed, field}}
}

// open opens the records that were salvaged from a sealed file. A record that the secret does not open is lost.
func (s *salvaged) open(secret atrest.Secret, dir string) (err error) {
	if !s.report.Sealed {
		return nil
	}
	if v, ok := s.field(keySealed); ok {
		s.sealedField = v
	} else {
		s.sealedField = markedField(dir)
	}
	if s.key, err = keyOf(secret, s.sealedField); err != nil {
		return err
	}
	var opened []Op
	for _, op := range s.records {
		if key, value, ok := openRecord(s.key, op.Bucket, op.Key, op.Value); ok {
			opened = append(opened, Op{op.Bucket, key, value})
		} else {
			s.damaged = append(s.damaged, Damaged{op.Bucket, op.Key, len(op.Value), "it was not sealed with this secret"})
		}
	}
	s.records = opened
	return nil
}

// enclose replaces an unsealed file with a sealed one, and overwrites the old octets. If it is killed in the middle, the journal
// is either file, and the next start completes the work.
func (j *Journal) enclose(key *atrest.Key) error {
	field := sealedField(key)
	path := filepath.Join(j.dir, fileName)
	fresh, err := enclosed(path, j.store, key, field)
	if err != nil {
		os.Remove(path + unfinished)
		return fmt.Errorf("journal: %s cannot be sealed: %w; it needs as much free space as it has octets, and is as it was", path, err)
	}
	err = atrest.Replace(path, path+unfinished)
	j.close()
	j.store, j.key, j.sealedField = fresh, key, field
	if err != nil {
		return fmt.Errorf("journal: %s: sealing it is not finished: %w; the next start goes on with it", path, err)
	}
	return nil
}

// enclosed writes the sealed file beside the unsealed one.
func enclosed(path string, from *store, key *atrest.Key, field []byte) (*store, error) {
	w, err := rewrite(path)
	if err != nil {
		return nil, err
	}
	w.key = key
	if err = w.copy(from); err == nil {
		for _, op := range sealedOps(field) {
			err = errors.Join(err, w.add(op))
		}
		if err == nil {
			err = w.finish()
		}
	}
	if err != nil {
		w.abandon()
		return nil, err
	}
	return w.reopen()
}

// Unsealed are the unsealed files beside a sealed journal, such as journals that an earlier repair has put away.
func (j *Journal) Unsealed() (paths []string) {
	if j.key == nil {
		return nil
	}
	list, _ := filepath.Glob(filepath.Join(j.dir, fileName+".old-*"))
	for _, path := range list {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			if e, err := examine(f, info.Size(), nil); err == nil && !e.report.Sealed {
				paths = append(paths, path)
			}
		}
		f.Close()
	}
	return paths
}

// Key seals the records; nil: they are not sealed.
func (j *Journal) Key() *atrest.Key { return j.key }

// IsSealed says whether the journal in dir is sealed. It may be in use, and dir may have none.
func IsSealed(dir string) bool {
	mark, err := readMark(dir)
	return err == nil && bytes.Contains(mark, []byte(markSealed))
}
