package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/baddisk"
)

// voyage is a journal on a disk that fails, and the records that it has promised to keep.
type voyage struct {
	t        *testing.T
	disk     *baddisk.Disk
	dir      string
	j        *Journal
	rng      *rand.Rand
	want     map[string]string // confirmed by Commit
	pending  []Op              // of commits that failed: they are tried again, as the loop does
	tried    []int             // how many of them each attempt had
	next     int
	failures int
}

func newVoyage(t *testing.T, seed uint64) *voyage {
	t.Helper()
	disk, err := baddisk.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := &voyage{t: t, disk: disk, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 11)), want: map[string]string{}}
	t.Cleanup(func() {
		if v.j != nil {
			v.j.Close()
		}
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := disk.Mount(v.dir); err != nil {
		t.Fatal(err)
	}
	v.open()
	return v
}

func (v *voyage) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *voyage) open() {
	v.t.Helper()
	var err error
	v.j, err = Open(v.dir, ship)
	v.must(err)
}

// ops is a transaction such as a gateway's.
func (v *voyage) ops() (ops []Op) {
	for range 1 + v.rng.IntN(4) {
		value := make([]byte, v.rng.IntN(3000))
		for i := range value {
			value[i] = byte(v.rng.Uint32())
		}
		ops = append(ops, Op{"mail", fmt.Appendf(nil, "%06d", v.next), value}, Op{"peer", []byte("3"), fmt.Appendf(nil, "%d", v.next)})
		if old := v.next - 20 - v.rng.IntN(20); old >= 0 {
			ops = append(ops, Op{"mail", fmt.Appendf(nil, "%06d", old), nil})
		}
		v.next++
	}
	return ops
}

func with(m map[string]string, ops []Op) map[string]string {
	m = maps.Clone(m)
	for _, op := range ops {
		if name := op.Bucket + "/" + string(op.Key); op.Value == nil {
			delete(m, name)
		} else {
			m[name] = string(op.Value)
		}
	}
	return m
}

// commit commits pending and new ops, and says whether Commit has confirmed them.
func (v *voyage) commit() bool {
	v.t.Helper()
	v.pending = append(v.pending, v.ops()...)
	v.tried = append(v.tried, len(v.pending))
	err := v.j.Commit(v.pending)
	if err != nil {
		if v.failures++; !strings.Contains(err.Error(), "disk") {
			v.t.Errorf("the error does not name the disk: %v", err)
		}
		return false
	}
	v.want, v.pending, v.tried = with(v.want, v.pending), nil, nil
	return true
}

// same compares the journal's content with its promises. An unconfirmed commit may be there, whole.
func (v *voyage) same(what string) {
	v.t.Helper()
	got := contents(v.t, v.j)
	if maps.Equal(got, v.want) {
		return
	}
	for _, n := range v.tried {
		if maps.Equal(got, with(v.want, v.pending[:n])) {
			return
		}
	}
	missing := 0
	for k, value := range v.want {
		if got[k] != value {
			missing++
		}
	}
	v.t.Fatalf("%s: of %d confirmed records %d are not there", what, len(v.want), missing)
}

// evict takes the journal's file out of the kernel's memory, as happens if memory is short.
func (v *voyage) evict() {
	v.t.Helper()
	path := filepath.Join(v.dir, fileName)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		v.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		var from, to uintptr
		if line := lines.Text(); strings.HasSuffix(line, path) {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				v.t.Fatal(err)
			}
			if _, _, number := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); number != 0 {
				v.t.Fatal(number)
			}
		}
	}
	f, err := os.Open(path)
	if err == nil {
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		f.Close()
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// A disk whose sectors fail, or that fails as a whole, at any write: each confirmed commit is there once the disk works again,
// after a kill, after a new mount, and after the kernel has dropped the file from its memory.
func TestFailingDisk(t *testing.T) {
	for seed := range uint64(failingSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			v := newVoyage(t, seed)
			for range 4 {
				v.fail()
			}
			refused, err := v.disk.Refused()
			v.must(err)
			t.Logf("%d messages, %d failed commits, %d refused requests", v.next, v.failures, refused)
		})
	}
}

func (v *voyage) fail() {
	t := v.t
	for range 5 + v.rng.IntN(40) {
		if !v.commit() {
			t.Fatal("a good disk fails")
		}
	}
	f := baddisk.Failure{From: baddisk.DataFrom, Writes: v.rng.IntN(4) > 0, After: v.rng.IntN(12)}
	if f.Reads = !f.Writes || v.rng.IntN(2) == 0; v.rng.IntN(4) == 0 {
		f.From = 0
	}
	v.must(v.disk.Fail(f))
	if f.Reads && v.rng.IntN(2) == 0 {
		v.evict()
	}
	for range 12 {
		v.commit()
	}
	how := fmt.Sprintf("%+v", f)
	kill := v.rng.IntN(2) == 0
	if kill {
		v.j.Close() // it writes nothing
		v.j = nil
	}
	v.must(v.disk.Heal())
	if f.From > 0 && !kill { // it recovers by itself
		for tries := 1; !v.commit(); tries++ {
			if tries == 3 {
				t.Fatalf("%s: the disk is well, and the journal does not go on: %v", how, v.j.Commit(v.pending))
			}
		}
		v.same(how + ", the disk is well")
		for range v.rng.IntN(10) {
			v.commit()
		}
	}
	v.restart(how, f.From == 0)
	for len(v.pending) > 0 && !v.commit() {
		t.Fatal(how + ": the disk is well, and the journal does not go on")
	}
	for range v.rng.IntN(10) {
		v.commit()
	}
	v.restart(how+", and after it", true)
}

// restart starts the journal again, with or without mounting the file system anew.
func (v *voyage) restart(how string, anew bool) {
	v.t.Helper()
	if v.j != nil {
		v.j.Close()
	}
	if anew || v.rng.IntN(2) == 0 {
		how += ", mounted anew"
		v.must(v.disk.Remount())
	}
	v.open()
	v.same(how)
}

// A full disk loses no pages: however often a commit fails, the file holds as many records as before.
func TestFullDiskKeepsItsPages(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("aldis-journal", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatalf("mounting a small tmpfs: %v (this test needs root)", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	j := open(t, dir)
	defer j.Close()
	used := func() int64 {
		t.Helper()
		file, err := heads(j.file)
		if err != nil {
			t.Fatal(err)
		}
		return file.Used()
	}
	small, large := make([]byte, 1000), make([]byte, 3<<20)
	for i := range uint32(100) {
		commit(t, j, Op{"b", be32(i % 10), small})
	}
	before := used()
	for i := range uint32(100) {
		if err := j.Commit([]Op{{"b", be32(i % 10), small}, {"b", []byte("large"), large}}); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("3 MB on a disk of 2 MB: %v", err)
		}
	}
	for i := range uint32(100) {
		commit(t, j, Op{"b", be32(i % 10), small})
	}
	if after := used(); after > before+8*4096 {
		t.Errorf("the file has grown from %d to %d octets", before, after)
	}
}
