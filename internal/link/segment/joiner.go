package segment

import (
	"errors"
	"slices"

	"aldis/internal/link/frame"
)

// Errors of a Joiner. The refused segment counts as received; its sender sends the object anew when it finds that the
// object is missing.
var (
	ErrOrphan = errors.New("segment: the first segment of its object is not here")
	ErrLarge  = errors.New("segment: an object longer than any that is cut, or than it says")
)

// Bounds of a Joiner.
const (
	MostOpen = 16            // objects with missing segments
	MostHeld = 2 * MaxObject // octets of these objects together
)

// Joiner joins the objects of one peer. It takes the segments in the order of their numbers. The zero value is ready.
type Joiner struct {
	open []*partial // in order of their latest segments
}

type partial struct {
	id      uint8
	free    bool
	total   int
	body    []byte
	numbers []uint64
}

// Whole is an object that is complete.
type Whole struct {
	Body []byte
	Free bool // it need not wait for earlier objects
}

// Add takes the next segment, which has this number. whole is the object that it completes; nil: it completes none. over
// are the numbers of segments that are not needed any more, perhaps its own. The caller keeps the content of other segments
// as durably as their numbers. gaveUp counts incomplete objects that were dropped to make room. The error is ErrOrphan or
// ErrLarge.
func (j *Joiner) Add(number uint64, f frame.Segment) (whole *Whole, over []uint64, gaveUp int, err error) {
	if f.Total > 0 || len(f.Body) == 0 { // the object begins anew, or is not needed any more
		over = j.drop(f.Object)
	}
	at := slices.IndexFunc(j.open, func(p *partial) bool { return p.id == f.Object })
	switch {
	case len(f.Body) == 0:
		return nil, append(over, number), 0, nil
	case f.Total > 0:
		at = len(j.open)
		j.open = append(j.open, &partial{id: f.Object, total: f.Total, free: f.Free})
	case at < 0:
		return nil, append(over, number), 0, ErrOrphan
	}
	p := j.open[at]
	p.numbers = append(p.numbers, number)
	if p.total > MaxObject || len(p.body)+len(f.Body) > p.total {
		return nil, append(over, j.drop(p.id)...), 0, ErrLarge
	}
	p.body = append(p.body, f.Body...)
	if len(p.body) == p.total {
		return &Whole{p.body, p.free}, append(over, j.drop(p.id)...), 0, nil
	}
	j.open = append(slices.Delete(j.open, at, at+1), p)
	for len(j.open) > MostOpen || j.held() > MostHeld {
		over = append(over, j.drop(j.open[0].id)...)
		gaveUp++
	}
	return nil, over, gaveUp, nil
}

// Complete is the object of this number, whose octets from the given place on have come another way; nil: the octets before
// that are not here.
func (j *Joiner) Complete(number uint64, from int, rest []byte) []byte {
	at := slices.IndexFunc(j.open, func(p *partial) bool { return p.id == idOf(number) })
	if at < 0 || from > len(j.open[at].body) || from+len(rest) != j.open[at].total {
		return nil
	}
	return append(slices.Clone(j.open[at].body[:from]), rest...)
}

// Forget drops the parts of an object, and returns the numbers of its segments.
func (j *Joiner) Forget(number uint64) (over []uint64) { return j.drop(idOf(number)) }

// drop forgets an object and returns the numbers of its segments.
func (j *Joiner) drop(id uint8) (over []uint64) {
	at := slices.IndexFunc(j.open, func(p *partial) bool { return p.id == id })
	if at < 0 {
		return nil
	}
	over = j.open[at].numbers
	j.open = slices.Delete(j.open, at, at+1)
	return over
}

func (j *Joiner) held() (octets int) {
	for _, p := range j.open {
		octets += len(p.body)
	}
	return octets
}

// Clear drops all objects, and returns the numbers of the segments that were kept.
func (j *Joiner) Clear() (over []uint64) {
	for len(j.open) > 0 {
		over = append(over, j.drop(j.open[0].id)...)
	}
	return over
}

// Number is the low 16 bits of the number of the object that id names. near is the number up to which all objects have
// arrived: the object is within 64 of it.
func Number(id uint8, near uint64) uint16 {
	return uint16(near) + uint16(int16(int8((id-uint8(near))<<1)>>1))
}
