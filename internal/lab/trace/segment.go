package trace

import (
	"maps"
	"slices"

	"aldis/internal/link/frame"
	"aldis/internal/link/segment"
)

// number is the full number in the direct queue: the nearest to the one after the last.
func (d *direction) number(low uint16, short bool) uint64 {
	if short {
		return d.last + 1 + uint64(int64(int8(uint8(low)-uint8(d.last+1))))
	}
	return d.last + 1 + uint64(int64(int16(low-uint16(d.last+1))))
}

// segment returns the ledger's kind of a segment, and reads a message when all its segments have come, in whatever order.
func (l *linkAnalyser) segment(d *direction, s *tcpSegment, f frame.Segment) string {
	number := d.number(f.Number, f.Short)
	if !d.first(frame.Direct, uint16(number), s.at) {
		l.r.Repeats++
		l.layer(layerAgain, len(f.Body))
		return "repair"
	}
	d.settle(number, earlier{})
	if len(f.Body) == 0 { // replaces a segment that is no longer needed
		delete(d.segments, f.Object)
		return "repair"
	}
	l.layer(layerSegments, len(f.Body))
	of := d.segments[f.Object]
	if of == nil || len(of) >= segment.MaxObject {
		of = map[uint64]frame.Segment{}
		d.segments[f.Object] = of
	}
	f.Body = slices.Clone(f.Body)
	of[number] = f
	if body := joined(of); body != nil {
		delete(d.segments, f.Object)
		l.r.Messages++
		l.envelope(d, s, d.flows, body, nil, 0)
	}
	return "payload"
}

// joined is the message that includes the newest of the first segments; nil: some are missing.
func joined(of map[uint64]frame.Segment) (body []byte) {
	total := 0
	for _, number := range slices.Sorted(maps.Keys(of)) {
		if f := of[number]; f.Total > 0 {
			body, total = nil, f.Total
		}
		if total > 0 {
			body = append(body, of[number].Body...)
		}
	}
	if total == 0 || len(body) != total {
		return nil
	}
	return body
}
