package trace

import (
	"encoding/binary"
	"io"
	"math"
	"net/netip"

	"aldis/internal/link/envelope"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// A datagram of gateways in clear, as ops/wireshark reads it. Its payload is
//
//	clearMagic
//	length of the seal's header (1), and the header as it was on the air
//	sender (2), destination (2, 0 is the whole network), incarnation number (4), salt (2), counter (4)
//	length of the body (2), and the body: frames (package frame)
//	then records of the contents of messages under custody that could be read with it
//
// A record is its type and its fields. Texts and data have their length in octets before them as an unsigned varint. A datagram that was
// not opened stays as it was on the air.
const (
	clearMagic = "aldisop1"

	// A message: published (1), scope, topic, sender, receiver, service, param, number of its elements (varint), and of each
	// namespace, name, type, data.
	recordMessage = 1
	// An item of a site's state: kind (1), gone (1), scope, owner, id, expiry (4, seconds since 1970 UTC, 0 none), document.
	recordItem = 2
	// The rest of a state message, each a number (varint): items held, items void, renewals, messages asked for again, messages lost.
	recordState = 3
	// There was no room for more records.
	recordCut = 4
)

// Clear is one datagram of gateways for a file that a dissector reads.
type Clear struct {
	At       int64 // ns since 1970 UTC
	Src, Dst netip.AddrPort
	Opened   bool
	Payload  []byte // as above; unchanged from the air if it was not opened
}

const maxClear = math.MaxUint16 - 60 - 8 // of a payload, so that it fits into an IP packet

// clearing makes Clears for Options.Clear.
type clearing struct {
	take    func(Clear)
	records []byte
}

// message notes the contents of a message under custody.
func (c *clearing) message(m *envelope.Message) {
	if c.take == nil {
		return
	}
	if p := m.Payload; p != nil {
		b := append(c.records, recordMessage, octet(p.Published))
		for _, s := range []string{p.Scope, p.Topic, p.From, p.To, p.Service, p.Param} {
			b = appendText(b, s)
		}
		b = binary.AppendUvarint(b, uint64(len(p.Parts)))
		for i := range p.Parts {
			e := &p.Parts[i]
			b = appendText(appendText(appendText(b, e.Namespace), e.Name), e.Type)
			b = appendText(b, string(e.Data))
		}
		c.records = b
	}
	for i := range m.Items {
		c.item(&m.Items[i])
	}
	counts := []int{len(m.Have), len(m.Void), len(m.Renew), len(m.Again), len(m.Lost)}
	for _, n := range counts {
		if n > 0 || m.Asks {
			b := append(c.records, recordState)
			for _, n := range counts {
				b = binary.AppendUvarint(b, uint64(n))
			}
			c.records = b
			return
		}
	}
}

func (c *clearing) item(it *site.Item) {
	b := append(c.records, recordItem, byte(it.Kind), octet(it.Gone))
	b = appendText(appendText(appendText(b, it.Scope), it.Owner), it.ID)
	var expires uint32
	if s := it.Expires.Unix(); s > 0 && s <= math.MaxUint32 {
		expires = uint32(s)
	}
	b = binary.BigEndian.AppendUint32(b, expires)
	c.records = appendText(b, string(it.Doc))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func octet(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// opened passes on a datagram that was opened, with the records made since the last call.
func (c *clearing) opened(s *tcpSegment, p nodePair, info seal.OpenInfo, body []byte) {
	if c.take == nil {
		return
	}
	head := s.data[:seal.HeadOctets(info.Long)]
	b := append([]byte(clearMagic), byte(len(head)))
	b = append(b, head...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, p.from), p.to)
	b = binary.BigEndian.AppendUint32(b, info.Incarnation.Number)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, info.Incarnation.Salt), info.Counter)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(body))), body...)
	if len(b)+len(c.records) <= maxClear {
		b = append(b, c.records...)
	} else if len(b) < maxClear {
		b = append(b, recordCut)
	}
	c.records = c.records[:0]
	c.take(Clear{s.at, s.src, s.dst, true, b})
}

// sealed passes on a datagram that was not opened.
func (c *clearing) sealed(s *tcpSegment) {
	if c.take != nil {
		c.take(Clear{s.at, s.src, s.dst, false, s.data})
	}
}

// WriteClearHead begins a pcap file of Clears: link type 101, times of a nanosecond.
func WriteClearHead(w io.Writer) error {
	h := binary.LittleEndian.AppendUint32(nil, pcapNano)
	h = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(h, 2), 4)
	h = binary.LittleEndian.AppendUint32(append(h, 0, 0, 0, 0, 0, 0, 0, 0), 1<<18)
	_, err := w.Write(binary.LittleEndian.AppendUint32(h, uint32(linkRaw)))
	return err
}

const pcapNano = 0xa1b23c4d

// Write appends the datagram to a pcap file, with new IP and UDP headers.
func (c Clear) Write(w io.Writer) error {
	packet := c.packet()
	h := binary.LittleEndian.AppendUint32(nil, uint32(c.At/1e9))
	h = binary.LittleEndian.AppendUint32(h, uint32(c.At%1e9))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(packet)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(packet)))
	_, err := w.Write(append(h, packet...))
	return err
}

func (c Clear) packet() []byte {
	src, dst := c.Src.Addr().Unmap(), c.Dst.Addr().Unmap()
	udp := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, c.Src.Port()), c.Dst.Port())
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(c.Payload)))
	udp = append(append(udp, 0, 0), c.Payload...)
	pseudo := append(src.AsSlice(), dst.AsSlice()...)
	pseudo = append(pseudo, 0, 17, udp[4], udp[5])
	sum := internetSum(append(pseudo, udp...))
	if sum == 0 {
		sum = math.MaxUint16
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	if src.Is6() {
		h := []byte{0x60, 0, 0, 0, udp[4], udp[5], 17, 64}
		return append(append(append(h, src.AsSlice()...), dst.AsSlice()...), udp...)
	}
	h := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0}
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(udp)))
	h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(h[10:], internetSum(h))
	return append(h, udp...)
}

// internetSum is the checksum of IP and UDP.
func internetSum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	return ^uint16(sum)
}
