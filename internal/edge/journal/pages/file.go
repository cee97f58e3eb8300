package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// Layout of the file (bbolt 1.x, file format 2).
const (
	magic   = 0xED0CDAED
	version = 2

	headLen    = 16 // of a page: id 8, flags 2, count 2, overflow 4
	elementLen = 16 // of a branch page: pos 4, ksize 4, pgid 8; of a leaf page: flags 4, pos 4, ksize 4, vsize 4
	metaLen    = 64
	bucketLen  = 16 // of a bucket in its parent: root 8, sequence 8; a root of 0: the page follows

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf element

	noFreelist = ^uint64(0)

	leastPage = 1 << 10
	mostPage  = 1 << 16
	mostDepth = 48    // of branches: no store has a tree of 2^48 leaves
	mostKey   = 32768 // octets
)

// ErrNotBolt says that the file has no page that describes it.
var ErrNotBolt = errors.New("no meta page of the file can be read")

// Meta is the description of the tree on one of the first two pages.
type Meta struct {
	Valid    bool
	Root     uint64 // page of the list of buckets
	Freelist uint64
	Pages    uint64 // that the tree may use: all pages beyond are new
	Tx       uint64 // the transaction that wrote it
}

// Fault is something that no file of bbolt contains.
type Fault struct {
	Page uint64 `json:"page"`
	Why  string `json:"why"`
}

// Error names the page and what is wrong with it.
func (f Fault) Error() string { return fmt.Sprintf("page %d %s", f.Page, f.Why) }

// File is a store's file. It is not for concurrent use.
type File struct {
	PageSize int
	Metas    [2]Meta

	r     io.ReaderAt
	size  int64
	meta  Meta     // the newest valid one, or the chosen one
	one   bool     // a tree was chosen: the other one does not matter
	taken []bool   // pages that the walk has reached
	bufs  [][]byte // by depth
}

// Open reads the meta pages. With the error ErrNotBolt it returns a File on which only Loose works.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	var first [leastPage]byte
	readAt(r, first[:], 0, size) // octets that cannot be read are zero, and zeros are no meta page
	m, page := parseMeta(first[:])
	if m.Valid {
		f.PageSize, f.Metas[0] = page, m
		readAt(r, first[:], int64(page), size)
		if second, p := parseMeta(first[:]); p == page {
			f.Metas[1] = second
		}
	} else {
		for page := leastPage; page <= mostPage && !f.Metas[1].Valid; page *= 2 {
			readAt(r, first[:], int64(page), size)
			if m, p := parseMeta(first[:]); m.Valid && p == page {
				f.PageSize, f.Metas[1] = page, m
			}
		}
	}
	for _, m := range f.Metas {
		if m.Valid && (!f.meta.Valid || m.Tx > f.meta.Tx) {
			f.meta = m
		}
	}
	if f.meta.Valid {
		f.taken = make([]bool, size/int64(f.PageSize))
		return f, nil
	}
	f.guessPageSize()
	f.taken = make([]bool, size/int64(f.PageSize))
	return f, ErrNotBolt
}

// Tx is the transaction of the newest tree that can be reached; 0: there is none.
func (f *File) Tx() uint64 { return f.meta.Tx }

// Newest is the newest transaction that has a meta page; 0: there is none.
func (f *File) Newest() (tx uint64) {
	for _, m := range f.Metas {
		if m.Valid {
			tx = max(tx, m.Tx)
		}
	}
	return tx
}

// Used is how many octets of the file the newest tree may use.
func (f *File) Used() int64 { return int64(f.meta.Pages) * int64(f.PageSize) }

// Choose makes Walk read the tree that transaction tx has written; false: no meta page leads to it. bbolt leaves the tree
// before the newest as it was.
func (f *File) Choose(tx uint64) bool {
	for _, m := range f.Metas {
		if m.Valid && m.Tx == tx {
			f.meta, f.one = m, true
			return true
		}
	}
	return false
}

// guessPageSize picks the size at which most of the first pages begin with their own number.
func (f *File) guessPageSize() {
	f.PageSize = 4096
	best := 0
	for page := leastPage; page <= mostPage; page *= 2 {
		fit := 0
		for id := int64(2); id < 64; id++ {
			var head [8]byte
			if n, err := readAt(f.r, head[:], id*int64(page), f.size); err == nil && n == 8 && int64(binary.LittleEndian.Uint64(head[:])) == id {
				fit++
			}
		}
		if fit > best {
			best, f.PageSize = fit, page
		}
	}
}

// readAt reads as much of b as the file has; the rest is zero. If the disk fails, all of b is zero.
func readAt(r io.ReaderAt, b []byte, at, size int64) (n int, err error) {
	clear(b)
	if at >= size {
		return 0, nil
	}
	n, err = r.ReadAt(b[:min(int64(len(b)), size-at)], at)
	if err == io.EOF {
		err = nil
	}
	if err != nil {
		clear(b)
		return 0, err
	}
	return n, nil
}

func parseMeta(b []byte) (Meta, int) {
	le := binary.LittleEndian
	b = b[headLen:]
	page := le.Uint32(b[8:])
	sum := fnv.New64a()
	sum.Write(b[:metaLen-8])
	if le.Uint32(b) != magic || le.Uint32(b[4:]) != version || le.Uint64(b[metaLen-8:]) != sum.Sum64() ||
		page < leastPage || page > mostPage || page&(page-1) != 0 {
		return Meta{}, 0
	}
	return Meta{Valid: true, Root: le.Uint64(b[16:]), Freelist: le.Uint64(b[32:]), Pages: le.Uint64(b[40:]), Tx: le.Uint64(b[48:])}, int(page)
}

// page is a page's octets and its parsed head.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint32
	data     []byte // head included
}

// load reads a page with its overflow pages. depth selects the buffer. The error is a Fault.
func (f *File) load(id, most uint64, depth int) (p page, err error) {
	if id < 2 || id >= most {
		return p, Fault{id, "does not exist, and the tree leads to it"}
	}
	for len(f.bufs) <= depth {
		f.bufs = append(f.bufs, make([]byte, f.PageSize))
	}
	at := int64(id) * int64(f.PageSize)
	b := f.bufs[depth][:f.PageSize]
	if n, err := readAt(f.r, b, at, f.size); err != nil {
		return p, unreadable(id, err)
	} else if n < f.PageSize {
		return p, Fault{id, "is cut off"}
	}
	p = page{id: id, flags: binary.LittleEndian.Uint16(b[8:]), count: int(binary.LittleEndian.Uint16(b[10:])),
		overflow: binary.LittleEndian.Uint32(b[12:]), data: b}
	if own := binary.LittleEndian.Uint64(b); own != id {
		return p, Fault{id, fmt.Sprintf("says that it is page %d", own)}
	}
	if p.flags != flagBranch && p.flags != flagLeaf {
		return p, Fault{id, fmt.Sprintf("is of no kind that holds keys (%#x)", p.flags)}
	}
	if p.overflow == 0 {
		return p, nil
	}
	pages := uint64(p.overflow) + 1
	if pages > most-id || int64(id+pages) > f.size/int64(f.PageSize) {
		return p, Fault{id, "is longer than the file"}
	}
	if headLen+p.count*elementLen > f.PageSize*int(pages) {
		return p, Fault{id, "has more elements than room"}
	}
	want := int(pages) * f.PageSize
	if cap(f.bufs[depth]) < want {
		f.bufs[depth] = append(make([]byte, 0, want), b...)
	}
	b = f.bufs[depth][:want]
	if n, err := readAt(f.r, b[f.PageSize:], at+int64(f.PageSize), f.size); err != nil {
		return p, unreadable(id, err)
	} else if n < want-f.PageSize {
		return p, Fault{id, "is cut off"}
	}
	p.data = b
	return p, nil
}

// unreadable is the fault of a page that the disk does not return.
func unreadable(id uint64, err error) Fault {
	return Fault{id, fmt.Sprintf("cannot be read from the disk: %v", err)}
}

// element is one key of a page, with its value or child.
type element struct {
	bucket     bool
	child      uint64
	key, value []byte
}

// element reads element i alone; false: it leads out of the page. start and end bound its octets.
func (p *page) element(i int) (e element, start, end int, ok bool) {
	at := headLen + i*elementLen
	if at+elementLen > len(p.data) {
		return e, 0, 0, false
	}
	le, b := binary.LittleEndian, p.data[at:]
	var pos, ksize, vsize uint32
	if p.flags == flagLeaf {
		flags := le.Uint32(b)
		pos, ksize, vsize = le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
		if flags > flagBucket {
			return e, 0, 0, false
		}
		e.bucket = flags == flagBucket
	} else {
		pos, ksize, e.child = le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:])
	}
	from := int64(at) + int64(pos)
	to := from + int64(ksize) + int64(vsize)
	if ksize == 0 || ksize > mostKey || to > int64(len(p.data)) {
		return e, 0, 0, false
	}
	start, end = int(from), int(to)
	e.key, e.value = p.data[start:start+int(ksize):start+int(ksize)], p.data[start+int(ksize):end:end]
	return e, start, end, true
}

// layout says how a page differs from the pages that bbolt writes; "": it does not. An inline page ends with its value.
func (p *page) layout(pageSize int, inline bool) string {
	at := headLen + p.count*elementLen
	if at > len(p.data) {
		return "has more elements than room"
	}
	for i := range p.count {
		_, start, end, ok := p.element(i)
		if !ok || start != at {
			return fmt.Sprintf("has a damaged element %d of %d", i+1, p.count)
		}
		at = end
	}
	switch {
	case inline && at != len(p.data):
		return "has another length than its elements"
	case !inline && max(1, (at+pageSize-1)/pageSize) != len(p.data)/pageSize:
		return "has another length than its elements"
	}
	return ""
}
