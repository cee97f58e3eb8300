package journal

import (
	"bytes"
	"encoding/binary"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Logged is a change of a site of three and more (docs/decisions/three-at-a-site.md): entries of its log, and this machine's own fields.
type Logged struct {
	Vote, Position []byte // nil: as before
	Start          uint32 // of the gateway that led last; 0: as before
	Add            map[uint64][]byte
	Drop           []uint64
}

// CommitLogged applies ops and a change of the log, or neither.
func (j *Journal) CommitLogged(ops []Op, c Logged) error {
	all := slices.Clone(ops)
	for _, i := range c.Drop {
		all = append(all, Op{logs, binary.BigEndian.AppendUint64(nil, i), nil})
	}
	for i, value := range c.Add {
		all = append(all, Op{logs, binary.BigEndian.AppendUint64(nil, i), value})
	}
	for _, f := range []Op{{own, keyPair, c.Vote}, {own, keyPosition, c.Position}} {
		if f.Value != nil {
			all = append(all, f)
		}
	}
	if c.Start > 0 {
		all = append(all, Op{own, keyIncarnation, be32(c.Start)})
	}
	if err := j.commit(all); err != nil {
		return err
	}
	if c.Start > 0 {
		j.incarnation.Store(c.Start)
	}
	return nil
}

// Leave removes what ties the journal to a site: this machine is no member any more, and its next commits are its own.
func (j *Journal) Leave() error {
	return j.commit([]Op{{own, keyPair, nil}, {own, keyPosition, nil}})
}

// Log calls f for each entry of the log, in the order of their index. value is good until f returns.
func (j *Journal) Log(f func(index uint64, value []byte) error) error {
	type entry struct {
		index uint64
		value []byte
	}
	var list []entry
	err := j.view(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(logs))
		if b == nil {
			return nil
		}
		add := func(_ string, key, value []byte) error {
			if len(key) == 8 {
				list = append(list, entry{binary.BigEndian.Uint64(key), bytes.Clone(value)})
			}
			return nil
		}
		of := opener{key: j.key, bucket: logs}
		err := b.ForEach(func(k, v []byte) error {
			value, good := unseal(logs, k, v)
			if !good {
				return &unsoundError{"an entry of its log is damaged"}
			}
			return of.take(j.dir, k, value, add)
		})
		if err != nil {
			return err
		}
		return of.rest(add)
	})
	if err != nil {
		return j.trouble(err)
	}
	slices.SortFunc(list, func(a, b entry) int { return int(int64(a.index) - int64(b.index)) })
	for _, e := range list {
		if err := f(e.index, e.value); err != nil {
			return err
		}
	}
	return nil
}
