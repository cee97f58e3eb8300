package cot

import (
	"slices"
	"strings"
	"time"
)

// Bounds of one event.
const (
	MaxEvent = 256 << 10 // octets
	MaxDepth = 32        // elements inside each other, event and detail included
	MaxNodes = 16 << 10  // elements and texts
	MaxName  = 256       // octets of a uid or a type
)

// Attr is an attribute of an element.
type Attr struct{ Name, Value string }

// Node is an element, or a text if Name is empty.
type Node struct {
	Name  string
	Attrs []Attr
	Kids  []Node
	Text  string
}

// Get is the value of an attribute; "" if there is none.
func (n *Node) Get(name string) string {
	for _, a := range n.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Kid is the first element of this name inside; nil: there is none.
func (n *Node) Kid(name string) *Node { return find(n.Kids, name) }

// Inside is the text directly inside of the element.
func (n *Node) Inside() (text string) {
	for i := range n.Kids {
		if n.Kids[i].Name == "" {
			text += n.Kids[i].Text
		}
	}
	return text
}

func find(nodes []Node, name string) *Node {
	for i := range nodes {
		if nodes[i].Name == name {
			return &nodes[i]
		}
	}
	return nil
}

// Point is where an event is, in degrees and metres (WGS 84).
type Point struct {
	Lat, Lon Number // degrees
	HAE      Number // metres above the ellipsoid
	CE, LE   Number // errors in metres; 9999999: unknown
	Other    []Attr
}

// Event is one CoT event. Functions that receive one never change its slices.
type Event struct {
	Version            string // "2.0"
	UID, Type, How     string
	Time, Start, Stale time.Time // UTC, to the millisecond
	Access, QoS, Opex  string
	Caveat, Releasable string
	Other              []Attr // attributes besides these, and those of these that are present and empty
	Point              Point
	Detail             []Node
	Bare               bool   // if Detail is empty, the event has no detail element
	DetailFirst        bool   // the detail stands before the point
	More               []Node // elements besides point and detail
}

// Find is the first element of this name in the detail; nil: there is none.
func (e *Event) Find(name string) *Node { return find(e.Detail, name) }

// Callsign is the callsign of the contact, or else of the sender of a chat; "" if there is none.
func (e *Event) Callsign() string {
	if c := e.Find("contact"); c != nil {
		return c.Get("callsign")
	}
	if c := e.Find("__chat"); c != nil {
		return c.Get("senderCallsign")
	}
	return ""
}

// Is says whether the event's type is t or below it: "a-f-G" is below "a-f".
func (e *Event) Is(t string) bool { return Below(e.Type, t) }

// Local says whether the type is one that never leaves its own LAN: keep-alives, versions and authentication.
func (e *Event) Local() bool {
	return e.Is("t-x-c") || e.Is("t-x-takp") || e.Is("t-x-auth") || e.Is("t-b")
}

// Below says whether the type kind is t or below it.
func Below(kind, t string) bool {
	return strings.HasPrefix(kind, t) && (len(kind) == len(t) || kind[len(t)] == '-')
}

// Dest is a recipient of an event.
type Dest struct{ Callsign, UID, Group string }

// Dests are the recipients that the event names (marti); none: it is for all.
func (e *Event) Dests() (list []Dest) {
	marti := e.Find("marti")
	if marti == nil {
		return nil
	}
	for i := range marti.Kids {
		if k := &marti.Kids[i]; k.Name == "dest" {
			list = append(list, Dest{k.Get("callsign"), k.Get("uid"), k.Get("group")})
		}
	}
	return list
}

// Without is the event without the elements of these names in its detail.
func (e *Event) Without(names ...string) *Event {
	if !slices.ContainsFunc(e.Detail, func(n Node) bool { return slices.Contains(names, n.Name) }) {
		return e
	}
	c := *e
	c.Detail = slices.DeleteFunc(slices.Clone(e.Detail), func(n Node) bool { return slices.Contains(names, n.Name) })
	return &c
}

// Check says what is wrong with an event that was read.
func (e *Event) Check() error {
	switch {
	case e.UID == "" || e.Type == "":
		return fault(NoName, "an event without uid or type")
	case len(e.UID) > MaxName || len(e.Type) > MaxName:
		return fault(NoName, "a uid or type of more than %d octets", MaxName)
	case e.Time.IsZero() || e.Start.IsZero() || e.Stale.IsZero():
		return fault(NoTime, "an event without time, start or stale")
	case !inTimes(e.Time) || !inTimes(e.Start) || !inTimes(e.Stale):
		return fault(NoTime, "an event of a time outside of the years 1970 to 2200")
	case e.Stale.Before(e.Start):
		return fault(StaleFirst, "an event that is stale before it starts")
	}
	for _, a := range e.Other {
		if to := e.text(a.Name); to != nil && *to != "" || a.Name == "time" || a.Name == "start" || a.Name == "stale" {
			return fault(Syntax, "the attribute %.40q is there twice", a.Name)
		}
	}
	if !wellFormed(append([]Node{{Name: "event", Attrs: e.Other, Kids: append(slices.Clone(e.Detail), e.More...)}}, Node{Name: "point", Attrs: e.Point.Other}), nil) {
		return fault(Syntax, "an attribute that is there twice, or a prefix that nothing declares: other programs would end their connection")
	}
	lat, ok1 := e.Point.Lat.Float()
	lon, ok2 := e.Point.Lon.Float()
	if !ok1 || !ok2 || lat < -90 || lat > 90 || lon < -180 || lon > 180 {
		return fault(Nowhere, "a point outside of the world: lat %.20q lon %.20q", string(e.Point.Lat), string(e.Point.Lon))
	}
	for _, n := range []Number{e.Point.HAE, e.Point.CE, e.Point.LE} {
		if _, ok := n.Float(); !ok {
			return fault(Nowhere, "a height or an error that is no number: %.20q", string(n))
		}
	}
	return nil
}

// wellFormed says whether other programs can read the elements: no attribute twice, no prefix without a namespace.
func wellFormed(nodes []Node, declared []string) bool {
	for i := range nodes {
		n := &nodes[i]
		if n.Name == "" {
			continue
		}
		inside := declared
		for j, a := range n.Attrs {
			if slices.ContainsFunc(n.Attrs[:j], func(b Attr) bool { return b.Name == a.Name }) {
				return false
			}
			if p, ok := strings.CutPrefix(a.Name, "xmlns:"); ok {
				if a.Value == "" || p == "xmlns" || p == "xml" {
					return false
				}
				inside = append(slices.Clip(inside), p)
			}
		}
		names := []string{n.Name}
		for _, a := range n.Attrs {
			names = append(names, a.Name)
		}
		for _, name := range names {
			p, local, ok := strings.Cut(name, ":")
			if ok && (p != "xmlns" && p != "xml" && !slices.Contains(inside, p) || strings.Contains(local, ":") || !startsName(local)) {
				return false
			}
		}
		if !wellFormed(n.Kids, inside) {
			return false
		}
	}
	return true
}

func startsName(name string) bool {
	return name != "" && (name[0] == '_' || name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z')
}

// Canonical is the same text for all equal events: XML without a declaration, attributes sorted by name.
func (e *Event) Canonical() string {
	c := *e
	c.Detail, c.More, c.Other = sorted(e.Detail), sorted(e.More), byName(e.Other)
	c.Point.Other = byName(e.Point.Other)
	return string(c.appendEvent(nil))
}

func sorted(nodes []Node) []Node {
	list := slices.Clone(nodes)
	for i := range list {
		list[i].Attrs, list[i].Kids = byName(list[i].Attrs), sorted(list[i].Kids)
	}
	return list
}

func byName(attrs []Attr) []Attr {
	return slices.SortedStableFunc(slices.Values(attrs), func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
}

// TimeFormat is the format in which times are written. ParseTime also reads times with more or fewer digits behind the second,
// and with a zone.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// ParseTime reads a time of the years 1970 to 2200.
func ParseTime(text string) (time.Time, bool) {
	if len(text) > 40 {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if t, err = time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(text, "Z")); err != nil {
			return time.Time{}, false
		}
	}
	t = t.UTC().Truncate(time.Millisecond)
	if !inTimes(t) {
		return time.Time{}, false
	}
	return t, true
}

// inTimes says whether an event can have this time.
func inTimes(t time.Time) bool { return t.UnixMilli() >= 0 && t.Before(timesEnd) }

// timesEnd is after the times of all events.
var timesEnd = time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC)
