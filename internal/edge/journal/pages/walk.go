package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Record is one key of a bucket and its value. Both are good until the function that received them returns.
type Record struct {
	Bucket string
	Key    []byte
	Value  []byte
	Sure   bool // its page has no fault
}

// Lost is a stretch of keys that the walk could not read, or could not trust.
type Lost struct {
	Bucket string
	All    bool   // not even its buckets are known
	Min    []byte // nil: from the first key on
	Max    []byte // the first key behind the stretch; nil: to the last key
}

// Holds says whether a key lies in the stretch.
func (l Lost) Holds(bucket string, key []byte) bool {
	return l.All || l.Bucket == bucket && bytes.Compare(key, l.Min) >= 0 && (l.Max == nil || bytes.Compare(key, l.Max) < 0)
}

// MostFaults bounds the faults that a walk names; it counts all.
const MostFaults = 64

// Walked is what a walk has found, besides the records.
type Walked struct {
	Faults  []Fault
	Count   int // of all faults
	Buckets []string
	Lost    []Lost
	Pages   int // of the file
	Free    int // free ones among them
}

type walk struct {
	*File
	Walked
	visit func(Record) error
	most  uint64
}

// Walk visits all records of the newest tree, in the order of buckets and keys. It goes on after a fault: it also visits a page
// whose keys are out of order, so that the checksum of each record can decide. The error is visit's.
func (f *File) Walk(visit func(Record) error) (Walked, error) {
	w := &walk{File: f, visit: visit}
	if !f.meta.Valid {
		w.fault(Fault{0, "and page 1 cannot be read: " + ErrNotBolt.Error()}, Lost{All: true})
		return w.Walked, nil
	}
	w.Pages = int(f.size / int64(f.PageSize))
	for i, m := range f.Metas {
		if !m.Valid && !f.one {
			w.fault(Fault{uint64(i), "is damaged: the last transaction may be lost"})
		}
	}
	w.most = f.meta.Pages
	if have := uint64(w.Pages); w.most > have {
		w.fault(Fault{have, fmt.Sprintf("is where the file ends; it had %d pages", w.most)})
		w.most = have
	}
	for i := range min(2, len(f.taken)) {
		f.taken[i] = true
	}
	if err := w.tree("", f.meta.Root, bounds{}, 0, true); err != nil {
		return w.Walked, err
	}
	w.freelist()
	for _, taken := range f.taken {
		if !taken {
			w.Free++
		}
	}
	return w.Walked, nil
}

func (w *walk) fault(f Fault, lost ...Lost) {
	w.Count++
	if w.Count <= MostFaults {
		w.Faults = append(w.Faults, f)
	}
	w.Lost = append(w.Lost, lost...)
}

// freelist checks the list of free pages, after the tree. A journal has such a list only if another program has written to it:
// the gateway's bbolt stores none, and finds the free pages by itself.
func (w *walk) freelist() {
	id := w.meta.Freelist
	if id == noFreelist {
		return
	}
	const bad = "should be the list of free pages, and is none"
	var head [headLen]byte
	if id < 2 || id >= w.most || w.taken[id] {
		w.fault(Fault{id, bad})
		return
	}
	at := int64(id) * int64(w.PageSize)
	if _, err := readAt(w.r, head[:], at, w.size); err != nil {
		w.fault(unreadable(id, err))
		return
	}
	le := binary.LittleEndian
	pages := uint64(le.Uint32(head[12:])) + 1
	if le.Uint64(head[:]) != id || le.Uint16(head[8:]) != flagFreelist || pages > w.most-id {
		w.fault(Fault{id, bad})
		return
	}
	b := make([]byte, int(pages)*w.PageSize-headLen)
	if _, err := readAt(w.r, b, at+headLen, w.size); err != nil {
		w.fault(unreadable(id, err))
		return
	}
	count := uint64(le.Uint16(head[10:]))
	if count == 0xffff {
		count, b = le.Uint64(b), b[8:]
	}
	if count > uint64(len(b)/8) {
		w.fault(Fault{id, bad})
		return
	}
	for i := range pages {
		if w.taken[id+i] {
			w.fault(Fault{id + i, "is used twice"})
		}
		w.taken[id+i] = true
	}
	before := uint64(1)
	for i := range count {
		free := le.Uint64(b[8*i:])
		if free <= before || free >= w.most || w.taken[free] {
			w.fault(Fault{id, "lists a page as free that is not"})
			return
		}
		before = free
	}
}

// bounds are the keys that bound a page.
type bounds struct {
	first []byte // the page's first key; nil: any
	next  []byte // the first key behind the page; nil: none
}

// tree walks the tree of a bucket, or of the list of buckets.
func (w *walk) tree(bucket string, id uint64, in bounds, depth int, list bool) error {
	lost := Lost{Bucket: bucket, All: list, Min: bytes.Clone(in.first), Max: bytes.Clone(in.next)}
	if depth > mostDepth {
		w.fault(Fault{id, "lies too deep"}, lost)
		return nil
	}
	p, err := w.load(id, w.most, depth)
	var f Fault
	switch {
	case errors.As(err, &f):
		w.fault(f, lost)
		return nil
	case err != nil:
		return err
	}
	for i := range uint64(len(p.data) / w.PageSize) {
		if w.taken[id+i] {
			w.fault(Fault{id + i, "is used twice"}, lost)
			return nil
		}
	}
	for i := range uint64(len(p.data) / w.PageSize) {
		w.taken[id+i] = true
	}
	why := p.layout(w.PageSize, false)
	if why == "" {
		why = p.order(in)
	}
	if why == "" && p.flags == flagBranch && p.count == 0 {
		why = "is a branch without children"
	}
	if why != "" {
		w.fault(Fault{id, why}, lost)
	}
	if p.flags == flagBranch {
		return w.children(bucket, &p, in, depth, list, why == "")
	}
	return w.leaf(bucket, &p, depth, list, why == "")
}

// order says what is wrong with the order of a page's keys; "": nothing.
func (p *page) order(in bounds) string {
	var before []byte
	for i := range p.count {
		e, _, _, _ := p.element(i)
		switch {
		case i == 0 && in.first != nil && !bytes.Equal(e.key, in.first):
			return "does not begin with the key that its parent has for it"
		case i > 0 && bytes.Compare(before, e.key) >= 0:
			return fmt.Sprintf("has keys out of order (%d of %d)", i+1, p.count)
		}
		before = e.key
	}
	if p.count > 0 && in.next != nil && bytes.Compare(before, in.next) >= 0 {
		return "has keys that belong to the page behind it"
	}
	return ""
}

// children walks the pages below a branch. The keys of a damaged branch do not bound them.
func (w *walk) children(bucket string, p *page, in bounds, depth int, list, sound bool) error {
	for i := range p.count {
		e, _, _, ok := p.element(i)
		if !ok {
			continue
		}
		below := bounds{}
		if sound {
			below = bounds{first: e.key, next: in.next}
			if i+1 < p.count {
				next, _, _, _ := p.element(i + 1)
				below.next = next.key
			}
		}
		if err := w.tree(bucket, e.child, below, depth+1, list); err != nil {
			return err
		}
	}
	return nil
}

// leaf visits the records of a page, or the buckets on a page of the list.
func (w *walk) leaf(bucket string, p *page, depth int, list, sure bool) error {
	for i := range p.count {
		e, _, _, ok := p.element(i)
		if !ok {
			continue
		}
		var err error
		switch {
		case list && e.bucket:
			err = w.bucket(string(e.key), p.id, e.value, depth)
		case list != e.bucket:
			w.fault(Fault{p.id, "has a bucket where a value belongs, or a value where a bucket does"}, Lost{Bucket: bucket, All: list})
		default:
			err = w.visit(Record{bucket, e.key, e.value, sure})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a bucket whose entry is on a page of the list.
func (w *walk) bucket(name string, id uint64, value []byte, depth int) error {
	lost := Lost{Bucket: name}
	w.Buckets = append(w.Buckets, name)
	p, root, ok := inline(id, value)
	switch {
	case !ok:
		w.fault(Fault{id, fmt.Sprintf("has a damaged bucket %q", name)}, lost)
		return nil
	case root != 0:
		return w.tree(name, root, bounds{}, depth+1, false)
	}
	why := p.layout(w.PageSize, true)
	if why == "" {
		why = p.order(bounds{})
	}
	if why != "" {
		w.fault(Fault{id, fmt.Sprintf("has a bucket %q that %s", name, why)}, lost)
	}
	return w.leaf(name, &p, depth, false, why == "")
}

// inline reads a bucket's entry on a page of the list: the number of its root page, or a small page itself.
func inline(id uint64, value []byte) (p page, root uint64, ok bool) {
	if len(value) < bucketLen {
		return p, 0, false
	}
	root = binary.LittleEndian.Uint64(value)
	if root != 0 {
		return p, root, len(value) == bucketLen
	}
	b := value[bucketLen:]
	if len(b) < headLen {
		return p, 0, false
	}
	p = page{id: id, flags: binary.LittleEndian.Uint16(b[8:]), count: int(binary.LittleEndian.Uint16(b[10:])), data: b}
	return p, 0, p.flags == flagLeaf
}
