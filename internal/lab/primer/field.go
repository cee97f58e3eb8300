package primer

import (
	"aldis/internal/link/compact/corpus"
	"fmt"
	"math"
	"strings"
	"time"
)

// The kinds of the field: what the software of other makers sends, in the dialects that its formats allow. Names, numbers
// and sentences are made up here; the formats are public. Each function makes a flow and returns what makes its next message.

// Field makes messages of the field with a maker's words.
type Field struct{ *Maker }

// fieldKinds are the kinds of the corpus besides JXTA's, with how many flows of each the corpus has.
var fieldKinds = []struct {
	name  string
	flows int
	next  int // messages of each second flow; the others have one
	make  func(m *Field) func() []byte
}{
	{"cot", 2 * 38, 3, (*Field).CoT},
	{"cot-chat", 2 * 24, 2, (*Field).CoTChat},
	{"cot-marker", 16, 2, (*Field).CoTMarker},
	{"nffi", 2 * 19, 2, (*Field).NFFI},
	{"xmpp", 2 * 30, 3, (*Field).XMPP},
	{"mail", 2 * 28, 2, (*Field).Mail},
	{"json", 2 * 36, 3, (*Field).Telemetry},
	{"geojson", 10, 2, (*Field).GeoJSON},
	{"nmea", 2 * 32, 3, (*Field).NMEA},
	{"ais", 16, 2, (*Field).AIS},
	{"oth-gold", 2 * 27, 2, (*Field).Gold},
	{"adatp-3", 2 * 24, 2, (*Field).ADatP3},
	{"gpx", 10, 2, (*Field).GPX},
	{"kml", 12, 1, (*Field).KML},
	{"chat", 2 * 60, 4, (*Field).Chat},
}

// fieldParts are flows of all kinds of the field, one of each kind in turn.
func fieldParts(m *Field) (parts []corpus.Part) {
	for round := 0; ; round++ {
		more := false
		for _, k := range fieldKinds {
			if round >= k.flows {
				continue
			}
			more = true
			next := k.make(m)
			p := corpus.Part{Name: k.name}
			for i := range k.next {
				if i == 0 || round%2 == 0 {
					p.Messages = append(p.Messages, next())
				}
			}
			parts = append(parts, p)
		}
		if !more {
			break
		}
	}
	for _, l := range ProseLines {
		parts = append(parts, corpus.Part{Name: "prose", Messages: [][]byte{[]byte(l)}})
	}
	for i, l := range EnglishLines {
		if i%2 == 0 {
			parts = append(parts, corpus.Part{Name: "capitals", Messages: [][]byte{[]byte(strings.ToUpper(l))}})
		}
		parts = append(parts, corpus.Part{Name: "sentence", Messages: [][]byte{[]byte(l)}})
	}
	return parts
}

func (m *Field) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + m.Rand.IntN(10))
	}
	return string(b)
}

func (m *Field) lower(n int) string {
	const hex = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = hex[m.Rand.IntN(16)]
	}
	return string(b)
}

// uuid is a random one of version 4 (RFC 9562, 5.4).
func (m *Field) uuid() string {
	return fmt.Sprintf("%s-%s-4%s-%c%s-%s", m.lower(8), m.lower(4), m.lower(3), "89ab"[m.Rand.IntN(4)], m.lower(3), m.lower(12))
}

// call is a call sign.
func (m *Field) call() string {
	s := m.invent()
	if m.Rand.IntN(3) == 0 {
		s = m.Pick(m.Words.Units)
	}
	switch m.Rand.IntN(6) {
	case 0, 1:
		return strings.ToUpper(s)
	case 2:
		return strings.ToUpper(s) + m.digits(1+m.Rand.IntN(2))
	case 3:
		return strings.ToUpper(s) + "-" + m.digits(1)
	}
	return s
}

func (m *Field) person() string {
	if m.Rand.IntN(4) == 0 {
		n := m.invent()
		return strings.ToUpper(n[:1]) + n[1:] + " " + m.Pick(m.Words.Last)
	}
	return m.Pick(m.Words.First) + " " + m.Pick(m.Words.Last)
}

func (m *Field) clock() time.Time {
	return time.Unix(1_500_000_000+int64(m.Rand.IntN(400_000_000)), int64(m.Rand.IntN(1000))*1e6).UTC()
}

func (m *Field) seconds(from, to int) time.Duration {
	return time.Duration(from*1000+m.Rand.IntN((to-from)*1000+1)) * time.Millisecond
}

// place is where something is and how it moves: degrees, and degrees for each step.
type place struct {
	lat, lon, dlat, dlon float64
	places               int // decimals
}

func (m *Field) place() place {
	return place{m.real(-60, 140), m.real(-180, 360), m.real(-0.001, 0.002), m.real(-0.001, 0.002), 4 + m.Rand.IntN(4)}
}

func (p *place) move(m *Field) (lat, lon string) {
	p.lat += float64(p.dlat * m.real(0.5, 1))
	p.lon += float64(p.dlon * m.real(0.5, 1))
	return fixed(p.lat, p.places), fixed(p.lon, p.places)
}

// fixed writes a number with so many decimals, by integers alone.
func fixed(v float64, decimals int) string {
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	n := int64(math.Floor(float64(v*float64(scale)) + 0.5))
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if decimals == 0 {
		return fmt.Sprintf("%s%d", sign, n)
	}
	return fmt.Sprintf("%s%d.%0*d", sign, n/scale, decimals, n%scale)
}

// real is a number from a to a+span. Each product is rounded before the sum: CPUs that fuse the two would differ.
func (m *Field) real(a, span float64) float64 { return a + float64(m.Rand.Float64()*span) }

func (m *Field) upTo(most float64, decimals int) string { return fixed(m.real(0, most), decimals) }

// dress writes an XML text of one line as some writer would: its quotes, its declaration, its line ends.
type dress struct {
	declaration, remark string
	single, space       bool // quotes, and before />
	crlf, mark          bool
}

func (m *Field) dress() dress {
	d := dress{declaration: m.Pick([]string{
		`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`,
		`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n", `<?xml version="1.0" encoding="UTF-8"?>`, `<?xml version="1.0" encoding="UTF-8"?>` + "\n",
		`<?xml version="1.0" encoding="utf-8"?>`, `<?xml version="1.0"?>`, "",
	})}
	d.single = m.Rand.IntN(5) == 0
	switch m.Rand.IntN(24) {
	case 0, 1:
		d.remark = "<!-- " + m.Sentence() + " -->"
	case 2:
		d.remark = "<!--" + m.Name() + "-->"
	case 3:
		d.remark = `<?xml-stylesheet type="text/xsl" href="` + strings.ToLower(m.invent()) + `.xsl"?>`
	case 4:
		d.remark = "<!DOCTYPE " + m.invent() + ` SYSTEM "` + strings.ToLower(m.invent()) + `.dtd">`
	}
	if d.remark != "" && m.Rand.IntN(2) == 0 {
		d.remark += "\n"
	}
	d.crlf, d.space, d.mark = m.Rand.IntN(12) == 0, m.Rand.IntN(10) == 0, m.Rand.IntN(24) == 0
	return d
}

func (d dress) wear(s string) []byte {
	if d.space {
		s = strings.ReplaceAll(s, "/>", " />")
	}
	s = d.declaration + d.remark + s
	if d.single && !strings.Contains(s, "'") {
		s = strings.ReplaceAll(s, `"`, "'")
	}
	if d.crlf {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	if d.mark {
		s = "\xef\xbb\xbf" + s
	}
	return []byte(s)
}

const isoMillis, isoSeconds = "2006-01-02T15:04:05.000Z", "2006-01-02T15:04:05Z"

// device is a phone that runs a situational picture.
type device struct{ uid, takv, call, group, role string }

func (m *Field) device() device {
	d := device{call: m.call()}
	switch m.Rand.IntN(6) {
	case 0:
		d.uid = strings.ToUpper(m.uuid())
	case 1:
		d.uid = "S-1-5-21-" + m.digits(10) + "-" + m.digits(9) + "-" + m.digits(10) + "-" + m.digits(4)
	default:
		d.uid = "ANDROID-" + m.lower(16)
	}
	maker := m.Pick([]string{"SAMSUNG SM-G", "SAMSUNG SM-T", "SAMSUNG SM-S", "GOOGLE PIXEL ", "MOTOROLA XT", "ONEPLUS A", "XIAOMI M", "KYOCERA E", "SONIM XP"}) + m.digits(m.Rand.IntN(4)+1)
	maker += m.Pick([]string{"U", "U1", "B", "", "W", " PRO"})
	os := fmt.Sprint(21 + m.Rand.IntN(15))
	version := fmt.Sprintf("%d.%d.%d.%d", 3+m.Rand.IntN(3), m.Rand.IntN(13), m.Rand.IntN(6), m.Rand.IntN(30))
	if m.Rand.IntN(2) == 0 {
		version += fmt.Sprintf(" (%s).%d-CIV", m.lower(8), 1_600_000_000+m.Rand.IntN(130_000_000))
	}
	platform := m.Pick([]string{"ATAK-CIV", "ATAK-CIV", "ATAK-CIV", "ATAK-MIL", "WinTAK-CIV", "iTAK"})
	if m.Rand.IntN(3) == 0 {
		d.takv = fmt.Sprintf(`<takv device="%s" platform="%s" os="%s" version="%s"/>`, maker, platform, os, version)
	} else {
		d.takv = fmt.Sprintf(`<takv os="%s" version="%s" device="%s" platform="%s"/>`, os, version, maker, platform)
	}
	d.group = m.Pick([]string{"Cyan", "Yellow", "Green", "Blue", "Red", "White", "Orange", "Magenta", "Maroon", "Purple", "Teal", "Brown", "Dark Blue", "Dark Green"})
	d.role = m.Pick([]string{"Team Member", "Team Member", "Team Lead", "HQ", "Sniper", "Medic", "Forward Observer", "RTO", "K9"})
	return d
}

func atoms(m *Field) string {
	return m.Pick([]string{"a-f-G-U-C", "a-f-G-U-C", "a-f-G-U-C", "a-f-G-U-C-I", "a-f-G-E-V-C", "a-f-S", "a-f-A-M-H", "a-n-S-X-M", "a-h-G", "a-u-G", "a-f-G-U-C-V", "a-u-S", "a-f-A-M-F-Q", "a-h-G-U-C-F"})
}

// event opens an event of Cursor on Target 2.0 and places its point.
func (m *Field) event(uid, typ, how string, at time.Time, stale time.Duration, point string) string {
	now := at.Format(isoMillis)
	access := ""
	if m.Rand.IntN(2) == 0 {
		access = ` access="Undefined"`
	}
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="%s"%s>%s`, uid, typ, now, now, at.Add(stale).Format(isoMillis), how, access, point)
}

const nowhere = "9999999.0"

func (m *Field) point(lat, lon string) string {
	hae, ce, le := m.upTo(900, 1+m.Rand.IntN(3)), m.upTo(20, 1), nowhere
	switch m.Rand.IntN(4) {
	case 0:
		hae, ce = nowhere, nowhere
	case 1:
		ce = nowhere
	}
	return fmt.Sprintf(`<point lat="%s" lon="%s" hae="%s" ce="%s" le="%s"/>`, lat, lon, hae, ce, le)
}

// CoT is where a unit is, as phones tell it.
func (m *Field) CoT() func() []byte {
	d, w, at, p := m.device(), m.dress(), m.clock(), m.place()
	typ, how, stale := atoms(m), m.Pick([]string{"m-g", "m-g", "h-e", "h-g-i-g-o", "m-p"}), []time.Duration{60, 75, 75, 120, 300}[m.Rand.IntN(5)]*time.Second
	battery, shape := 5+m.Rand.IntN(96), m.Rand.IntN(8)
	course, fine := m.real(0, 360), []int{1, 2, 8, 13, 14}[m.Rand.IntN(5)]
	endpoint := m.Pick([]string{"*:-1:stcp", "*:-1:stcp", "*:-1:stcp", hostAddress(m) + ":4242:tcp"})
	return func() []byte {
		at = at.Add(m.seconds(3, 60))
		if m.Rand.IntN(5) == 0 {
			battery = max(battery-1, 1)
		}
		course = math.Mod(course+m.real(0, 20), 360)
		lat, lon := p.move(m)
		contact := fmt.Sprintf(`<contact endpoint="%s" callsign="%s"/>`, endpoint, d.call)
		if shape == 1 {
			contact = fmt.Sprintf(`<contact callsign="%s" endpoint="%s"/>`, d.call, endpoint)
		}
		parts := []string{d.takv, contact, fmt.Sprintf(`<uid Droid="%s"/>`, d.call), m.Pick([]string{`<precisionlocation altsrc="GPS" geopointsrc="GPS"/>`, `<precisionlocation altsrc="DTED0" geopointsrc="USER"/>`, `<precisionlocation altsrc="???" geopointsrc="GPS"/>`}),
			fmt.Sprintf(`<__group role="%s" name="%s"/>`, d.role, d.group), fmt.Sprintf(`<status battery="%d"/>`, battery), fmt.Sprintf(`<track course="%s" speed="%s"/>`, fixed(course, fine), m.upTo(30, 1+m.Rand.IntN(2)))}
		switch shape {
		case 2:
			parts = []string{contact, parts[4], parts[5], parts[0], parts[6]}
		case 3:
			parts = []string{contact, parts[2], parts[4], parts[6]}
		case 4:
			parts[0], parts[6] = parts[6], parts[0]
		}
		return w.wear(m.event(d.uid, typ, how, at, stale, m.point(lat, lon)) + "<detail>" + strings.Join(parts, "") + "</detail></event>")
	}
}

func hostAddress(m *Field) string {
	return fmt.Sprintf("%d.%d.%d.%d", []int{10, 172, 192, 10}[m.Rand.IntN(4)], m.Rand.IntN(256), m.Rand.IntN(256), 1+m.Rand.IntN(254))
}

// CoTChat is a line of chat in Cursor on Target.
func (m *Field) CoTChat() func() []byte {
	d, w, at, p := m.device(), m.dress(), m.clock(), m.place()
	room := m.Pick([]string{"All Chat Rooms", "All Chat Rooms", d.group, m.call(), m.Name()})
	roomID := room
	if m.Rand.IntN(3) == 0 {
		roomID = "ANDROID-" + m.lower(16)
	}
	destination := hostAddress(m) + ":4242:tcp:"
	shape := m.Rand.IntN(5)
	return func() []byte {
		at = at.Add(m.seconds(5, 300))
		lat, lon := p.move(m)
		id := m.uuid()
		source := m.Pick([]string{"BAO.F.ATAK.", "BAO.F.ATAK.", "BAO.F.WinTAK.", ""})
		chat := fmt.Sprintf(`<__chat parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="%s"/></__chat>`, id, room, roomID, d.call, d.uid, roomID, roomID)
		if shape == 1 {
			chat = fmt.Sprintf(`<__chat id="%s" chatroom="%s" senderCallsign="%s" groupOwner="false" messageId="%s"><chatgrp id="%s" uid0="%s" uid1="%s"/></__chat>`, roomID, room, d.call, id, roomID, d.uid, roomID)
		}
		server := fmt.Sprintf(`<__serverdestination destinations="%s%s"/>`, destination, d.uid)
		if shape == 2 {
			server = ""
		}
		return w.wear(m.event("GeoChat."+d.uid+"."+roomID+"."+id, "b-t-f", "h-g-i-g-o", at, 24*time.Hour, m.point(lat, lon)) + "<detail>" + chat +
			fmt.Sprintf(`<link uid="%s" type="%s" relation="p-p"/>%s<remarks source="%s%s" to="%s" time="%s">%s</remarks></detail></event>`, d.uid, atoms(m), server, source, d.uid, roomID, at.Format(isoMillis), escape(m.Sentence())))
	}
}

// CoTMarker is something on a map: a point, a route, a shape, a call for evacuation, an alarm.
func (m *Field) CoTMarker() func() []byte {
	d, w, at, p := m.device(), m.dress(), m.clock(), m.place()
	shape := m.Rand.IntN(6)
	link := func() string {
		return fmt.Sprintf(`<link uid="%s" production_time="%s" type="a-f-G-U-C" parent_callsign="%s" relation="p-p"/>`, d.uid, at.Format(isoMillis), d.call)
	}
	return func() []byte {
		at = at.Add(m.seconds(60, 600))
		lat, lon := p.move(m)
		name, uid := m.Name(), m.uuid()
		var typ, body string
		switch shape {
		case 0, 1:
			typ = m.Pick([]string{"a-u-G", "a-h-G", "a-n-G", "b-m-p-s-m", "b-m-p-w-GOTO", "b-m-p-s-p-i"})
			body = fmt.Sprintf(`<status readiness="true"/><archive/>%s<contact callsign="%s"/><remarks>%s</remarks><color argb="-%d"/><precisionlocation altsrc="%s"/><usericon iconsetpath="COT_MAPPING_2525B/a-u/%s"/>`, link(), name, escape(m.Sentence()), 1+m.Rand.IntN(16777216), m.Pick([]string{"DTED0", "???", "GPS"}), typ)
		case 2:
			typ = "b-r-f-h-c"
			body = fmt.Sprintf(`<_medevac_ title="%s" casevac="false" freq="%s" urgent="%d" priority="%d" routine="%d" litter="%d" ambulatory="%d" hoist="%t" security="%d" hlz_marking="%d" us_military="%d" nonus_civilian="%d" terrain_none="true" medline_remarks="%s" zone_prot_selection="%d"/>%s<contact callsign="%s"/><remarks>%s</remarks>`,
				name, m.upTo(99, 1), m.Rand.IntN(4), m.Rand.IntN(4), m.Rand.IntN(4), m.Rand.IntN(4), m.Rand.IntN(4), m.Rand.IntN(2) == 0, m.Rand.IntN(4), m.Rand.IntN(5), m.Rand.IntN(6), m.Rand.IntN(3), escape(m.Sentence()), m.Rand.IntN(3), link(), name, escape(m.Sentence()))
		case 3:
			typ = "u-d-f"
			for range 3 + m.Rand.IntN(4) {
				y, x := p.move(m)
				body += fmt.Sprintf(`<link point="%s,%s"/>`, y, x)
			}
			body += fmt.Sprintf(`<strokeColor value="-%d"/><strokeWeight value="%d.0"/><fillColor value="%d"/><contact callsign="%s"/><remarks/><archive/><labels_on value="false"/>`, 1+m.Rand.IntN(1<<24), 1+m.Rand.IntN(6), m.Rand.IntN(1<<30), name)
		case 4:
			typ = "b-a-o-tbl"
			body = fmt.Sprintf(`<link uid="%s" type="%s" relation="p-p"/><contact callsign="%s-Alert"/><emergency type="%s">%s</emergency>`, d.uid, atoms(m), d.call, m.Pick([]string{"911 Alert", "In Contact", "Ring The Bell", "Geo-fence Breached"}), d.call)
		default:
			typ = "b-m-r"
			for i := range 3 + m.Rand.IntN(4) {
				y, x := p.move(m)
				body += fmt.Sprintf(`<link uid="%s" callsign="%s" type="b-m-p-w" point="%s,%s" remarks="" relation="c"/>`, m.uuid(), fmt.Sprintf("CP%d", i+1), y, x)
			}
			body += fmt.Sprintf(`<link_attr planningmethod="Infil" color="-1" method="%s" prefix="CP" type="On Foot" stroke="3" direction="Infil" routetype="Primary" order="Ascending Check Points"/><contact callsign="%s"/><remarks>%s</remarks>`, m.Pick([]string{"Driving", "Walking", "Flying", "Swimming", "Watercraft"}), name, escape(m.Sentence()))
		}
		return w.wear(m.event(uid, typ, m.Pick([]string{"h-g-i-g-o", "h-e", "m-g"}), at, m.seconds(300, 86400), m.point(lat, lon)) + "<detail>" + body + "</detail></event>")
	}
}

// outline writes an element with its children on lines of their own, or on one line where unit is empty.
func outline(b *strings.Builder, n node, unit, end string, depth int) {
	indent := ""
	if unit != "" {
		indent = strings.Repeat(unit, depth)
	}
	b.WriteString(indent + "<" + n.name + n.attr)
	switch {
	case len(n.kids) > 0:
		b.WriteString(">" + end)
		for _, k := range n.kids {
			outline(b, k, unit, end, depth+1)
		}
		b.WriteString(indent + "</" + n.name + ">")
	case n.text == "":
		b.WriteString("/>")
	default:
		b.WriteString(">" + escape(n.text) + "</" + n.name + ">")
	}
	b.WriteString(end)
}

// layout is how a writer of XML lays documents out.
func (m *Field) layout() func(root node) []byte {
	d := m.dress()
	unit := m.Pick([]string{"  ", "  ", "    ", "\t", "", ""})
	end := "\n"
	if unit == "" {
		end = ""
	}
	return func(root node) []byte {
		var b strings.Builder
		outline(&b, root, unit, end, 0)
		return d.wear(b.String())
	}
}
