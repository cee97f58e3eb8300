package code

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Errors of Parse and ParseBatch.
var (
	ErrMalformed = errors.New("tak: not a coded event")
	ErrNames     = errors.New("tak: names a unit that is not known") // the unit may become known
)

// Names are the units that both sides know by number. Nil: none.
type Names interface {
	// Number is the number of the unit with this uid, or with this callsign.
	Number(text string, callsign bool) (n uint32, ok bool)
	// Text is a unit's uid or callsign.
	Text(n uint32, callsign bool) (text string, ok bool)
}

// The first octet of a value: below bigWords a word, from shortText on a text of so many octets.
const (
	bigWords    = 160 // and the next octet
	placeOnly   = 165 // place.go
	placeMore   = 166
	repeated    = 167 // the number of an earlier value in the same event
	selfUID     = 168 // the event's own
	selfSign    = 169 // the event's own callsign
	unitUID     = 170 // a unit's number
	unitSign    = 171
	wholeNumber = 172 // unsigned varint
	minusNumber = 173
	decimal     = 174 // digits behind the point, signed varint
	hexLower    = 175 // octets, they
	hexUpper    = 176
	uuidLower   = 177
	uuidUpper   = 178
	timeMillis  = 179 // signed varint from the base
	timeSeconds = 180
	parted      = 181 // separator, count, values
	android     = 182 // "ANDROID-" and 8 octets
	tenths      = 183 // signed varint
	hundredths  = 184
	microDegree = 185
	tenthMicro  = 186
	longText    = 187 // octets, they
	androidPart = 188 // "ANDROID-" and hexadecimal of any even length
	packedUpper = 189 // letters, bits (pack.go); also 190 and 191
	shortText   = 192
)

const (
	mostParts = 255
	separates = ",. /:|"
	prefix    = "ANDROID-"
	seconds   = "2006-01-02T15:04:05Z"
)

// coder is the context in which values are coded.
type coder struct {
	names    Names
	base     time.Time
	uid      string
	callsign string
	near     near
	nodes    int
	octets   int      // texts read
	before   []string // values of more than two octets that were spelled out, in their order
}

// mostRepeats bounds how many values of an event are looked up for repeats.
const mostRepeats = 128

// note remembers a value that was spelled out.
func (c *coder) note(v string) {
	if len(v) > 2 && len(c.before) < mostRepeats {
		c.before = append(c.before, v)
	}
}

// value appends a text in its shortest form.
func (c *coder) value(dst []byte, v string, depth int) []byte {
	if i, ok := wordOf[v]; ok {
		return appendWord(dst, i)
	}
	switch {
	case v == c.uid && c.uid != "":
		return append(dst, selfUID)
	case v == c.callsign && c.callsign != "":
		return append(dst, selfSign)
	}
	if c.names != nil && len(v) > 2 {
		if n, ok := c.names.Number(v, false); ok {
			return binary.AppendUvarint(append(dst, unitUID), uint64(n))
		}
		if n, ok := c.names.Number(v, true); ok {
			return binary.AppendUvarint(append(dst, unitSign), uint64(n))
		}
	}
	if i := slices.Index(c.before, v); i >= 0 {
		return append(dst, repeated, byte(i))
	}
	if b := special(v, c.base); b != nil {
		if spelled(b[0]) {
			c.note(v)
		}
		return append(dst, b...)
	}
	if depth == 0 {
		if b, ok := c.place(dst, v); ok {
			return b
		}
	}
	whole, best := appendLiteral(nil, v), c.before
	if depth < 2 {
		for _, sep := range []byte(separates) {
			parts := strings.Split(v, string(sep))
			if len(parts) < 2 || len(parts) > mostParts {
				continue
			}
			b := []byte{parted, sep, byte(len(parts))}
			try := *c
			try.before = slices.Clip(c.before)
			for _, p := range parts {
				b = try.value(b, p, depth+1)
				if len(b) >= len(whole) {
					break
				}
			}
			if len(b) < len(whole) {
				whole, best = b, try.before
			}
		}
	}
	c.before = best
	if spelled(whole[0]) {
		c.note(v)
	}
	return append(dst, whole...)
}

// spelled says whether a value that begins with this octet may be repeated later: ids, times, texts.
func spelled(tag byte) bool {
	return tag >= hexLower && tag <= parted || tag == android || tag >= longText
}

func appendWord(dst []byte, i int) []byte {
	if i < bigWords {
		return append(dst, byte(i))
	}
	return append(dst, byte(bigWords+i>>8), byte(i))
}

func appendLiteral(dst []byte, v string) []byte {
	if b := packed(v); b != nil {
		return append(dst, b...)
	}
	if len(v) < 256-shortText {
		return append(append(dst, byte(shortText+len(v))), v...)
	}
	return append(binary.AppendUvarint(append(dst, longText), uint64(len(v))), v...)
}

// special codes a value that is a number, an id or a time; nil: it is not, or reading would not restore the same text.
func special(v string, base time.Time) []byte {
	if len(v) < 2 || len(v) > 80 {
		return nil
	}
	if b := number(v); b != nil {
		return b
	}
	if rest, ok := strings.CutPrefix(v, prefix); ok && isHex(rest, true) {
		octets, _ := hex.DecodeString(rest)
		if len(octets) == 8 {
			return append([]byte{android}, octets...)
		}
		return append([]byte{androidPart, byte(len(octets))}, octets...)
	}
	if len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' {
		for _, form := range []struct {
			tag   byte
			lower bool
		}{{uuidLower, true}, {uuidUpper, false}} {
			if bare := strings.ReplaceAll(v, "-", ""); len(bare) == 32 && isHex(bare, form.lower) {
				octets, _ := hex.DecodeString(strings.ToLower(bare))
				return append([]byte{form.tag}, octets...)
			}
		}
	}
	if len(v) >= 8 {
		for _, form := range []struct {
			tag   byte
			lower bool
		}{{hexLower, true}, {hexUpper, false}} {
			if isHex(v, form.lower) {
				octets, _ := hex.DecodeString(strings.ToLower(v))
				return append([]byte{form.tag, byte(len(octets))}, octets...)
			}
		}
	}
	for _, form := range []struct {
		tag    byte
		layout string
		unit   time.Duration
	}{{timeMillis, cot.TimeFormat, time.Millisecond}, {timeSeconds, seconds, time.Second}} {
		if t, err := time.Parse(form.layout, v); err == nil && t.Format(form.layout) == v && len(v) == len(form.layout) {
			d := t.Sub(base.Truncate(form.unit))
			if d.Abs() < 200*365*24*time.Hour {
				return binary.AppendVarint([]byte{form.tag}, int64(d/form.unit))
			}
		}
	}
	return nil
}

func isHex(v string, lower bool) bool {
	for i := range len(v) {
		c := v[i]
		if (c < '0' || c > '9') && (lower && (c < 'a' || c > 'f') || !lower && (c < 'A' || c > 'F')) {
			return false
		}
	}
	return v != "" && len(v)%2 == 0
}

// number codes a decimal number that reading restores as the same text.
func number(v string) []byte {
	if len(v) > 19 {
		return nil
	}
	digits, minus := strings.CutPrefix(v, "-")
	head, tail, point := strings.Cut(digits, ".")
	n, err := strconv.ParseInt(head+tail, 10, 64)
	if err != nil || head == "" || head[0] == '-' || head[0] == '+' || len(head) > 1 && head[0] == '0' || point && tail == "" || strings.ContainsAny(tail, "+-") {
		return nil
	}
	if !point {
		tag := byte(wholeNumber)
		if minus {
			tag = minusNumber
			if n == 0 {
				return nil
			}
		}
		return binary.AppendUvarint([]byte{tag}, uint64(n))
	}
	if minus {
		n = -n
		if n == 0 {
			return nil
		}
	}
	switch len(tail) {
	case 1:
		return binary.AppendVarint([]byte{tenths}, n)
	case 2:
		return binary.AppendVarint([]byte{hundredths}, n)
	case 6:
		return binary.AppendVarint([]byte{microDegree}, n)
	case 7:
		return binary.AppendVarint([]byte{tenthMicro}, n)
	}
	return binary.AppendVarint([]byte{decimal, byte(len(tail))}, n)
}

// written is the text of a decimal number.
func written(n int64, digits int) string {
	if digits == 0 {
		return strconv.FormatInt(n, 10)
	}
	minus := ""
	u := uint64(n)
	if n < 0 {
		minus, u = "-", uint64(-n)
	}
	t := strconv.FormatUint(u, 10)
	if len(t) <= digits {
		t = strings.Repeat("0", digits+1-len(t)) + t
	}
	return minus + t[:len(t)-digits] + "." + t[len(t)-digits:]
}

// reader takes coded octets apart.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) octet() byte {
	if len(r.b) == 0 {
		r.fail("cut short")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("cut short")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// read reads a value.
func (c *coder) read(r *reader, depth int) string {
	tag := byte(0)
	if len(r.b) > 0 {
		tag = r.b[0]
	}
	before := c.octets
	v := c.readAny(r, depth)
	if spelled(tag) {
		c.note(v)
	}
	c.octets = before + len(v) // the parts of a text do not count again
	if c.octets > cot.MaxEvent {
		r.fail("texts of more than %d octets", cot.MaxEvent)
		return ""
	}
	return v
}

func (c *coder) readAny(r *reader, depth int) string {
	tag := r.octet()
	switch {
	case r.err != nil:
		return ""
	case tag == placeOnly, tag == placeMore:
		return c.readPlace(r, tag == placeMore)
	case tag < placeOnly:
		i := int(tag)
		if tag >= bigWords {
			i = int(tag-bigWords)<<8 | int(r.octet())
		}
		if i >= len(words) {
			r.fail("word %d is not known", i)
			return ""
		}
		return words[i]
	case tag >= shortText:
		return string(r.next(uint64(tag - shortText)))
	}
	switch tag {
	case repeated:
		if i := int(r.octet()); i < len(c.before) {
			return c.before[i]
		}
		r.fail("a repeat of nothing")
		return ""
	case selfUID:
		return c.uid
	case selfSign:
		return c.callsign
	case unitUID, unitSign:
		n := r.uvarint()
		if r.err == nil && c.names != nil && n <= math.MaxUint32 {
			if text, ok := c.names.Text(uint32(n), tag == unitSign); ok {
				return text
			}
		}
		if r.err == nil {
			r.err = fmt.Errorf("%w: %d", ErrNames, n)
		}
		return ""
	case wholeNumber, minusNumber, tenths, hundredths, microDegree, tenthMicro, decimal:
		return readNumber(r, tag)
	case android:
		return prefix + hex.EncodeToString(r.next(8))
	case androidPart:
		return prefix + hex.EncodeToString(r.next(uint64(r.octet())))
	case hexLower, hexUpper:
		text := hex.EncodeToString(r.next(uint64(r.octet())))
		if tag == hexUpper {
			text = strings.ToUpper(text)
		}
		return text
	case uuidLower, uuidUpper:
		h := hex.EncodeToString(r.next(16))
		if len(h) < 32 {
			return ""
		}
		text := h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
		if tag == uuidUpper {
			text = strings.ToUpper(text)
		}
		return text
	case timeMillis:
		return c.after(r, time.Millisecond).Format(cot.TimeFormat)
	case timeSeconds:
		return c.after(r, time.Second).Format(seconds)
	case packedUpper, packedUpper + 1, packedUpper + 2:
		return alphabets[tag-packedUpper].unpack(r, int(r.octet()))
	case longText:
		return string(r.next(r.uvarint()))
	case parted:
		sep, count := r.octet(), int(r.octet())
		if depth >= 2 || count < 2 || !strings.ContainsRune(separates, rune(sep)) {
			r.fail("parts")
			return ""
		}
		var parts []string
		for range count {
			if r.err != nil {
				return ""
			}
			parts = append(parts, c.read(r, depth+1))
		}
		return strings.Join(parts, string(sep))
	}
	r.fail("value %d", tag)
	return ""
}

// readNumber reads a number that has only one notation.
func readNumber(r *reader, tag byte) string {
	switch tag {
	case wholeNumber:
		return strconv.FormatUint(r.uvarint(), 10)
	case minusNumber:
		return "-" + strconv.FormatUint(r.uvarint(), 10)
	case tenths:
		return written(r.varint(), 1)
	case hundredths:
		return written(r.varint(), 2)
	case microDegree:
		return written(r.varint(), 6)
	case tenthMicro:
		return written(r.varint(), 7)
	}
	digits := r.octet()
	if digits > 19 {
		r.fail("%d digits", digits)
		return ""
	}
	return written(r.varint(), int(digits))
}

// after is a time that is so many units after the base.
func (c *coder) after(r *reader, unit time.Duration) time.Time {
	n := r.varint()
	if most := int64(250 * 365 * 24 * time.Hour / unit); n > most || n < -most {
		r.fail("a time too far away")
		n = 0
	}
	return c.base.Truncate(unit).Add(time.Duration(n) * unit)
}

// valid says whether a text may stand in XML.
func valid(text string) bool {
	return !slices.ContainsFunc([]byte(text), func(b byte) bool { return b < ' ' && b != '\n' && b != '\t' && b != '\r' }) &&
		strings.ToValidUTF8(text, "") == text && !strings.Contains(text, "\uFFFE") && !strings.Contains(text, "\uFFFF")
}
