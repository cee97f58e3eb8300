package pages

import "errors"

// looseReads bounds what Loose reads: so many times the size of the file.
const looseReads = 4

// Loose visits the leaf pages that an earlier walk has not reached and that are whole in themselves, in the order of the file.
// They are old copies of pages, or current ones below a damaged branch. If the bucket of a page is not known, its records name
// none. Loose says whether it has seen all pages.
func (f *File) Loose(visit func(records []Record) error) (all bool, err error) {
	most := uint64(len(f.taken))
	left := f.size * looseReads
	for id := uint64(2); id < most; {
		next := id + 1
		if f.taken[id] {
			id = next
			continue
		}
		p, err := f.load(id, most, 0)
		var fault Fault
		if err != nil && !errors.As(err, &fault) {
			return false, err
		}
		left -= int64(max(len(p.data), f.PageSize))
		if left < 0 {
			return false, nil
		}
		if err == nil && p.flags == flagLeaf && p.count > 0 && p.layout(f.PageSize, false) == "" {
			next = id + uint64(len(p.data)/f.PageSize)
			if err := visitLoose(&p, visit); err != nil {
				return false, err
			}
		}
		id = next
	}
	return true, nil
}

func visitLoose(p *page, visit func([]Record) error) error {
	var list []Record
	for i := range p.count {
		e, _, _, _ := p.element(i)
		if !e.bucket {
			list = append(list, Record{Key: e.key, Value: e.value})
			continue
		}
		in, root, ok := inline(p.id, e.value)
		if !ok || root != 0 || in.layout(0, true) != "" {
			continue
		}
		var inside []Record
		for i := range in.count {
			if e, _, _, _ := in.element(i); !e.bucket {
				inside = append(inside, Record{Key: e.key, Value: e.value})
			}
		}
		for j := range inside {
			inside[j].Bucket = string(e.key)
		}
		if len(inside) > 0 {
			if err := visit(inside); err != nil {
				return err
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return visit(list)
}
