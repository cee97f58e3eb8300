package trace

import (
	"maps"
	"slices"

	"aldis/internal/link/frame"
	"aldis/internal/link/piece"
)

// number is a number of the direct lane in full: the nearest to the one after the last.
func (d *direction) number(low uint16, short bool) uint64 {
	if short {
		return d.last + 1 + uint64(int64(int8(uint8(low)-uint8(d.last+1))))
	}
	return d.last + 1 + uint64(int64(int16(low-uint16(d.last+1))))
}

// piece answers the ledger's kind of a piece, and reads a message of which all pieces were there, in whatever order.
func (l *linkAnalyser) piece(d *direction, s *segment, f frame.Piece) string {
	number := d.number(f.Number, f.Short)
	if !d.first(frame.Direct, uint16(number), s.at) {
		l.r.Repeats++
		l.layer(layerAgain, len(f.Body))
		return "repair"
	}
	d.settle(number, earlier{})
	if len(f.Body) == 0 { // in the place of one that is needed no more
		delete(d.pieces, f.Object)
		return "repair"
	}
	l.layer(layerPieces, len(f.Body))
	of := d.pieces[f.Object]
	if of == nil || len(of) >= piece.MaxObject {
		of = map[uint64]frame.Piece{}
		d.pieces[f.Object] = of
	}
	f.Body = slices.Clone(f.Body)
	of[number] = f
	if body := joined(of); body != nil {
		delete(d.pieces, f.Object)
		l.r.Messages++
		l.envelope(d, s, d.flows, body, nil, 0)
	}
	return "payload"
}

// joined is the message that has the newest of the first pieces; nil: some are missing.
func joined(of map[uint64]frame.Piece) (body []byte) {
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
