package trace

import (
	"bytes"
	"errors"

	"aldis/internal/jxta"
)

const (
	maxBody    = 16 << 20  // octets of one message body; longer ones are counted and not read
	maxBodies  = 48 << 20  // octets of all unfinished messages together
	maxScan    = 256 << 10 // octets in which a stream must show that it is JXTA
	keepInScan = 64        // octets that a marker may have had before it was whole
)

// state is the next thing that a direction of a connection expects.
type state uint8

const (
	atStart   state = iota
	atScan          // lost: look for a known marker
	atWelcome       // JXTA over TCP (wire 2.1)
	atPackage       // a package (wire 2.2)
	atHead          // JXTA over HTTP (wire 3.1)
	atBody
	atChunk    // line with the length of a chunk
	atChunkEnd // line end after a chunk
	atTrailer  // lines after the last chunk
	atCoT      // events of TAK devices
	atXMPP     // streams of XMPP
	atForeign  // another protocol
)

// dialog reads both directions of a connection.
type dialog struct {
	c     *conn
	a     *Analyser
	begun [2]bool // seen from its first octet
	http  bool
	tcp   bool
	tak   bool
	jid   string // of the XMPP client, from the server's answer to its bind
	dir   [2]stream
}

// stream is one direction.
type stream struct {
	state  state
	buf    []byte
	need   int // octets of buf needed before the next step can do anything
	skip   int // octets to skip: the rest of a body that is too long
	seen   int // octets that were scanned in vain
	at     int64
	number int64
	held   int // octets of buf and body counted in Analyser.bodies

	left    int64 // of the body or chunk; -1: it lasts until the connection ends
	chunked bool
	jxta    bool // the body is JXTA messages
	body    bodyReader
	cot     *cotStream
	xmpp    *xmppStream
	kind    Kind   // of the message last read
	peer    string // PID of the sender, from its welcome line
}

func (d *dialog) init(c *conn, a *Analyser) { d.c, d.a = c, a }

// data takes in the next octets of a direction.
func (d *dialog) data(side int, b []byte, at, number int64) {
	s := &d.dir[side]
	d.a.read.stream += int64(len(b))
	s.at, s.number = at, number
	if s.skip > 0 {
		n := min(s.skip, len(b))
		s.skip -= n
		b = b[n:]
		d.a.read.unread += int64(n)
	}
	if s.state == atForeign {
		d.a.read.unread += int64(len(b))
		return
	}
	s.buf = append(s.buf, b...)
	if len(s.buf) >= s.need {
		d.run(side, s)
	}
	d.account(s)
}

// run takes steps as long as they use octets or change the state.
func (d *dialog) run(side int, s *stream) {
	rest := s.buf
	for {
		s.need = 0
		n, more := d.step(side, s, rest)
		rest = rest[n:]
		if !more {
			break
		}
	}
	if len(rest) == 0 && cap(s.buf) > 64<<10 {
		s.buf = nil // a long message is over
		return
	}
	s.buf = append(s.buf[:0], rest...)
}

// account keeps the sum of waiting octets within its bound.
func (d *dialog) account(s *stream) {
	n := len(s.buf) + len(s.body.buf)
	if s.cot != nil {
		n += s.cot.fed
	}
	d.a.bodies += n - s.held
	s.held = n
	if d.a.bodies > maxBodies {
		d.a.problem("unfinished messages of more than %d octets together: the one of packet %d is not read", maxBodies, s.number)
		d.dropCoT(s)
		d.a.read.unread += int64(len(s.buf) + len(s.body.buf))
		s.lose()
		d.a.bodies -= s.held
		s.held = 0
	}
}

// lose forgets unfinished messages.
func (s *stream) lose() {
	s.buf, s.body, s.need, s.seen, s.chunked = nil, bodyReader{}, 0, 0, false
	s.state = atScan
}

// gap notes that octets are missing.
func (d *dialog) gap(side int, octets int) {
	s := &d.dir[side]
	d.a.gaps++
	if s.state == atForeign {
		return
	}
	if n := min(octets, s.skip); n > 0 && n == octets {
		s.skip -= n
		return
	}
	if s.state == atBody && !s.jxta && s.left >= int64(octets) {
		s.left -= int64(octets)
		return
	}
	if len(s.buf)+len(s.body.buf) > 0 || s.body.partial() || s.cot != nil && s.cot.fed > 0 {
		d.a.cutMessages++
	}
	d.dropCoT(s)
	d.a.read.unread += int64(len(s.buf) + len(s.body.buf))
	s.skip = 0
	s.lose()
	if s.xmpp != nil && !s.xmpp.tls { // an XML stream is not picked up again
		d.a.read.unread += int64(s.xmpp.fed)
		s.xmpp, s.state = nil, atForeign
	} else if s.xmpp != nil {
		s.state = atXMPP
	}
	d.account(s)
}

// end notes that a direction has ended.
func (d *dialog) end(side int) {
	s := &d.dir[side]
	if s.jxta {
		d.endBody(side, s)
	}
	if s.cot != nil && s.cot.fed > 0 {
		d.a.cutMessages++
		d.dropCoT(s)
	}
	if s.xmpp != nil {
		d.a.read.unread += int64(s.xmpp.fed)
		s.xmpp = nil
	}
	d.a.read.unread += int64(len(s.buf))
	if s.state != atForeign && s.state != atScan && len(s.buf) > 0 {
		d.a.cutMessages++
	}
	s.buf, s.body = nil, bodyReader{}
	s.state = atForeign
	d.account(s)
}

// markers are beginnings at which an interrupted stream is picked up.
var (
	markLength  = []byte("\x0econtent-length\x00\x08")
	markType    = []byte("\x0ccontent-type\x00\x16" + jxta.MessageType)
	markHello   = []byte("JXTAHELLO ")
	markMessage = []byte("jxmg\x00")
	markAnswer  = []byte("HTTP/1.")
	markGet     = []byte("GET /")
	markPost    = []byte("POST /")
	markGetAt   = []byte("GET http://") // to a proxy
	markPostAt  = []byte("POST http://")
)

// step uses the first octets of b. more says that another step may follow at once.
func (d *dialog) step(side int, s *stream, b []byte) (used int, more bool) {
	if len(b) == 0 {
		return 0, false
	}
	switch s.state {
	case atStart:
		return d.start(s, b)
	case atScan:
		return d.scan(s, b)
	case atWelcome:
		return d.welcome(side, s, b)
	case atPackage:
		return d.packaged(side, s, b)
	case atHead:
		return d.head(side, s, b)
	case atBody:
		return d.inBody(side, s, b)
	case atChunk, atChunkEnd, atTrailer:
		return d.line(side, s, b)
	case atCoT:
		return d.events(side, s, b)
	case atXMPP:
		return d.stanzas(side, s, b)
	case atForeign:
		d.a.read.unread += int64(len(b))
		return len(b), false
	}
	return 0, false
}

// port says whether the connection has a port of TAK.
func (d *dialog) port() bool { return isCoTPort(d.c.key.a.Port(), d.c.key.b.Port()) }

// start decides by a stream's first octets what it is.
func (d *dialog) start(s *stream, b []byte) (int, bool) {
	short := false
	if d.looksXMPP(b) {
		s.state = atXMPP
		return 0, true
	}
	if d.port() && b[0] == cotMark {
		s.state, d.tak = atCoT, true
		return 0, true
	}
	if declared, all := declaresEvent(b); declared {
		s.state, d.tak = atCoT, true
		return 0, true
	} else if !all {
		short = true
	}
	for _, m := range [][]byte{markHello, markAnswer, markGet, markPost, markGetAt, markPostAt, markLength, markType, markEvent} {
		n := min(len(b), len(m))
		if !bytes.Equal(b[:n], m[:n]) {
			continue
		}
		if n < len(m) {
			short = true
			continue
		}
		s.state = d.stateAt(m)
		return 0, true
	}
	if short {
		return 0, false
	}
	s.state = atScan
	return 0, true
}

// stateAt is the state that a marker begins.
func (d *dialog) stateAt(m []byte) state {
	switch &m[0] {
	case &markHello[0]:
		d.tcp = true
		return atWelcome
	case &markLength[0], &markType[0]:
		d.tcp = true
		return atPackage
	case &markEvent[0]:
		d.tak = true
		return atCoT
	}
	d.http = true
	return atHead
}

// scan looks for the next known marker.
func (d *dialog) scan(s *stream, b []byte) (int, bool) {
	list := [][]byte{markLength, markType, markHello, markAnswer, markGet, markPost, markGetAt, markPostAt, markMessage}
	switch {
	case d.tcp:
		list = list[:3]
	case d.http:
		list = list[3:]
	case d.tak:
		list = [][]byte{markEvent}
	case d.port():
		list = append(list, markEvent)
	}
	at, found := -1, []byte(nil)
	for _, m := range list {
		if i := bytes.Index(b, m); i >= 0 && (at < 0 || i < at) {
			at, found = i, m
		}
	}
	if at < 0 {
		used := max(0, len(b)-keepInScan)
		d.a.read.unread += int64(used)
		s.seen += used
		if s.seen > maxScan && !d.tcp && !d.http && !d.tak {
			s.state = atForeign
			d.a.foreign++
			d.a.read.unread += int64(len(b) - used)
			return len(b), false
		}
		s.need = len(b) - used + 1
		return used, false
	}
	s.seen = 0
	d.a.read.unread += int64(at)
	if &found[0] != &markMessage[0] {
		s.state = d.stateAt(found)
		return at, true
	}
	// A message in an HTTP body. With luck, the length of its chunk is right before it.
	d.http = true
	s.state, s.jxta, s.body = atBody, true, bodyReader{}
	s.left, s.chunked = chunkBefore(b[:at])
	return at, true
}

// chunkBefore reads the line that ends b as the length of a chunk; without such a line the body lasts until the connection ends.
func chunkBefore(b []byte) (left int64, chunked bool) {
	if len(b) < 3 || b[len(b)-1] != '\n' || b[len(b)-2] != '\r' {
		return -1, false
	}
	b = b[:len(b)-2]
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		b = b[i+1:]
	}
	n, ok := parseHex(b)
	if !ok || n == 0 {
		return -1, false
	}
	return n, true
}

// parseHex reads the length of a chunk; it ignores the rest after a semicolon or blank.
func parseHex(b []byte) (int64, bool) {
	var n int64
	digits := 0
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		case c == ';' || c == ' ':
			return n, digits > 0
		default:
			return 0, false
		}
		digits++
		if digits > 12 {
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, digits > 0
}

// pass gives up on the octets at the front of a stream and looks for the next known marker.
func (d *dialog) pass(s *stream, what string, err error) (int, bool) {
	d.a.damaged(what, s.number, err)
	d.a.read.unread++
	s.state = atScan
	return 1, true
}

func (d *dialog) welcome(side int, s *stream, b []byte) (int, bool) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 && len(b) <= jxta.MaxWelcome {
		return 0, false
	}
	if end < 0 {
		return d.pass(s, "a welcome line without end", nil)
	}
	w, err := jxta.ParseWelcome(b[:end+1])
	if err != nil {
		return d.pass(s, "a welcome line that cannot be read", err)
	}
	s.peer, _ = jxta.ParseURN(w.Peer)
	d.a.welcome(d, side, s, w, end+1)
	s.state = atPackage
	return end + 1, true
}

func (d *dialog) packaged(side int, s *stream, b []byte) (int, bool) {
	h, n, err := jxta.ParsePackageHeader(b)
	switch {
	case errors.Is(err, jxta.ErrShort):
		return 0, false
	case err != nil:
		return d.pass(s, "a package header that cannot be read", err)
	case h.Length > 1<<40:
		return d.pass(s, "a package of an absurd length", nil)
	case h.Length > maxBody:
		d.a.damaged("a message of more than 16 MiB", s.number, nil)
		used := min(len(b), n+int(h.Length))
		s.skip = n + int(h.Length) - used
		d.a.read.unread += int64(used)
		return used, true
	case uint64(len(b)-n) < h.Length:
		s.need = n + int(h.Length)
		return 0, false
	}
	end := n + int(h.Length)
	d.a.body(d, side, s, b[n:end], n)
	return end, true
}

// bodyReader takes messages off an HTTP body, in which they follow each other without any frame (wire 3.1).
type bodyReader struct {
	buf    []byte
	need   int
	after  bool // a message was read: a trailer may follow
	broken bool // the next octets are no message: look for one
}

func (r *bodyReader) partial() bool { return len(r.buf) > 0 || r.broken }

// bodyData takes in octets of a body.
func (d *dialog) bodyData(side int, s *stream, b []byte, last bool) {
	r := &s.body
	r.buf = append(r.buf, b...)
	if len(r.buf) < r.need && !last {
		return
	}
	rest := r.buf
	for len(rest) > 0 {
		if r.broken {
			i := bytes.Index(rest, markMessage)
			if i < 0 {
				keep := min(len(rest), len(markMessage)-1)
				d.a.read.unread += int64(len(rest) - keep)
				rest = rest[len(rest)-keep:]
				break
			}
			d.a.read.unread += int64(i)
			rest, r.broken = rest[i:], false
		}
		if r.after && rest[0] != 'j' { // lengths of a trailer begin with a zero octet
			n, need, ok := trailerLength(rest)
			if !ok {
				r.after, r.broken = false, true
				continue
			}
			if need > len(rest) {
				r.need = need
				break
			}
			d.a.trailer(s, rest[:n])
			rest, r.after = rest[n:], false
			continue
		}
		n, need, ok := messageLength(rest)
		if !ok {
			d.a.damaged("a message that cannot be read", s.number, nil)
			r.broken = true
			rest = rest[1:]
			d.a.read.unread++
			continue
		}
		if need > len(rest) {
			r.need = need
			break
		}
		d.a.body(d, side, s, rest[:n], 0)
		rest, r.after = rest[n:], true
	}
	if len(rest) == 0 && cap(r.buf) > 64<<10 {
		r.buf, r.need = nil, 0
		return
	}
	if len(rest) == 0 {
		r.need = 0
	}
	r.buf = append(r.buf[:0], rest...)
}

// endBody notes that the body is over.
func (d *dialog) endBody(side int, s *stream) {
	if s.jxta {
		d.bodyData(side, s, nil, true)
		if len(s.body.buf) > 0 {
			d.a.read.unread += int64(len(s.body.buf))
			d.a.cutMessages++
		}
	}
	s.body = bodyReader{}
}
