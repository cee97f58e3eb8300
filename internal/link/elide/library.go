package elide

import "encoding/binary"

// This file writes and reads packets as libnorm does, for simulations that replace it.

// AppendData appends the NORM_DATA of one symbol of an own object of size octets, prefix included.
func (c Config) AppendData(dst []byte, generation uint8, object uint16, size, block, symbol int, payload []byte) []byte {
	dst = appendData(dst, c.Self, generation, advertised(c.GRTT), object, size, c.Segment, position{block, symbol})
	return append(dst, payload...)
}

// Repair is one object or symbol that a NACK requests.
type Repair struct {
	Object        uint16
	Whole         bool // the object; otherwise one symbol of it
	Block, Symbol int
}

// Forms and flags of a repair request (RFC 5740 4.3.1).
const (
	formItems   = 1
	formRanges  = 2
	flagSegment = 1
	flagObject  = 8
)

// AppendNack appends the NORM_NACK that requests list from the peer's libnorm of this generation: each repair as an item,
// three symbols or more in a row as a range.
func (c Config) AppendNack(dst []byte, generation uint8, list []Repair) []byte {
	var h [nackLen]byte
	h[offType], h[offHdrLen] = 1<<4|typeNack, nackLen/4
	binary.BigEndian.PutUint32(h[offSource:], uint32(c.Self))
	binary.BigEndian.PutUint32(h[offServer:], uint32(c.Peer))
	h[offNackInstance+1] = generation
	dst = append(dst, h[:]...)
	for len(list) > 0 {
		run := 1
		for run < len(list) && !list[0].Whole && list[run] == (Repair{Object: list[0].Object, Block: list[0].Block, Symbol: list[0].Symbol + run}) {
			run++
		}
		items, form := list[:1], byte(formItems)
		switch {
		case run > 2:
			items, form = []Repair{list[0], list[run-1]}, formRanges
		case run == 2:
			items = list[:2]
		}
		flags := byte(flagSegment)
		if list[0].Whole {
			flags = flagObject
		}
		dst = binary.BigEndian.AppendUint16(append(dst, form, flags), uint16(len(items)*itemLen))
		for _, r := range items {
			var item [itemLen]byte
			item[0] = FECID
			binary.BigEndian.PutUint16(item[2:], r.Object)
			putUint24(item[4:], r.Block)
			item[7] = byte(r.Symbol)
			dst = append(dst, item[:]...)
		}
		list = list[run:]
	}
	return dst
}

// ParseNack reads the requests of a NACK that Restore gave; it does not read ranges of whole objects.
func ParseNack(packet []byte) (list []Repair, err error) {
	if len(packet) < nackLen {
		return nil, &Error{"NORM_NACK", "header", ErrShort}
	}
	for rest := packet[nackLen:]; len(rest) > 0; {
		if len(rest) < requestLen {
			return nil, &Error{"NORM_NACK", "request", ErrShort}
		}
		form, flags, n := rest[0], rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		rest = rest[requestLen:]
		if n > len(rest) || n%itemLen != 0 {
			return nil, &Error{"NORM_NACK", "length", ErrShort}
		}
		var items []Repair
		for ; n > 0; n -= itemLen {
			items = append(items, Repair{Object: binary.BigEndian.Uint16(rest[2:]), Whole: flags&flagSegment == 0, Block: uint24(rest[4:]), Symbol: int(rest[7])})
			rest = rest[itemLen:]
		}
		if form == formRanges && len(items) == 2 && !items[0].Whole {
			least, most := items[0], items[1]
			items = items[:0]
			for s := least.Symbol; s <= most.Symbol; s++ {
				items = append(items, Repair{Object: least.Object, Block: least.Block, Symbol: s})
			}
		}
		list = append(list, items...)
	}
	return list, nil
}

// FlushOf reads the position up to which a FLUSH that Restore gave asks: a block and symbol of an object.
func FlushOf(packet []byte) (object uint16, block, symbol int, ok bool) {
	if len(packet) < flushLen || packet[offType]&0x0f != typeCmd || packet[offFlags] != flavorFlush {
		return 0, 0, 0, false
	}
	return binary.BigEndian.Uint16(packet[offObject:]), uint24(packet[offBlock:]), int(packet[offSymbol]), true
}

// AppendSquelch appends the command by which libnorm says that it has nothing before object.
func (c Config) AppendSquelch(dst []byte, generation uint8, object uint16) []byte {
	var h [flushLen]byte
	h[offType], h[offHdrLen] = 1<<4|typeCmd, flushLen/4
	binary.BigEndian.PutUint32(h[offSource:], uint32(c.Self))
	h[offInstance+1], h[offGRTT], h[offFlags], h[offFEC] = generation, advertised(c.GRTT), flavorSquelch, FECID
	binary.BigEndian.PutUint16(h[offObject:], object)
	return append(dst, h[:]...)
}

// SquelchOf reads the first object that the sender of a SQUELCH still has.
func SquelchOf(packet []byte) (object uint16, ok bool) {
	if len(packet) < flushLen || packet[offType]&0x0f != typeCmd || packet[offFlags] != flavorSquelch {
		return 0, false
	}
	return binary.BigEndian.Uint16(packet[offObject:]), true
}

// TxRate is the rate to give libnorm so that DATA of a full segment leave just as fast as a link of so many bits per
// second takes them. libnorm counts segment and NORM header; the link carries segment and overhead: frame, seal, IP and
// UDP, octets per datagram.
func TxRate(linkBps float64, segment, overhead int) float64 {
	return linkBps * float64(segment+dataLen) / float64(segment+overhead)
}
