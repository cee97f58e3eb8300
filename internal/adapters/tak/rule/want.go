package rule

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"aldis/internal/adapters/tak/cot"
)

// Want describes events that a site wants to receive. It wants an event that fits one of its Wants. An empty condition fits everything.
type Want struct {
	Line        int    // of the configuration; not sent to other sites
	Type        string // this type and the types below it
	Team        string // exactly
	Affiliation string // letters of a-.
	Box         *Box
}

// Bounds of the wants that a site may state.
const (
	MostWants = 64
	mostText  = 64
)

// ErrWants says that the wants of a site cannot be read.
var ErrWants = errors.New("tak: what a site wants cannot be read")

// Fits says whether an event is wanted.
func (w *Want) Fits(e *cot.Event) bool {
	r := Rule{Type: w.Type, Affiliation: w.Affiliation, Box: w.Box}
	if r.Misses(&Subject{Event: e}) != "" {
		return false
	}
	g := e.Find("__group")
	return w.Team == "" || g != nil && g.Get("name") == w.Team
}

// Wanted says whether a site that has stated these wants an event. A site that has stated none wants all events. Every site wants alerts.
func Wanted(wants []Want, e *cot.Event) bool {
	if len(wants) == 0 || e.Is("b-a-o") || e.Is("b-a-g") {
		return true
	}
	for i := range wants {
		if wants[i].Fits(e) {
			return true
		}
	}
	return false
}

// boxUnit is the unit of the corners of a box: a ten thousandth of a degree, 11 m.
const boxUnit = 1e4

// AppendWants appends wants in the form in which a site states them:
//
//	each: three texts behind the octet of their length, type, team, affiliation; 1 octet: with a box; four signed varints of
//	ten thousandths of a degree, south, west, north, east
func AppendWants(dst []byte, wants []Want) []byte {
	for _, w := range wants {
		for _, text := range [...]string{w.Type, w.Team, w.Affiliation} {
			text = text[:min(len(text), mostText)]
			dst = append(append(dst, byte(len(text))), text...)
		}
		if w.Box == nil {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, 1)
		for i, v := range [...]float64{w.Box.South, w.Box.West, w.Box.North, w.Box.East} {
			v *= boxUnit
			v = math.Floor(v)
			if i >= 2 { // round outwards
				v++
			}
			dst = binary.AppendVarint(dst, int64(v))
		}
	}
	return dst
}

// ParseWants reads wants that AppendWants has appended.
func ParseWants(b []byte) (wants []Want, err error) {
	for len(b) > 0 {
		var w Want
		for _, to := range [...]*string{&w.Type, &w.Team, &w.Affiliation} {
			if len(b) == 0 || int(b[0]) > mostText || len(b) <= int(b[0]) {
				return nil, ErrWants
			}
			*to, b = strings.ToValidUTF8(string(b[1:1+b[0]]), ""), b[1+b[0]:]
		}
		if len(b) == 0 || b[0] > 1 || len(wants) >= MostWants {
			return nil, ErrWants
		}
		box := b[0] == 1
		b = b[1:]
		if box {
			w.Box = &Box{}
			for _, to := range [...]*float64{&w.Box.South, &w.Box.West, &w.Box.North, &w.Box.East} {
				v, n := binary.Varint(b)
				if n <= 0 || v > 181*boxUnit || v < -181*boxUnit {
					return nil, ErrWants
				}
				*to, b = float64(v)/boxUnit, b[n:]
			}
		}
		wants = append(wants, w)
	}
	return wants, nil
}
