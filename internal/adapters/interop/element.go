package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/rules/query"
)

// Bounds of elements and their values.
const (
	mostElement = query.MostOctets // octets of an element
	mostLine    = 4 << 10          // octets of an element with a line
	mostName    = 96               // octets of an id, a callsign or a room
)

// Fault is the error with which an element is refused.
type Fault struct {
	Reason string // a word of the counters
	Text   string
}

// Error is the reason in a sentence.
func (f *Fault) Error() string { return f.Text }

func fault(reason, format string, args ...any) *Fault {
	return &Fault{reason, fmt.Sprintf(format, args...)}
}

// value is the first value at a place in an element that is not empty; "": there is none.
func value(at query.Condition, data []byte) (found string) {
	if at.Zero() {
		return ""
	}
	at.Values(data, func(v string) bool {
		found = strings.TrimSpace(v)
		return found == ""
	})
	return found
}

// name is a value in one line.
func name(what, text string) (string, error) {
	text, err := clean(what, text, mostName)
	return strings.Join(strings.Fields(text), " "), err
}

// clean removes control characters from a value that people read: nothing in it ends or hides text.
func clean(what, text string, most int) (string, error) {
	if len(text) > most {
		return "", fault("too_long", "%s has %d octets, at most %d are taken", what, len(text), most)
	}
	if !utf8.ValidString(text) {
		return "", fault("text", "%s is no UTF-8", what)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0 || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text), nil
}

func number(what string, at query.Condition, data []byte) (v float64, ok bool, err error) {
	text := value(at, data)
	if text == "" {
		return 0, false, nil
	}
	v, good := cot.Number(text).Float()
	if !good {
		return 0, false, fault("number", "%s is no number: %.20q", what, text)
	}
	return v, true, nil
}

// moment reads a time: RFC 3339, or seconds or milliseconds since 1970.
func moment(text string) (time.Time, bool) {
	if t, ok := cot.ParseTime(text); ok {
		return t, true
	}
	v, ok := cot.Number(text).Float()
	switch {
	case !ok || v < 0:
	case v < 7e9:
		return time.UnixMilli(int64(v * 1000)).UTC(), true
	case v < 7e12:
		return time.UnixMilli(int64(v)).UTC(), true
	}
	return time.Time{}, false
}

// timeIn is the time in an element, or now if it has none.
func (r *Rule) timeIn(now time.Time, data []byte) (time.Time, error) {
	text := value(r.At.Time, data)
	if text == "" {
		return now.UTC().Truncate(time.Millisecond), nil
	}
	t, ok := moment(text)
	if !ok {
		return t, fault("time", "a time that is none: %.40q", text)
	}
	return t, nil
}

// Track reads the report of a unit from an element.
func (r *Rule) Track(now time.Time, data []byte) (*Track, error) {
	if len(data) > mostElement {
		return nil, fault("too_long", "the element has %d octets, at most %d are taken", len(data), mostElement)
	}
	if r.CoT {
		e, err := parseCoT(data)
		if err != nil {
			return nil, err
		}
		return trackOf(e), nil
	}
	t := &Track{}
	var err error
	if t.Time, err = r.timeIn(now, data); err != nil {
		return nil, err
	}
	t.Stale = t.Time.Add(r.Life)
	if t.ID, err = name("the id", value(r.At.ID, data)); err != nil {
		return nil, err
	}
	if t.ID == "" {
		return nil, fault("no_id", "the element has no id")
	}
	if t.Callsign, err = name("the callsign", value(r.At.Callsign, data)); err != nil {
		return nil, err
	}
	if !r.Unit.Zero() {
		t.ID = r.Unit.Fill(map[string]string{"id": t.ID, "callsign": t.Callsign})
	}
	if t.Callsign == "" {
		t.Callsign = t.ID
	}
	if t.Type, err = name("the type", value(r.At.Type, data)); err != nil {
		return nil, err
	}
	if !cot.Below(t.Type, "a") {
		t.Type = r.As
	}
	var ok1, ok2 bool
	if t.Lat, ok1, err = number("lat", r.At.Lat, data); err != nil {
		return nil, err
	}
	if t.Lon, ok2, err = number("lon", r.At.Lon, data); err != nil {
		return nil, err
	}
	if !ok1 || !ok2 || math.Abs(t.Lat) > 90 || math.Abs(t.Lon) > 180 {
		return nil, fault("nowhere", "no position, or one outside of the world")
	}
	if t.Course, ok1, err = number("course", r.At.Course, data); err != nil {
		return nil, err
	}
	if t.Speed, ok2, err = number("speed", r.At.Speed, data); err != nil {
		return nil, err
	}
	t.Speed *= r.speed()
	t.Moves = ok1 && ok2 && math.Abs(t.Course) <= 720 && t.Speed >= 0 && t.Speed < 6000
	return t, nil
}

// parseCoT reads an element that is a CoT event. Rules do not take events that are only for servers.
func parseCoT(data []byte) (*cot.Event, error) {
	e, err := cot.ParseXML(bytes.TrimSpace(data))
	if err != nil {
		return nil, fault("cot", "%v", err)
	}
	for _, t := range []string{"t", "b-f-t"} {
		if e.Is(t) {
			return nil, fault("type", "events of the type %s meet nobody", e.Type)
		}
	}
	return e.Without("marti", "__met"), nil
}

// trackOf makes a report of an event.
func trackOf(e *cot.Event) *Track {
	t := &Track{ID: e.UID, Callsign: e.Callsign(), Type: e.Type, Time: e.Time, Stale: e.Stale, Event: e}
	t.Lat, _ = e.Point.Lat.Float()
	t.Lon, _ = e.Point.Lon.Float()
	if n := e.Find("track"); n != nil {
		var ok1, ok2 bool
		t.Course, ok1 = cot.Number(n.Get("course")).Float()
		t.Speed, ok2 = cot.Number(n.Get("speed")).Float()
		t.Moves = ok1 && ok2
	}
	return t
}

// Chat reads a line from an element; id is the id of its message.
func (r *Rule) Chat(now time.Time, id, from string, data []byte) (l *Line, err error) {
	if len(data) > mostLine {
		return nil, fault("too_long", "the element has %d octets, at most %d are taken of a line", len(data), mostLine)
	}
	if r.CoT {
		e, err := parseCoT(data)
		if err != nil {
			return nil, err
		}
		l = lineOf(e)
		if l == nil || l.Room != r.Room {
			return nil, fault("room", "no line of the room %s", r.Room)
		}
		return l, nil
	}
	l = &Line{ID: uuid(r.Group, r.Pipe, id), Room: r.Room}
	if l.Time, err = r.timeIn(now, data); err != nil {
		return nil, err
	}
	who := value(r.At.From, data)
	if who == "" {
		who = from
	}
	if l.From, err = name("who says it", who); err != nil {
		return nil, err
	}
	if l.Text, err = clean("the text", value(r.At.Text, data), mostLine); err != nil {
		return nil, err
	}
	if l.Text == "" {
		return nil, fault("no_text", "the element has no text")
	}
	return l, nil
}

// lineOf makes a line of the event of a chat; nil: the event is not a chat.
func lineOf(e *cot.Event) *Line {
	chat, remarks := e.Find("__chat"), e.Find("remarks")
	if e.Type != "b-t-f" || chat == nil || remarks == nil {
		return nil
	}
	l := &Line{ID: chat.Get("messageId"), Room: chat.Get("chatroom"), From: chat.Get("senderCallsign"), Text: remarks.Inside(), Time: e.Time, Event: e}
	if l.ID == "" {
		l.ID = e.UID
	}
	return l
}

// metElement marks events that come from another adapter.
const metElement = "__met"

// byJXTA begins the uid of the sender of a JXTA line.
const byJXTA = "JXTA."

// event is the report in the form in which a TAK device sends it.
func (t *Track) event() *cot.Event {
	e := t.Event
	if e == nil {
		e = &cot.Event{Version: "2.0", UID: t.ID, Type: t.Type, How: "m-p", Time: t.Time, Start: t.Time, Stale: t.Stale,
			Point:  cot.Point{Lat: cot.Rounded(t.Lat, 7), Lon: cot.Rounded(t.Lon, 7), HAE: cot.Unknown, CE: cot.Unknown, LE: cot.Unknown},
			Detail: []cot.Node{{Name: "contact", Attrs: []cot.Attr{{Name: "callsign", Value: t.Callsign}}}}}
		if t.Moves {
			e.Detail = append(e.Detail, cot.Node{Name: "track", Attrs: []cot.Attr{{Name: "course", Value: string(cot.Rounded(math.Mod(t.Course+720, 360), 2))},
				{Name: "speed", Value: string(cot.Rounded(t.Speed, 2))}}})
		}
	}
	made := *e
	made.Time, made.Start, made.Stale = t.Time, t.Time, t.Stale
	made.Detail = append(append([]cot.Node(nil), e.Detail...), cot.Node{Name: metElement, Attrs: []cot.Attr{{Name: "in", Value: "JXTA"}}})
	return &made
}

// event is the line in the form in which ATAK sends it.
func (l *Line) event() *cot.Event {
	c := code.NewChat(byJXTA+l.From, l.From, l.Room, l.ID, l.Text, l.Time)
	return c.Event(true)
}

// met says whether an event comes from another adapter.
func met(e *cot.Event) bool {
	if e.Find(metElement) != nil {
		return true
	}
	link := e.Find("link")
	return e.Type == "b-t-f" && link != nil && strings.HasPrefix(link.Get("uid"), byJXTA)
}

// TrackElement writes the report of a unit for JXTA peers.
func (r *Rule) TrackElement(t *Track) []byte {
	if r.CoT {
		return t.plain().AppendXML(nil)
	}
	at := t.At
	if at.IsZero() {
		at = t.Time
	}
	return []byte(r.Write.Fill(map[string]string{"id": t.ID, "callsign": t.Callsign, "type": t.Type, "lat": decimal(t.Lat, 7), "lon": decimal(t.Lon, 7),
		"time": at.UTC().Format(cot.TimeFormat), "unix": strconv.FormatInt(at.Unix(), 10), "stale": t.Stale.Format(cot.TimeFormat),
		"course": decimal(t.Course, 1), "speed": decimal(t.Speed/r.speed(), 2)}))
}

func (t *Track) plain() *cot.Event {
	if t.Event != nil {
		return t.Event
	}
	return t.event().Without(metElement)
}

// LineElement writes a line for JXTA peers.
func (r *Rule) LineElement(l *Line) []byte {
	if r.CoT {
		if l.Event != nil {
			return l.Event.AppendXML(nil)
		}
		return l.event().AppendXML(nil)
	}
	return []byte(r.Write.Fill(map[string]string{"id": l.ID, "room": l.Room, "from": l.From, "text": l.Text,
		"time": l.Time.Format(cot.TimeFormat), "unix": strconv.FormatInt(l.Time.Unix(), 10)}))
}

func decimal(f float64, digits int) string { return string(cot.Rounded(f, digits)) }

func escapeXML(text string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(text))
	return b.String()
}

func escapeJSON(text string) string {
	b, _ := json.Marshal(text)
	return string(b[1 : len(b)-1])
}

// uuid is an id made of texts: equal texts give equal ids.
func uuid(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
