package elide

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Kind is what a NORM packet is for.
type Kind uint8

const (
	Data  Kind = 1 + iota
	Flush      // the sender asks: do you have everything up to here
	Ack
	Nack
	Cmd   // a command other than FLUSH
	Other // INFO
)

// String is the name of the kind.
func (k Kind) String() string {
	names := [...]string{"none", "data", "flush", "ack", "nack", "cmd", "other"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Info has the properties of a packet by which a gateway decides.
type Info struct {
	Kind       Kind
	Generation uint8  // of the sender; in Nack and Ack that of the sender asked or answered
	Object     uint16 // transport id; 0 in Nack
	Octets     int    // Data: payload
	Size       int    // Data: of the whole object, prefix included; 0 when the packet does not say
	Block      int    // Data
	Symbol     int    // Data: from Layout.BlockLen(Block) on parity
	Marker     bool   // Data of a one-octet object: never crosses the link
	Last       bool   // Data: the last source symbol of its object
	Repair     bool   // Data: parity, or sent before (only from Pack)
	Raw        bool   // the frame holds the packet as it is
}

// Config is known to both ends of a session in advance.
type Config struct {
	Self, Peer uint16        // NORM node ids = gateway ids, 1..65535
	Segment    int           // octets of payload per DATA, 1..MaxSegment; the same at both ends
	GRTT       time.Duration // fixed by the profile; another value in a packet costs one octet
}

// Session packs and restores the packets of one link. It is not safe for concurrent use.
type Session struct {
	cfg  Config
	grtt uint8
	buf  []byte // the guard's

	own    uint8  // generation of the local libnorm
	seq    uint16 // of restored packets: only congestion control reads it, and it is off
	sentOf uint8  // generation of the position below
	sent   uint64 // object<<32 | position of the highest DATA seen from the local libnorm
	any    bool   // sent is valid

	peer       uint8 // generation of the peer's libnorm
	peerKnown  bool
	synced     bool   // the local libnorm has had a marker of this generation
	contiguous uint16 // every object of the peer up to this one is delivered
	ahead      map[uint16]struct{}
}

// NewSession checks the configuration.
func NewSession(cfg Config) (*Session, error) {
	switch {
	case cfg.Self == 0 || cfg.Peer == 0 || cfg.Self == cfg.Peer:
		return nil, fmt.Errorf("normwire: node ids %d and %d: %w", cfg.Self, cfg.Peer, ErrMismatch)
	case cfg.Segment < 1 || cfg.Segment > MaxSegment:
		return nil, fmt.Errorf("normwire: segment of %d octets: %w", cfg.Segment, ErrMismatch)
	}
	return &Session{cfg: cfg, grtt: advertised(cfg.GRTT), ahead: map[uint16]struct{}{}}, nil
}

// First octet of a frame.
const (
	kindRaw = iota
	kindOne
	kindData
	kindFlushOne
	kindFlush
	kindNack
	kindMask = 0x07
	flagGRTT = 0x08
)

// PrefixOctets go before the data of every object: the sender's generation and the object's transport id, which
// libnorm does not tell its receivers. A marker has one octet and no prefix.
const PrefixOctets = 3

// AppendPrefix appends the prefix of an object.
func AppendPrefix(dst []byte, generation uint8, object uint16) []byte {
	return append(dst, generation, byte(object>>8), byte(object))
}

// CutPrefix takes an object apart; ok is false for a marker.
func CutPrefix(object []byte) (generation uint8, id uint16, data []byte, ok bool) {
	if len(object) < PrefixOctets {
		return 0, 0, nil, false
	}
	return object[0], binary.BigEndian.Uint16(object[1:]), object[PrefixOctets:], true
}

// Pack appends the frame of a packet that the local libnorm sent. The frame restores to the same octets, except the
// sequence number; a packet without a short form goes raw. A packet that is not of this session, or that no member of this
// profile sends, is an error and must be dropped.
func (s *Session) Pack(dst, packet []byte) ([]byte, Info, error) {
	if err := checkPacket(packet, s.cfg.Self, s.cfg.Peer); err != nil {
		return dst, Info{}, err
	}
	start := len(dst)
	out, ok := s.compact(dst, packet)
	if ok { // the guard
		var err error
		s.buf, _, err = restore(s.buf[:0], out[start:], s.cfg.Peer, s.cfg.Self, s.cfg.Segment, s.grtt)
		ok = err == nil && len(s.buf) == len(packet) && bytes.Equal(s.buf[:offSequence], packet[:offSequence]) &&
			bytes.Equal(s.buf[offSource:], packet[offSource:])
	}
	if !ok {
		out = append(append(out[:start], kindRaw), packet...)
	}
	info := Describe(packet, s.cfg.Segment)
	info.Raw = !ok
	if info.Kind == Data {
		at := uint64(info.Object)<<32 | position{uint24(packet[offBlock:]), int(packet[offSymbol])}.key()
		// Objects count upwards, so less than half the number space away is later.
		fresh := !s.any || s.sentOf != info.Generation || int64((at-s.sent)<<16) > 0
		info.Repair = info.Repair || !fresh
		if !info.Repair {
			s.sent, s.sentOf, s.any = at, info.Generation, true
		}
	}
	return out, info, nil
}

// compact writes the short form; ok is false when there is none. The guard checks the fields that it leaves out.
func (s *Session) compact(dst, p []byte) (out []byte, ok bool) {
	switch p[offType] & 0x0f {
	case typeData:
		if len(p) <= dataLen {
			return dst, false
		}
		return s.compactData(dst, p), true
	case typeCmd:
		if p[offFlags] != flavorFlush || len(p) != flushLen {
			return dst, false
		}
		kind := byte(kindFlushOne)
		if uint24(p[offBlock:]) != 0 || p[offSymbol] != 0 {
			kind = kindFlush
		}
		dst = s.appendHead(dst, kind, p)
		if kind == kindFlush {
			dst = binary.AppendUvarint(dst, position{uint24(p[offBlock:]), int(p[offSymbol])}.key())
		}
		return dst, true
	case typeNack:
		return compactNack(append(dst, kindNack, p[offNackInstance+1]), p[nackLen:])
	}
	return dst, false
}

func (s *Session) compactData(dst, p []byte) []byte {
	size := binary.BigEndian.Uint64(p[offFTI:]) & 0xffffffffffff // the upper 16 bits are the extension's head
	at := position{uint24(p[offBlock:]), int(p[offSymbol])}
	if size == uint64(len(p)-dataLen) && at == (position{}) {
		return append(s.appendHead(dst, kindOne, p), p[dataLen:]...)
	}
	dst = s.appendHead(dst, kindData, p)
	dst = binary.AppendUvarint(dst, size)
	dst = binary.AppendUvarint(dst, at.key())
	return append(dst, p[dataLen:]...)
}

// appendHead writes the fields that DATA and FLUSH share.
func (s *Session) appendHead(dst []byte, kind byte, p []byte) []byte {
	if p[offGRTT] != s.grtt {
		dst = append(dst, kind|flagGRTT, p[offInstance+1], p[offGRTT])
	} else {
		dst = append(dst, kind, p[offInstance+1])
	}
	return binary.AppendUvarint(dst, uint64(binary.BigEndian.Uint16(p[offObject:])))
}

func compactNack(dst, requests []byte) ([]byte, bool) {
	for len(requests) > 0 {
		if len(requests) < requestLen {
			return dst, false
		}
		form, flags := requests[0], requests[1]
		n := int(binary.BigEndian.Uint16(requests[2:]))
		requests = requests[requestLen:]
		if form > 3 || flags > 15 || n > len(requests) || n%itemLen != 0 || n == 0 {
			return dst, false
		}
		count := n / itemLen
		head := form | flags<<2
		if count <= 3 {
			dst = append(dst, head|byte(count-1)<<6)
		} else {
			dst = binary.AppendUvarint(append(dst, head|3<<6), uint64(count))
		}
		for range count {
			item := requests[:itemLen]
			dst = binary.AppendUvarint(dst, uint64(binary.BigEndian.Uint16(item[2:])))
			dst = binary.AppendUvarint(dst, uint64(uint24(item[4:])))
			dst = append(dst, item[7])
			requests = requests[itemLen:]
		}
	}
	return dst, true
}

// Describe returns the Info of a packet that Restore gave or Pack took; segment is the session's.
func Describe(p []byte, segment int) Info {
	switch p[offType] & 0x0f {
	case typeNack:
		return Info{Kind: Nack, Generation: p[offNackInstance+1]}
	case typeAck:
		return Info{Kind: Ack, Generation: p[offNackInstance+1]}
	case typeCmd:
		info := Info{Kind: Cmd, Generation: p[offInstance+1]}
		if p[offFlags] == flavorFlush {
			info.Kind, info.Object = Flush, binary.BigEndian.Uint16(p[offObject:])
		}
		return info
	case typeData:
		info := Info{Kind: Data, Generation: p[offInstance+1], Object: binary.BigEndian.Uint16(p[offObject:]),
			Octets: len(p) - int(p[offHdrLen])*4}
		if p[offHdrLen] != dataLen/4 {
			return info
		}
		size := binary.BigEndian.Uint64(p[offFTI:]) & 0xffffffffffff
		if size == 0 || size > MaxObject {
			return info
		}
		l, at := LayoutOf(int(size), segment), position{uint24(p[offBlock:]), int(p[offSymbol])}
		info.Size, info.Block, info.Symbol = int(size), at.block, at.symbol
		info.Marker = size == 1
		info.Last = at == l.last()
		info.Repair = at.block >= l.blocks || at.symbol >= l.BlockLen(at.block)
		return info
	}
	return Info{Kind: Other, Generation: p[offInstance+1]}
}

// Restarted tells the session that a new local libnorm with this generation has started: it knows nothing of the peer.
func (s *Session) Restarted(generation uint8) {
	s.own, s.synced = generation, false
}

// Recall sets the values that Progress gave before a restart of the gateway. It is called before the first Restore.
func (s *Session) Recall(peer uint8, contiguous uint16) {
	s.peer, s.peerKnown, s.synced, s.contiguous = peer, true, false, contiguous
	clear(s.ahead)
}

// Progress gives the peer's generation and the object up to which all its objects are delivered; ok is false when the peer
// was never heard.
func (s *Session) Progress() (peer uint8, contiguous uint16, ok bool) {
	return s.peer, s.contiguous, s.peerKnown
}

// Forget drops all knowledge of the peer's libnorm: the peer's store is a new one and its generations began again.
func (s *Session) Forget() {
	s.peerKnown, s.synced, s.contiguous = false, false, 0
	clear(s.ahead)
}

// maxAhead is how many objects may be delivered beyond a missing one; libnorm's receivers look back 256 objects.
const maxAhead = 256

// Delivered notes that an object of the peer is durable here, after the commit: a libnorm started later asks for nothing
// before the first missing object.
func (s *Session) Delivered(peer uint8, object uint16) {
	if !s.peerKnown || peer != s.peer || int16(object-s.contiguous) <= 0 {
		return
	}
	s.ahead[object] = struct{}{}
	if len(s.ahead) > maxAhead { // the missing object was given up: continue from the next
		least := object
		for id := range s.ahead {
			if int16(id-least) < 0 {
				least = id
			}
		}
		s.contiguous = least - 1
	}
	for {
		next := s.contiguous + 1
		if _, ok := s.ahead[next]; !ok {
			return
		}
		delete(s.ahead, next)
		s.contiguous = next
	}
}
