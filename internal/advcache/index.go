package advcache

import (
	"slices"
	"sort"
	"strings"
)

// shelf holds the entries of one group and type, with their indexes: by id, in order of arrival, and by the values of
// their index fields, forwards for "track*" and backwards for "*track".
type shelf struct {
	ids         map[string]*item // the first copy of each id, the others behind it
	first, last *item            // in order of arrival
	fields      map[string]*field
}

// field is one index field of a shelf: every value of it, in both orders.
type field struct {
	name              string
	forward, backward sorted
}

// ownerField stands in the index for the publisher. No field of an advertisement has an empty name.
const ownerField = ""

func newShelf() *shelf { return &shelf{ids: map[string]*item{}, fields: map[string]*field{}} }

func (s *shelf) add(it *item) {
	it.twin, s.ids[it.ID] = s.ids[it.ID], it
	it.before = s.last
	if s.last == nil {
		s.first = it
	} else {
		s.last.after = it
	}
	s.last = it
	s.index(it)
}

func (s *shelf) remove(it *item) {
	if head := s.ids[it.ID]; head != it {
		for head.twin != it {
			head = head.twin
		}
		head.twin = it.twin
	} else if it.twin != nil {
		s.ids[it.ID] = it.twin
	} else {
		delete(s.ids, it.ID)
	}
	if it.before == nil {
		s.first = it.after
	} else {
		it.before.after = it.after
	}
	if it.after == nil {
		s.last = it.before
	} else {
		it.after.before = it.before
	}
	it.before, it.after, it.twin = nil, nil, nil
	s.unindex(it)
}

func (s *shelf) index(it *item) {
	for n := range it.Index {
		f := s.fields[it.Index[n].Name]
		if f == nil {
			f = &field{name: it.Index[n].Name}
			s.fields[f.name] = f
		}
		r := ref{it, int32(n)}
		f.forward.insert(r, compareForward)
		f.backward.insert(r, compareBackward)
	}
	if it.Peer == "" {
		return
	}
	owners := s.fields[ownerField]
	if owners == nil {
		owners = &field{}
		s.fields[ownerField] = owners
	}
	owners.forward.insert(ref{it, ownerRef}, compareForward)
}

func (s *shelf) unindex(it *item) {
	for n := range it.Index {
		name := it.Index[n].Name
		f := s.fields[name]
		r := ref{it, int32(n)}
		f.forward.remove(r, compareForward)
		f.backward.remove(r, compareBackward)
		if len(f.forward.blocks) == 0 {
			delete(s.fields, name)
		}
	}
	if it.Peer == "" {
		return
	}
	owners := s.fields[ownerField]
	owners.forward.remove(ref{it, ownerRef}, compareForward)
	if len(owners.forward.blocks) == 0 {
		delete(s.fields, ownerField)
	}
}

// ref is one index field of an item.
type ref struct {
	it *item
	n  int32
}

const ownerRef = -1 // the publisher

func (r ref) value() string {
	if r.n == ownerRef {
		return r.it.Peer
	}
	return r.it.Index[r.n].Value
}

// sorted is a list of refs by value, and by arrival if values are equal, in blocks, so that a change moves few refs.
type sorted struct{ blocks [][]ref }

const blockMax = 256 // refs

type order func(a, b string) int

func (o order) refs(a, b ref) int {
	if c := o(a.value(), b.value()); c != 0 {
		return c
	}
	switch {
	case a.it.arrival != b.it.arrival:
		if a.it.arrival < b.it.arrival {
			return -1
		}
		return 1
	}
	return int(a.n - b.n)
}

// place is where r stands or belongs.
func (s *sorted) place(r ref, o order) (block, at int) {
	block = max(0, sort.Search(len(s.blocks), func(i int) bool { return o.refs(s.blocks[i][0], r) > 0 })-1)
	if len(s.blocks) == 0 {
		return 0, 0
	}
	b := s.blocks[block]
	return block, sort.Search(len(b), func(i int) bool { return o.refs(b[i], r) >= 0 })
}

func (s *sorted) insert(r ref, o order) {
	if len(s.blocks) == 0 {
		s.blocks = [][]ref{{r}}
		return
	}
	block, at := s.place(r, o)
	b := slices.Insert(s.blocks[block], at, r)
	s.blocks[block] = b
	if len(b) <= blockMax {
		return
	}
	half := len(b) / 2
	if block == len(s.blocks)-1 && at == len(b)-1 { // values that only grow: leave full blocks behind
		half = len(b) - 1
	}
	rest := slices.Clone(b[half:])
	s.blocks[block] = slices.Clip(slices.Delete(b, half, len(b)))
	s.blocks = slices.Insert(s.blocks, block+1, rest)
}

func (s *sorted) remove(r ref, o order) {
	block, at := s.place(r, o)
	b := s.blocks[block]
	s.blocks[block] = slices.Delete(b, at, at+1)
	if len(b) == 1 {
		s.blocks = slices.Delete(s.blocks, block, block+1)
	}
}

// each calls f for the refs from the first whose value is not before from, until f returns false.
func (s *sorted) each(from string, o order, f func(ref) bool) {
	// The block before the first one that begins at or after from may end after from.
	block := max(0, sort.Search(len(s.blocks), func(i int) bool { return o(s.blocks[i][0].value(), from) >= 0 })-1)
	for ; block < len(s.blocks); block++ {
		b := s.blocks[block]
		at := 0
		if o(b[0].value(), from) < 0 {
			at = sort.Search(len(b), func(i int) bool { return o(b[i].value(), from) >= 0 })
		}
		for ; at < len(b); at++ {
			if !f(b[at]) {
				return
			}
		}
	}
}

// upper is an octet in upper case. The index ignores case, because 2.2 upper-cases ids and the
// values of its own index (baseline 6).
func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func compareForward(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := upper(a[i]), upper(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

func compareBackward(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := upper(a[len(a)-1-i]), upper(b[len(b)-1-i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// candidates calls f for refs that may match an attribute's pattern (jxta.Match), in no useful order, until f returns
// false. Every match is among them.
func (s *shelf) candidates(attr, pattern string, f func(ref) bool) {
	x := s.fields[attr]
	if x == nil {
		return
	}
	head, tail := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	word := strings.TrimSuffix(strings.TrimPrefix(pattern, "*"), "*")
	switch {
	case head && tail: // anywhere: no order helps
		x.forward.each("", compareForward, f)
	case head:
		x.backward.each(word, compareBackward, func(r ref) bool {
			v := r.value()
			return len(v) >= len(word) && compareForward(v[len(v)-len(word):], word) == 0 && f(r)
		})
	case tail:
		x.forward.each(word, compareForward, func(r ref) bool {
			v := r.value()
			return len(v) >= len(word) && compareForward(v[:len(word)], word) == 0 && f(r)
		})
	default:
		x.forward.each(pattern, compareForward, func(r ref) bool { return compareForward(r.value(), pattern) == 0 && f(r) })
	}
}
