package elide

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Constants that the profile fixes for every session: FEC encoding id 5 (RFC 5510, Reed-Solomon of octets), blocks of at
// most 16 segments, 4 parity segments per block, sent on request only.
const (
	FECID       = 5
	BlockLen    = 16
	ParityLen   = 4
	MaxObject   = 16 << 20 // octets; a restored packet may announce no more
	MaxSegment  = 8192     // octets
	maxPacket   = 65507    // a UDP payload
	blockBits   = 24
	symbolShift = 5 // position = block<<symbolShift + symbol
)

// Octet offsets (norm 1).
const (
	offType     = 0
	offHdrLen   = 1
	offSequence = 2
	offSource   = 4
	// INFO, DATA, CMD
	offInstance = 8
	offGRTT     = 10
	offGroup    = 11 // backoff factor and group size, 4 bits each
	offFlags    = 12 // flavor in CMD
	offFEC      = 13
	offObject   = 14
	offBlock    = 16 // 24 bits, then the symbol
	offSymbol   = 19
	offFTI      = 20 // DATA: extension 64, 3 words: size 6, segment 2, block length 1, parity 1
	dataLen     = 32
	flushLen    = 20
	// NACK, ACK
	offServer       = 8
	offNackInstance = 12
	nackLen         = 24
	requestLen      = 4
	itemLen         = 8
)

const (
	typeInfo, typeData, typeCmd, typeNack, typeAck = 1, 2, 3, 4, 5

	flavorFlush, flavorEOT, flavorSquelch, flavorRepairAdv, flavorAckReq, flavorApplication = 1, 2, 3, 5, 6, 7
)

var (
	// ErrShort: the input ends inside a field.
	ErrShort = errors.New("too short")
	// ErrTooLong: more than the limits of this package.
	ErrTooLong = errors.New("too long")
	// ErrMismatch: a value that contradicts the session, the object or the protocol.
	ErrMismatch = errors.New("does not fit")
	// ErrStale: a packet of a generation that is over.
	ErrStale = errors.New("of an earlier generation")
)

// Error names the spot in a packet or a frame; it unwraps to one of the errors above.
type Error struct {
	Unit, Field string
	Err         error
}

// Error names the unit, the field and the cause.
func (e *Error) Error() string { return fmt.Sprintf("normwire: %s: %s %v", e.Unit, e.Field, e.Err) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Layout is how NORM cuts an object into blocks (RFC 5052 9.1, as libnorm does it): the first blocks are one segment longer
// than the rest when the segments do not divide evenly.
type Layout struct {
	size, segment int
	segments      int
	blocks        int
	large         int // blocks with small+1 segments
	small         int // segments of the other blocks
}

// LayoutOf is the layout of an object of size octets, at least 1, in segments of so many octets.
func LayoutOf(size, segment int) Layout {
	n := (size + segment - 1) / segment
	b := (n + BlockLen - 1) / BlockLen
	return Layout{size: size, segment: segment, segments: n, blocks: b, large: n % b, small: n / b}
}

// Blocks is the number of blocks.
func (l Layout) Blocks() int { return l.blocks }

// BlockLen is how many source symbols a block has; ParityLen more are parity.
func (l Layout) BlockLen(block int) int {
	if block < l.large {
		return l.small + 1
	}
	return l.small
}

// Payload gives the length of the symbol's payload, 0 when the object has no such symbol. Parity is always full.
func (l Layout) Payload(block, symbol int) int {
	if block >= l.blocks || symbol >= l.BlockLen(block)+ParityLen {
		return 0
	}
	if l.last() == (position{block, symbol}) {
		return l.size - (l.segments-1)*l.segment
	}
	return l.segment
}

// Offset is the place of a source symbol in its object; ok is false for parity, and for symbols that the object does not have.
func (l Layout) Offset(block, symbol int) (octets int, ok bool) {
	if block < 0 || block >= l.blocks || symbol < 0 || symbol >= l.BlockLen(block) {
		return 0, false
	}
	return (block*l.small + min(block, l.large) + symbol) * l.segment, true
}

func (l Layout) last() position { return position{l.blocks - 1, l.BlockLen(l.blocks-1) - 1} }

type position struct{ block, symbol int }

func (p position) key() uint64 { return uint64(p.block)<<symbolShift | uint64(p.symbol) }

const rttLeast, rttMost = 1e-6, 1000.0 // seconds

// quantize is NORM's one-octet coding of a round-trip time in seconds (RFC 5740 4.2.2; libnorm's NormQuantizeRtt).
func quantize(rtt float64) uint8 {
	rtt = min(max(rtt, rttLeast), rttMost)
	if rtt < 3.3e-05 {
		return uint8(math.Round(rtt/rttLeast)) - 1
	}
	return uint8(math.Ceil(255.0 - 13.0*math.Log(rttMost/rtt)))
}

// advertised is the octet that libnorm 1.5.9 sends for a given GRTT: it quantizes, looks the value up in a table of four
// digits, and quantizes again when the rate is set, so that the octet may be one higher.
func advertised(grtt time.Duration) uint8 {
	q := quantize(grtt.Seconds())
	if q < 31 {
		return q
	}
	v, err := strconv.ParseFloat(strconv.FormatFloat(rttMost/math.Exp(float64(255-q)/13), 'e', 3, 64), 64)
	if err != nil {
		return q
	}
	return quantize(v)
}

// putUint24 is the block id of FEC payload id 5.
func putUint24(b []byte, v int) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }
func uint24(b []byte) int       { return int(b[0])<<16 | int(b[1])<<8 | int(b[2]) }

// checkPacket says whether a packet may pass unchanged: NORM version 1, from source, with the header that its type needs.
// Commands that this profile never sends (congestion control probes) are refused: libnorm reads lists in them without
// enough care (transport 5).
func checkPacket(p []byte, source, server uint16) error {
	bad := func(field string, err error) error { return &Error{"NORM packet", field, err} }
	if len(p) < offInstance {
		return bad("header", ErrShort)
	}
	if len(p) > maxPacket {
		return bad("length", ErrTooLong)
	}
	if p[offType]>>4 != 1 {
		return bad("version", ErrMismatch)
	}
	if binary.BigEndian.Uint32(p[offSource:]) != uint32(source) {
		return bad("source_id", ErrMismatch)
	}
	header := int(p[offHdrLen]) * 4
	if header > len(p) {
		return bad("hdr_len", ErrShort)
	}
	least := 0
	switch p[offType] & 0x0f {
	case typeInfo:
		least = 16
	case typeData:
		least = 20
	case typeCmd:
		if header < 16 {
			return bad("hdr_len", ErrMismatch)
		}
		switch p[offFlags] {
		case flavorFlush, flavorSquelch:
			least = flushLen
		case flavorEOT, flavorRepairAdv, flavorAckReq, flavorApplication:
			least = 16
		default:
			return bad("flavor", ErrMismatch)
		}
	case typeNack, typeAck:
		least = nackLen
	default:
		return bad("type", ErrMismatch)
	}
	if header < least {
		return bad("hdr_len", ErrMismatch)
	}
	if t := p[offType] & 0x0f; (t == typeNack || t == typeAck) &&
		binary.BigEndian.Uint32(p[offServer:]) != uint32(server) {
		return bad("server_id", ErrMismatch)
	}
	return nil
}
