package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/lab/check"
)

var allBuckets = []string{"mail", "to", "peer", "seal", "own", "far", "copy", "bridge", "deliver"}

// repairs repairs a damaged file. It returns how many records of want the new file holds, and how many that had been deleted.
// Every value was once committed under its key.
func repairs(t *testing.T, what string, file []byte, want map[string]string, ever map[string][]string) (kept, back int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := Repair{Identity: ship, Buckets: allBuckets, Force: true}.Do(dir)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if old, err := os.ReadFile(done.Old); err != nil || !bytes.Equal(old, file) {
		t.Fatalf("%s: the old file is not kept: %v", what, err)
	}
	j, err := Open(dir, ship)
	if err != nil {
		t.Fatalf("%s: after the repair: %v", what, err)
	}
	defer j.Close()
	if j.StoreID() != done.NewStore {
		t.Errorf("%s: store %x", what, j.StoreID())
	}
	got := contents(t, j)
	for key, value := range got {
		switch was, ok := want[key]; {
		case !slices.Contains(ever[key], value):
			t.Errorf("%s: %q came out changed", what, key)
		case ok && was == value:
			kept++
		case !ok:
			back++
		}
	}
	if len(got) != done.Written {
		t.Errorf("%s: %d records, and %d are said to be written", what, len(got), done.Written)
	}
	return kept, back
}

// If one page is zeroed, a repair saves all records except those on that page, and of those perhaps an old copy.
func TestRepairZeroedPage(t *testing.T) {
	whole, want, ever := lived(t, t.TempDir())
	least, worst, back, most := len(want), 0, 0, 0
	for i := range len(whole) / 4096 {
		file := bytes.Clone(whole)
		clear(file[i*4096:][:4096])
		kept, old := repairs(t, fmt.Sprintf("page %d zeroed", i), file, want, ever)
		if kept < least {
			least, worst = kept, i
		}
		on := recordsOn(whole[i*4096:][:4096])
		if most = max(most, on); kept < len(want)-on {
			t.Errorf("with page %d zeroed, which has %d records, %d of %d are saved", i, on, kept, len(want))
		}
		back = max(back, old)
	}
	t.Logf("of %d records at least %d are saved (page %d zeroed), and at most %d that were deleted come back", len(want), least, worst, back)
	if most < 30 { // the worst case here is a bucket that fills one page
		t.Errorf("no page has more than %d records", most)
	}
}

// recordsOn is the number of records on a page of a bbolt file, including those of buckets inside it. They are lost with the
// page unless an older copy of it is left, which depends on bbolt's list of free pages.
func recordsOn(page []byte) (n int) {
	const leaf, nested, header, element, bucket = 0x02, 0x01, 16, 16, 16
	if binary.LittleEndian.Uint16(page[8:])&leaf == 0 {
		return 0
	}
	for i := range int(binary.LittleEndian.Uint16(page[10:])) {
		e := page[header+i*element:]
		value := e[binary.LittleEndian.Uint32(e[4:])+binary.LittleEndian.Uint32(e[8:]):]
		switch {
		case binary.LittleEndian.Uint32(e)&nested == 0:
			n++
		case binary.LittleEndian.Uint64(value) == 0: // the bucket's root is inside the page
			n += recordsOn(value[bucket:])
		}
	}
	return n
}

// The list of buckets is lost: pages are found again, and the checksums tell their buckets.
func TestRepairWithoutTree(t *testing.T) {
	whole, want, ever := lived(t, t.TempDir())
	clear(whole[:8192]) // both meta pages
	kept, back := repairs(t, "both meta pages zeroed", whole, want, ever)
	t.Logf("of %d records %d are saved; %d that were deleted come back", len(want), kept, back)
	if kept < len(want)/2 {
		t.Errorf("of %d records %d are saved", len(want), kept)
	}
}

// Whatever is damaged, a repair finishes, and the new file is sound and holds nothing that was never committed.
func TestRepairAnyDamage(t *testing.T) {
	whole, want, ever := lived(t, t.TempDir())
	r := rand.New(rand.NewPCG(4, 4))
	for i := range 60 {
		file := bytes.Clone(whole)
		for range 1 + r.IntN(20) {
			switch r.IntN(3) {
			case 0:
				file[r.IntN(len(file))] ^= 1 << r.IntN(8)
			case 1:
				clear(file[r.IntN(len(file)/512)*512:][:512])
			default:
				copy(file[r.IntN(len(file)/4096)*4096:][:4096], file[r.IntN(len(file)/4096)*4096:])
			}
		}
		repairs(t, fmt.Sprintf("damage %d", i), file[:len(file)-r.IntN(2)*r.IntN(len(file))], want, ever)
	}
}

// The last transaction's meta page is lost: the repair finds the records of that transaction.
func TestRepairLastTransaction(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	for i := range uint32(5) {
		commit(t, j, Op{"b", be32(i), make([]byte, 2000)})
	}
	want := contents(t, j)
	var tx uint64
	j.db.View(func(t *bolt.Tx) error { tx = uint64(t.ID()); return nil })
	j.Close()
	path := filepath.Join(dir, fileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(file[tx%2*4096:][:4096])
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, ship); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "the last transaction may be lost") ||
		!strings.Contains(err.Error(), "gateway journal repair --dir "+dir) {
		t.Errorf("a journal without its last transaction: %v", err)
	}
	if _, err := (Repair{Identity: ship, Buckets: []string{"b"}}).Do(dir); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, open(t, dir)); !maps.Equal(got, want) {
		t.Errorf("%d records of %d", len(got), len(want))
	}
}

func TestRepairOfSound(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	commit(t, j, Op{"b", []byte("k"), []byte("v")})
	if _, err := (Repair{}).Do(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a journal in use: %v", err)
	}
	if _, err := Export(dir, nil, nil, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("check of a journal in use: %v", err)
	}
	if _, err := NewStart(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("new where a journal is in use: %v", err)
	}
	store := j.StoreID()
	j.Close()
	done, err := Repair{}.Do(dir)
	if err != nil || done.Done {
		t.Errorf("repaired though sound: %+v, %v", done, err)
	}
	if j := open(t, dir); j.StoreID() != store {
		t.Error("another store")
	}
}

// A commit after the file was deleted is not reported as safe; a commit to a file that was only moved is.
func TestDeletedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", fileName)
	j := open(t, filepath.Dir(path))
	ops := []Op{{Bucket: "mail", Key: []byte("k"), Value: []byte("v")}}
	check.NoError(t, j.Commit(ops))
	check.NoError(t, os.Rename(path, path+".moved"))
	check.NoError(t, j.Commit(ops))
	check.NoError(t, os.RemoveAll(filepath.Dir(path)))
	for range 2 {
		err := j.Commit(ops)
		check.ErrorIs(t, err, ErrGone)
		check.Contains(t, "what is said", err.Error(), "it was deleted while the gateway runs")
		var trouble *Trouble
		check.True(t, "it is a trouble that holds acknowledgements back", errors.As(err, &trouble))
	}
	j.Close()
}

// An empty or missing file in the place of a journal is refused, until the operator begins anew.
func TestGone(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"missing": os.Remove,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, fileName)
		first := open(t, dir)
		store := first.StoreID()
		first.Close()
		if err := lose(path); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, ship)
		if !errors.Is(err, ErrGone) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, words := range []string{path, "restore a backup", "gateway journal new --dir " + dir, `node 2 "ship"`} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q lacks %q", name, err, words)
			}
		}
		if _, err := NewStart(dir); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, ship)
		if err != nil {
			t.Fatalf("%s, begun anew: %v", name, err)
		}
		if j.StoreID() == store {
			t.Errorf("%s, begun anew: the same store", name)
		}
		j.Close()
	}
}

// A damaged record is set aside unchanged, once, and is not lost.
func TestAside(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	commit(t, j, Op{"mail", []byte("one"), []byte("first value")}, Op{"mail", []byte("two"), []byte("second value")}, Op{"to", []byte("k"), []byte("third value")})
	j.Close()
	path := filepath.Join(dir, fileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(file)
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte("second"), []byte("sEcond")), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err = OpenSparing(dir, ship, spare)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Aside()) != 1 || j.Aside()[0].Bucket != "mail" || string(j.Aside()[0].Key) != "two" || j.Aside()[0].Octets != len("second value") {
		t.Errorf("set aside: %v", j.Aside())
	}
	if err := j.SetAside([]Op{{"mail", []byte("one"), []byte("first value")}}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, j); len(got) != 1 || got["to/k"] != "third value" {
		t.Errorf("the rest: %q", got)
	}
	j.Close()
	j, err = OpenSparing(dir, ship, spare)
	if err != nil || len(j.Aside()) != 0 {
		t.Fatalf("the second start: %v, %v", j.Aside(), err)
	}
	j.Close()
	var found []string
	if _, err := Export(dir, nil, nil, func(x Exported) error {
		if x.Aside {
			found = append(found, fmt.Sprintf("%s/%s %v", x.Bucket, x.Key, x.Damaged))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mail/two true", "mail/one false"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
	// In a bucket that cannot spare records, the journal is refused.
	if err := os.WriteFile(path, bytes.ReplaceAll(whole, []byte("third"), []byte("tHird")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSparing(dir, ship, spare); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "a damaged record") {
		t.Errorf("a damaged record that is not spare: %v", err)
	}
}

// A start that is killed while it converts a journal to the newer format leaves the old file unchanged.
func TestKilledMigration(t *testing.T) {
	dir := t.TempDir()
	former(t, dir, 2, Op{"waiting", []byte("k"), []byte("v")})
	if err := os.WriteFile(filepath.Join(dir, fileName+unfinished), []byte("half of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, open(t, dir)); got["waiting/k"] != "v" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, fileName+unfinished)); err == nil {
		t.Error("the unfinished file is still there")
	}
}

// badDisk fails to read one stretch.
type badDisk struct {
	*bytes.Reader
	from, to int64
}

func (d badDisk) ReadAt(b []byte, at int64) (int, error) {
	if at < d.to && at+int64(len(b)) > d.from {
		return 0, syscall.EIO
	}
	return d.Reader.ReadAt(b, at)
}

// A sector that the disk does not return is a fault of its page, wherever it is, and the rest is saved.
func TestBadSector(t *testing.T) {
	whole, want, _ := lived(t, t.TempDir())
	faults := 0
	for at := int64(0); at < int64(len(whole)); at += 4096 {
		disk := badDisk{bytes.NewReader(whole), at + 512, at + 1024}
		if at < 8192 { // the meta pages are read in part
			disk.from = at
		}
		s, err := salvage(disk, int64(len(whole)), allBuckets, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.report.Faults {
			if strings.Contains(f.Why, "cannot be read from the disk") || at < 8192 {
				faults++
			}
		}
		if s.report.Sound() && at < 8192 {
			t.Errorf("page %d cannot be read, and nobody said so", at/4096)
		}
		onPage := 0
		for _, value := range want {
			if bytes.Contains(whole[at:at+4096], []byte(value)) {
				onPage++
			}
		}
		if lost := len(want) - len(s.records); lost > onPage {
			t.Errorf("without page %d, which has %d records, %d are lost", at/4096, onPage, lost)
		}
	}
	if faults < 5 {
		t.Errorf("%d faults", faults)
	}
}
