package journal

import (
	"maps"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// After a failure of the disk the store is rewritten: it has all records, is sound, and keeps its name.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	lived(t, dir)
	j := open(t, dir)
	if err := j.SetIncarnation(77); err != nil {
		t.Fatal(err)
	}
	if err := j.SetAside([]Op{{"far", []byte("k"), []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	want, aside := contents(t, j), j.count(t)
	j.doubtful = true
	commit(t, j, Op{"b", []byte("behind"), []byte("it")})
	want["b/behind"] = "it"
	if err := j.Gone(); err != nil || j.doubtful {
		t.Errorf("doubtful %v, gone: %v", j.doubtful, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	if got := contents(t, j); !maps.Equal(got, want) || j.count(t) != aside || j.Incarnation() != 77 || len(j.Aside()) > 0 {
		t.Errorf("%d records and %d set aside, incarnation %d, damaged %v; want %d, %d, 77, none", len(got), j.count(t), j.Incarnation(), j.Aside(), len(want), aside)
	}
}

// count is how many records were set aside.
func (j *Journal) count(t *testing.T) (n int) {
	t.Helper()
	if err := j.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte(aside)); b != nil {
			n = b.Inspect().KeyN
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}
