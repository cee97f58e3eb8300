package journal

import (
	"encoding/binary"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// Each value in the file follows its checksum (CRC-32C over serial, bucket, key and value) and its serial, the low 32 bits of
// the transaction that wrote it. The checksum shows a value under a wrong key or in a wrong bucket. The serial shows which of
// two copies is newer when a broken file is repaired.
const headLen = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(serial uint32, bucket string, key, value []byte) uint32 {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint32(b, serial)
	b = binary.BigEndian.AppendUint16(b, uint16(len(bucket)))
	b = append(b, bucket...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	sum := crc32.Update(crc32.Update(0, castagnoli, b), castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// seal is a value in the form of the file.
func seal(serial uint32, bucket string, key, value []byte) []byte {
	b := make([]byte, 0, headLen+len(value))
	b = binary.BigEndian.AppendUint32(b, checksum(serial, bucket, key, value))
	b = binary.BigEndian.AppendUint32(b, serial)
	return append(b, value...)
}

// unseal returns the value in the octets of the file; false: it is damaged.
func unseal(bucket string, key, sealed []byte) ([]byte, bool) {
	if len(sealed) < headLen {
		return nil, false
	}
	value := sealed[headLen:]
	return value, sumOf(sealed) == checksum(serialOf(sealed), bucket, key, value)
}

func sumOf(sealed []byte) uint32    { return binary.BigEndian.Uint32(sealed) }
func serialOf(sealed []byte) uint32 { return binary.BigEndian.Uint32(sealed[4:]) }

// tally is the number of records in the buckets, and the sum of their checksums. Each transaction writes it: a record that has
// vanished, or that an old page has brought back, changes it.
type tally struct{ records, sum uint64 }

const tallyLen = 16

func (t tally) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, t.records), t.sum)
}

func parseTally(b []byte) (t tally, ok bool) {
	if len(b) != tallyLen {
		return t, false
	}
	return tally{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, true
}

func (t *tally) add(sealed []byte) {
	if len(sealed) >= headLen {
		t.records++
		t.sum += uint64(sumOf(sealed))
	}
}

func (t *tally) remove(sealed []byte) {
	if len(sealed) >= headLen {
		t.records--
		t.sum -= uint64(sumOf(sealed))
	}
}

// tallyOf is the tally within a transaction.
func tallyOf(tx *bolt.Tx) (t tally) {
	if b := tx.Bucket([]byte(own)); b != nil {
		if v, ok := unseal(own, keyTally, b.Get(keyTally)); ok {
			t, _ = parseTally(v)
		}
	}
	return t
}

// put applies ops in a transaction and writes the new tally.
func put(tx *bolt.Tx, ops []Op) error {
	b, err := tx.CreateBucketIfNotExists([]byte(own))
	if err != nil {
		return err
	}
	t := tallyOf(tx)
	for _, op := range ops {
		if err := apply(tx, op, &t); err != nil {
			return opError(op, err)
		}
	}
	serial := uint32(tx.ID())
	return b.Put(keyTally, seal(serial, own, keyTally, t.append(nil)))
}

func apply(tx *bolt.Tx, op Op, t *tally) error {
	name := []byte(op.Bucket)
	if op.Value == nil {
		b := tx.Bucket(name)
		if b == nil {
			return nil
		}
		if op.Bucket != own {
			t.remove(b.Get(op.Key))
		}
		return b.Delete(op.Key)
	}
	b, err := tx.CreateBucketIfNotExists(name)
	if err != nil {
		return err
	}
	if op.Bucket == own && string(op.Key) == string(keyFormat) {
		return b.Put(op.Key, op.Value) // so that every release can read it
	}
	sealed := seal(uint32(tx.ID()), op.Bucket, op.Key, op.Value)
	if op.Bucket != own {
		t.remove(b.Get(op.Key))
		t.add(sealed)
	}
	return b.Put(op.Key, sealed)
}
