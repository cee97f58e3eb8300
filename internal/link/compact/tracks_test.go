package compact

import (
	"fmt"
	"hash/crc32"
)

// Track moves along a course; each Next is its report some seconds later.
type Track struct {
	m              *Maker
	name, typ, idn string
	seq            int
	lat, lon       int // units of 1e-5 degrees
	dlat, dlon     int
	crs            int // tenths of a degree
}

// Track returns a track somewhere.
func (m *Maker) Track() *Track {
	return &Track{
		m: m, name: fmt.Sprintf("%c-%d", 'A'+m.Rand.IntN(26), 100+m.Rand.IntN(900)), seq: m.Rand.IntN(400),
		lat: 5000000 + m.Rand.IntN(2500000), lon: 200000 + m.Rand.IntN(2800000), dlat: m.Rand.IntN(301) - 150, dlon: m.Rand.IntN(601) - 300,
		crs: m.Rand.IntN(3600), typ: m.Pick([]string{"SURF", "AIR", "SUBS", "LAND"}), idn: m.Pick([]string{"UNK", "FRD", "HOS", "NEU", "PND"}),
	}
}

// step moves t and returns its report: random noise in the last two decimals, speed and quality random.
func (t *Track) step() (seq int, lat, lon, crs, spd string, qual int) {
	t.seq++
	t.lat += t.dlat
	t.lon += t.dlon
	r := t.m.Rand
	noisy := func(v int) string {
		v = v - v%100 + r.IntN(100)
		return fmt.Sprintf("%d.%05d", v/100000, v%100000)
	}
	lat, lon = noisy(t.lat), noisy(t.lon)
	tenth := func(v int) string { return fmt.Sprintf("%d.%d", v/10, v%10) }
	return t.seq, lat, lon, tenth(t.crs), tenth(r.IntN(350)), r.IntN(10)
}

// Text is one record.
func (t *Track) Text() string {
	seq, lat, lon, crs, spd, qual := t.step()
	return fmt.Sprintf("TRK;%s;seq=%d;lat=%s;lon=%s;crs=%s;spd=%s;typ=%s;idn=%s;qual=%d", t.name, seq, lat, lon, crs, spd, t.typ, t.idn, qual)
}

// XML is a message of about 350 octets with the same values.
func (t *Track) XML() []byte {
	seq, lat, lon, crs, spd, qual := t.step()
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<track xmlns="urn:trk">
  <id>%s</id>
  <seq>%d</seq>
  <position>
    <lat>%s</lat>
    <lon>%s</lon>
  </position>
  <movement>
    <crs>%s</crs>
    <spd>%s</spd>
  </movement>
  <class>
    <typ>%s</typ>
    <idn>%s</idn>
    <qual>%d</qual>
  </class>
</track>
`, t.name, seq, lat, lon, crs, spd, t.typ, t.idn, qual)
}

// Plot is a message of size octets as the peers of the field tests send it: the sender's own track, which goes on
// steadily, contacts that change from message to message, and a checksum (field-tests/peers, README).
func (t *Track) Plot(now float64, size int) []byte {
	r := t.m.Rand
	t.seq++
	b := fmt.Appendf(nil, "TRK;%s;%d;%.3f;", t.name, t.seq, now)
	position := func(lat, lon, crs, spd int) {
		b = fmt.Appendf(b, "N%02d.%04d;E%03d.%04d;C%03d.%d;S%02d.%d;", lat/10000, lat%10000, lon/10000, lon%10000, crs/10, crs%10, spd/10, spd%10)
	}
	lat, lon := t.lat/10+t.seq*3, t.lon/10+t.seq*5
	position(lat, lon, t.crs/3+r.IntN(20), 80+r.IntN(60))
	for len(b) < size-8 {
		b = fmt.Appendf(b, "T%d;", 1000+r.IntN(9000))
		position(lat+r.IntN(20000), lon+r.IntN(40000), r.IntN(3600), r.IntN(350))
		b = fmt.Appendf(b, "%c%d;", "AUFHSN"[r.IntN(6)], r.IntN(10))
	}
	b = b[:size-8]
	return fmt.Appendf(b, "%08x", crc32.ChecksumIEEE(b))
}

// Picture is the knowledge of many tracks: at first all tracks, then those that have changed, and remarks. Shape 0 is a
// document, 1 lines of fields, 2 sentences of NMEA 0183 of one ship.
type Picture struct {
	m      *Maker
	shape  int
	tracks []*Track
	speed  []int
	time   int
	nth    int
	tags   []string
}

// Picture returns a picture of n tracks.
func (m *Maker) Picture(shape, n int) *Picture {
	p := &Picture{m: m, shape: shape, time: m.Rand.IntN(40000)}
	for range n {
		p.tracks = append(p.tracks, m.Track())
		p.speed = append(p.speed, m.Rand.IntN(30))
	}
	sets := [][]string{{"picture", "contact", "lat", "lon", "cog", "sog"}, {"plots", "plot", "latitude", "longitude", "course", "speed"}, {"list", "unit", "y", "x", "dir", "v"}}
	p.tags = sets[m.Rand.IntN(len(sets))]
	return p
}

// Next is the next message, half a minute later.
func (p *Picture) Next() []byte {
	r := p.m.Rand
	p.time += 30
	var b []byte
	changed := 1 + r.IntN(len(p.tracks))
	if p.nth%6 == 0 {
		changed = len(p.tracks)
	}
	p.nth++
	from := r.IntN(len(p.tracks))
	if p.shape == 0 {
		b = fmt.Appendf(b, "<?xml version=\"1.0\"?>\n<%s time=\"%d\">\n", p.tags[0], p.time)
	}
	for i, t := range p.tracks { // all tracks move, some are reported
		t.lat += t.dlat
		t.lon += t.dlon
		if r.IntN(3) == 0 {
			t.crs = (t.crs + 3600 + r.IntN(100) - 50) % 3600
		}
		if (i-from+len(p.tracks))%len(p.tracks) >= changed {
			continue
		}
		lat, lon := t.lat/10+r.IntN(4), t.lon/10+r.IntN(4)
		y, x := fmt.Sprintf("%d.%04d", lat/10000, lat%10000), fmt.Sprintf("%d.%04d", lon/10000, lon%10000)
		switch p.shape {
		case 0:
			b = fmt.Appendf(b, "<%[1]s id=\"%[2]s\"><%[3]s>%[4]s</%[3]s><%[5]s>%[6]s</%[5]s><%[7]s>%03[8]d</%[7]s><%[9]s>%[10]d</%[9]s></%[1]s>\n",
				p.tags[1], t.name, p.tags[2], y, p.tags[3], x, p.tags[4], t.crs/10, p.tags[5], p.speed[i])
		case 1:
			b = fmt.Appendf(b, "%s,%d,%s,%s,%d.%d,%d,%s\n", t.name, p.time, y, x, t.crs/10, t.crs%10, p.speed[i], t.typ)
		default:
			clock := fmt.Sprintf("%02d%02d%02d.00", p.time/3600%24, p.time/60%60, p.time%60)
			body := fmt.Sprintf("GPRMC,%s,A,%s%02d.%04d,N,%03d%02d.%04d,E,%d.%d,%d.%d,201126,,,A", clock, y[:2], lat%10000*60/10000, lat*37%10000,
				lon/10000, lon%10000*60/10000, lon*41%10000, p.speed[i], r.IntN(10), t.crs/10, t.crs%10)
			b = append(append(b, Sentence(body)...), Sentence(fmt.Sprintf("GPGGA,%s,%s%02d.%04d,N,%03d%02d.%04d,E,1,%02d,%d.%d,%d.0,M,44.0,M,,", clock, y[:2], lat%10000*60/10000, lat*37%10000,
				lon/10000, lon%10000*60/10000, lon*41%10000, 8+r.IntN(4), r.IntN(2), r.IntN(10), 10+r.IntN(6)))...)
		}
	}
	if p.shape == 0 {
		if p.nth%2 == 0 {
			b = append(b, "<note>"...)
			for range 4 + r.IntN(20) {
				b = append(append(b, p.m.Pick(p.m.Words.Places)...), ' ')
			}
			b = append(b, "</note>\n"...)
		}
		b = fmt.Appendf(b, "</%s>\n", p.tags[0])
	}
	return b
}

// Texts is a message of records, one of each track, cut at size octets.
func Texts(tracks []*Track, size int) []byte {
	var b []byte
	for i := 0; len(b) < size; i++ {
		b = append(append(b, tracks[i%len(tracks)].Text()...), '\n')
	}
	return b[:size]
}
