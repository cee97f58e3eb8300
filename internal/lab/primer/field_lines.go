package primer

import (
	"fmt"
	"strings"
	"time"
)

// Telemetry is what a device says of itself in JSON. Names are in the spellings that occur; a device keeps its own.
func (m *Field) Telemetry() func() []byte {
	p, at, seq := m.place(), m.clock(), m.Rand.IntN(100_000)
	p.places = 4 + m.Rand.IntN(4)
	id := m.Pick([]string{"sensor", "node", "unit", "usv", "uav", "station", "tracker", "gateway", "buoy", "dev", strings.ToLower(m.invent())}) + m.Pick([]string{"-", "_", ""}) + m.Pick([]string{m.digits(2), m.digits(3), m.lower(6)})
	spell := m.Rand.IntN(4) // of names: with _, in camel case, short, with capitals
	name := func(s string) string {
		words := strings.Split(s, "_")
		switch spell {
		case 1:
			for i := 1; i < len(words); i++ {
				words[i] = upperFirst(words[i])
			}
			return strings.Join(words, "")
		case 3:
			for i := range words {
				words[i] = upperFirst(words[i])
			}
			return strings.Join(words, "")
		}
		return s
	}
	colon, comma := ":", ","
	if m.Rand.IntN(3) == 0 {
		colon, comma = ": ", ", "
	}
	pair := func(k, v string) string { return `"` + name(k) + `"` + colon + v }
	text := func(s string) string { return `"` + s + `"` }
	object := func(list ...string) string { return "{" + strings.Join(list, comma) + "}" }
	volts, heat, press, percent := m.real(11, 2), m.real(0, 30), m.real(980, 50), 20+m.Rand.IntN(80)
	clock := m.Rand.IntN(4)
	nested, pick := m.Rand.IntN(3) > 0, m.Rand.IntN(1<<16)
	idName := m.Pick([]string{"id", "device_id", "device_id", "node", "sensor_id", "name", "unit_id"})
	timeName := m.Pick([]string{"timestamp", "timestamp", "time", "ts", "datetime", "created_at"})
	latName, lonName := "lat", "lon"
	switch m.Rand.IntN(4) {
	case 0:
		latName, lonName = "latitude", "longitude"
	case 1:
		lonName = "lng"
	}
	return func() []byte {
		at = at.Add(m.seconds(5, 120).Round(time.Second))
		seq++
		volts -= m.real(0, 0.02)
		heat += m.real(-0.25, 0.5)
		lat, lon := p.move(m)
		when := text(at.Format(isoSeconds))
		switch clock {
		case 1:
			when = text(at.Format(isoMillis))
		case 2:
			when = fmt.Sprint(at.Unix())
		}
		list := []string{pair(idName, text(id))}
		if pick&1 > 0 {
			list = append(list, pair(byNumber(pick, "seq", "sequence", "msg_id", "counter"), fmt.Sprint(seq)))
		}
		list = append(list, pair(timeName, when))
		where := []string{pair(latName, lat), pair(lonName, lon)}
		if pick&2 > 0 {
			where = append(where, pair(byNumber(pick, "alt", "altitude", "elevation", "alt"), m.upTo(120, 1)))
		}
		if nested {
			list = append(list, pair(byNumber(pick>>2, "position", "location", "gps", "position"), object(where...)))
		} else {
			list = append(list, where...)
		}
		for i, f := range []func() string{
			func() string {
				return pair(byNumber(pick, "speed", "speed", "sog", "velocity"), m.upTo(20, 1+pick&1)) + comma + pair(byNumber(pick, "heading", "course", "cog", "heading"), fmt.Sprint(m.Rand.IntN(360)))
			},
			func() string {
				if pick&4 > 0 {
					return pair("battery", object(pair(byNumber(pick, "voltage", "volts", "v", "voltage"), fixed(volts, 2)), pair(byNumber(pick, "percent", "level", "soc", "percentage"), fmt.Sprint(percent))))
				}
				return pair("battery", byNumber(pick, fixed(volts, 2), fmt.Sprint(percent), fixed(volts, 1), fmt.Sprint(percent)))
			},
			func() string {
				return pair(byNumber(pick, "temperature", "temp", "air_temp", "temperature"), fixed(heat, 1)) + comma + pair("humidity", m.upTo(100, pick>>3&1)) + comma + pair("pressure", fixed(press+m.real(0, 1), 1))
			},
			func() string {
				return pair(byNumber(pick, "rssi", "rssi", "snr", "signal_strength"), fmt.Sprint(-40-m.Rand.IntN(80)))
			},
			func() string {
				return pair("status", text(m.Pick([]string{"ok", "ok", "OK", "warning", "online", "active"})))
			},
			func() string { return pair("errors", m.Pick([]string{"[]", "[]", "null", "0", `["low_battery"]`})) },
			func() string { return pair("message", text(m.Sentence())) },
		} {
			if pick>>(4+i)&1 > 0 && (i < 6 || pick&3 == 0) {
				list = append(list, f())
			}
		}
		return []byte(object(list...))
	}
}

// byNumber chooses by a number that a flow keeps.
func byNumber(by int, names ...string) string { return names[by%len(names)] }

// GeoJSON is features with properties (RFC 7946).
func (m *Field) GeoJSON() func() []byte {
	p := m.place()
	shape := m.Rand.IntN(4)
	keys := [][]string{{"name", "speed", "course"}, {"id", "type", "name"}, {"callsign", "heading", "time"}, {"title", "description", "color"}}[m.Rand.IntN(4)]
	return func() []byte {
		var list []string
		for i := range 1 + m.Rand.IntN(6) {
			lat, lon := p.move(m)
			at := "[" + lon + "," + lat + "]"
			kind := "Point"
			if shape == 1 {
				for range 3 {
					y, x := p.move(m)
					at += ",[" + x + "," + y + "]"
				}
				kind, at = "LineString", "["+at+"]"
			}
			var props []string
			for _, k := range keys {
				v := `"` + m.Name() + `"`
				switch k {
				case "speed":
					v = m.upTo(30, 1)
				case "course", "heading", "id":
					v = fmt.Sprint(m.Rand.IntN(360))
				case "time":
					v = `"` + m.clock().Format(isoSeconds) + `"`
				case "description":
					v = `"` + m.Sentence() + `"`
				case "color":
					v = `"#` + m.lower(6) + `"`
				}
				props = append(props, `"`+k+`":`+v)
			}
			geometry := fmt.Sprintf(`"geometry":{"type":"%s","coordinates":%s}`, kind, at)
			properties := `"properties":{` + strings.Join(props, ",") + "}"
			if shape == 2 {
				geometry, properties = properties, geometry
			}
			id := ""
			if shape == 3 {
				id = fmt.Sprintf(`"id":%d,`, i)
			}
			list = append(list, `{"type":"Feature",`+id+geometry+","+properties+"}")
		}
		s := `{"type":"FeatureCollection","features":[` + strings.Join(list, ",") + "]}"
		if shape == 2 {
			s = strings.NewReplacer(":", ": ", ",", ", ").Replace(s)
		}
		return []byte(s)
	}
}

// NMEA is some seconds of a ship's bus (IEC 61162-1).
func (m *Field) NMEA() func() []byte {
	at, p := m.clock(), m.place()
	if m.Rand.IntN(3) > 0 {
		p.lat, p.lon = m.real(20, 50), m.real(0, 60)
	}
	talker := m.Pick([]string{"GP", "GP", "GN", "II"})
	fine := 3 + m.Rand.IntN(3)
	part := []string{"", ".00", ".000", ".00"}[m.Rand.IntN(4)]
	course, speed, depth := m.real(0, 360), m.real(0, 20), m.real(5, 300)
	angle := func(v float64, width int, names string) string {
		h := names[:1]
		if v < 0 {
			h, v = names[1:], -v
		}
		d := int(v)
		minutes := fixed((v-float64(d))*60, fine)
		if minutes[1] == '.' {
			minutes = "0" + minutes
		}
		return fmt.Sprintf("%0*d%s,%s", width, d, minutes, h)
	}
	kinds := []int{0, 1}
	for k := 2; k < 12; k++ {
		if m.Rand.IntN(3) == 0 {
			kinds = append(kinds, k)
		}
	}
	m.Rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	if len(kinds) > 7 {
		kinds = kinds[:7]
	}
	return func() []byte {
		at = at.Add(m.seconds(1, 60).Round(time.Second))
		p.move(m)
		clock := at.Format("150405") + part
		y, x := angle(p.lat, 2, "NS"), angle(p.lon, 3, "EW")
		c, s, d := fixed(course+m.real(0, 2), 1), fixed(speed+m.real(0, 1), 1), depth+m.real(0, 2)
		var b strings.Builder
		for _, k := range kinds {
			b.WriteString(Sentence([]string{
				fmt.Sprintf("%sGGA,%s,%s,%s,%d,%02d,%s,%s,M,%s,M,,", talker, clock, y, x, 1+m.Rand.IntN(2), 4+m.Rand.IntN(9), m.upTo(3, 1), m.upTo(40, 1), m.upTo(60, 1)),
				fmt.Sprintf("%sRMC,%s,A,%s,%s,%s,%s,%s,,,A", talker, clock, y, x, s, c, at.Format("020106")),
				fmt.Sprintf("%sVTG,%s,T,,M,%s,N,%s,K,A", talker, c, s, fixed(speed*1.852, 1)),
				fmt.Sprintf("%sGLL,%s,%s,%s,A,A", talker, y, x, clock),
				fmt.Sprintf("%sHDT,%s,T", m.Pick([]string{"HE", "HE", "GP"}), c),
				fmt.Sprintf("%sDBT,%s,f,%s,M,%s,F", m.Pick([]string{"SD", "SD", "II"}), fixed(d*3.28084, 1), fixed(d, 1), fixed(d*0.546807, 1)),
				fmt.Sprintf("%sMWV,%s,%s,%s,N,A", m.Pick([]string{"WI", "WI", "II"}), m.upTo(360, 1), m.Pick([]string{"R", "T"}), m.upTo(30, 1)),
				fmt.Sprintf("%sZDA,%s,%s,00,00", talker, clock, at.Format("02,01,2006")),
				fmt.Sprintf("%sGSA,A,3,%02d,%02d,%02d,%02d,%02d,%02d,,,,,,,%s,%s,%s", talker, m.Rand.IntN(33), m.Rand.IntN(33), m.Rand.IntN(33), m.Rand.IntN(33), m.Rand.IntN(33), m.Rand.IntN(33), m.upTo(4, 1), m.upTo(3, 1), m.upTo(3, 1)),
				fmt.Sprintf("%sHDG,%s,,,%s,%s", m.Pick([]string{"HC", "II"}), c, m.upTo(9, 1), m.Pick([]string{"E", "W"})),
				fmt.Sprintf("%sDPT,%s,%s", m.Pick([]string{"SD", "II"}), fixed(d, 1), m.upTo(2, 1)),
				fmt.Sprintf("%sVHW,%s,T,%s,M,%s,N,%s,K", m.Pick([]string{"VW", "II"}), c, c, s, fixed(speed*1.852, 1)),
			}[k]))
		}
		return []byte(b.String())
	}
}

// AIS is what ships say of themselves (ITU-R M.1371), in sentences.
func (m *Field) AIS() func() []byte {
	var ships []*aisShip
	for range 1 + m.Rand.IntN(6) {
		country := []int{257, 258, 259, 219, 220, 211, 218, 230, 265, 232, 235, 244, 246, 273, 276, 275, 261, 338, 366, 538, 636, 351, 370}[m.Rand.IntN(23)]
		ships = append(ships, &aisShip{id: country*1_000_000 + m.Rand.IntN(1_000_000), x: m.Rand.IntN(36_000_000) - 9_000_000, y: 20_000_000 + m.Rand.IntN(22_000_000), speed: m.Rand.IntN(220), course: m.Rand.IntN(3600)})
	}
	kind := m.Pick([]string{"AIVDM", "AIVDM", "AIVDM", "BSVDM", "AIVDO"})
	return func() []byte {
		var b strings.Builder
		for _, s := range ships {
			s.x += m.Rand.IntN(400) - 100
			s.y += m.Rand.IntN(400) - 100
			heading := s.course / 10
			if m.Rand.IntN(3) == 0 {
				heading = 511
			}
			w := new(sixBits)
			w.put(uint64([]int{1, 1, 1, 3, 18}[s.id%5]), 6)
			w.put(0, 2)
			w.put(uint64(s.id), 30)
			if s.id%5 == 4 {
				w.put(0, 8)
			} else {
				w.put(uint64([]int{0, 0, 0, 5, 7, 15}[s.id%6]), 4)
				w.put(uint64([]int{0, 128, 128, 0}[s.id%4]), 8)
			}
			w.put(uint64(max(s.speed+m.Rand.IntN(5)-2, 0)), 10)
			w.put(uint64(s.id&1), 1)
			w.put(uint64(s.x), 28)
			w.put(uint64(s.y), 27)
			w.put(uint64(s.course+m.Rand.IntN(9)), 12)
			w.put(uint64(heading), 9)
			w.put(uint64(m.Rand.IntN(60)), 6)
			w.put(0, 6)
			w.put(uint64(m.Rand.IntN(1<<19)), 19)
			body := fmt.Sprintf("%s,1,1,,%s,%s,0", kind, m.Pick([]string{"A", "B"}), w.text())
			b.WriteString("!" + Sentence(body)[1:])
		}
		return []byte(b.String())
	}
}

type aisShip struct{ id, x, y, speed, course int }

// sixBits packs numbers into characters of six bits.
type sixBits struct {
	out  []byte
	bits uint64
	have int
}

func (s *sixBits) put(v uint64, n int) {
	for n--; n >= 0; n-- {
		s.bits = s.bits<<1 | v>>n&1
		if s.have++; s.have == 6 {
			c := byte(s.bits&63) + 48
			if c > 87 {
				c += 8
			}
			s.out = append(s.out, c)
			s.have = 0
		}
	}
}

func (s *sixBits) text() string { return string(s.out) }

// month is the month and the year as messages of lines write them.
func month(t time.Time, layout string) string { return strings.ToUpper(t.Format(layout)) }

func (m *Field) degrees(v float64, width int, names string, fine bool) string {
	h := names[:1]
	if v < 0 {
		h, v = names[1:], -v
	}
	d := int(v)
	min := int((v - float64(d)) * 60)
	if fine {
		return fmt.Sprintf("%0*d%02d.%d%s", width, d, min, m.Rand.IntN(10), h)
	}
	return fmt.Sprintf("%0*d%02d%s", width, d, min, h)
}

// ship is a ship's name, in capitals.
func (m *Field) ship() string {
	s := strings.ToUpper(m.invent())
	if m.Rand.IntN(2) == 0 {
		s += " " + strings.ToUpper(m.Pick([]string{m.invent(), "STAR", "QUEEN", "SPIRIT", "EXPRESS", "TRADER", "SEA", "BAY", "GLORY", "VIKING"}))
	}
	return s
}

// Gold is contacts in OTH-GOLD.
func (m *Field) Gold() func() []byte {
	at, p, serial := m.clock(), m.place(), m.Rand.IntN(2000)
	track, ship := m.Rand.IntN(9000)+1000, m.ship()
	from := strings.ToUpper(m.call())
	class := m.Pick([]string{"FFG", "DDG", "MERCHANT", "FISH", "TANKER", "UNK", "PC", "AGI", "FF", "SSK"})
	side := m.Pick([]string{"HOS", "UNK", "FRD", "NEU", "SUS", "AFD"})
	flag := m.Pick([]string{"GBR", "NOR", "USA", "DEU", "RUS", "CHN", "PAN", "LBR", "DNK", "GRC", "FRA", "TUR", "XXX"})
	sensor := m.Pick([]string{"RADAR", "VISUAL", "ESM", "AIS", "SONAR", "ACINT", "RDR"})
	shape, fine := m.Rand.IntN(5), m.Rand.IntN(3) == 0
	course, speed := m.Rand.IntN(360), m.real(0, 25)
	return func() []byte {
		serial++
		at = at.Add(m.seconds(120, 3600))
		var b strings.Builder
		fmt.Fprintf(&b, "MSGID/GOLD/%s/%04d/%s\n", from, serial%10000, month(at, "Jan"))
		for i := range 1 + shape/2 {
			if i > 0 {
				ship, track = m.ship(), m.Rand.IntN(9000)+1000
			}
			fmt.Fprintf(&b, "CTC/T%d/%s/%s/%s///%s/%s\n", track, ship, class, flag, side, m.Pick([]string{"NAVAL", "MERCHANT", "FISHING", "OTHER", "COMBATANT"}))
			when := at
			for range 1 + m.Rand.IntN(3) {
				p.move(m)
				fmt.Fprintf(&b, "POS/%s/%s/%s/%s/%s/%s/%03dT/%sK/%s/%s\n", when.Format("021504Z"), month(when, "Jan"), m.degrees(p.lat, 2, "NS", fine), m.degrees(p.lon, 3, "EW", fine), when.Format("06"),
					sensor, course, fixed(speed, 1), m.Pick([]string{"1NM", "2NM", "5NM", "3NM"}), m.Pick([]string{"1NM", "2NM", "5NM", "090T"}))
				when = when.Add(-m.seconds(300, 3600))
			}
			if m.Rand.IntN(3) == 0 {
				fmt.Fprintf(&b, "%s/%s\n", m.Pick([]string{"AMPN", "RMKS", "RMKS"}), strings.ToUpper(strings.TrimRight(m.Sentence(), ".?")))
			}
		}
		b.WriteString(m.Pick([]string{"ENDAT\n", "ENDAT\n", "ENDAT//\n", "ENDAT/DECL/X1\n"}))
		return []byte(b.String())
	}
}

// ADatP3 is formatted messages of sets and fields.
func (m *Field) ADatP3() func() []byte {
	at, serial, unit := m.clock(), m.Rand.IntN(300), strings.ToUpper(m.call())
	exercise := m.Pick([]string{"EXER", "OPER"}) + "/" + strings.ToUpper(m.invent()+" "+m.invent()) + fmt.Sprintf(" %02d", m.Rand.IntN(30))
	kind := m.Pick([]string{"OWNSITREP", "OWNSITREP", "MARINTSUM", "SITREP", "OPTASK", "LOGSITREP", "PURPLE", "ENSITREP", "INTREP", "METAR"})
	standard := m.Pick([]string{"APP-11(C)", "APP-11(D)", "APP-11(D)", "ADATP-3", "APP-11(E)", "MTF"})
	short := func(t time.Time) string { return t.Format("021504Z") }
	grid := func() string {
		return m.digits(2) + string("CDEFGHJKLMNPQRSTUVWX"[m.Rand.IntN(20)]) + string("ABCDEFGHJKLMNPQRSTUVWXYZ"[m.Rand.IntN(24)]) + string("ABCDEFGHJKLMNPQRSTUV"[m.Rand.IntN(20)]) + m.digits(8)
	}
	shape := m.Rand.IntN(4)
	return func() []byte {
		serial++
		at = at.Add(m.seconds(1800, 86400))
		var b strings.Builder
		b.WriteString(exercise + "//\n")
		fmt.Fprintf(&b, "MSGID/%s/%s/%d/%s/%03d/%s//\n", kind, standard, 1+m.Rand.IntN(2), unit, serial%1000, month(at, "Jan"))
		if m.Rand.IntN(3) > 0 {
			fmt.Fprintf(&b, "REF/A/TYPE:%s/%s/%s/%s//\n", m.Pick([]string{"MSG", "DOC", "ORD"}), m.Pick([]string{"OPORD", "OPTASK", "FRAGO", "SITREP", "WNGO"}), strings.ToUpper(m.call()), short(at)+month(at, "Jan06"))
		}
		fmt.Fprintf(&b, "PERID/%s/TO:%s/ASOF:%s//\n", short(at), short(at.Add(6*time.Hour)), short(at))
		if m.Rand.IntN(2) == 0 {
			s := b.String()
			b.Reset()
			b.WriteString(s[:strings.LastIndex(s, "/ASOF")] + "//\n")
		}
		b.WriteString("HEADING/" + m.Pick([]string{"OWN SITUATION", "ENEMY SITUATION", "LOGISTICS", "GENERAL SITUATION", "INTENTIONS", "AIR", "MARITIME"}) + "//\n")
		state := func() string { return m.Pick([]string{"OPR", "OPR", "LIM", "NOP", "RES"}) }
		switch shape {
		case 0, 1:
			b.WriteString("5UNIT\n/DE/UNITNAME /LOCATION /STATUS /PERS\n")
			n := 2 + m.Rand.IntN(3)
			for i := range n {
				end := "\n"
				if i == n-1 {
					end = "//\n"
				}
				fmt.Fprintf(&b, "/%02d/%s /%s /%s /%d%s", i+1, strings.ToUpper(m.call()), grid(), state(), m.Rand.IntN(200), end)
			}
		case 2:
			for range 1 + m.Rand.IntN(3) {
				p := m.place()
				fmt.Fprintf(&b, "TRACK/%s/%s/%s-%s/CRS:%03d/SPD:%dKTS//\n", m.digits(4), m.Pick([]string{"HOSTILE", "UNKNOWN", "FRIEND", "NEUTRAL"}), m.degrees(p.lat, 2, "NS", false), m.degrees(p.lon, 3, "EW", false), m.Rand.IntN(360), m.Rand.IntN(40))
			}
		default:
			fmt.Fprintf(&b, "LOCATION/%s/%s/%s//\nFUEL/%dPCT/AMMO:%dPCT/WATER:%dPCT//\n", strings.ToUpper(m.call()), grid(), state(), m.Rand.IntN(101), m.Rand.IntN(101), m.Rand.IntN(101))
		}
		if m.Rand.IntN(4) > 0 {
			fmt.Fprintf(&b, "GENTEXT/%s/%s//\n", m.Pick([]string{"REMARKS", "REMARKS", "SITUATION", "COMMENTS", "INTENTIONS", "EXECUTION"}), strings.ToUpper(strings.TrimRight(m.Sentence(), ".?")))
		}
		if m.Rand.IntN(4) == 0 {
			fmt.Fprintf(&b, "DECL/%s//\n", m.Pick([]string{"X1", "OADR"}))
		}
		return []byte(b.String())
	}
}

// GPX is a way that somebody went (GPX 1.1).
func (m *Field) GPX() func() []byte {
	write, at, p := m.layout(), m.clock(), m.place()
	p.places = 5 + m.Rand.IntN(3)
	who := m.Pick([]string{"Garmin Connect", "OpenCPN", "OsmAnd", "GPSBabel - https://www.gpsbabel.org", "ATAK", "QGIS"})
	name := m.Name()
	return func() []byte {
		var points []node
		height := m.real(5, 300)
		for range 4 + m.Rand.IntN(10) {
			at = at.Add(time.Duration(1+m.Rand.IntN(10)) * time.Second)
			lat, lon := p.move(m)
			height += m.real(-0.5, 1)
			points = append(points, node{name: "trkpt", attr: fmt.Sprintf(` lat="%s" lon="%s"`, lat, lon), kids: []node{leaf("ele", fixed(height, 1)), leaf("time", at.Format(isoSeconds))}})
		}
		kids := []node{tree("metadata", leaf("time", at.Format(isoSeconds))), tree("trk", leaf("name", name), tree("trkseg", points...))}
		if m.Rand.IntN(3) == 0 {
			lat, lon := p.move(m)
			kids[0] = node{name: "wpt", attr: fmt.Sprintf(` lat="%s" lon="%s"`, lat, lon), kids: []node{leaf("name", m.Name()), leaf("desc", m.Sentence()), leaf("sym", m.Pick([]string{"Flag", "Anchor", "Waypoint"}))}}
		}
		return write(node{name: "gpx", attr: fmt.Sprintf(` version="1.1" creator="%s" xmlns="http://www.topografix.com/GPX/1/1"`, who), kids: kids})
	}
}

// KML is places on a map (OGC 12-007).
func (m *Field) KML() func() []byte {
	write := m.layout()
	p := m.place()
	p.places = 6
	style := m.Pick([]string{"#icon-" + m.digits(4), "#msn_ylw-pushpin", "#default", "#" + strings.ToLower(m.invent())})
	return func() []byte {
		kids := []node{leaf("name", m.Name())}
		if m.Rand.IntN(2) == 0 {
			kids = append(kids, node{name: "Style", attr: ` id="` + style[1:] + `"`, kids: []node{tree("IconStyle", leaf("scale", "1.1"), tree("Icon", leaf("href", "http://maps.google.com/mapfiles/kml/pushpin/ylw-pushpin.png"))), tree("LineStyle", leaf("color", m.lower(8)), leaf("width", fmt.Sprint(1+m.Rand.IntN(5))))}})
		}
		for range 2 + m.Rand.IntN(4) {
			lat, lon := p.move(m)
			mark := tree("Placemark", leaf("name", m.Name()))
			if m.Rand.IntN(2) == 0 {
				mark.kids = append(mark.kids, leaf("description", m.Sentence()))
			}
			mark.kids = append(mark.kids, leaf("styleUrl", style), tree("Point", leaf("coordinates", lon+","+lat+m.Pick([]string{",0", ",0", "", ",0.0"}))))
			kids = append(kids, mark)
		}
		doc := write(node{name: "kml", attr: ` xmlns="http://www.opengis.net/kml/2.2"`, kids: []node{tree("Document", kids...)}})
		if m.Rand.IntN(2) == 0 { // as Google writes texts
			s := strings.ReplaceAll(string(doc), "<description>", "<description><![CDATA[")
			return []byte(strings.ReplaceAll(s, "</description>", "]]></description>"))
		}
		return doc
	}
}
