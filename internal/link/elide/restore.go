package elide

import "encoding/binary"

// reader takes a frame apart; the first failure sticks.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(field string, err error) {
	if r.err == nil {
		r.err = &Error{"frame", field, err}
		r.rest = nil
	}
}

func (r *reader) octet(field string) byte {
	if len(r.rest) == 0 {
		r.fail(field, ErrShort)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// varint reads a number of at most limit.
func (r *reader) varint(field string, limit uint64) int {
	v, n := binary.Uvarint(r.rest)
	switch {
	case n == 0:
		r.fail(field, ErrShort)
		return 0
	case n < 0 || v > limit:
		r.fail(field, ErrTooLong)
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) position(field string) position {
	v := r.varint(field, 1<<(blockBits+symbolShift)-1)
	return position{v >> symbolShift, v & (1<<symbolShift - 1)}
}

// Restore gives the packets to inject for a frame of the peer, in this order: a marker first when the local libnorm
// has not heard the peer's generation yet, then the packet. The marker makes libnorm start at the first object that
// was not delivered; without it libnorm would ignore everything before the first object that it happens to hear.
// Packets are new memory. A frame of an earlier generation gives ErrStale.
func (s *Session) Restore(frame []byte) (packets [][]byte, info Info, err error) {
	p, info, err := restore(nil, frame, s.cfg.Self, s.cfg.Peer, s.cfg.Segment, s.grtt)
	if err != nil {
		return nil, info, err
	}
	stale := &Error{"frame", "generation", ErrStale}
	switch {
	case info.Kind == Nack || info.Kind == Ack:
		if info.Generation != s.own {
			return nil, info, stale
		}
	case s.peerKnown && info.Generation != s.peer && int8(info.Generation-s.peer) < 0:
		return nil, info, stale // libnorm would reset to it and then back
	default:
		if !s.peerKnown || info.Generation != s.peer {
			s.Forget()
			s.peer, s.peerKnown = info.Generation, true
		}
		if !s.synced {
			s.synced = true
			packets = append(packets, s.numbered(s.marker()))
		}
	}
	return append(packets, s.numbered(p)), info, nil
}

// numbered writes the next sequence number.
func (s *Session) numbered(p []byte) []byte {
	s.seq++
	binary.BigEndian.PutUint16(p[offSequence:], s.seq)
	return p
}

// restore appends the packet of a frame that from sent to self.
func restore(dst, frame []byte, self, from uint16, segment int, grtt uint8) ([]byte, Info, error) {
	r := reader{rest: frame}
	first := r.octet("kind")
	if r.err != nil {
		return dst, Info{}, r.err
	}
	start := len(dst)
	switch kind := first & kindMask; {
	case first == kindRaw:
		if err := checkPacket(r.rest, from, self); err != nil {
			return dst, Info{}, err
		}
		dst = append(dst, r.rest...)
	case kind == kindNack && first&^kindMask == 0:
		dst = r.nack(dst, self, from)
	case kind >= kindOne && kind <= kindFlush && first&^(kindMask|flagGRTT) == 0:
		generation := r.octet("generation")
		if first&flagGRTT != 0 {
			grtt = r.octet("grtt")
		}
		object := uint16(r.varint("object_transport_id", 0xffff))
		if kind == kindFlush || kind == kindFlushOne {
			dst = r.flush(dst, kind, from, generation, grtt, object)
		} else {
			dst = r.data(dst, kind, from, generation, grtt, object, segment)
		}
	default:
		r.fail("kind", ErrMismatch)
	}
	if r.err != nil {
		return dst[:start], Info{}, r.err
	}
	info := Describe(dst[start:], segment)
	info.Raw = first == kindRaw
	return dst, info, nil
}

func (r *reader) data(dst []byte, kind byte, from uint16, generation, grtt uint8, object uint16, segment int) []byte {
	size, at := len(r.rest), position{}
	if kind == kindData {
		size = r.varint("object size", MaxObject)
		at = r.position("position")
	}
	if r.err != nil {
		return dst
	}
	if size == 0 || len(r.rest) == 0 || LayoutOf(size, segment).Payload(at.block, at.symbol) != len(r.rest) {
		r.fail("payload", ErrMismatch)
		return dst
	}
	dst = appendData(dst, from, generation, grtt, object, size, segment, at)
	return append(dst, r.rest...)
}

// appendData writes the 32 octets of header that libnorm writes for a data object.
func appendData(dst []byte, from uint16, generation, grtt uint8, object uint16, size, segment int, at position) []byte {
	var h [dataLen]byte
	h[offType], h[offHdrLen] = 1<<4|typeData, dataLen/4
	binary.BigEndian.PutUint32(h[offSource:], uint32(from))
	h[offInstance+1], h[offGRTT], h[offFEC] = generation, grtt, FECID
	binary.BigEndian.PutUint16(h[offObject:], object)
	putUint24(h[offBlock:], at.block)
	h[offSymbol] = byte(at.symbol)
	binary.BigEndian.PutUint64(h[offFTI:], uint64(size))
	h[offFTI], h[offFTI+1] = 64, 3 // EXT_FTI
	binary.BigEndian.PutUint16(h[offFTI+8:], uint16(segment))
	h[offFTI+10], h[offFTI+11] = BlockLen, ParityLen
	return append(dst, h[:]...)
}

func (r *reader) flush(dst []byte, kind byte, from uint16, generation, grtt uint8, object uint16) []byte {
	var at position
	if kind == kindFlush {
		at = r.position("position")
	}
	if len(r.rest) != 0 {
		r.fail("end", ErrTooLong)
		return dst
	}
	var h [flushLen]byte
	h[offType], h[offHdrLen] = 1<<4|typeCmd, flushLen/4
	binary.BigEndian.PutUint32(h[offSource:], uint32(from))
	h[offInstance+1], h[offGRTT], h[offFlags], h[offFEC] = generation, grtt, flavorFlush, FECID
	binary.BigEndian.PutUint16(h[offObject:], object)
	putUint24(h[offBlock:], at.block)
	h[offSymbol] = byte(at.symbol)
	return append(dst, h[:]...)
}

func (r *reader) nack(dst []byte, self, from uint16) []byte {
	generation := r.octet("generation")
	var h [nackLen]byte
	h[offType], h[offHdrLen] = 1<<4|typeNack, nackLen/4
	binary.BigEndian.PutUint32(h[offSource:], uint32(from))
	binary.BigEndian.PutUint32(h[offServer:], uint32(self))
	h[offNackInstance+1] = generation
	start := len(dst)
	dst = append(dst, h[:]...)
	for len(r.rest) > 0 {
		head := r.octet("request")
		count := int(head>>6) + 1
		if count == 4 {
			count = r.varint("items", maxPacket/itemLen)
		}
		if count == 0 || head&3 == 0 {
			r.fail("request", ErrMismatch)
			return dst
		}
		if count > len(r.rest) || len(dst)-start+requestLen+count*itemLen > maxPacket {
			r.fail("items", ErrTooLong)
			return dst
		}
		dst = append(dst, head&3, head>>2&15)
		dst = binary.BigEndian.AppendUint16(dst, uint16(count*itemLen))
		for range count {
			var item [itemLen]byte
			item[0] = FECID
			binary.BigEndian.PutUint16(item[2:], uint16(r.varint("object_transport_id", 0xffff)))
			putUint24(item[4:], r.varint("block", 1<<blockBits-1))
			item[7] = r.octet("symbol")
			dst = append(dst, item[:]...)
		}
	}
	return dst
}

// marker is the packet that lets the local libnorm begin after the last object that needs nothing more.
func (s *Session) marker() []byte {
	p := appendData(make([]byte, 0, dataLen+1), s.cfg.Peer, s.peer, s.grtt, s.contiguous, 1, s.cfg.Segment, position{})
	return append(p, 0)
}

// Flush appends the FLUSH frame of an own object of so many octets (as given to the child, without prefix). The peer's
// libnorm then asks for the parts that it lacks of this object and of the objects before it.
func (s *Session) Flush(dst []byte, object uint16, octets int) []byte {
	at := LayoutOf(octets+PrefixOctets, s.cfg.Segment).last()
	kind := byte(kindFlushOne)
	if at != (position{}) {
		kind = kindFlush
	}
	dst = binary.AppendUvarint(append(dst, kind, s.own), uint64(object))
	if kind == kindFlush {
		dst = binary.AppendUvarint(dst, at.key())
	}
	return dst
}
