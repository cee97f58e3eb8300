package code

import (
	"math"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Fix is the position of a unit, as precisely as a Batch reports it.
type Fix struct {
	Lat, Lon int32  // millionths of a degree: 0.11 m
	HAE      int32  // metres; noHeight: nobody knows
	Course   uint16 // tenths of a degree, less than 3600
	Speed    uint16 // tenths of a metre a second
	Moves    bool   // Course and Speed are known
	Battery  uint8  // per cent; noBattery: it has none
}

const (
	noHeight  = math.MinInt32
	noBattery = 255
	mostSpeed = 4095 // tenths of a metre a second, in a Moved
)

// FixOf returns the Fix in an event.
func FixOf(e *cot.Event) Fix {
	lat, _ := e.Point.Lat.Float()
	lon, _ := e.Point.Lon.Float()
	f := Fix{Lat: int32(math.Round(lat * 1e6)), Lon: int32(math.Round(lon * 1e6)), HAE: noHeight, Battery: noBattery}
	if hae, ok := e.Point.HAE.Float(); ok && math.Abs(hae) < 1e6 {
		f.HAE = int32(math.Round(hae))
	}
	if t := e.Find("track"); t != nil {
		course, ok1 := cot.Number(t.Get("course")).Float()
		speed, ok2 := cot.Number(t.Get("speed")).Float()
		if ok1 && ok2 && speed >= 0 && speed < 6000 && math.Abs(course) <= 720 {
			f.Moves = true
			f.Course = uint16(math.Round(math.Mod(course+720, 360)*10)) % 3600
			f.Speed = uint16(math.Round(speed * 10))
		}
	}
	if s := e.Find("status"); s != nil {
		if b, ok := cot.Number(s.Get("battery")).Float(); ok && b >= 0 && b <= 100 && b == math.Trunc(b) {
			f.Battery = uint8(b)
		}
	}
	return f
}

// Metres is the distance of a from b on the ground.
func (a Fix) Metres(b Fix) float64 {
	north := float64(a.Lat-b.Lat) * metresPerMicro
	east := math.Remainder(float64(a.Lon)-float64(b.Lon), 360e6) * metresPerMicro * math.Cos(float64(a.Lat)*1e-6*math.Pi/180)
	return math.Hypot(north, east)
}

const metresPerMicro = 6371008.8 * math.Pi / 180 * 1e-6

// After is where the unit is after it has kept its course and speed for d.
func (a Fix) After(d time.Duration) Fix {
	if !a.Moves || a.Speed == 0 || d <= 0 {
		return a
	}
	way := float64(a.Speed) / 10 * d.Seconds()
	course := float64(a.Course) / 10 * math.Pi / 180
	lat := float64(a.Lat) + way*math.Cos(course)/metresPerMicro
	if lat > 90e6 || lat < -90e6 { // over a pole: the unit stays where it was
		return a
	}
	narrow := max(0.01, math.Cos(lat*1e-6*math.Pi/180))
	lon := float64(a.Lon) + way*math.Sin(course)/metresPerMicro/narrow
	lon = math.Remainder(lon, 360e6)
	if lon >= 180e6 {
		lon -= 360e6
	}
	a.Lat, a.Lon = int32(math.Round(lat)), int32(math.Round(lon))
	return a
}

// Apply returns the event with this Fix in it, as far as the event has attributes for its values.
func (a Fix) Apply(e *cot.Event) *cot.Event {
	c := *e
	c.Point.Lat, c.Point.Lon = cot.Rounded(float64(a.Lat)/1e6, 6), cot.Rounded(float64(a.Lon)/1e6, 6)
	if a.HAE != noHeight {
		c.Point.HAE = cot.Rounded(float64(a.HAE), 0)
	}
	c.Detail = slices.Clone(e.Detail)
	for i := range c.Detail {
		switch n := &c.Detail[i]; {
		case n.Name == "track" && a.Moves:
			setAttr(n, "course", string(cot.Rounded(float64(a.Course)/10, 1)))
			setAttr(n, "speed", string(cot.Rounded(float64(a.Speed)/10, 1)))
		case n.Name == "status" && a.Battery != noBattery:
			setAttr(n, "battery", string(cot.Rounded(float64(a.Battery), 0)))
		}
	}
	return &c
}

// setAttr changes an attribute that the element has.
func setAttr(n *cot.Node, name, value string) {
	n.Attrs = slices.Clone(n.Attrs)
	for i := range n.Attrs {
		if n.Attrs[i].Name == name {
			n.Attrs[i].Value = value
		}
	}
}

// Brief is the event of a unit reduced to its name, position, motion and these elements, if that is much shorter; otherwise
// the event itself.
func Brief(e *cot.Event, with ...string) *cot.Event {
	b := *e
	b.Detail, b.Point.HAE, b.Point.CE, b.Point.LE = nil, cot.Unknown, cot.Unknown, cot.Unknown
	for _, n := range e.Detail {
		switch {
		case n.Name == "contact":
			b.Detail = append(b.Detail, cot.Node{Name: n.Name, Attrs: []cot.Attr{{Name: "callsign", Value: n.Get("callsign")}}})
		case n.Name == "track", slices.Contains(with, n.Name):
			b.Detail = append(b.Detail, n)
		}
	}
	if len(Append(nil, e, e.Time, nil))-len(Append(nil, &b, e.Time, nil)) < worthBrief {
		return e
	}
	return &b
}

// worthBrief is how many octets Brief has to save.
const worthBrief = 16

// Round is the event as precisely as a Batch reports it: its Fix, errors to a tenth of a metre, times to the second.
func Round(e *cot.Event) *cot.Event {
	c := FixOf(e).Apply(e)
	for _, n := range []*cot.Number{&c.Point.CE, &c.Point.LE} {
		if f, ok := n.Float(); ok && math.Abs(f) < 1e6 {
			*n = cot.Rounded(f, 1)
		}
	}
	c.Time, c.Start, c.Stale = e.Time.Truncate(time.Second), e.Start.Truncate(time.Second), e.Stale.Truncate(time.Second)
	return c
}

// Looks is the part of an event besides its Fix and its times: while it stays the same, a later Fix alone reports the unit.
func Looks(e *cot.Event) string {
	c := Fix{HAE: 0, Moves: true, Battery: 0}.Apply(e)
	if FixOf(e).HAE == noHeight {
		c.Point.HAE = cot.Unknown
	}
	c.Point.CE, c.Point.LE = cot.Unknown, cot.Unknown
	c.Time, c.Start, c.Stale = time.Time{}, time.Time{}, time.Time{}
	return c.Canonical()
}

// Marks are the properties of a unit that have to be right at once: its type, which says on whose side it is, its callsign, its
// team and its role.
func Marks(e *cot.Event) string {
	team := cot.Node{}
	if g := e.Find("__group"); g != nil {
		team = *g
	}
	return strings.Join([]string{e.Type, e.Callsign(), team.Get("name"), team.Get("role")}, "\x00")
}
