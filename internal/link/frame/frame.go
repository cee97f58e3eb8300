// Package frame encodes the inside of a sealed datagram: one or more frames, each complete by itself.
//
// A frame starts with one octet: its kind in the three high bits, flags in the low five. Acknowledgements, HELLOs,
// probes and answers state their own length. DATA and NORM frames extend to the end of the datagram, unless flagMore
// is set; then an unsigned varint with the length of the body follows. The longest frame therefore goes last and needs
// no length. A DATA frame has 8 bits of its message's number where those are enough, and often an acknowledgement in
// one more octet. The reasons: (norm-seal 4).
//
// The package is pure. Append and Parse are inverse. Parse aliases its input, but for an Open of
// one young message, and never panics. Sizes are octets. Input
// has always been authenticated by the seal. Read frame.go first, then greeting.go (HELLOs), segment.go (segments) and runs.go (long acknowledgements).
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	ErrShort = errors.New("frame: cut short")
	ErrKind  = errors.New("frame: unknown kind or flags")
)

// Queue separates messages that must not wait for each other: each queue has its own numbers, window and order.
type Queue uint8

const (
	Direct Queue = 0 // fits one datagram
	Bulk   Queue = 1 // needs segments: NORM
	Queues       = 2
)

// Frame is one of the types below.
type Frame interface{ isFrame() }

type (
	// Ack says which messages of one queue are durable at its sender: every number up to Cumulative (its low 16 bits), and
	// those whose bit is set in Bitmap: bit 0 of octet 0 is Cumulative+1. A bitmap of more than MaxBitmap octets, at most
	// MaxRuns, goes as lengths of runs, which gateways before version 0.3 do not read.
	Ack struct {
		Queue      Queue
		Cumulative uint16
		Bitmap     []byte
	}
	// Hello says who its sender is and whom it has heard. It goes with every long-form datagram.
	Hello struct {
		Store            uint32 // the sender's store, made with its data directory
		Stream           uint8  // raised when the sender's message numbers start anew
		HeardIncarnation uint32 // the receiver's incarnation number that the sender knows; 0 for none
		HeardStream      uint8
		Digest           uint32 // of the items that the sender believes the receiver to hold of it
		Model            uint16 // first octets of the hash of the sender's compaction model
		Forgot           uint8  // raised when the sender lost messages that later ones are coded after; 7 bits
		Segments         bool   // the sender understands Segment: the high bit of Forgot's octet, which older gateways only compare
		Ahead            bool   // with Segments: it takes numbers as far ahead as custody.MaxAhead; the next bit, so that Forgot has six
		// First is the low 16 bits of the first number of each queue that the sender gave, or will give, in this start and
		// stream. Seen is those of the direct queue's number up to which it has all messages of the receiver. By these each
		// end sees that the other was put back to an older copy of its data: docs/decisions/put-back.md.
		First [Queues]uint16
		Seen  uint16
		// Starts are earlier starts of the sender that the receiver may not have heard, the oldest first. There are at most
		// MaxStarts.
		Starts []Start
		End    bool // the sender's stream ends: it asks which part of it has arrived
		Ended  bool // the receiver's stream has ended, as its End asked: this datagram has the stream's last acknowledgements
		// Void: the receiver gives numbers again. Numbers of its starts after Known do not count, nor do acknowledgements of them.
		Void  bool
		Known uint32 // with Void: the last start of the receiver whose numbers count
		// Roster says which rosters the sender keeps, as internal/gateway writes it; 0: all share a key. It takes two or
		// three octets.
		Roster uint16
		// Mark, with a Roster, tells the newest roster from another of the same serial (roster.Mark); 0: the sender does
		// not say. It takes two octets.
		Mark uint16
		// Ephemeral is the public half of the pair that the sender's start made for this receiver; all zero: none is given.
		// HeardEphemeral names the receiver's half that the sender has; 0: none. The two take 34 octets, with a Roster.
		Ephemeral      [EphemeralOctets]byte
		HeardEphemeral uint16
		// Corpus is the name of the network's corpus that the sender has (compact.NetworkCorpus); 0: none. It takes four or five
		// octets.
		Corpus uint32
	}
	// Start is a start of a gateway, and the low 16 bits of the first number of each queue that it gave.
	Start struct {
		Incarnation uint32
		First       [Queues]uint16
	}
	// Probe asks for acknowledgements and an Answer at once.
	Probe struct{ ID uint8 }
	// Answer follows the acknowledgements that a Probe asked for.
	Answer struct{ ID uint8 }
	// Data is one message of the direct queue.
	Data struct {
		Number     uint16 // low 16 bits
		Short      bool   // only the low 8 bits are sent: no other message under way has the same
		Prompt     bool   // the sender wants an acknowledgement at once
		Rides      bool   // Cumulative is an Ack of the direct queue without gaps
		Cumulative uint8  // its low 8 bits
		Free       bool   // it need not wait for missing messages before it, except the one
		After      uint8  // that is so many numbers before it, if this is not 0
		Body       []byte
	}
	// Segment is a part of a long message (package segment). It has a number of the direct queue, as Data does.
	Segment struct {
		Number     uint16
		Short      bool
		Prompt     bool
		Rides      bool
		Cumulative uint8
		Object     uint8 // low 7 bits of the message's number in the bulk queue
		Total      int   // octets of the whole message, in its first segment; 0: another segment
		Free       bool  // with Total: the message need not wait for those of the bulk queue before it
		Body       []byte
	}
	// Silence: the sender will not transmit until Until (seconds since 1970 UTC; 0: until it transmits again), but it
	// listens (EMCON).
	Silence struct{ Until uint32 }
	// Talkers names sites from which the sender has had messages, as lengths of runs. Gateways whose Hello does not have
	// Ahead do not read it.
	Talkers struct{ IDs []uint16 } // ascending
	// Beside goes with a Hello and names the receiver's messages that came on another bearer and are durable at its sender. Bearer is the
	// mark of that bearer, and Stream the stream of the receiver's numbers there.
	Beside struct {
		Bearer, Stream uint8
		Ack            Ack
	}
	// Digest has the hash of the messages that its sender holds of a group; 0: the sender is not in the group any more.
	// Fresh: it knows of nobody else in the group, and asks.
	Digest struct {
		Tag, Hash uint16
		Fresh     bool
	}
	// Open has messages of groups, or lists and solicitations of them (package entropy). It runs to the end of the datagram. A Body
	// that is one young message has its first octet in that of the frame.
	Open struct{ Body []byte }
	// Query asks the receiver's site a question, and Told answers the Query of this Ref at once; neither needs an
	// acknowledgement. Regular is the form of the Body. Both run to the end of the datagram.
	Query struct {
		Ref     uint8 // 1 to MaxRef
		Regular bool
		Body    []byte
	}
	Told struct {
		Ref     uint8
		Regular bool
		Body    []byte
	}
	// Rollup has records of gateways (package rollup), and Rolled says that those of this number have arrived.
	Rollup struct {
		Number uint8 // not 0
		Body   []byte
	}
	Rolled struct{ Number uint8 }
	// PMul is one datagram of P_Mul in its compact coding (package pmul).
	PMul struct{ Body []byte }
	// LinkProbe is one word of a link probe (package probe). It runs to the end of the datagram.
	LinkProbe struct{ Body []byte }
	// NORM is one packet of libnorm, elided (package elide).
	NORM struct{ Body []byte }
)

func (Ack) isFrame()       {}
func (Hello) isFrame()     {}
func (Probe) isFrame()     {}
func (Answer) isFrame()    {}
func (Data) isFrame()      {}
func (NORM) isFrame()      {}
func (PMul) isFrame()      {}
func (Silence) isFrame()   {}
func (Talkers) isFrame()   {}
func (Beside) isFrame()    {}
func (Digest) isFrame()    {}
func (Open) isFrame()      {}
func (LinkProbe) isFrame() {}
func (Query) isFrame()     {}
func (Told) isFrame()      {}
func (Rollup) isFrame()    {}
func (Rolled) isFrame()    {}
func (Segment) isFrame()   {}

const (
	kindPMul    = 0 << 5
	kindAck     = 1 << 5
	kindHello   = 2 << 5
	kindProbe   = 3 << 5
	kindAnswer  = 4 << 5
	kindData    = 5 << 5
	kindNORM    = 6 << 5
	kindSilence = 7 << 5
	kindMask    = 7 << 5

	flagMore      = 1 << 0 // DATA, NORM: a length follows, and after the body another frame
	flagFree      = 1 << 1 // DATA: after the number, an octet says how far back the message is that it waits for
	flagPrompt    = 1 << 2 // DATA
	flagWide      = 1 << 3 // DATA: 16 bits of the number, else 8
	flagRides     = 1 << 4 // DATA: after the number, the low 8 bits of a cumulative number
	flagEnd       = 1 << 0 // HELLO, and the next two
	flagEnded     = 1 << 1
	flagVoid      = 1 << 2
	flagStarts    = 1 << 3 // Starts after the rest: their count and eight octets each; before these Roster and Corpus, if the count says so
	countRoster   = 1 << 7 // of the count
	countPair     = 1 << 6 // of the count: Ephemeral and HeardEphemeral follow Roster
	countCorpus   = 1 << 5 // Corpus follows these
	countMark     = 1 << 4 // of the count: Mark follows Roster directly
	flagLinkProbe = 1 << 4 // PROBE: a LinkProbe
	flagSegment   = 1 << 1 // NORM: a Segment, with the other flags of DATA
	flagSegments  = 1 << 7 // of the octet of Forgot, and the next one
	flagAhead     = 1 << 6
	flagRuns      = 1 << 3 // ANSWER: an Ack of the direct queue with runs
	flagAlone     = 1 << 4 // ANSWER: an Open, the low four bits those of its Body's first octet, whose high ones are those of alone
	flagTalkers   = 1 << 0 // SILENCE: Talkers
	flagBeside    = 1 << 1 // SILENCE: Beside, followed by an Ack
	flagOpen      = 1 << 2 // SILENCE: Open
	flagDigest    = 1 << 3 // SILENCE: Digest, with the next flag if it is Fresh
	flagFresh     = 1 << 4
	flagTold      = 1 << 3 // SILENCE: Told, with a Ref in the next two bits and Regular in the last
	flagQuery     = 1 << 4 // SILENCE: Query, with the same
	flagRollup    = 3      // SILENCE: Rollup, and the next one Rolled
	flagRolled    = 5
	queueBit      = 1 << 4 // RECEIPT; the low four bits are the octets of Bitmap
	helloLen      = HelloOctets - 1
	alone         = 11 << 4 // the first octet of a young message that is the last part of an Open (package entropy)

	// MaxBitmap is the most octets of an Ack's bitmap that go unchanged.
	MaxBitmap = 15
	// EphemeralOctets is the public half of a pair of X25519.
	EphemeralOctets = 32

	// MaxRef is the highest Ref of a Query.
	MaxRef = 3

	// MaxStarts is the most earlier starts in a Hello.
	MaxStarts   = 12
	startOctets = 4 + 2*Queues
)

// Append appends f. last says that no frame follows it in this datagram.
func Append(b []byte, f Frame, last bool) []byte {
	switch f := f.(type) {
	case Ack:
		if runs := f.runs(); runs != nil {
			return append(binary.BigEndian.AppendUint16(append(b, kindAnswer|flagRuns), f.Cumulative), runs...)
		}
		bitmap := f.Bitmap[:min(len(f.Bitmap), MaxBitmap)]
		b = append(b, kindAck|byte(f.Queue)<<4|byte(len(bitmap)))
		b = binary.BigEndian.AppendUint16(b, f.Cumulative)
		return append(b, bitmap...)
	case Hello:
		b = binary.BigEndian.AppendUint32(append(b, kindHello|flag(f.End, flagEnd)|flag(f.Ended, flagEnded)|flag(f.Void, flagVoid)|flag(len(f.Starts) > 0 || f.Roster != 0 || f.Corpus != 0, flagStarts)), f.Store)
		b = binary.BigEndian.AppendUint32(append(b, f.Stream), f.HeardIncarnation)
		b = binary.BigEndian.AppendUint32(append(b, f.HeardStream), f.Digest)
		b = append(binary.BigEndian.AppendUint16(b, f.Model), forgotOctet(f))
		for _, first := range f.First {
			b = binary.BigEndian.AppendUint16(b, first)
		}
		b = binary.BigEndian.AppendUint16(b, f.Seen)
		if f.Void {
			b = binary.BigEndian.AppendUint32(b, f.Known)
		}
		return appendStarts(b, f)
	case Greeting:
		return appendGreeting(b, f)
	case Probe:
		return append(b, kindProbe, f.ID)
	case Answer:
		return append(b, kindAnswer, f.ID)
	case LinkProbe:
		return append(append(b, kindProbe|flagLinkProbe), f.Body...)
	case Data:
		kind := byte(kindData)
		var head []byte
		if f.Prompt {
			kind |= flagPrompt
		}
		if !f.Short {
			kind |= flagWide
			head = append(head, byte(f.Number>>8))
		}
		head = append(head, byte(f.Number))
		if f.Free {
			kind |= flagFree
			head = append(head, f.After)
		}
		if f.Rides {
			kind |= flagRides
			head = append(head, f.Cumulative)
		}
		return appendBody(b, kind, last, head, f.Body)
	case Segment:
		return appendSegment(b, f, last)
	case Silence:
		return binary.BigEndian.AppendUint32(append(b, kindSilence), f.Until)
	case Talkers:
		return append(append(b, kindSilence|flagTalkers), f.runs()...)
	case Beside:
		return Append(append(b, kindSilence|flagBeside, f.Bearer, f.Stream), f.Ack, last)
	case Digest:
		b = append(b, kindSilence|flagDigest|flag(f.Fresh, flagFresh))
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, f.Tag), f.Hash)
	case Open:
		if len(f.Body) > 0 && f.Body[0]&^15 == alone {
			return append(append(b, kindAnswer|flagAlone|f.Body[0]&15), f.Body[1:]...)
		}
		return append(append(b, kindSilence|flagOpen), f.Body...)
	case Query:
		return append(append(b, kindSilence|flagQuery|f.Ref<<1|flag(f.Regular, 1)), f.Body...)
	case Told:
		return append(append(b, kindSilence|flagTold|f.Ref<<1|flag(f.Regular, 1)), f.Body...)
	case Rollup:
		b = binary.AppendUvarint(append(b, kindSilence|flagRollup, f.Number), uint64(len(f.Body)))
		return append(b, f.Body...)
	case Rolled:
		return append(b, kindSilence|flagRolled, f.Number)
	case PMul:
		return appendBody(b, kindPMul, last, nil, f.Body)
	case NORM:
		return appendBody(b, kindNORM, last, nil, f.Body)
	}
	panic(fmt.Sprintf("frame: %T", f)) // a broken promise of our own
}

func forgotOctet(f Hello) byte {
	if f.Segments && f.Ahead {
		return f.Forgot&^(flagSegments|flagAhead) | flagSegments | flagAhead
	}
	return f.Forgot&^flagSegments | flag(f.Segments, flagSegments)
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

func appendBody(b []byte, kind byte, last bool, head, body []byte) []byte {
	if !last {
		kind |= flagMore
	}
	b = append(append(b, kind), head...)
	if !last {
		b = binary.AppendUvarint(b, uint64(len(body)))
	}
	return append(b, body...)
}

// HelloOctets is the size of a Hello without Starts and Void.
const HelloOctets = 24

// appendStarts appends the last part of a Hello.
func appendStarts(b []byte, f Hello) []byte {
	starts := f.Starts[:min(len(f.Starts), MaxStarts)]
	pair, mark := f.Roster != 0 && f.Ephemeral != [EphemeralOctets]byte{}, f.Roster != 0 && f.Mark != 0
	count := byte(len(starts)) | flag(f.Roster != 0, countRoster) | flag(mark, countMark) | flag(pair, countPair) | flag(f.Corpus != 0, countCorpus)
	if count == 0 {
		return b
	}
	b = append(b, count)
	if f.Roster != 0 {
		b = binary.BigEndian.AppendUint16(b, f.Roster)
	}
	if mark {
		b = binary.BigEndian.AppendUint16(b, f.Mark)
	}
	if pair {
		b = binary.BigEndian.AppendUint16(append(b, f.Ephemeral[:]...), f.HeardEphemeral)
	}
	if f.Corpus != 0 {
		b = binary.BigEndian.AppendUint32(b, f.Corpus)
	}
	for _, s := range starts {
		b = binary.BigEndian.AppendUint32(b, s.Incarnation)
		for _, first := range s.First {
			b = binary.BigEndian.AppendUint16(b, first)
		}
	}
	return b
}

// parseStarts takes off the part that appendStarts has appended.
func parseStarts(h *Hello, b []byte) (rest []byte, err error) {
	if len(b) < 1 {
		return nil, ErrShort
	}
	count := b[0]
	n := int(count &^ (countRoster | countMark | countPair | countCorpus))
	told, mark, pair, corpus := count&countRoster != 0, count&countMark != 0, count&countPair != 0, count&countCorpus != 0
	b = b[1:]
	if count == 0 || n > MaxStarts || (pair || mark) && !told {
		return nil, ErrKind
	}
	if len(b) < 2*btoi(told)+2*btoi(mark)+(EphemeralOctets+2)*btoi(pair)+4*btoi(corpus)+n*startOctets {
		return nil, ErrShort
	}
	if told {
		h.Roster, b = binary.BigEndian.Uint16(b), b[2:]
		if h.Roster == 0 {
			return nil, ErrKind
		}
	}
	if mark {
		h.Mark, b = binary.BigEndian.Uint16(b), b[2:]
		if h.Mark == 0 {
			return nil, ErrKind
		}
	}
	if pair {
		h.Ephemeral, h.HeardEphemeral = [EphemeralOctets]byte(b), binary.BigEndian.Uint16(b[EphemeralOctets:])
		b = b[EphemeralOctets+2:]
		if h.Ephemeral == [EphemeralOctets]byte{} {
			return nil, ErrKind
		}
	}
	if corpus {
		h.Corpus, b = binary.BigEndian.Uint32(b), b[4:]
		if h.Corpus == 0 {
			return nil, ErrKind
		}
	}
	for range n {
		s := Start{Incarnation: binary.BigEndian.Uint32(b)}
		for queue := range s.First {
			s.First[queue] = binary.BigEndian.Uint16(b[4+2*queue:])
		}
		h.Starts, b = append(h.Starts, s), b[startOctets:]
	}
	return b, nil
}

// DataOverhead, with a number of 16 bits, and NORMOverhead are the octets that such a frame adds to its body when it is the last.
const (
	DataOverhead      = 3
	NORMOverhead      = 1
	LinkProbeOverhead = 1 // the same for a LinkProbe; the next is for an Open, at the most
	OpenOverhead      = 1
	DigestOctets      = 5
	RollupOverhead    = 4 // of a Rollup that fits a datagram, wherever it stands
	RolledOctets      = 2
)

// Greets says whether the frames of a datagram begin with a Hello or a Greeting, which have to come first.
func Greets(frames []byte) bool { return len(frames) > 0 && frames[0]&kindMask == kindHello }

// Parse takes the first frame off b and returns the rest.
func Parse(b []byte) (f Frame, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, ErrShort
	}
	kind, flags := b[0]&kindMask, b[0]&^kindMask
	b = b[1:]
	switch kind {
	case kindAck:
		n := int(flags & MaxBitmap)
		if len(b) < 2+n {
			return nil, nil, ErrShort
		}
		r := Ack{Queue: Queue(flags >> 4), Cumulative: binary.BigEndian.Uint16(b)}
		if n > 0 {
			r.Bitmap = b[2 : 2+n]
		}
		return r, b[2+n:], nil
	case kindHello:
		return parseHello(flags, b)
	case kindProbe, kindAnswer:
		if kind == kindProbe && flags == flagLinkProbe {
			return LinkProbe{b}, nil, nil
		}
		if kind == kindAnswer && flags == flagRuns {
			return parseRuns(b)
		}
		if kind == kindAnswer && flags&flagAlone != 0 {
			return Open{append([]byte{alone | flags&15}, b...)}, nil, nil
		}
		if flags != 0 {
			return nil, nil, ErrKind
		}
		if len(b) < 1 {
			return nil, nil, ErrShort
		}
		if kind == kindProbe {
			return Probe{b[0]}, b[1:], nil
		}
		return Answer{b[0]}, b[1:], nil
	case kindData:
		return parseData(flags, b)
	case kindSilence:
		if flags == flagTalkers {
			return parseTalkers(b)
		}
		if flags == flagBeside {
			return parseBeside(b)
		}
		if flags == flagOpen {
			return Open{b}, nil, nil
		}
		if flags == flagRollup || flags == flagRolled {
			return parseRollup(flags, b)
		}
		if flags&^flagFresh == flagDigest {
			if len(b) < 4 {
				return nil, nil, ErrShort
			}
			return Digest{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), flags&flagFresh != 0}, b[4:], nil
		}
		if ref := flags >> 1 & MaxRef; ref > 0 && flags&^7 == flagQuery {
			return Query{ref, flags&1 != 0, b}, nil, nil
		} else if ref > 0 && flags&^7 == flagTold {
			return Told{ref, flags&1 != 0, b}, nil, nil
		}
		if flags != 0 {
			return nil, nil, ErrKind
		}
		if len(b) < 4 {
			return nil, nil, ErrShort
		}
		return Silence{binary.BigEndian.Uint32(b)}, b[4:], nil
	case kindPMul:
		if flags&^flagMore != 0 {
			return nil, nil, ErrKind
		}
		var m PMul
		m.Body, rest, err = body(b, flags)
		return m, rest, err
	case kindNORM:
		if flags&flagSegment != 0 {
			return parseSegment(flags, b)
		}
		if flags&^flagMore != 0 {
			return nil, nil, ErrKind
		}
		var n NORM
		n.Body, rest, err = body(b, flags)
		return n, rest, err
	}
	return nil, nil, ErrKind
}

func parseRollup(flags byte, b []byte) (f Frame, rest []byte, err error) {
	switch {
	case len(b) < 1:
		return nil, nil, ErrShort
	case b[0] == 0:
		return nil, nil, ErrKind
	case flags == flagRolled:
		return Rolled{b[0]}, b[1:], nil
	}
	records, rest, err := body(b[1:], flagMore)
	if err != nil {
		return nil, nil, err
	}
	return Rollup{b[0], records}, rest, nil
}

func parseHello(flags byte, b []byte) (f Frame, rest []byte, err error) {
	if flags&flagAll != 0 {
		g, rest, err := parseGreeting(flags, b)
		if err != nil {
			return nil, nil, err
		}
		return g, rest, nil
	}
	if flags&^(flagEnd|flagEnded|flagVoid|flagStarts) != 0 {
		return nil, nil, ErrKind
	}
	if len(b) < helloLen {
		return nil, nil, ErrShort
	}
	h := Hello{
		Store: binary.BigEndian.Uint32(b), Stream: b[4],
		HeardIncarnation: binary.BigEndian.Uint32(b[5:]), HeardStream: b[9],
		Digest: binary.BigEndian.Uint32(b[10:]),
		Model:  binary.BigEndian.Uint16(b[14:]), Forgot: b[16] &^ flagSegments, Segments: b[16]&flagSegments != 0,
		First: [Queues]uint16{binary.BigEndian.Uint16(b[17:]), binary.BigEndian.Uint16(b[19:])},
		Seen:  binary.BigEndian.Uint16(b[21:]),
		End:   flags&flagEnd != 0, Ended: flags&flagEnded != 0, Void: flags&flagVoid != 0,
	}
	if h.Ahead = h.Segments && h.Forgot&flagAhead != 0; h.Ahead {
		h.Forgot &^= flagAhead
	}
	b = b[helloLen:]
	if h.Void {
		if len(b) < 4 {
			return nil, nil, ErrShort
		}
		h.Known, b = binary.BigEndian.Uint32(b), b[4:]
	}
	if flags&flagStarts != 0 {
		if b, err = parseStarts(&h, b); err != nil {
			return nil, nil, err
		}
	}
	return h, b, nil
}

func parseData(flags byte, b []byte) (f Frame, rest []byte, err error) {
	if flags&^(flagMore|flagFree|flagPrompt|flagWide|flagRides) != 0 {
		return nil, nil, ErrKind
	}
	d := Data{Short: flags&flagWide == 0, Prompt: flags&flagPrompt != 0, Rides: flags&flagRides != 0, Free: flags&flagFree != 0}
	if len(b) < 1+btoi(!d.Short)+btoi(d.Free)+btoi(d.Rides) {
		return nil, nil, ErrShort
	}
	if !d.Short {
		d.Number = uint16(b[0]) << 8
		b = b[1:]
	}
	d.Number |= uint16(b[0])
	b = b[1:]
	if d.Free {
		d.After = b[0]
		b = b[1:]
	}
	if d.Rides {
		d.Cumulative = b[0]
		b = b[1:]
	}
	d.Body, rest, err = body(b, flags)
	return d, rest, err
}

func body(b []byte, flags byte) (body, rest []byte, err error) {
	if flags&flagMore == 0 {
		return b, nil, nil
	}
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, ErrShort
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
