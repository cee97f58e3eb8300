package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
)

// LinkType is the kind of header with which a packet starts, by the numbers of the tcpdump group.
type LinkType uint16

// Link types that can be read.
const (
	linkNull     LinkType = 0
	linkEthernet LinkType = 1
	linkPPP      LinkType = 9
	linkRawBSD   LinkType = 12
	linkRawOpen  LinkType = 14
	linkPPPHDLC  LinkType = 50
	linkPPPoE    LinkType = 51
	linkRaw      LinkType = 101
	linkCisco    LinkType = 104
	linkLoop     LinkType = 108
	linkSLL      LinkType = 113
	linkPPPDir   LinkType = 204
	linkIPv4     LinkType = 228
	linkIPv6     LinkType = 229
	linkSLL2     LinkType = 276
)

// Known says whether packets of this type can be read.
func (l LinkType) Known() bool {
	switch l {
	case linkNull, linkEthernet, linkPPP, linkRawBSD, linkRawOpen, linkPPPHDLC, linkPPPoE, linkRaw, linkCisco, linkLoop, linkSLL, linkPPPDir,
		linkIPv4, linkIPv6, linkSLL2:
		return true
	}
	return false
}

// Packet is one packet of a capture.
type Packet struct {
	Number int64 // from 1
	At     int64 // ns since 1970 UTC
	Link   LinkType
	Data   []byte // the captured octets; valid until the next call of Next
	Length int    // octets on the wire, len(Data) or more
}

// Reasons why a capture cannot be read (further).
var (
	errEmpty     = errors.New("the file is empty")
	errForeign   = errors.New("not a pcap or pcapng file")
	errTruncated = errors.New("the file ends in the middle of a packet")
	errDamaged   = errors.New("the file is damaged")
)

// CaptureError says where a capture could not be read further. Packets before it are good.
type CaptureError struct {
	Packet int64 // number of the packet that could not be read; 0: the file's head
	Offset int64 // octets into the file
	Detail string
	Err    error
}

// Error is the place and the reason.
func (e *CaptureError) Error() string {
	where := "at its head"
	if e.Packet > 0 {
		where = fmt.Sprintf("at packet %d (octet %d)", e.Packet, e.Offset)
	}
	s := fmt.Sprintf("trace: %s: %v", where, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap is the reason.
func (e *CaptureError) Unwrap() error { return e.Err }

const (
	maxPacket     = 512 << 10 // octets of one packet or packet block; capture programs stop at 262,144
	maxInterfaces = 1024
	readAhead     = 1 << 20
)

type device struct {
	link   LinkType
	snap   uint32
	perSec uint64 // time units in a second, a power of ten or two
	shift  int64  // seconds
	drops  Drops  // from its latest statistics
}

// Reader reads packets one after the other.
type Reader struct {
	b       *bufio.Reader
	offset  int64
	packets int64
	skip    int // octets of the packet last returned
	order   binary.ByteOrder
	ng      bool
	extra   int // octets of a pcap record's head beyond 16 (modified pcap)
	devices []device
	drops   Drops // from sections before this one, and from single packets
	err     error
}

// NewReader reads the head of a capture.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{b: bufio.NewReaderSize(r, readAhead)}
	if err := c.head(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Reader) head() error {
	head, err := c.b.Peek(24)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return &CaptureError{Err: err}
		}
		return &CaptureError{Err: errEmpty}
	}
	if len(head) < 4 {
		return &CaptureError{Err: errForeign, Detail: fmt.Sprintf("it has %d octets", len(head))}
	}
	d := device{perSec: 1e6}
	switch magic := binary.LittleEndian.Uint32(head); magic {
	case 0x0a0d0d0a:
		c.ng = true
		return nil // the section header gives the byte order
	case 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34:
		c.order = binary.LittleEndian
	case 0xd4c3b2a1, 0x4d3cb2a1, 0x34cdb2a1:
		c.order = binary.BigEndian
	default:
		return &CaptureError{Err: errForeign, Detail: looksLike(head)}
	}
	switch c.order.Uint32(head) {
	case 0xa1b23c4d:
		d.perSec = 1e9
	case 0xa1b2cd34:
		c.extra = 8
	}
	if len(head) < 24 {
		return &CaptureError{Err: errTruncated, Detail: "within the file's head"}
	}
	d.snap = c.order.Uint32(head[16:])
	d.link = LinkType(c.order.Uint32(head[20:])) // the upper half is the length of a frame check sequence
	c.devices = []device{d}
	c.discard(24)
	return nil
}

// capturedIn says whether a file with this beginning is a capture, packed or not.
func capturedIn(head []byte) bool {
	switch binary.LittleEndian.Uint32(head) {
	case 0x0a0d0d0a, 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34, 0xd4c3b2a1, 0x4d3cb2a1, 0x34cdb2a1:
		return true
	}
	packed := string(head[:4])
	return packed[:2] == "\x1f\x8b" || packed == "\x28\xb5\x2f\xfd" || packed == "\xfd7zX"
}

// looksLike names kinds of files that people mistake for a capture.
func looksLike(b []byte) string {
	switch {
	case b[0] == 0x1f && b[1] == 0x8b:
		return "it looks gzipped: unpack it first"
	case b[0] == 0x28 && b[1] == 0xb5:
		return "it looks like zstd: unpack it first (unzstd FILE)"
	case b[0] == 0xfd && b[1] == '7' && b[2] == 'z':
		return "it looks like xz: unpack it first (unxz FILE)"
	case b[0] == 'B' && b[1] == 'Z' && b[2] == 'h':
		return "it looks like bzip2: unpack it first (bunzip2 FILE)"
	case len(b) >= 5 && string(b[:5]) == "snoop":
		return "it is a snoop file: editcap turns it into pcapng"
	case b[0] == 'G' && b[1] == 'M' && b[2] == 'B' && b[3] == 'U':
		return "it is a Network Monitor file: editcap turns it into pcapng"
	case b[0] == '{':
		return "it looks like a trace or JSON file"
	}
	return fmt.Sprintf("it starts with % x", b[:4])
}

func (c *Reader) discard(n int) {
	m, _ := c.b.Discard(n) // missing octets show at the next Peek
	c.offset += int64(m)
}

// Drops are the packets that the file reports as dropped, as far as it was read.
func (c *Reader) Drops() Drops {
	d := c.drops
	for _, dev := range c.devices {
		d.Interface, d.System = d.Interface+dev.drops.Interface, d.System+dev.drops.System
	}
	return d
}

// Offset is how many octets of the file have been used.
func (c *Reader) Offset() int64 { return c.offset }

func (c *Reader) fail(err error, format string, args ...any) error {
	c.err = &CaptureError{c.packets + 1, c.offset, fmt.Sprintf(format, args...), err}
	return c.err
}

// peek returns n octets; fewer is an error, none at all io.EOF if the file may end here, as end says.
func (c *Reader) peek(n int, end bool) ([]byte, error) {
	b, err := c.b.Peek(n)
	switch {
	case len(b) == n:
		return b, nil
	case err != nil && !errors.Is(err, io.EOF):
		return nil, c.fail(err, "")
	case len(b) == 0 && end:
		c.err = io.EOF
		return nil, io.EOF
	}
	return nil, c.fail(errTruncated, "%d of %d octets are there", len(b), n)
}

// Next returns the next packet, io.EOF at the end, or a *CaptureError, which stays.
func (c *Reader) Next() (Packet, error) {
	if c.err != nil {
		return Packet{}, c.err
	}
	c.discard(c.skip)
	c.skip = 0
	if c.ng {
		return c.nextBlock()
	}
	n := 16 + c.extra
	h, err := c.peek(n, true)
	if err != nil {
		return Packet{}, err
	}
	d := &c.devices[0]
	sec, frac, size, wire := c.order.Uint32(h), c.order.Uint32(h[4:]), c.order.Uint32(h[8:]), c.order.Uint32(h[12:])
	if size > maxPacket {
		return Packet{}, c.fail(errDamaged, "a packet of %d octets", size)
	}
	b, err := c.peek(n+int(size), false)
	if err != nil {
		return Packet{}, err
	}
	return c.packet(d, int64(sec)*1e9+int64(frac)*int64(1e9/d.perSec), b[n:], wire, n+int(size))
}

func (c *Reader) packet(d *device, at int64, data []byte, wire uint32, skip int) (Packet, error) {
	c.skip = skip
	c.packets++
	length := len(data)
	if wire > uint32(length) && wire <= math.MaxInt32 {
		length = int(wire)
	}
	return Packet{c.packets, at, d.link, data, length}, nil
}

// Block types of pcapng.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockOld       = 2
	blockSimple    = 3
	blockStatistic = 5
	blockEnhanced  = 6
)

// nextBlock reads blocks until one is a packet.
func (c *Reader) nextBlock() (Packet, error) {
	for {
		h, err := c.peek(12, true)
		if err != nil {
			return Packet{}, err
		}
		kind := binary.LittleEndian.Uint32(h)
		if kind == blockSection {
			switch binary.LittleEndian.Uint32(h[8:]) {
			case 0x1a2b3c4d:
				c.order = binary.LittleEndian
			case 0x4d3c2b1a:
				c.order = binary.BigEndian
			default:
				return Packet{}, c.fail(errDamaged, "a section without byte order")
			}
			c.drops, c.devices = c.Drops(), nil
		}
		kind = c.order.Uint32(h)
		size := c.order.Uint32(h[4:])
		if size < 12 || size%4 != 0 || size > math.MaxInt32 {
			return Packet{}, c.fail(errDamaged, "a block of %d octets", size)
		}
		switch kind {
		case blockInterface, blockOld, blockSimple, blockStatistic, blockEnhanced:
		default: // names, statistics, comments
			if size > 16<<20 {
				return Packet{}, c.fail(errDamaged, "a block of %d octets", size)
			}
			n, err := c.b.Discard(int(size))
			c.offset += int64(n)
			if err != nil {
				return Packet{}, c.fail(errTruncated, "%d of %d octets are there", n, size)
			}
			continue
		}
		if size > maxPacket {
			return Packet{}, c.fail(errDamaged, "a block of %d octets", size)
		}
		b, err := c.peek(int(size), false)
		if err != nil {
			return Packet{}, err
		}
		if c.order.Uint32(b[size-4:]) != size {
			return Packet{}, c.fail(errDamaged, "the two lengths of a block differ")
		}
		body := b[8 : size-4]
		switch kind {
		case blockInterface:
			if err := c.device(body); err != nil {
				return Packet{}, err
			}
			c.discard(int(size))
			continue
		case blockStatistic:
			c.statistics(body)
			c.discard(int(size))
			continue
		}
		return c.blockPacket(kind, body, int(size))
	}
}

// options are the options of a block, by number.
func (c *Reader) options(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, size := c.order.Uint16(b), int(c.order.Uint16(b[2:]))
			b = b[4:]
			if code == 0 || size > len(b) || !yield(code, b[:size]) {
				return
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}

// maxDrops bounds the number of dropped packets that a file may report.
const maxDrops = 1 << 40

// count is a number of packets in an option.
func (c *Reader) count(b []byte) int64 { return int64(min(c.order.Uint64(b), maxDrops)) }

// statistics reads the latest counters of an interface.
func (c *Reader) statistics(b []byte) {
	if len(b) < 12 || int64(c.order.Uint32(b)) >= int64(len(c.devices)) {
		return
	}
	d := &c.devices[c.order.Uint32(b)].drops
	for code, b := range c.options(b[12:]) {
		switch {
		case code == 5 && len(b) >= 8: // isb_ifdrop
			d.Interface = c.count(b)
		case code == 7 && len(b) >= 8: // isb_osdrop
			d.System = c.count(b)
		}
	}
}

// device reads an interface description block.
func (c *Reader) device(b []byte) error {
	if len(b) < 8 || len(c.devices) >= maxInterfaces {
		return c.fail(errDamaged, "an interface description of %d octets, the file's %d.", len(b), len(c.devices)+1)
	}
	d := device{link: LinkType(c.order.Uint16(b)), snap: c.order.Uint32(b[4:]), perSec: 1e6}
	for code, b := range c.options(b[8:]) {
		switch {
		case code == 9 && len(b) >= 1: // if_tsresol
			exp := int(b[0] & 0x7f)
			if b[0]&0x80 != 0 && exp < 63 {
				d.perSec = 1 << exp
			} else if b[0]&0x80 == 0 && exp <= 18 {
				d.perSec = 1
				for range exp {
					d.perSec *= 10
				}
			} else {
				return c.fail(errDamaged, "an interface's time resolution of %#x", b[0])
			}
		case code == 14 && len(b) >= 8: // if_tsoffset
			d.shift = int64(c.order.Uint64(b))
		}
	}
	c.devices = append(c.devices, d)
	return nil
}

func (c *Reader) blockPacket(kind uint32, b []byte, size int) (Packet, error) {
	index, head := uint32(0), 4
	switch kind {
	case blockEnhanced, blockOld:
		head = 20
	}
	if len(b) < head {
		return Packet{}, c.fail(errDamaged, "a packet block of %d octets", size)
	}
	switch kind {
	case blockEnhanced:
		index = c.order.Uint32(b)
	case blockOld:
		index = uint32(c.order.Uint16(b))
	}
	if int64(index) >= int64(len(c.devices)) {
		return Packet{}, c.fail(errDamaged, "a packet of interface %d, of which there are %d", index, len(c.devices))
	}
	d := &c.devices[index]
	if kind == blockSimple {
		wire := c.order.Uint32(b)
		n := min(int64(wire), int64(len(b)-4))
		if d.snap > 0 {
			n = min(n, int64(d.snap))
		}
		return c.packet(d, 0, b[4:4+n], wire, size)
	}
	captured, wire := c.order.Uint32(b[12:]), c.order.Uint32(b[16:])
	if int64(captured) > int64(len(b)-20) {
		return Packet{}, c.fail(errDamaged, "%d octets captured in a block of %d", captured, size)
	}
	if kind == blockOld {
		if n := c.order.Uint16(b[2:]); n != math.MaxUint16 { // which it does not know
			c.drops.Between = min(c.drops.Between+int64(n), maxDrops)
		}
	} else {
		for code, b := range c.options(b[20+min((int64(captured)+3)&^3, int64(len(b)-20)):]) {
			if code == 4 && len(b) >= 8 { // epb_dropcount
				c.drops.Between = min(c.drops.Between+c.count(b), maxDrops)
			}
		}
	}
	units := uint64(c.order.Uint32(b[4:]))<<32 | uint64(c.order.Uint32(b[8:]))
	sec, rest := units/d.perSec, units%d.perSec
	var ns uint64
	if d.perSec <= 1e9 {
		ns = rest * 1e9 / d.perSec
	} else {
		ns = uint64(float64(rest) / float64(d.perSec) * 1e9)
	}
	at := (int64(sec%(1<<33))+d.shift)*1e9 + int64(ns)
	return c.packet(d, at, b[20:20+captured], wire, size)
}
