package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/reedsolomon"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

var linkKey = seal.Key{1, 2, 3}

// sister makes the datagrams of one gateway.
type sister struct {
	t      *testing.T
	sealer *seal.Sealer
	addr   netip.AddrPort
	to     netip.AddrPort
	list   *[]Packet
	spent  map[string]int64 // its ledger
	late   *int64           // when the datagram before was sent, s
}

func (s *sister) send(to uint16, long bool, kinds []string, frames ...frame.Frame) Packet {
	s.t.Helper()
	var body []byte
	for i, f := range frames {
		n := len(body)
		body = frame.Append(body, f, i == len(frames)-1)
		s.spent[kinds[i]] += int64(len(body) - n)
	}
	s.spent["header"] += profile.IPUDPOctets + seal.OverheadShort
	if long {
		s.spent["key"] += seal.OverheadLong - seal.OverheadShort
	}
	data, err := s.sealer.Seal(nil, to, long, body)
	if err != nil {
		s.t.Fatal(err)
	}
	*s.late++
	p := Packet{Number: int64(len(*s.list) + 1), At: *s.late * 1e9, Link: linkRaw, Data: datagram(s.addr, s.to, data)}
	p.Length = len(p.Data)
	*s.list = append(*s.list, p)
	return p
}

// datagram is an IPv4 packet without checksums.
func datagram(src, dst netip.AddrPort, payload []byte) []byte {
	b := []byte{0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(28+len(payload)))
	b = append(b, 0, 0, 0, 0, 64, protoUDP, 0, 0)
	b = append(b, src.Addr().AsSlice()...)
	b = append(b, dst.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

const pipeID = "uuid-59616261646162614E504720503250330D0AABCDEF1234567890ABCDEF12345604"

func track(t *testing.T, text string, flow uint32, define bool) []byte {
	t.Helper()
	m := envelope.Message{Payload: &site.Message{
		Scope: "jxta-NetGroup", Published: true, Topic: pipeID, From: "uuid-59616261646162614A7874615032503301234567890123456789012345678901" + "03",
		Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(text)}},
	}}
	b, err := envelope.Append(nil, m, flow, define)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var c compact.Coder
	body := envelope.Pack(&c, text)
	if body[0] != 0 {
		t.Fatal("not deflated")
	}
	return slices.Clone(body)
}

// conversation: hellos in long form, a message that defines its flow, one that does not, a repeat of it, acknowledgements.
func conversation(t *testing.T, idA, idB uint16) (list []Packet, a, b *sister) {
	ends := []netip.AddrPort{netip.MustParseAddrPort("10.77.0.1:7142"), netip.MustParseAddrPort("10.77.0.2:7142")}
	late := int64(100)
	a = &sister{t, seal.NewSealer(linkKey, idA, seal.Incarnation{Number: 7, Salt: 1}), ends[0], ends[1], &list, map[string]int64{}, &late}
	b = &sister{t, seal.NewSealer(linkKey, idB, seal.Incarnation{Number: 9, Salt: 2}), ends[1], ends[0], &list, map[string]int64{}, &late}
	hello := frame.Hello{Store: 5, Stream: 1}
	body := packed(t, track(t, strings.Repeat("N59.1234;", 20), 1, true))
	a.send(idB, true, []string{"key", "payload"}, hello, frame.Data{Number: 1, Body: body})
	b.send(idA, true, []string{"key", "ack"}, hello, frame.Ack{Cumulative: 1})
	again := frame.Data{Number: 2, Body: track(t, "second", 1, false)}
	a.send(idB, false, []string{"payload"}, again)
	a.send(idB, false, []string{"repair", "ack"}, again, frame.Probe{ID: 3})
	items, err := envelope.Append(nil, envelope.Message{Asks: true}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	b.send(idA, false, []string{"ack", "ack", "state"}, frame.Ack{Cumulative: 0, Bitmap: []byte{3}}, frame.Answer{ID: 3}, frame.Data{Number: 1, Body: items})
	return list, a, b
}

func TestLink(t *testing.T) {
	tests := []struct {
		name     string
		idA, idB uint16
		nodes    []uint16
	}{
		{"small ids", 1, 2, nil},
		{"a large id that is answered", 300, 2, nil},
		{"two large ids, given", 300, 44, []uint16{44, 300}},
		{"one hint", 258, 2, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, a, b := conversation(t, tt.idA, tt.idB)
			var events []Event
			r := analyse(list, Options{Key: &linkKey, Nodes: tt.nodes, Sink: func(e Event) { events = append(events, e) }})
			l := r.Link
			must := check.Fatal(t)
			check.True(must, "l", l != nil)
			check.Equal(must, "l.Opened", l.Opened, 5)
			check.Equal(must, "l.Messages", l.Messages, 3)
			check.Equal(must, "l.Repeats", l.Repeats, 1)
			check.Equal(must, "l.Receipted", l.Acked, 2)
			check.Equal(must, "l.Unread", l.Unread, 0)
			check.True(must, "not r.Partial", !r.Partial, r.Problems)
			for _, row := range l.Ledger {
				s := a
				if row.From == nodeName(tt.idB) {
					s = b
				}
				if s.spent[row.Kind] != row.Octets {
					t.Errorf("%s, %s: %d octets, spent %d", row.From, row.Kind, row.Octets, s.spent[row.Kind])
				}
				delete(s.spent, row.Kind)
			}
			if len(a.spent)+len(b.spent) != 0 {
				t.Errorf("not in the ledger: %v %v", a.spent, b.spent)
			}
			check.Equal(check.Fatal(t), "len(events)", len(events), 2)
			check.Equal(t, "events[0].Octets", events[0].Octets, 180)
			check.Equal(t, "events[1].Octets", events[1].Octets, 6)
			check.Equal(t, "events[0].Pipe", events[0].Pipe, pipeID)
			check.Equal(t, "events[0].From", events[0].From, nodeName(tt.idA))
			var layers int64
			for _, row := range l.Layers {
				layers += row.Octets
			}
			if layers != l.Octets {
				t.Errorf("the layers have %d octets of %d: %v", layers, l.Octets, l.Layers)
			}
			if l.MaxS != 2 {
				t.Errorf("longest wait for an acknowledgement %v s, want 2", l.MaxS)
			}
			checkLinkTimeline(t, l, 1)
		})
	}
}

// A new start becomes known by a long form for the whole network; datagrams for one node open from then on too.
func TestLinkGroupAndIncarnations(t *testing.T) {
	list, a, _ := conversation(t, 1, 2)
	a.list = &list
	a.sealer = seal.NewSealer(linkKey, 1, seal.Incarnation{Number: 8, Salt: 4})
	a.send(2, false, []string{"ack"}, frame.Probe{ID: 1}) // of an unknown start
	a.send(seal.Group, true, []string{"key"}, frame.Hello{Store: 5, Stream: 2})
	a.send(2, false, []string{"payload"}, frame.Data{Number: 1, Body: track(t, "anew", 1, true)})
	a.send(seal.Group, false, []string{"ack"}, frame.Probe{ID: 2})
	l := analyse(list, Options{Key: &linkKey}).Link
	if l.Opened != 8 || len(l.Unopened) != 1 {
		t.Fatalf("opened %d of %d, %v", l.Opened, l.Datagrams, l.Unopened)
	}
	group := slices.ContainsFunc(l.Ledger, func(r LinkRow) bool { return r.To == "all nodes" && r.Kind == "ack" })
	if !group {
		t.Errorf("nothing for all nodes in %v", l.Ledger)
	}
}

func TestLinkNotOpened(t *testing.T) {
	list, _, _ := conversation(t, 1, 2)
	other := seal.Key{9}
	tests := []struct {
		name   string
		list   []Packet
		opt    Options
		opened int64
		reason string
	}{
		{"no key", list, Options{}, 0, "no key given"},
		{"another key", list, Options{Key: &other}, 0, "not of this key"},
		{"begun before", list[2:], Options{Key: &linkKey}, 0, "before the first"},
		{"captured twice", append(slices.Clone(list), list...), Options{Key: &linkKey}, 5, "captured twice"},
		{"cut", snap(list, 60), Options{Key: &linkKey}, 0, "snap length"},
	}
	for _, tt := range tests {
		l := analyse(tt.list, tt.opt).Link
		in := check.In(t, tt.name)
		check.True(check.Fatal(in), "l", l != nil)
		check.Equal(in, "l.Opened", l.Opened, tt.opened)
		check.Differ(check.Fatal(in), "len(l.Unopened)", len(l.Unopened), 0)
		check.Contains(in, "l.Unopened[0].Name", l.Unopened[0].Name, tt.reason)
	}
}

// Messages are coded after those that both ends hold. At the receiver's end of a lossy link the capture has some of them
// late, and all are read.
func TestLinkHistory(t *testing.T) {
	list, a, _ := conversation(t, 1, 2)
	a.list = &list
	const first, end, lag = 3, 60, 3 // acknowledgements come so many messages later
	var coder compact.Coder
	var held envelope.Histories
	var sent []*site.Message
	for n := uint64(first); n < end; n++ {
		p := &site.Message{
			Scope: "jxta-NetGroup", Published: true, Topic: pipeID, From: "uuid-59616261646162614A78746150325033" + strings.Repeat("AB", 16) + "03",
			Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: fmt.Appendf(nil, "TRK;ship;%d;N59.12%02d;E005.43%02d;steady as she goes", n, n, n)}},
		}
		sent = append(sent, p)
		if n >= first+lag {
			held.Add(2, n-lag, sent[n-lag-first])
		}
		texts := &envelope.Texts{Coder: &coder}
		held.Encode(texts, 2, n)
		b, err := envelope.AppendCoded(nil, envelope.Message{Payload: p}, 2, n == first, texts)
		if err != nil {
			t.Fatal(err)
		}
		a.send(2, false, []string{"payload"}, frame.Data{Number: uint16(n), Body: b})
	}
	short := len(list[len(list)-1].Data)
	if long := len(list[5].Data); short > long-20 {
		t.Fatalf("%d octets, the first had %d: nothing was coded after others", short, long)
	}
	for i := 10; i+lag < len(list); i += 5 { // lost, and sent again
		list[i], list[i+1], list[i+2] = list[i+1], list[i+2], list[i]
	}
	l := analyse(list, Options{Key: &linkKey}).Link
	if l.Unread != 0 || l.Messages != 3+end-first {
		t.Errorf("%d unread, %d messages", l.Unread, l.Messages)
	}
}

// Messages coded by the network's corpus are read with it; without it the report names the corpus.
func TestLinkCorpus(t *testing.T) {
	say := func(n uint64) []byte {
		return fmt.Appendf(nil, "##DRAUGHT fore=7.%d aft=7.%d list=%d port trim by the head?no surveyor=quoin##", n%10, n*3%10, n%7)
	}
	var taught [][]byte
	for n := range uint64(40) {
		taught = append(taught, say(n))
	}
	file, err := compact.AppendCorpus(nil, taught)
	check.NoError(check.Fatal(t), err)
	read, err := compact.ReadCorpus(file)
	check.NoError(check.Fatal(t), err)
	corpus := read.Learn()

	list, a, _ := conversation(t, 1, 2)
	a.list = &list
	coder := compact.Coder{Network: corpus}
	a.send(2, true, []string{"key"}, frame.Hello{Store: 5, Stream: 1, Corpus: corpus.Name()})
	var held envelope.Histories
	for n := uint64(3); n < 13; n++ {
		p := &site.Message{Scope: "jxta-NetGroup", Published: true, Topic: pipeID, From: "uuid-59616261646162614A78746150325033" + strings.Repeat("AB", 16) + "03",
			Parts: []jxta.Element{{Name: "body", Data: say(n + 77)}}}
		texts := &envelope.Texts{Coder: &coder}
		held.Encode(texts, 2, n)
		b, err := envelope.AppendCoded(nil, envelope.Message{Payload: p}, 2, n == 3, texts)
		check.NoError(check.Fatal(t), err)
		held.Add(2, n, p)
		a.send(2, false, []string{"payload"}, frame.Data{Number: uint16(n), Body: b})
	}
	with, without := analyse(list, Options{Key: &linkKey, Corpus: corpus}), analyse(list, Options{Key: &linkKey})
	check.Equal(t, "unread with it", with.Link.Unread, 0)
	check.True(t, "no problem with it", !with.Partial, with.Problems)
	check.True(t, "unread without it", without.Link.Unread > 0, without.Link.Unread)
	check.True(t, "and that is said, with its name", without.Partial && len(without.Problems) == 1 &&
		strings.Contains(without.Problems[0], fmt.Sprintf("the corpus %08x of the network: --corpus FILE", corpus.Name())), without.Problems)
}

// P_Mul: a message of three fragments, one of them twice, and its acknowledgement. Every octet is charged to the kind of the message.
func TestLinkPMul(t *testing.T) {
	list, a, b := conversation(t, 1, 2)
	a.list, b.list = &list, &list
	body := track(t, strings.Repeat("E005.4321;", 100), 1, true)
	part := func(n int) []byte { return body[(n-1)*400 : min(len(body), n*400)] }
	expiry := time.Unix(1_000_000, 0)
	pdus := [][]pmul.PDU{
		{pmul.AddressPDU{Total: 3, Source: 1, Message: 9, Expiry: expiry, Destinations: []pmul.Destination{{Node: 2, Sequence: 1}}}},
		{pmul.DataPDU{Number: 1, Source: 1, Message: 9, Fragment: part(1)}},
		{pmul.DataPDU{Number: 3, Source: 1, Message: 9, Fragment: part(3)}},
		{pmul.DataPDU{Number: 1, Source: 1, Message: 9, Fragment: part(1)}},
		{pmul.DataPDU{Number: 2, Source: 1, Message: 9, Fragment: part(2)}},
	}
	for _, p := range pdus {
		out, err := pmul.AppendCompact(nil, 1, 0, p...)
		if err != nil {
			t.Fatal(err)
		}
		a.send(seal.Group, false, []string{"payload"}, frame.PMul{Body: out})
	}
	shard, err := pmul.AppendCompact(nil, 1, 0, pmul.ParityPDU{Source: 1, Message: 9, Shard: make([]byte, 400)})
	if err != nil {
		t.Fatal(err)
	}
	a.send(seal.Group, false, []string{"repair"}, frame.PMul{Body: shard})
	ack, err := pmul.AppendCompact(nil, 2, 1, pmul.AckPDU{Source: 2, Entries: []pmul.AckEntry{{Source: 1, Message: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	b.send(1, false, []string{"ack"}, frame.PMul{Body: ack})
	var events []Event
	l := analyse(list, Options{Key: &linkKey, Sink: func(e Event) { events = append(events, e) }}).Link
	must := check.Fatal(t)
	check.Equal(must, "l.Opened", l.Opened, 12)
	check.Equal(must, "l.Messages", l.Messages, 4)
	check.Equal(must, "l.Receipted", l.Acked, 3)
	check.Equal(must, "l.Unread", l.Unread, 0)
	check.Equal(must, "len(events)", len(events), 3)
	check.Equal(must, "events[2].Octets", events[2].Octets, 1000)
	got := map[string]int64{}
	for _, row := range l.Ledger {
		got[row.From+row.Kind] += row.Octets
	}
	for _, s := range []struct {
		name string
		*sister
	}{{"node 1", a}, {"node 2", b}} {
		for kind, octets := range s.spent {
			if got[s.name+kind] != octets {
				t.Errorf("%s, %s: %d octets, spent %d", s.name, kind, got[s.name+kind], octets)
			}
		}
	}
	checkLinkTimeline(t, l, 2)
}

// A batch of P_Mul is read message by message, and one Ack_PDU is for all of them. The messages left in a batch that is cut short
// are read, and the report says that it was cut.
func TestLinkBatch(t *testing.T) {
	list, a, b := conversation(t, 1, 2)
	a.list, b.list = &list, &list
	var payload []byte
	for i, body := range [][]byte{track(t, "first", 1, true), track(t, "second", 1, false), track(t, "third", 1, false)} {
		head := []byte{1, 1, 0} // after the one before: Message_ID, Message_Sequence_Number; expiry
		if i == 0 {
			head = []byte{20, 0, 0}
		}
		payload = append(binary.AppendUvarint(append(payload, head...), uint64(len(body))), body...)
	}
	send := func(id pmul.MessageID, payload []byte) {
		address := pmul.AddressPDU{Total: 2, Source: 1, Message: id, Expiry: time.Unix(1_000_000, 0), Batch: true, Destinations: []pmul.Destination{{Node: 2, Sequence: 1}}}
		for _, p := range [][]pmul.PDU{{address}, {pmul.DataPDU{Number: 1, Source: 1, Message: id, Fragment: payload[:50]}}, {pmul.DataPDU{Number: 2, Source: 1, Message: id, Fragment: payload[50:]}}} {
			out, err := pmul.AppendCompact(nil, 1, 0, p...)
			check.NoError(check.Fatal(t), err)
			a.send(seal.Group, false, []string{"payload"}, frame.PMul{Body: out})
		}
	}
	before := analyse(list, Options{Key: &linkKey}).Link
	send(30, payload)
	ack, err := pmul.AppendCompact(nil, 2, 1, pmul.AckPDU{Source: 2, Entries: []pmul.AckEntry{{Source: 1, Message: 30}}})
	check.NoError(check.Fatal(t), err)
	b.send(1, false, []string{"ack"}, frame.PMul{Body: ack})
	r := analyse(list, Options{Key: &linkKey})
	l := r.Link
	check.Equal(t, "messages", l.Messages-before.Messages, 3)
	check.Equal(t, "acknowledged", l.Acked-before.Acked, 3)
	check.Equal(t, "unread", l.Unread, 0)
	check.True(t, "no problem", len(r.Problems) == 0, r.Problems)
	check.Contains(t, "the frames", fmt.Sprint(l.Frames), "p_mul Address_PDU of a batch")
	send(40, payload[:len(payload)-3])
	r = analyse(list, Options{Key: &linkKey})
	check.Equal(t, "messages", r.Link.Messages-before.Messages, 5)
	check.Contains(t, "problems", strings.Join(r.Problems, "\n"), "a batch of messages that cannot be read")
}

// A message that lost a fragment on the way to the capture is restored from a parity shard, and messages coded after it are read.
func TestLinkRestores(t *testing.T) {
	list, a, b := conversation(t, 1, 2)
	a.list, b.list = &list, &list
	message := track(t, "first", 1, true)
	half := (len(message) + 1) / 2
	shards := [][]byte{message[:half], append(slices.Clone(message[half:]), make([]byte, 2*half-len(message))...), make([]byte, half)}
	enc, err := reedsolomon.New(2, 1)
	check.NoError(check.Fatal(t), err)
	check.NoError(check.Fatal(t), enc.Encode(shards))
	before := analyse(list, Options{Key: &linkKey}).Link
	address := pmul.AddressPDU{Total: 2, Source: 1, Message: 30, Expiry: time.Unix(1_000_000, 0), Destinations: []pmul.Destination{{Node: 2, Sequence: 1}},
		Plan: &pmul.Plan{Last: uint16(len(message) - half), Follow: 2}}
	for _, p := range [][]pmul.PDU{{address}, {pmul.DataPDU{Number: 1, Source: 1, Message: 30, Fragment: shards[0]}},
		{pmul.ParityPDU{Source: 1, Message: 30, Shard: shards[2]}}} {
		out, err := pmul.AppendCompact(nil, 1, 0, p...)
		check.NoError(check.Fatal(t), err)
		a.send(seal.Group, false, []string{"payload"}, frame.PMul{Body: out})
	}
	address = pmul.AddressPDU{Total: 1, Source: 1, Message: 31, Expiry: time.Unix(1_000_000, 0), Destinations: []pmul.Destination{{Node: 2, Sequence: 2}}}
	out, err := pmul.AppendCompact(nil, 1, 0, address, pmul.DataPDU{Number: 1, Source: 1, Message: 31, Fragment: track(t, "second", 1, false)})
	check.NoError(check.Fatal(t), err)
	a.send(seal.Group, false, []string{"payload"}, frame.PMul{Body: out})
	l := analyse(list, Options{Key: &linkKey}).Link
	check.Equal(t, "messages", l.Messages-before.Messages, 2)
	check.Equal(t, "unread", l.Unread, 0)
}

// checkLinkTimeline compares a timeline with the ledger; waiting is the most messages that wait in its last slot.
func checkLinkTimeline(t *testing.T, l *LinkReport, waiting int64) {
	t.Helper()
	got, want := map[string]int64{}, map[string]int64{}
	for _, s := range l.Timeline.Series {
		got[s.Name] = sumOf(s)
	}
	for _, row := range l.Ledger {
		want[row.Kind] += row.Octets
	}
	if !maps.Equal(got, want) {
		t.Errorf("octets in the timeline %v, in the ledger %v", got, want)
	}
	if w := l.Timeline.Waiting; w[len(w)-1] != waiting {
		t.Errorf("waiting %v, want %d in the last slot", w, waiting)
	}
	if l.AckS.N != l.Acked || l.AckS.MaxS != l.MaxS {
		t.Errorf("acknowledgements %+v, want %d, longest %v", l.AckS, l.Acked, l.MaxS)
	}
}

func FuzzLink(f *testing.F) {
	f.Add(frame.Append(nil, frame.Ack{Cumulative: 4, Bitmap: []byte{1}}, true))
	f.Add(frame.Append(nil, frame.NORM{Body: []byte{1, 1, 0, 'a', 'b', 'c', 'd'}}, true))
	f.Add(frame.Append(nil, frame.NORM{Body: []byte{2, 1, 0, 200, 1, 0, 'a', 'b', 'c', 'd'}}, true))
	f.Add(frame.Append(nil, frame.PMul{Body: []byte{4, 9, 0, 0, 0, 1, 1, 2, 1, 'a', 'b'}}, true))
	f.Add(frame.Append(nil, frame.Data{Number: 1, Body: []byte{8, 1}}, true))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1400 {
			return
		}
		sealer := seal.NewSealer(linkKey, 1, seal.Incarnation{Number: 3})
		ends := []netip.AddrPort{netip.MustParseAddrPort("10.77.0.1:7142"), netip.MustParseAddrPort("10.77.0.2:7142")}
		var list []Packet
		for range 2 {
			b, err := sealer.Seal(nil, 2, true, body)
			if err != nil {
				t.Fatal(err)
			}
			p := datagram(ends[0], ends[1], b)
			list = append(list, Packet{Link: linkRaw, Data: p, Length: len(p)})
		}
		r := analyse(list, Options{Key: &linkKey, Nodes: []uint16{1, 2}})
		var sum int64
		for _, row := range r.Link.Ledger {
			sum += row.Octets
		}
		if sum != r.Link.Octets || r.Link.Opened != 2 {
			t.Fatalf("%d octets in the ledger, %d on the link, %d opened", sum, r.Link.Octets, r.Link.Opened)
		}
	})
}
