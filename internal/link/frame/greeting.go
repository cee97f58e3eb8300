package frame

import (
	"encoding/binary"
	"math"
	"slices"
)

type (
	// Greeting is a Hello to all members of a channel. It holds for each of them, except where Members have other values for one.
	Greeting struct {
		Store   uint32
		Stream  uint8
		Digest  uint32
		Model   uint16
		Forgot  uint8
		Ahead   bool // as in a Hello: a bit of Forgot's octet, so that Forgot has six
		First   [Queues]uint16
		Starts  bool     // it is the first Greeting of the sender's start
		More    bool     // there are further Greetings: this one does not hold for members that Members do not name
		Roster  uint16   // as in a Hello
		Mark    uint16   // likewise
		Corpus  uint32   // likewise
		Members []Member // ascending by ID, at most MaxMembers. The sender lists itself to ask for answers that name it alone
	}
	// Member has the values of a Greeting for one member alone. A member that is not listed was not heard.
	Member struct {
		ID               uint16
		HeardIncarnation uint32 // this and the next three as in a Hello
		Stream           uint8
		HeardStream      uint8
		Seen             uint16
		Asks             bool // an answer is wanted
		Blank            bool // the Digest is not of the items that this member holds
		Apart            bool // the Greeting does not hold for this member: it gets a Hello
	}
)

func (Greeting) isFrame() {}

const (
	flagAll     = 1 << 4 // HELLO: a Greeting
	flagMany    = 1 << 0 // of a Greeting: More, and the next one
	flagNew     = 1 << 1 // Starts
	flagList    = 1 << 2 // Roster, two octets after the members
	flagMark    = 1 << 7 // of the octet of Forgot, like flagAhead: Mark, two octets after Roster
	flagNetwork = 1 << 3 // Corpus, four octets after these

	memberAsks  = 1 << 0 // the low bits of a member's first number; above them its ID less the one before
	memberBlank = 1 << 1
	memberApart = 1 << 2
	memberTold  = 1 << 3 // Stream, HeardStream and Seen follow; otherwise they are the Greeting's, 1 and 0
	memberBits  = 4

	greetingLen = 4 + 1 + 4 + 2 + 1 + 2*Queues

	// MaxMembers is the most members in a Greeting.
	MaxMembers = 255
	// GreetingOctets is the size of a Greeting without members, and MemberOctets is what a member usually adds.
	GreetingOctets = 1 + greetingLen + 1
	MemberOctets   = 5
)

// For is the Hello that a Greeting is for a member; false: it does not hold for the member. asks says that an answer is wanted.
func (f Greeting) For(id uint16) (h Hello, asks, ok bool) {
	h = Hello{Store: f.Store, Stream: f.Stream, Digest: f.Digest, Model: f.Model, Forgot: f.Forgot, Segments: f.Ahead, Ahead: f.Ahead, First: f.First, Roster: f.Roster, Mark: f.Mark, Corpus: f.Corpus}
	for _, m := range f.Members {
		if m.ID != id {
			continue
		}
		h.HeardIncarnation, h.Stream, h.HeardStream, h.Seen = m.HeardIncarnation, m.Stream, m.HeardStream, m.Seen
		if m.Blank {
			h.Digest = 0
		}
		return h, m.Asks, !m.Apart
	}
	return h, true, !f.More
}

// Brief says that the sender, from, asks for answers that name it alone: all other members know already what the answers
// would tell them.
func (f Greeting) Brief(from uint16) bool {
	return slices.ContainsFunc(f.Members, func(m Member) bool { return m.ID == from })
}

func appendGreeting(b []byte, f Greeting) []byte {
	members := f.Members[:min(len(f.Members), MaxMembers)]
	b = binary.BigEndian.AppendUint32(append(b, kindHello|flagAll|flag(f.More, flagMany)|flag(f.Starts, flagNew)|flag(f.Roster != 0, flagList)|flag(f.Corpus != 0, flagNetwork)), f.Store)
	b = binary.BigEndian.AppendUint32(append(b, f.Stream), f.Digest)
	mark := f.Roster != 0 && f.Mark != 0
	b = append(binary.BigEndian.AppendUint16(b, f.Model), f.forgotOctet()|flag(mark, flagMark))
	for _, first := range f.First {
		b = binary.BigEndian.AppendUint16(b, first)
	}
	b = append(b, byte(len(members)))
	last := uint16(0)
	for _, m := range members {
		told := !m.Apart && (m.Stream != f.Stream || m.HeardStream != 1 || m.Seen != 0)
		b = binary.AppendUvarint(b, uint64(m.ID-last)<<memberBits|uint64(flag(m.Asks, memberAsks)|flag(m.Blank, memberBlank)|flag(m.Apart, memberApart)|flag(told, memberTold)))
		last = m.ID
		if m.Apart {
			continue
		}
		b = binary.BigEndian.AppendUint32(b, m.HeardIncarnation)
		if told {
			b = binary.BigEndian.AppendUint16(append(b, m.Stream, m.HeardStream), m.Seen)
		}
	}
	if f.Roster != 0 {
		b = binary.BigEndian.AppendUint16(b, f.Roster)
	}
	if mark {
		b = binary.BigEndian.AppendUint16(b, f.Mark)
	}
	if f.Corpus != 0 {
		b = binary.BigEndian.AppendUint32(b, f.Corpus)
	}
	return b
}

func (f Greeting) forgotOctet() byte {
	if f.Ahead {
		return f.Forgot&^(flagMark|flagAhead) | flagAhead
	}
	return f.Forgot &^ flagMark
}

func parseGreeting(flags byte, b []byte) (f Greeting, rest []byte, err error) {
	if flags&^(flagAll|flagMany|flagNew|flagList|flagNetwork) != 0 {
		return f, nil, ErrKind
	}
	if len(b) < greetingLen+1 {
		return f, nil, ErrShort
	}
	f = Greeting{Store: binary.BigEndian.Uint32(b), Stream: b[4], Digest: binary.BigEndian.Uint32(b[5:]),
		Model: binary.BigEndian.Uint16(b[9:]), Forgot: b[11] &^ (flagMark | flagAhead), Ahead: b[11]&flagAhead != 0, Starts: flags&flagNew != 0, More: flags&flagMany != 0}
	for queue := range f.First {
		f.First[queue] = binary.BigEndian.Uint16(b[12+2*queue:])
	}
	mark, count, last := b[11]&flagMark != 0, int(b[greetingLen]), uint64(0)
	b = b[greetingLen+1:]
	for range count {
		var m Member
		if m, b, err = parseMember(b, f.Stream, last); err != nil {
			return f, nil, err
		}
		last = uint64(m.ID)
		f.Members = append(f.Members, m)
	}
	if len(b) < 2*btoi(flags&flagList != 0)+2*btoi(mark)+4*btoi(flags&flagNetwork != 0) {
		return f, nil, ErrShort
	}
	if flags&flagList != 0 {
		f.Roster, b = binary.BigEndian.Uint16(b), b[2:]
	}
	if mark {
		f.Mark, b = binary.BigEndian.Uint16(b), b[2:]
	}
	if flags&flagNetwork != 0 {
		f.Corpus, b = binary.BigEndian.Uint32(b), b[4:]
	}
	if (flags&flagList != 0 || mark) && f.Roster == 0 || mark && f.Mark == 0 || flags&flagNetwork != 0 && f.Corpus == 0 {
		return f, nil, ErrKind
	}
	return f, b, nil
}

func parseMember(b []byte, stream uint8, last uint64) (m Member, rest []byte, err error) {
	head, n := binary.Uvarint(b)
	if n == 0 {
		return m, nil, ErrShort
	}
	step := head >> memberBits
	if n < 0 || step == 0 || step > math.MaxUint16-last {
		return m, nil, ErrKind
	}
	m = Member{ID: uint16(last + step), Asks: head&memberAsks != 0, Blank: head&memberBlank != 0, Apart: head&memberApart != 0}
	b = b[n:]
	if m.Apart {
		if head&memberTold != 0 {
			return m, nil, ErrKind
		}
		return m, b, nil
	}
	if len(b) < 4 {
		return m, nil, ErrShort
	}
	m.Stream, m.HeardStream = stream, 1
	m.HeardIncarnation, b = binary.BigEndian.Uint32(b), b[4:]
	if head&memberTold != 0 {
		if len(b) < 4 {
			return m, nil, ErrShort
		}
		m.Stream, m.HeardStream, m.Seen, b = b[0], b[1], binary.BigEndian.Uint16(b[2:]), b[4:]
	}
	return m, b, nil
}
