package code

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Batch holds the reports of several units of a site.
//
//	2 octets  run: numbers of units are those of this run of the site
//	3 octets  when, in quarters of a second since 1970, modulo 2^24 (48 days)
//	1 octet   start << 6 | promise: how often the site has started, modulo 4; the next batch comes within 2^(promise/4) s
//	records:
//	  varint  unit << 3 | version << 2 | form; the version of a unit's Whole is 0 and 1 by turns
//	  varint  age: quarters of a second before when
//	  Whole   varint of octets, an event as Append codes it after when
//	  Moved   mask; 5 octets of position, each coordinate modulo 2^20 millionths of a degree; 3 octets of motion: course and
//	          speed, twelve bits each; signed varint of height; battery
//	  Lost    1 octet: why
type Batch struct {
	Run     uint16
	At      time.Time // to a quarter of a second
	Start   uint8     // 0 to 3
	Promise time.Duration
	Records []Record
}

// Form is the kind of a Record.
type Form uint8

// Forms.
const (
	Moved Form = iota // Fix, of which only the values named by Mask are new
	Whole             // Event
	Lost              // the unit is no more
)

// Record is the report of one unit in a Batch.
type Record struct {
	Unit    uint32
	Version uint8 // of the unit's Whole, 0 or 1
	Form    Form
	Age     time.Duration // before the batch
	Mask    uint8         // of a Moved
	Fix     Fix
	Event   *cot.Event // of a Whole
	Gone    Gone       // of a Lost
}

// Values that are new in a Moved.
const (
	NewPlace = 1 << iota
	NewMotion
	NewHeight
	NewBattery
	maskEnd
)

// Gone says why a unit is no more.
type Gone uint8

// Reasons.
const (
	Stale     Gone = iota // nothing was heard of it for too long
	Withdrawn             // its device said so
	goneEnd
)

const (
	// Quarter is the unit of a Batch's times.
	Quarter = time.Second / 4
	// MostUnits is above all numbers of units.
	MostUnits  = 1 << 20
	placeBits  = 20
	placeRange = 1 << placeBits
	// Near is how far, in millionths of a degree, a unit may have gone from the place that the far side knows, so that a Moved can
	// still tell where it is: a fifth below the distance that the coordinates can tell apart.
	Near = placeRange * 2 / 5
)

// Quarters rounds a time down to the precision of a Batch.
func Quarters(t time.Time) time.Time { return t.Truncate(Quarter) }

// Head appends the head of a Batch; Record.Append appends its records behind it.
func (b *Batch) Head(dst []byte) []byte {
	q := uint32(b.At.UnixMilli() / Quarter.Milliseconds())
	return append(dst, byte(b.Run>>8), byte(b.Run), byte(q>>16), byte(q>>8), byte(q), b.Start<<6|promised(b.Promise))
}

// promised is the least exponent that stands for a promise.
func promised(d time.Duration) byte {
	return byte(min(63, math.Ceil(4*math.Log2(max(1, d.Seconds()))-1e-9)))
}

// Append appends a record of a batch made at a time.
func (rec *Record) Append(dst []byte, at time.Time) []byte {
	dst = binary.AppendUvarint(dst, uint64(rec.Unit)<<3|uint64(rec.Version&1)<<2|uint64(rec.Form))
	dst = binary.AppendUvarint(dst, uint64(max(0, rec.Age/Quarter)))
	switch rec.Form {
	case Whole:
		body := Append(nil, rec.Event, at, nil)
		dst = append(binary.AppendUvarint(dst, uint64(len(body))), body...)
	case Lost:
		dst = append(dst, byte(rec.Gone))
	case Moved:
		f := &rec.Fix
		dst = append(dst, rec.Mask)
		if rec.Mask&NewPlace != 0 {
			v := uint64(uint32(f.Lat)%placeRange)<<placeBits | uint64(uint32(f.Lon)%placeRange)
			dst = append(dst, byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
		if rec.Mask&NewMotion != 0 {
			v := uint32(f.Course)<<12 | uint32(min(f.Speed, mostSpeed))
			dst = append(dst, byte(v>>16), byte(v>>8), byte(v))
		}
		if rec.Mask&NewHeight != 0 {
			dst = binary.AppendVarint(dst, int64(f.HAE))
		}
		if rec.Mask&NewBattery != 0 {
			dst = append(dst, f.Battery)
		}
	}
	return dst
}

// Sayable says whether a Moved can carry a Fix to a site that knows the unit at another Fix.
func (a Fix) Sayable(known Fix) bool {
	near := func(x, y int32) bool { return max(x, y)-min(x, y) < Near }
	return near(a.Lat, known.Lat) && near(a.Lon, known.Lon) && a.Speed <= mostSpeed && a.Moves == known.Moves &&
		(a.HAE == noHeight) == (known.HAE == noHeight) && (a.Battery == noBattery) == (known.Battery == noBattery)
}

// Changed is the mask of a Moved for a site that knows the unit at another Fix. A height counts as new from a difference of 5 m.
func (a Fix) Changed(known Fix) (mask uint8) {
	if a.Lat != known.Lat || a.Lon != known.Lon {
		mask |= NewPlace
	}
	if a.Course != known.Course || a.Speed != known.Speed {
		mask |= NewMotion
	}
	if a.HAE != known.HAE && max(a.HAE, known.HAE)-min(a.HAE, known.HAE) >= 5 {
		mask |= NewHeight
	}
	if a.Battery != known.Battery {
		mask |= NewBattery
	}
	return mask
}

// Onto returns the Fix that a Moved reports of a unit that was known at another Fix.
func (rec *Record) Onto(known Fix) Fix {
	if rec.Mask&NewPlace != 0 {
		known.Lat, known.Lon = nearest(rec.Fix.Lat, known.Lat, 90e6), nearest(rec.Fix.Lon, known.Lon, 180e6)
	}
	if rec.Mask&NewMotion != 0 {
		known.Course, known.Speed, known.Moves = rec.Fix.Course, rec.Fix.Speed, true
	}
	if rec.Mask&NewHeight != 0 {
		known.HAE = rec.Fix.HAE
	}
	if rec.Mask&NewBattery != 0 {
		known.Battery = rec.Fix.Battery
	}
	return known
}

// nearest is the number nearest to known that equals low modulo placeRange.
func nearest(low, known, most int32) int32 {
	d := (low - known) & (placeRange - 1)
	if d >= placeRange/2 {
		d -= placeRange
	}
	return min(max(known+d, -most), most)
}

// ParseBatch reads a batch that has arrived at about now.
func ParseBatch(data []byte, now time.Time) (*Batch, error) {
	r := &reader{b: data}
	head := r.next(6)
	if r.err != nil {
		return nil, r.err
	}
	b := &Batch{Run: uint16(head[0])<<8 | uint16(head[1])}
	q, here := int64(head[2])<<16|int64(head[3])<<8|int64(head[4]), now.UnixMilli()/Quarter.Milliseconds()
	d := (q - here) & (1<<24 - 1)
	if d >= 1<<23 {
		d -= 1 << 24
	}
	b.At = time.UnixMilli((here + d) * Quarter.Milliseconds()).UTC()
	b.Start = head[5] >> 6
	b.Promise = time.Duration(math.Exp2(float64(head[5]&63)/4)*1000) * time.Millisecond
	for len(r.b) > 0 && r.err == nil {
		rec := Record{}
		n := r.uvarint()
		rec.Unit, rec.Version, rec.Form = uint32(n>>3), uint8(n>>2&1), Form(n&3)
		age := r.uvarint()
		if n>>3 >= MostUnits || age > uint64(30*24*time.Hour/Quarter) {
			r.fail("unit or age")
			break
		}
		rec.Age = time.Duration(age) * Quarter
		if err := rec.parse(r, b.At); err != nil {
			return nil, err
		}
		b.Records = append(b.Records, rec)
	}
	return b, r.err
}

func (rec *Record) parse(r *reader, at time.Time) (err error) {
	switch rec.Form {
	case Whole:
		body := r.next(r.uvarint())
		if r.err != nil {
			return r.err
		}
		rec.Event, err = Parse(body, at, nil)
		return err
	case Lost:
		rec.Gone = Gone(r.octet())
		if rec.Gone >= goneEnd {
			r.fail("lost for reason %d", rec.Gone)
		}
	case Moved:
		rec.Mask = r.octet()
		if rec.Mask >= maskEnd {
			r.fail("mask %#x", rec.Mask)
		}
		if rec.Mask&NewPlace != 0 {
			if p := r.next(5); r.err == nil {
				v := uint64(p[0])<<32 | uint64(p[1])<<24 | uint64(p[2])<<16 | uint64(p[3])<<8 | uint64(p[4])
				rec.Fix.Lat, rec.Fix.Lon = int32(v>>placeBits), int32(v%placeRange)
			}
		}
		if rec.Mask&NewMotion != 0 {
			if p := r.next(3); r.err == nil {
				v := uint32(p[0])<<16 | uint32(p[1])<<8 | uint32(p[2])
				rec.Fix.Course, rec.Fix.Speed, rec.Fix.Moves = uint16(v>>12)%3600, uint16(v&0xfff), true
			}
		}
		if rec.Mask&NewHeight != 0 {
			h := r.varint()
			if h > 1e6 || h < -1e6 {
				r.fail("height %d", h)
			}
			rec.Fix.HAE = int32(h)
		}
		if rec.Mask&NewBattery != 0 {
			rec.Fix.Battery = r.octet()
			if rec.Fix.Battery > 100 {
				r.fail("battery %d", rec.Fix.Battery)
			}
		}
	default:
		return fmt.Errorf("%w: form %d", ErrMalformed, rec.Form)
	}
	return r.err
}
