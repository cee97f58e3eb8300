package journal

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// setAside moves damaged records out of the way, as they are in the file, so that nothing is destroyed.
func (j *Journal) setAside(list []Damaged) error {
	if len(list) == 0 {
		return nil
	}
	return j.update(func(tx *bolt.Tx) error {
		var ops []Op
		next, err := nextAside(tx)
		if err != nil {
			return err
		}
		for i, d := range list {
			b := tx.Bucket([]byte(d.Bucket))
			if b == nil {
				continue
			}
			raw := b.Get(d.Key)
			ops = append(ops, asideOp(next+uint64(i), d.Bucket, d.Key, raw))
			if err := b.Delete(d.Key); err != nil {
				return err
			}
		}
		if err := put(tx, sealOps(j.key, ops)); err != nil {
			return err
		}
		return recount(tx)
	})
}

// SetAside moves records that their reader does not understand out of the way; everything else stays as it is. Aside does not
// name these records.
func (j *Journal) SetAside(list []Op) error {
	if len(list) == 0 {
		return nil
	}
	return j.update(func(tx *bolt.Tx) error {
		next, err := nextAside(tx)
		if err != nil {
			return err
		}
		var ops []Op
		for i, r := range list {
			r = sealOps(j.key, []Op{r})[0]
			raw := seal(uint32(tx.ID()), r.Bucket, r.Key, r.Value)
			ops = append(ops, sealOps(j.key, []Op{asideOp(next+uint64(i), r.Bucket, r.Key, raw)})[0], Op{r.Bucket, r.Key, nil})
		}
		return put(tx, ops)
	})
}

func nextAside(tx *bolt.Tx) (uint64, error) {
	b, err := tx.CreateBucketIfNotExists([]byte(aside))
	if err != nil {
		return 0, err
	}
	if k, _ := b.Cursor().Last(); len(k) == 8 {
		return binary.BigEndian.Uint64(k) + 1, nil
	}
	return 1, nil
}

// asideOp keeps a record: bucket and key, each behind its length in two octets, and then the value as the file had it.
func asideOp(n uint64, bucket string, key, raw []byte) Op {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(bucket)))
	b = append(b, bucket...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(append(b, key...), raw...)
	return Op{aside, binary.BigEndian.AppendUint64(nil, n), b}
}

// parseAside undoes asideOp.
func parseAside(b []byte) (bucket string, key, raw []byte, ok bool) {
	cut := func() []byte {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			b = nil
			return nil
		}
		n := int(binary.BigEndian.Uint16(b))
		head := b[2 : 2+n]
		b = b[2+n:]
		return head
	}
	bucket, key = string(cut()), cut()
	return bucket, key, b, len(key) > 0
}

// recount makes the tally from all records that are there: nobody knows what a damaged record added to it.
func recount(tx *bolt.Tx) error {
	var t tally
	err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		if string(name) == own {
			return nil
		}
		return b.ForEach(func(_, v []byte) error { t.add(v); return nil })
	})
	if err != nil {
		return err
	}
	return tx.Bucket([]byte(own)).Put(keyTally, seal(uint32(tx.ID()), own, keyTally, t.append(nil)))
}

func clone(r record) Op {
	value := bytes.Clone(r.value)
	if value == nil {
		value = []byte{}
	}
	return Op{r.bucket, bytes.Clone(r.key), value}
}
