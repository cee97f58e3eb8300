package journal

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/journal/pages"
)

// salvaged is everything that can be read of a broken file.
type salvaged struct {
	*reader
	records []Op
	serials []uint32
	damaged []Damaged         // recognised as records, but lost
	loose   int               // how many of records come from pages outside the tree
	most    bool              // there are more pages outside the tree than were read
	place   map[string]int    // index of a record in records, by nameOf
	names   []string          // of buckets
	inAside map[string][]byte // records that were set aside, by key

	key         *atrest.Key // of a sealed file; nil before open, and for a file that is not sealed
	sealedField []byte
}

func nameOf(bucket string, key []byte) string { return bucket + "\x00" + string(key) }

// salvage reads all records of the tree and, with loose, also records from pages outside it that lie in lost stretches. names
// are the names that buckets may have: a page outside the tree does not name its bucket, but the checksum of a record fits only
// one bucket.
func salvage(r io.ReaderAt, size int64, names []string, loose bool) (*salvaged, error) {
	s := &salvaged{place: map[string]int{}, inAside: map[string][]byte{}}
	var err error
	s.reader, err = examine(r, size, func(r record) error {
		switch {
		case !r.good:
		case r.bucket == aside:
			s.inAside[string(r.key)] = bytes.Clone(r.value)
		default:
			s.put(clone(r), r.serial)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.damaged = s.report.Damaged
	s.names = slices.Concat(s.walked.Buckets, names)
	if s.checked() && (loose && s.report.Count > 0 || len(s.report.damagedOwn) > 0) {
		err = s.addLoose(loose)
	}
	return s, err
}

func (s *salvaged) put(op Op, serial uint32) {
	name := nameOf(op.Bucket, op.Key)
	if i, ok := s.place[name]; ok {
		s.records[i], s.serials[i] = op, serial
		return
	}
	s.place[name] = len(s.records)
	s.records, s.serials = append(s.records, op), append(s.serials, serial)
}

// loosePage is a page outside the tree, with its whole records.
type loosePage struct {
	bucket  string
	newest  uint32 // serial of its newest record
	records []Op
	serials []uint32
}

// addLoose adds records from pages outside the tree, for each stretch from its newest page. It adds a record that lies in a
// lost stretch, or that was written by a later transaction than the tree.
func (s *salvaged) addLoose(records bool) error {
	var list []loosePage
	all, err := s.file.Loose(func(on []pages.Record) error {
		p := s.identify(on)
		switch {
		case p.bucket == own:
			s.addOwn(p)
		case records && p.bucket != aside && len(p.records) > 0:
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.most = !all
	sort.SliceStable(list, func(i, j int) bool { return list[i].newest > list[j].newest })
	read := map[string]*stretches{}
	for _, p := range list {
		seen := read[p.bucket]
		if seen == nil {
			seen = &stretches{}
			read[p.bucket] = seen
		}
		for i, op := range p.records {
			if seen.hold(op.Key) || !s.wanted(op, p.serials[i]) {
				continue
			}
			s.put(op, p.serials[i])
			s.loose++
		}
		seen.add(p.records[0].Key, p.records[len(p.records)-1].Key)
	}
	return nil
}

func (s *salvaged) wanted(op Op, serial uint32) bool {
	at, have := s.place[nameOf(op.Bucket, op.Key)]
	if have && serial <= s.serials[at] {
		return false
	}
	return serial > uint32(s.file.Tx()) || slices.ContainsFunc(s.walked.Lost, func(l pages.Lost) bool { return l.Holds(op.Bucket, op.Key) })
}

// identify finds the bucket of the records on a loose page, and leaves out records with a wrong checksum.
func (s *salvaged) identify(on []pages.Record) (p loosePage) {
	names := s.names
	if on[0].Bucket != "" {
		names = []string{on[0].Bucket}
		if !slices.Contains(s.names, on[0].Bucket) {
			s.names = append(s.names, on[0].Bucket)
		}
	}
	for _, r := range on {
		for _, name := range names {
			value, good := unseal(name, r.Key, r.Value)
			if !good {
				continue
			}
			p.bucket, names = name, []string{name} // all records of a page are of one bucket
			p.records = append(p.records, clone(record{bucket: name, key: r.Key, value: value}))
			p.serials = append(p.serials, serialOf(r.Value))
			p.newest = max(p.newest, serialOf(r.Value))
			break
		}
	}
	return p
}

// addOwn adds the journal's own fields that the tree lacks, the newest of each.
func (s *salvaged) addOwn(p loosePage) {
	for i, op := range p.records {
		name := string(op.Key)
		old := s.own[name]
		if _, whole := unseal(own, op.Key, old); whole && serialOf(old) >= p.serials[i] || name == string(keyFormat) {
			continue
		}
		s.own[name] = seal(p.serials[i], own, op.Key, op.Value)
	}
}

// number is one of the journal's own fields, or 0 if it cannot be found.
func (s *salvaged) number(key []byte) uint32 {
	if v, ok := s.field(key); ok && len(v) == 4 {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

// stretches are the keys that newer pages cover.
type stretches struct{ list [][2][]byte } // first and last, apart, in order

func (s *stretches) find(key []byte) int {
	return sort.Search(len(s.list), func(i int) bool { return bytes.Compare(s.list[i][1], key) >= 0 })
}

func (s *stretches) hold(key []byte) bool {
	i := s.find(key)
	return i < len(s.list) && bytes.Compare(s.list[i][0], key) <= 0
}

func (s *stretches) add(first, last []byte) {
	from := s.find(first)
	to := from
	for to < len(s.list) && bytes.Compare(s.list[to][0], last) <= 0 {
		if bytes.Compare(s.list[to][0], first) < 0 {
			first = s.list[to][0]
		}
		if bytes.Compare(s.list[to][1], last) > 0 {
			last = s.list[to][1]
		}
		to++
	}
	s.list = slices.Replace(s.list, from, to, [2][]byte{first, last})
}
