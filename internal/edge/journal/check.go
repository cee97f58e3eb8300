package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"aldis/internal/edge/journal/pages"
)

// Damaged is a record that cannot be believed.
type Damaged struct {
	Bucket string
	Key    []byte
	Octets int // of its value in the file
	Why    string
}

// String names the damaged record and what is wrong with it.
func (d Damaged) String() string {
	return fmt.Sprintf("bucket %q, key %x, %d octets: %s", d.Bucket, d.Key, d.Octets, d.Why)
}

// BucketStat counts the contents of a bucket.
type BucketStat struct {
	Name    string `json:"name"`
	Records int    `json:"records"`
	Octets  int    `json:"octets"` // of keys and values
}

// MostDamaged bounds the damaged records that a Report names; it counts all.
const MostDamaged = 1000

// Report is the state of a journal's file, found without changing it.
type Report struct {
	Format      uint32 // 0: not known
	Node        uint16
	Name        string
	Store       uint32
	Incarnation uint32
	Octets      int64 // of the file
	Behind      int64 // of them, behind the part that the store has used; bbolt allocates ahead
	PageSize    int
	Pages       int // of the file
	Free        int // free ones among them
	Buckets     []BucketStat
	Aside       int // records that were set aside earlier

	Foreign bool          // it is a store, but not a gateway's
	Fresh   bool          // nothing has been written to it yet
	Sealed  bool          // its records are sealed
	Faults  []pages.Fault // of its pages, at most pages.MostFaults
	Count   int           // of all faults
	Damaged []Damaged     // at most MostDamaged
	Bad     int           // all damaged records
	Missing int64         // records that the tally has and the file has not; negative: too many
	Stale   bool          // as many records as there should be, but other ones

	damagedOwn []string // fields of the journal's own that cannot be read
	unread     error    // the first error of the disk
	sealed     []byte   // keySealed
	position   []byte   // keyPosition
}

// Sound says that the file has no fault.
func (r *Report) Sound() bool { return r.Count+r.Bad == 0 && !r.broken() }

// broken says that the journal cannot be used even if damaged records are set aside.
func (r *Report) broken() bool {
	return r.Count > 0 || r.Missing != 0 || r.Stale || len(r.damagedOwn) > 0 || r.Foreign
}

// Problems say what is wrong, the worst first.
func (r *Report) Problems() (list []string) {
	for _, f := range r.Faults {
		list = append(list, f.Error())
	}
	if n := r.Count - len(r.Faults); n > 0 {
		list = append(list, fmt.Sprintf("%d more faults of pages", n))
	}
	if r.Foreign {
		list = append(list, "it is not a gateway's")
	}
	for _, name := range r.damagedOwn {
		list = append(list, fmt.Sprintf("the journal's own field %q is damaged", name))
	}
	switch {
	case r.Missing > 0:
		list = append(list, fmt.Sprintf("%d records are missing", r.Missing))
	case r.Missing < 0:
		list = append(list, fmt.Sprintf("%d records are there that should not be", -r.Missing))
	case r.Stale:
		list = append(list, "a record is older than it should be")
	}
	for _, d := range r.Damaged {
		list = append(list, "a damaged record: "+d.String())
	}
	if n := r.Bad - len(r.Damaged); n > 0 {
		list = append(list, fmt.Sprintf("%d more damaged records", n))
	}
	return list
}

// record is a record as a walk over the file passes it to its visitors.
type record struct {
	bucket     string
	key, value []byte // value without its checksum, if it has one
	serial     uint32
	good       bool // its checksum is right; in a format without checksums: its page has no fault
}

// reader goes through a journal's file and makes its Report.
type reader struct {
	file   *pages.File
	report Report
	own    map[string][]byte // the journal's own fields, as in the file
	walked pages.Walked
	found  tally // of good records
	visit  func(record) error
}

// examine reads all of a file. visit gets each record except the journal's own, which is good until it returns; visit may be
// nil. The error is visit's.
func examine(r io.ReaderAt, size int64, visit func(record) error) (*reader, error) {
	return examineAt(r, size, 0, visit)
}

// watched remembers the first error of a disk.
type watched struct {
	io.ReaderAt
	err error
}

func (w *watched) ReadAt(b []byte, at int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(b, at)
	if err != nil && err != io.EOF && w.err == nil {
		w.err = err
	}
	return n, err
}

// examineAt reads the tree of transaction tx; 0: the newest tree.
func examineAt(r io.ReaderAt, size int64, tx uint64, visit func(record) error) (*reader, error) {
	seen := &watched{ReaderAt: r}
	file, err := pages.Open(seen, size)
	if err != nil && !errors.Is(err, pages.ErrNotBolt) { // the walk reports ErrNotBolt as a fault of page 0
		return nil, err
	}
	if tx > 0 && !file.Choose(tx) {
		return nil, &unsoundError{"the disk does not give the head of the file"}
	}
	e := &reader{file: file, own: map[string][]byte{}, visit: visit}
	e.report.Octets, e.report.PageSize = size, file.PageSize
	if e.walked, err = file.Walk(e.record); err != nil {
		return nil, err
	}
	e.conclude()
	e.report.unread = seen.err
	return e, nil
}

func (e *reader) record(r pages.Record) error {
	if r.Bucket == own {
		e.own[string(r.Key)] = bytes.Clone(r.Value)
		return nil
	}
	rec := record{bucket: r.Bucket, key: r.Key, value: r.Value, good: r.Sure}
	rep := &e.report
	if e.checked() {
		rec.value, rec.good = unseal(r.Bucket, r.Key, r.Value)
		if rec.good {
			rec.serial = serialOf(r.Value)
			e.found.add(r.Value)
		}
	}
	if i := len(rep.Buckets) - 1; i < 0 || rep.Buckets[i].Name != r.Bucket {
		rep.Buckets = append(rep.Buckets, BucketStat{Name: r.Bucket})
	}
	b := &rep.Buckets[len(rep.Buckets)-1]
	b.Records++
	b.Octets += len(r.Key) + len(rec.value)
	if r.Bucket == aside {
		rep.Aside++
	}
	if !rec.good && e.checked() { // otherwise its page is reported already
		rep.Bad++
		if rep.Bad <= MostDamaged {
			rep.Damaged = append(rep.Damaged, Damaged{r.Bucket, bytes.Clone(r.Key), max(0, len(r.Value)-headLen), "its checksum is wrong"})
		}
	}
	if e.visit == nil {
		return nil
	}
	return e.visit(rec)
}

// checked says whether the file has checksums; a format that cannot be read counts as one that has.
func (e *reader) checked() bool {
	f := e.own[string(keyFormat)]
	return len(f) != 4 || binary.BigEndian.Uint32(f) >= firstChecked
}

// number is a field of the journal's own.
func (e *reader) number(key []byte) (uint32, bool) {
	v, ok := e.field(key)
	if !ok || len(v) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(v), true
}

func (e *reader) field(key []byte) ([]byte, bool) {
	v := e.own[string(key)]
	if !e.checked() || bytes.Equal(key, keyFormat) {
		return v, v != nil
	}
	return unseal(own, key, v)
}

// conclude reads the journal's own fields and compares the records with the tally.
func (e *reader) conclude() {
	rep := &e.report
	rep.position, _ = e.field(keyPosition)
	rep.Faults, rep.Count = e.walked.Faults, e.walked.Count
	rep.Pages, rep.Free = e.walked.Pages, e.walked.Free
	rep.Behind = max(0, rep.Octets-e.file.Used())
	if len(e.own) == 0 {
		rep.Fresh = len(e.walked.Buckets) == 0 && rep.Count == 0
		rep.Foreign = len(e.walked.Buckets) > 0 && rep.Count == 0 && !slices.Contains(e.walked.Buckets, own)
		if !rep.Fresh && !rep.Foreign && rep.Count == 0 {
			rep.damagedOwn = []string{"all"}
		}
		return
	}
	take := func(name []byte) uint32 {
		n, ok := e.number(name)
		if !ok {
			rep.damagedOwn = append(rep.damagedOwn, string(name))
		}
		return n
	}
	rep.Format = take(keyFormat)
	if rep.Format > formatSealed {
		return // the fields of a later format are unknown
	}
	rep.Sealed = rep.Format == formatSealed
	if rep.Sealed {
		var ok bool
		if rep.sealed, ok = e.field(keySealed); !ok {
			rep.damagedOwn = append(rep.damagedOwn, string(keySealed))
		}
	}
	if rep.Format == 0 && len(rep.damagedOwn) == 0 {
		rep.damagedOwn = append(rep.damagedOwn, string(keyFormat))
	}
	node := take(keyNode)
	rep.Node, rep.Store, rep.Incarnation = uint16(node), take(keyStore), take(keyIncarnation)
	name, ok := e.field(keyName)
	rep.Name = strings.ToValidUTF8(string(name), "?")
	if !ok {
		rep.Name = ""
		if e.checked() {
			rep.damagedOwn = append(rep.damagedOwn, string(keyName))
		}
	}
	if !e.checked() {
		return
	}
	v, ok := e.field(keyTally)
	want, whole := parseTally(v)
	if !ok || !whole {
		rep.damagedOwn = append(rep.damagedOwn, string(keyTally))
		return
	}
	rep.Missing = int64(want.records - e.found.records - uint64(rep.Bad))
	rep.Stale = rep.Missing == 0 && rep.Bad == 0 && want.sum != e.found.sum
}
