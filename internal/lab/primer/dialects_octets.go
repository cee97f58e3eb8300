package primer

import (
	"aldis/internal/link/compact/corpus"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// Dialects that are no text: CBOR (RFC 8949), COSE (RFC 9052), UBX, ASTERIX and what TAK devices send in Protocol Buffers.

// binaryParts is a message of each.
func binaryParts(m *Field) (parts []corpus.Part) {
	add := func(kind string, n int, next func(m *Field) []byte) {
		for range n {
			parts = append(parts, corpus.Part{Name: kind, Messages: [][]byte{next(m)}})
		}
	}
	add("cose", 10, coseOf)
	add("ubx", 16, ubxOf)
	add("asterix", 16, asterixOf)
	add("tak-protobuf", 14, takProtobufOf)
	return parts
}

// cborHead is the head of an item of CBOR.
func cborHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major<<5|byte(n))
	case n < 1<<8:
		return append(b, major<<5|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major<<5|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major<<5|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major<<5|27), n)
}

func cborText(b []byte, s string) []byte { return append(cborHead(b, 3, uint64(len(s))), s...) }

func cborOctets(b, s []byte) []byte { return append(cborHead(b, 2, uint64(len(s))), s...) }

// cborOf is a text of JSON as CBOR, its keys in their order.
func cborOf(text []byte) (b []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	b, err := cborValue(nil, d)
	return b, err == nil && !d.More()
}

func cborValue(b []byte, d *json.Decoder) ([]byte, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case json.Delim:
		major, n, inner := byte(4), uint64(0), []byte(nil)
		if v == '{' {
			major = 5
		}
		for d.More() {
			if inner, err = cborValue(inner, d); err != nil {
				return nil, err
			}
			if n++; major == 5 {
				if inner, err = cborValue(inner, d); err != nil {
					return nil, err
				}
			}
		}
		_, err = d.Token()
		return append(cborHead(b, major, n), inner...), err
	case string:
		return cborText(b, v), nil
	case bool:
		if v {
			return append(b, 0xf5), nil
		}
		return append(b, 0xf4), nil
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			if n < 0 {
				return cborHead(b, 1, uint64(-1-n)), nil
			}
			return cborHead(b, 0, uint64(n)), nil
		}
		f, err := strconv.ParseFloat(string(v), 64)
		return binary.BigEndian.AppendUint64(append(b, 0xfb), math.Float64bits(f)), err
	}
	return append(b, 0xf6), nil
}

// coseOf is something signed, authenticated or encrypted.
func coseOf(m *Field) []byte {
	protected := cborOctets(nil, append([]byte{0xa1, 0x01}, cborHead(nil, byte(m.Rand.IntN(2)), uint64(m.Rand.IntN(40)))...))
	key := func(b []byte) []byte {
		b = append(append(b, 0xa1, 0x20), 0xa4, 0x01, 0x02, 0x20, 0x01, 0x21)
		b = append(cborOctets(b, m.Octets(32)), 0x22)
		if m.Rand.IntN(3) == 0 {
			return append(b, 0xf5)
		}
		return cborOctets(b, m.Octets(32))
	}
	recipient := func(b []byte) []byte {
		b = append(b, 0x83)
		switch m.Rand.IntN(3) {
		case 0:
			b = append(b, 0x40, 0xa2, 0x01, 0x25, 0x04)
			return append(cborOctets(b, []byte(m.Pick([]string{"our-secret", "key-1", "sec-256", m.nick()}))), 0x40)
		case 1:
			b = append(b, 0x44, 0xa1, 0x01, 0x38, byte(0x18+m.Rand.IntN(8)), 0xa2, 0x20, 0xa4, 0x01, 0x02, 0x20, 0x01, 0x21)
			b = append(cborOctets(append(cborOctets(b, m.Octets(32)), 0x22), m.Octets(32)), 0x04)
			return append(cborOctets(b, []byte(m.nick()+"@"+m.host())), 0x40)
		}
		b = append(b, 0x43, 0xa1, 0x01, 0x29)
		return cborOctets(key(b), m.Octets(24))
	}
	content := cborOctets(nil, []byte(m.Pick([]string{"This is the content.", "The content of it", m.Sentence()})))
	switch m.Rand.IntN(5) {
	case 0:
		b := append(append(append([]byte{0xd2, 0x84}, protected...), 0xa1, 0x04), cborOctets(nil, []byte{'1', '1'})...)
		return cborOctets(append(b, content...), m.Octets(64))
	case 1:
		b := append(append(append([]byte{0xd8, 0x62, 0x84, 0x40, 0xa0}, content...), 0x81, 0x83), protected...)
		return cborOctets(cborOctets(append(b, 0xa1, 0x04), []byte{'1', '1'}), m.Octets(64))
	case 2:
		b := cborOctets(append(append(append([]byte{0xd8, 0x61, 0x85}, protected...), 0xa0), content...), m.Octets(8*(1+m.Rand.IntN(8))))
		return recipient(append(b, 0x81))
	case 3:
		b := cborOctets(append(append([]byte{0xd0, 0x83}, protected...), 0xa1, 0x05), m.Octets(12))
		return cborOctets(b, m.Octets(28+m.Rand.IntN(9)))
	}
	b := cborOctets(append(append([]byte{0xd8, 0x60, 0x84}, protected...), 0xa1, 0x05), m.Octets(12))
	return recipient(append(cborOctets(b, m.Octets(28+m.Rand.IntN(9))), 0x81))
}

// ubxOf is a frame or two of a receiver of satellites.
func ubxOf(m *Field) []byte {
	tow := uint32(m.Rand.IntN(604_800)) * 1000
	le16 := func(b []byte, v int) []byte { return binary.LittleEndian.AppendUint16(b, uint16(v)) }
	le32 := func(b []byte, v int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }
	few := func(n int) int { return m.Rand.IntN(n) }
	around := func(n int) int { return m.Rand.IntN(2*n+1) - n }
	frame := func(class, id byte, body []byte) []byte {
		b := append(le16([]byte{0xb5, 0x62, class, id}, len(body)), body...)
		var x, y byte
		for _, c := range b[2:] {
			x += c
			y += x
		}
		return append(b, x, y)
	}
	at := le32(nil, int(tow))
	one := func() []byte {
		switch few(9) {
		case 0: // NAV-PVT
			t := m.clock()
			b := append(le16(at, t.Year()), byte(t.Month()), byte(t.Day()), byte(t.Hour()), byte(t.Minute()), byte(t.Second()), 0x37)
			b = append(le32(le32(b, few(60)), around(500_000)), 3, byte(1+few(3)), 0xea, byte(4+few(20)))
			for _, v := range []int{around(1_800_000_000), around(900_000_000), few(900_000), few(900_000), few(20_000), few(20_000), around(300), around(300), around(300), few(300), few(36_000_000), few(900), few(9_000_000)} {
				b = le32(b, v)
			}
			return frame(1, 7, le32(le32(append(le16(b, 90+few(200)), 0, 0), 0), 0))
		case 1: // NAV-STATUS
			return frame(1, 3, le32(le32(append(at, byte(few(4)), 0xdd, 0, 8), few(60_000)), few(9_000_000)))
		case 2: // NAV-POSLLH
			b := at
			for _, v := range []int{around(1_800_000_000), around(900_000_000), few(900_000), few(900_000), few(20_000), few(20_000)} {
				b = le32(b, v)
			}
			return frame(1, 2, b)
		case 3: // NAV-SAT, NAV-SVINFO
			n := 1 + few(9)
			if few(2) == 0 {
				b := append(at, byte(n), 4, 0, 0)
				for i := range n {
					b = le32(append(append(b, byte(i), byte(1+few(32)), byte(few(14)), byte(few(8)), byte(20+few(30)), byte(few(90))), byte(few(256)), byte(few(2))), around(5000))
				}
				return frame(1, 0x30, b)
			}
			b := append(at, 1, byte(n), 0, 0)
			for range n {
				b = le32(le16(le16(append(b, byte(few(4)), byte(1+few(32)), byte(few(50)), byte(few(90))), few(360)), around(400)), 0x1f)
			}
			return frame(1, 0x35, b)
		case 4: // NAV-DOP
			b := at
			for range 7 {
				b = le16(b, 50+few(300))
			}
			return frame(1, 4, b)
		case 5: // NAV-VELNED, NAV-VELECEF, NAV-CLOCK, NAV-TIMEGPS, NAV-TIMEUTC
			switch few(4) {
			case 0:
				return frame(1, 0x11, le32(le32(le32(le32(at, around(90)), around(90)), around(90)), few(90)))
			case 1:
				return frame(1, 0x20, le32(append(le16(le32(at, around(400_000)), 1800+few(600)), 18, 7), few(90)))
			case 2:
				return frame(1, 0x22, le32(le32(le32(le32(at, around(900_000)), around(300)), few(30)), few(900)))
			}
			t := m.clock()
			b := le32(le32(at, few(30)), around(400_000))
			return frame(1, 0x21, append(le16(b, t.Year()), byte(t.Month()), byte(t.Day()), byte(t.Hour()), byte(t.Minute()), byte(t.Second()), 7))
		case 6: // ACK, CFG-MSG, CFG-RATE, polls
			switch few(4) {
			case 0:
				return frame(5, byte(few(2)), []byte{6, byte(few(64))})
			case 1:
				return frame(6, 1, []byte{byte([]int{1, 0xf0, 2, 0xf1}[few(4)]), byte(few(64)), 0, byte(few(2)), 0, byte(few(2)), 0, 0})
			case 2:
				return frame(6, 8, le16(le16(le16(nil, 1000), 1), 1))
			}
			return frame(byte([]int{6, 10, 1}[few(3)]), byte(few(64)), nil)
		case 7: // MON-VER, MON-HW
			b := make([]byte, 40)
			copy(b, m.Pick([]string{"EXT CORE 3.01 (111141)", "ROM CORE 1.00 (a8bcdf)", "7.03 (45969)"}))
			copy(b[30:], "00080000")
			for _, s := range []string{"ROM BASE 2.01 (75331)", "FWVER=HPG 1.13", "PROTVER=18.00", "MOD=ZED-F9P-0", "GPS;GLO;GAL;BDS", "SBAS;IMES;QZSS"}[:few(7)] {
				e := make([]byte, 30)
				copy(e, s)
				b = append(b, e...)
			}
			return frame(10, 4, b)
		}
		b := at // NAV-SOL
		b = append(le16(le32(b, around(400_000)), 1800+few(600)), 3, 0xdd)
		for _, v := range []int{around(600_000_000), around(600_000_000), around(600_000_000), few(900), around(90), around(90), around(90), few(90)} {
			b = le32(b, v)
		}
		return frame(1, 6, le32(append(le16(b, 100+few(300)), 2, byte(few(16))), 0))
	}
	if few(3) > 0 {
		return one()
	}
	return append(one(), one()...)
}

// asterixOf is a data block of a radar or a tracker.
func asterixOf(m *Field) []byte {
	few := func(n int) int { return m.Rand.IntN(n) }
	var b []byte
	put := func(octets ...byte) { b = append(b, octets...) }
	word := func(v int) { b = binary.BigEndian.AppendUint16(b, uint16(v)) }
	long := func(v int) { b = binary.BigEndian.AppendUint32(b, uint32(v)) }
	day := func() { v := few(86400 * 128); put(byte(v>>16), byte(v>>8), byte(v)) }
	flight := func() {
		var v uint64
		for _, c := range (m.Pick([]string{"SAS", "KLM", "DLH", "BAW", "AFR", "RYR", "WZZ"}) + m.digits(4) + "   ")[:8] {
			v = v<<6 | uint64(c)&63
		}
		put(byte(v>>40), byte(v>>32))
		long(int(v & 0xffffffff))
	}
	site := []byte{byte(few(30)), byte(few(30))}
	var category byte
	switch few(4) {
	case 0:
		category = 48
		put(0xfd, byte([]int{0xf7, 0xb7, 0xd7}[few(3)]), 0x02)
		put(site...)
		day()
		put(0xa0)
		word(few(1 << 16))
		word(few(1 << 16))
		word(few(1 << 12))
		word(few(1600))
		put(byte(few(256)), byte(few(256)), byte(few(256)))
		flight()
		put(1)
		put(m.Octets(8)...)
		word(few(4096))
		word(few(1 << 11))
		word(few(1 << 16))
		put(0x40, 0x20, 0xf5)
	case 1:
		category = 34
		put(byte([]int{0xf6, 0xf0, 0xe0}[few(3)]))
		put(site...)
		put(byte(1 + few(3)))
		day()
		put(byte(few(256)))
		word(490 + few(30))
		put(0x94, 0x40, 0x40, 0)
	case 2:
		category = 62
		put(byte([]int{0xbb, 0x9f, 0xbf}[few(3)]), byte([]int{0x3d, 0x7d, 0x1d}[few(3)]), byte([]int{0x42, 0x62, 0x22}[few(3)]))
		put(site...)
		put(1)
		day()
		long(few(1 << 25))
		long(few(1 << 25))
		word(few(1 << 14))
		word(few(1 << 11))
		word(few(1 << 11))
		put(0, 0)
		word(few(4096))
		flight()
		put(m.Octets(3)...)
		word(few(1 << 11))
		put(0x01, 0x10)
		word(0x5388)
		put([]byte(m.Pick([]string{"M", "N", "C", "E"}) + m.Pick([]string{"A320M", "B738M", "E190M", "A388H"}) + m.Pick([]string{"ENGM", "EGLL", "LFPG", "EDDF", "EHAM"}) + m.Pick([]string{"ENBR", "LEMD", "EKCH", "LSZH"}))...)
		put(1, 8, 0, 0, 0)
	default:
		category = 21
		put(0xc5, 0x53, 0xdb, 0x3b, 0x73, 0x50)
		put(site...)
		put(0x01, 0x20, 0xc1)
		put(m.Octets(3)...)
		day()
		long(few(1 << 31))
		long(few(1 << 31))
		put(m.Octets(3)...)
		word(few(4000))
		put(0x62, 0x54)
		word(few(1600))
		flight()
		put(byte(few(20)))
	}
	return append(binary.BigEndian.AppendUint16([]byte{category}, uint16(3+len(b))), b...)
}

// takProtobufOf is an event as version 1 of TAK's protocol has it.
func takProtobufOf(m *Field) []byte {
	field := func(b []byte, n int, s []byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(b, uint64(n)<<3|2), uint64(len(s))), s...)
	}
	text := func(b []byte, n int, s string) []byte { return field(b, n, []byte(s)) }
	number := func(b []byte, n int, v uint64) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(b, uint64(n)<<3), v)
	}
	double := func(b []byte, n int, v float64) []byte {
		return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(n)<<3|1), math.Float64bits(v))
	}
	d, at := m.device(), uint64(m.clock().UnixMilli())
	e := text(nil, 1, atoms(m))
	if m.Rand.IntN(4) == 0 {
		e = text(e, 2, "Undefined")
	}
	e = text(e, 5, d.uid)
	e = number(number(number(e, 6, at), 7, at), 8, at+uint64(60+m.Rand.IntN(3000))*1000)
	e = text(e, 9, m.Pick([]string{"m-g", "h-e", "h-g-i-g-o", "m-p"}))
	e = double(double(e, 10, m.real(-60, 120)), 11, m.real(-180, 360))
	hae, ce := 9999999., 9999999.
	if m.Rand.IntN(3) > 0 {
		hae, ce = m.real(0, 900), float64(m.Rand.IntN(50))
	}
	e = double(double(double(e, 12, hae), 13, ce), 14, 9999999)
	var detail []byte
	if m.Rand.IntN(2) == 0 {
		detail = text(detail, 1, m.Pick([]string{`<uid Droid="` + d.call + `"/>`, `<remarks>` + m.Sentence() + `</remarks>`, `<archive/><color argb="-1"/><remarks/>`,
			`<link uid="` + d.uid + `" type="a-f-G-U-C" relation="p-p" parent_callsign="` + d.call + `"/><status readiness="true"/>`}))
	}
	contact := []byte(nil)
	if m.Rand.IntN(2) == 0 {
		contact = text(contact, 1, m.Pick([]string{"*:-1:stcp", hostAddress(m) + ":4242:tcp"}))
	}
	detail = field(detail, 2, text(contact, 2, d.call))
	if m.Rand.IntN(3) > 0 {
		detail = field(detail, 3, text(text(nil, 1, d.group), 2, d.role))
		detail = field(detail, 4, text(text(nil, 1, m.Pick([]string{"GPS", "USER", "DTED2"})), 2, m.Pick([]string{"GPS", "DTED0", "???"})))
		detail = field(detail, 5, number(nil, 1, uint64(1+m.Rand.IntN(100))))
		detail = field(detail, 6, text(text(text(text(nil, 1, m.Pick([]string{"SAMSUNG SM-G", "GOOGLE PIXEL ", "LENOVO "})+m.digits(2)), 2, m.Pick([]string{"ATAK-CIV", "WinTAK-CIV", "iTAK", "WebTAK"})), 3, m.Pick([]string{"29", "30", "33", "Windows 10"})), 4, m.digits(1)+"."+m.digits(1)+".0."+m.digits(1)))
		detail = field(detail, 7, double(double(nil, 1, m.real(0, 30)), 2, m.real(0, 360)))
	}
	e = field(e, 15, detail)
	b := []byte{0xbf, 1, 0xbf}
	if m.Rand.IntN(4) == 0 {
		b = binary.AppendUvarint([]byte{0xbf}, uint64(len(field(nil, 2, e))))
	} else if m.Rand.IntN(3) == 0 {
		b = append(b, 0x0a, 0)
	}
	return field(b, 2, e)
}
