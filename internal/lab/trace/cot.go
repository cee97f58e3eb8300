package trace

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/ground/due"
)

const (
	maxUnits = 4096    // uids of units
	maxTold  = 1 << 16 // events that are remembered, to recognise copies
	cotMark  = 0xbf

	maxDeclaration = 512 // octets of an XML declaration and the blanks after it
)

// PipeTAK is the kind of the pipe of TAK events in a trace, and its label's id.
const PipeTAK = "tak"

// cotPart is the name of the only part of such a message.
const cotPart = "cot:event"

// Beginnings of CoT, and marks at which an interrupted stream is picked up.
var (
	markEvent       = []byte("<event ")
	markDeclaration = []byte("<?xml ")
)

// cotPorts are the usual ports of TAK software: streams, and the mesh's positions and chat.
var cotPorts = []uint16{8087, 8088, 4242, 6969, 17012}

// CoT is one event of Cursor on Target from a capture.
type CoT struct {
	At    float64 // s from the capture's beginning
	From  string  // address that it came from
	Event *cot.Event
	XML   []byte // the event, valid until the call returns; version 1 is written as XML
	Mesh  bool   // it was a datagram
	Proto bool   // it was of version 1
	Copy  bool   // the capture had it before: a server passed it on, or its device sent it again
}

// CoTUnit is one unit whose positions are in the capture.
type CoTUnit struct {
	UID       string  `json:"uid"`
	Callsign  string  `json:"callsign,omitempty"`
	Type      string  `json:"type"`
	Device    bool    `json:"device"` // it reports itself: it names its software, its team or its endpoint
	Reports   int64   `json:"reports"`
	PerMinute float64 `json:"reports_per_minute"`
	Octets    int64   `json:"octets"`
	first     int64
	last      int64
}

// CoTReport is the events of TAK devices.
type CoTReport struct {
	Events    int64     `json:"events"` // each once
	Octets    int64     `json:"octets"` // of these events, unchanged: XML or version 1, framing included
	Copies    int64     `json:"copies"` // of events that the capture had before
	Proto     int64     `json:"version_1"`
	Datagrams int64     `json:"datagrams"` // of the mesh
	Streams   int64     `json:"streams"`   // directions of TCP connections
	Devices   int64     `json:"devices"`   // units that report themselves
	Units     int64     `json:"units"`     // including those that do not: markers, feeds
	PerMinute float64   `json:"reports_per_minute"`
	Seconds   float64   `json:"seconds"`
	Kinds     []Row     `json:"kinds"`
	Refused   []Row     `json:"refused,omitempty"` // events that could not be read, by reason
	Of        []CoTUnit `json:"of"`                // most reports first
	Costs     []CoTCost `json:"costs,omitempty"`   // of the same events on links, if they were played
	first     int64
	last      int64
}

// CoTCost is the cost of the events when gateways carry them over a link, and the quality of the far map (package replay).
type CoTCost struct {
	Profile string `json:"profile"`
	Summary string `json:"summary,omitempty"`
	Seed    uint64 `json:"seed"`
	Events  int    `json:"events"`
	Reports int    `json:"reports"` // events that are positions
	CoT     int64  `json:"cot_octets"`
	// Octets and Datagrams are those on the link, both directions, all headers included.
	Octets     int64   `json:"octets"`
	Datagrams  int64   `json:"datagrams"`
	PerReport  float64 `json:"octets_per_report"` // octets of the link by reports, other events included
	BusyPct    float64 `json:"busy_percent"`      // of the busier direction, over the time of the events
	AirMinutes float64 `json:"air_minutes"`
	// UnaidedPct is how full the events alone would make the link from ship to shore, without any header: above 100 they do not fit.
	UnaidedPct float64 `json:"unaided_percent"`
	// Of events that are no positions:
	Shown   int     `json:"shown"`
	Unshown int     `json:"unshown"` // not shown five minutes after the last event
	MedianS float64 `json:"median_s"`
	P95S    float64 `json:"p95_s"`
	MaxS    float64 `json:"max_s"`
	// Of the far map, five seconds after each report: the distance between the unit's place on it and the place that follows from the
	// report.
	MedianM float64 `json:"median_m"`
	P95M    float64 `json:"p95_m"`
	Missing int     `json:"reports_of_units_not_shown"`
}

// cotWatch collects the CoT of a capture.
type cotWatch struct {
	r       CoTReport
	kinds   map[string]*Tally
	refused map[string]*Tally
	units   map[string]*CoTUnit
	told    *due.Recent[[16]byte]
}

func newCoTWatch() *cotWatch {
	return &cotWatch{kinds: map[string]*Tally{}, refused: map[string]*Tally{}, units: map[string]*CoTUnit{}, told: due.NewRecent[[16]byte](maxTold)}
}

// isCoTPort says whether one of the ends has a port of TAK.
func isCoTPort(ports ...uint16) bool {
	return slices.ContainsFunc(ports, func(p uint16) bool { return slices.Contains(cotPorts, p) })
}

// looksCoT says whether a datagram may hold an event.
func looksCoT(b []byte) bool {
	if len(b) > 3 && b[0] == cotMark && b[1] == 1 && b[2] == cotMark {
		return true
	}
	b = bytes.TrimLeft(b[:min(len(b), 1024)], " \t\r\n")
	return bytes.HasPrefix(b, markEvent) || bytes.HasPrefix(b, markDeclaration) && bytes.Contains(b, markEvent)
}

// declaresEvent says whether a stream begins with an XML declaration and an event: other software also begins with a declaration. all is
// false if it takes more octets to tell.
func declaresEvent(b []byte) (yes, all bool) {
	if !bytes.HasPrefix(b, markDeclaration[:min(len(b), len(markDeclaration))]) {
		return false, true
	}
	_, rest, ok := bytes.Cut(b[:min(len(b), maxDeclaration)], []byte("?>"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if !ok || len(rest) < len(markEvent) && bytes.HasPrefix(markEvent, rest) {
		return false, len(b) >= maxDeclaration
	}
	return bytes.HasPrefix(rest, markEvent), true
}

// mesh takes in a datagram; false: it is no CoT.
func (a *Analyser) mesh(s *tcpSegment) bool {
	if !looksCoT(s.data) {
		return false
	}
	e, c, err := cot.ParseDatagram(s.data)
	if err != nil && !isCoTPort(s.src.Port(), s.dst.Port()) {
		return false
	}
	w := a.cotWatch(s.at)
	w.r.Datagrams++
	w.note(a, s.at, s.src.Addr().String(), s.data, e, c, err, true)
	return true
}

// cotWatch returns the watch, and makes it at the first CoT.
func (a *Analyser) cotWatch(at int64) *cotWatch {
	if a.cot == nil {
		a.cot = newCoTWatch()
	}
	if a.totals.packets == 0 && (a.link == nil || a.link.r.Datagrams == 0) && a.cot.r.first == 0 {
		a.start = at
	}
	if a.cot.r.first == 0 {
		a.cot.r.first = at
	}
	a.cot.r.last, a.end = max(a.cot.r.last, at), max(a.end, at)
	return a.cot
}

// note notes an event, or the reason why it was not read.
func (w *cotWatch) note(a *Analyser, at int64, from string, raw []byte, e *cot.Event, c *cot.Control, err error, mesh bool) {
	switch {
	case err != nil:
		var f *cot.Fault
		reason := "unreadable"
		if errors.As(err, &f) {
			reason = string(f.Reason)
		}
		tallyIn(w.refused, reason, len(raw))
		return
	case e == nil:
		if c != nil {
			tallyIn(w.kinds, "versions that are read", len(raw))
		}
		return
	}
	proto := len(raw) > 0 && raw[0] == cotMark
	xml := raw
	if proto {
		xml = e.AppendXML(nil)
	}
	repeated := !w.told.Add(digest(e.UID, e.Type, e.Time.Format(cot.TimeFormat))) // the same event
	if a.opt.CoT != nil {
		a.opt.CoT(CoT{At: float64(at-a.start) / 1e9, From: from, Event: e, XML: xml, Mesh: mesh, Proto: proto, Copy: repeated})
	}
	if repeated {
		w.r.Copies++
		return
	}
	w.r.Events++
	w.r.Octets += int64(len(raw))
	if proto {
		w.r.Proto++
	}
	kind := cotKind(e)
	tallyIn(w.kinds, kind, len(raw))
	if kind == cotPosition {
		w.unit(at, e, len(raw))
	}
}

// unit notes a position.
func (w *cotWatch) unit(at int64, e *cot.Event, octets int) {
	u := w.units[e.UID]
	if u == nil {
		if len(w.units) >= maxUnits {
			return
		}
		u = &CoTUnit{UID: e.UID, first: at}
		w.units[e.UID] = u
	}
	u.Type, u.last = e.Type, at
	if s := e.Callsign(); s != "" {
		u.Callsign = s
	}
	contact := e.Find("contact")
	u.Device = u.Device || e.Find("takv") != nil || e.Find("__group") != nil || contact != nil && contact.Get("endpoint") != ""
	u.Reports++
	u.Octets += int64(octets)
}

// The kinds of events.
const (
	cotPosition = "position"
	cotPing     = "ping"
	cotVersions = "versions"
)

// cotKind is the purpose of an event, by its type.
func cotKind(e *cot.Event) string {
	for _, k := range []struct{ below, name string }{
		{"a", cotPosition}, {"b-t-f-d", "receipt"}, {"b-t-f-r", "receipt"}, {"b-t-f-p", "receipt"}, {"b-t-f-s", "receipt"}, {"b-t-f", "chat"}, {"b-a", "alert"}, {"b-r-f-h-c", "CASEVAC"},
		{"b-m-r", "route"}, {"b-m-p", "marker"}, {"b-i-v", "video"}, {"b-f-t", "file"}, {"b-f", "file"}, {"u-d", "shape"}, {"u-rb", "range and bearing"},
		{"t-x-c-t", cotPing}, {"t-x-takp", cotVersions}, {"t-x-d-d", "withdrawal"}, {"t", "task"},
	} {
		if e.Is(k.below) {
			return k.name
		}
	}
	return "other"
}

// finish is the report; nil when there was no CoT.
func (w *cotWatch) finish() *CoTReport {
	if w == nil {
		return nil
	}
	r := &w.r
	r.Seconds = float64(r.last-r.first) / 1e9
	minutes := max(r.Seconds, 60) / 60
	var reports int64
	for _, u := range w.units {
		u.PerMinute = float64(u.Reports) / (max(float64(u.last-u.first)/1e9, 60) / 60)
		r.Units++
		if u.Device {
			r.Devices++
		}
		reports += u.Reports
		r.Of = append(r.Of, *u)
	}
	r.PerMinute = float64(reports) / minutes
	slices.SortFunc(r.Of, func(a, b CoTUnit) int {
		return cmp.Or(cmp.Compare(b.Reports, a.Reports), strings.Compare(a.UID, b.UID))
	})
	r.Kinds, r.Refused = rowsOf(w.kinds), rowsOf(w.refused)
	return r
}

// cotStream is one direction of a connection that carries CoT.
type cotStream struct {
	split cot.Splitter
	fed   int // octets that are no whole event yet
}

// events takes in octets of a stream of CoT.
func (d *dialog) events(side int, s *stream, b []byte) (int, bool) {
	if s.cot == nil {
		s.cot = &cotStream{}
		d.a.cotWatch(s.at).r.Streams++
	}
	w := d.a.cotWatch(s.at)
	from := d.c.sender(side).Addr().String()
	s.cot.fed += len(b)
	err := s.cot.split.Feed(b, func(frame []byte) {
		s.cot.fed -= len(frame)
		d.a.read.cot += int64(len(frame))
		e, c, err := cot.ParseFrame(frame)
		w.note(d.a, s.at, from, frame, e, c, err, false)
	})
	switch {
	case err != nil:
		d.a.damaged("CoT", s.number, err)
		d.dropCoT(s)
		s.state = atScan
	case !s.cot.split.Open(): // white space between events
		d.a.read.unread += int64(s.cot.fed)
		s.cot.fed = 0
	}
	return len(b), false
}

// dropCoT gives up the octets of an unfinished event.
func (d *dialog) dropCoT(s *stream) {
	if s.cot != nil {
		d.a.read.unread += int64(s.cot.fed)
		s.cot.fed, s.cot.split = 0, cot.Splitter{}
	}
}
