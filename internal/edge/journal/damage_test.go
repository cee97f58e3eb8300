package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// spare names the buckets of which a start can spare records, in these tests.
func spare(bucket string) bool {
	return slices.Contains([]string{"mail", "deliver", "own", "far", "copy", "bridge"}, bucket)
}

// lived makes a journal of some 128 KiB as a gateway leaves it: waiting messages, numbers, leases, items, and the free pages of
// a few hundred commits. It returns the file's octets, its present records, and all records that it ever had.
func lived(t *testing.T, dir string) (file []byte, want map[string]string, ever map[string][]string) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	value := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	j := open(t, dir)
	ever = map[string][]string{}
	id := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)|77<<32) }
	for i := range 120 {
		ops := []Op{{"mail", id(i), value(60 + r.IntN(240))}, {"to", append([]byte{0, 3}, id(i)...), value(18)},
			{"peer", []byte{0, 3}, value(70)}, {"seal", []byte{0, 3}, value(139)}}
		if i >= 36 {
			ops = append(ops, Op{"mail", id(i - 36), nil}, Op{"to", append([]byte{0, 3}, id(i-36)...), nil})
		}
		if i%7 == 0 {
			key := []byte(fmt.Sprintf("item %d", i%5))
			ops = append(ops, Op{"own", key, value(300)}, Op{"far", append([]byte{0, 3}, key...), value(250)},
				Op{"copy", append([]byte{0, 3}, key...), value(12)}, Op{"bridge", []byte(fmt.Sprintf("lease %d", i%9)), value(120)},
				Op{"deliver", append([]byte{0, 3}, id(i)[2:]...), value(400)})
		}
		commit(t, j, ops...)
		for _, op := range ops {
			ever[op.Bucket+"/"+string(op.Key)] = append(ever[op.Bucket+"/"+string(op.Key)], string(op.Value))
		}
	}
	if err := j.SetIncarnation(1234); err != nil {
		t.Fatal(err)
	}
	want = contents(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return file, want, ever
}

// outcome is the result of opening a damaged journal.
type outcome int

const (
	harmless outcome = iota
	named            // records were set aside, and named
	refused          // with a clear error
)

// tryDamaged opens a damaged journal and compares its records with those before the damage. A fault of bbolt would fail the
// test.
func tryDamaged(t *testing.T, dir, what string, file []byte, want map[string]string) outcome {
	t.Helper()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := OpenSparing(dir, ship, spare)
	if err != nil {
		if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", what, err)
		}
		for _, words := range []string{path, "restore a backup"} {
			if !strings.Contains(err.Error(), words) && !errors.Is(err, ErrNewer) {
				t.Errorf("%s: %q lacks %q", what, err, words)
			}
		}
		return refused
	}
	defer j.Close()
	got := contents(t, j)
	for key, value := range got {
		if was, ok := want[key]; !ok || was != value {
			t.Errorf("%s: %q came out changed", what, key)
		}
	}
	missing, said := map[string]int{}, map[string]int{} // by bucket: the damage may be in the key, or in its length
	for key := range want {
		if _, ok := got[key]; !ok {
			bucket, _, _ := strings.Cut(key, "/")
			missing[bucket]++
		}
	}
	for _, d := range j.Aside() {
		said[d.Bucket]++
	}
	if !maps.Equal(missing, said) {
		t.Errorf("%s: missing by bucket %v, and said to be %v: %v", what, missing, said, j.Aside())
	}
	switch {
	case len(j.Aside()) > 0:
		return named
	case !maps.Equal(got, want):
		t.Errorf("%s: %d records of %d, and nothing was said", what, len(got), len(want))
	}
	return harmless
}

// Bits flip, sectors and pages are zeroed, the file is cut: the journal is refused with a remedy, or opens without the records
// that it names, or was not affected. No value comes out changed, and nothing crashes.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	whole, want, _ := lived(t, dir)
	t.Logf("journal of %d octets with %d records", len(whole), len(want))
	r := rand.New(rand.NewPCG(1, 500))
	for _, kind := range []struct {
		name   string
		n      int
		damage func(i int, b []byte) []byte
	}{
		{"1 bit flipped", 1500, func(_ int, b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }},
		{"512 octets zeroed", 300, func(_ int, b []byte) []byte { clear(b[r.IntN(len(b)/512)*512:][:512]); return b }},
		{"a page zeroed", len(whole) / 4096, func(i int, b []byte) []byte { clear(b[i*4096:][:4096]); return b }},
		{"truncated to n KiB", len(whole)/1024 + 1, func(i int, b []byte) []byte { return b[:min(i*1024, len(b))] }},
		{"a page in the place of another", 100, func(_ int, b []byte) []byte {
			copy(b[(2+r.IntN(len(b)/4096-2))*4096:][:4096], b[(2+r.IntN(len(b)/4096-2))*4096:])
			return b
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			var count [3]int
			for i := range kind.n {
				file := kind.damage(i, bytes.Clone(whole))
				count[tryDamaged(t, dir, fmt.Sprintf("%s, %d", kind.name, i), file, want)]++
			}
			t.Logf("%d: refused %d, records set aside %d, harmless %d", kind.n, count[refused], count[named], count[harmless])
			if count[refused] == 0 {
				t.Error("none was refused")
			}
		})
	}
}

// A file that bbolt writes meets the demands of package pages, whatever the journal has been through.
func TestReaderAgreesWithBbolt(t *testing.T) {
	for seed := range uint64(6) {
		dir := t.TempDir()
		r := rand.New(rand.NewPCG(seed, 3))
		j := open(t, dir)
		j.db.NoSync = true // this is about pages, not disks
		f, err := os.Open(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		keys := []int{20, 200, 3000}[seed%3]
		for round := range 150 {
			var ops []Op
			for range 1 + r.IntN(60) {
				key := be32(uint32(r.IntN(keys)))
				if r.IntN(3) == 0 {
					key = append(key, make([]byte, r.IntN(600))...)
				}
				op := Op{fmt.Sprintf("bucket %d", r.IntN(4)), key, nil}
				switch n := r.IntN(10); {
				case n < 5-round%5: // sometimes more is deleted than written
				case n < 9:
					op.Value = make([]byte, r.IntN(300))
				default:
					op.Value = make([]byte, r.IntN(20_000))
				}
				ops = append(ops, op)
			}
			commit(t, j, ops...)
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			e, err := examine(f, info.Size(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !e.report.Sound() {
				t.Fatalf("seed %d, round %d: %q", seed, round, e.report.Problems())
			}
		}
		f.Close()
	}
}

// Whatever a file holds, its reader returns without a panic, and reads no more than its size allows.
func FuzzExamine(f *testing.F) {
	path := filepath.Join(f.TempDir(), fileName)
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024, NoFreelistSync: true, NoSync: true})
	if err != nil {
		f.Fatal(err)
	}
	for i := range uint32(12) {
		ops := []Op{{"b", be32(i), make([]byte, 300)}, {"c", be32(i), []byte("x")}}
		if err := db.Update(func(tx *bolt.Tx) error { return put(tx, append(ops, ownOps(ship, 1, 1, nil)...)) }); err != nil {
			f.Fatal(err)
		}
	}
	db.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint16(0), byte(0))
	f.Add(b, uint16(16), byte(255))
	f.Add(b[:len(b)/2], uint16(4096), byte(1))
	f.Add([]byte{}, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, with byte) {
		if len(b) > 1<<17 {
			return
		}
		b = bytes.Clone(b)
		if int(at) < len(b) {
			b[at] ^= with
		}
		if with%2 == 1 { // changes that the checksum of a meta page would keep away
			for _, meta := range []int{0, 1024} {
				if len(b) >= meta+80 {
					sum := fnv.New64a()
					sum.Write(b[meta+16 : meta+72])
					binary.LittleEndian.PutUint64(b[meta+72:], sum.Sum64())
				}
			}
		}
		e, err := examine(bytes.NewReader(b), int64(len(b)), func(record) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		e.report.Problems()
		s, err := salvage(bytes.NewReader(b), int64(len(b)), []string{"b", "c"}, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.records) > len(b) {
			t.Fatalf("%d records in %d octets", len(s.records), len(b))
		}
	})
}
