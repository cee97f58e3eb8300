package trace

import (
	"cmp"

	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/pmul"
)

const (
	maxMulMessages = 4096
	maxMulOctets   = 32 << 20 // of the fragments kept
)

type mulID struct {
	source  pmul.NodeID
	message pmul.MessageID
}

// mulMessage is a P_Mul message being put together.
type mulMessage struct {
	id       pmul.MessageID
	at       int64
	total    int // Data_PDUs; 0: no Address_PDU seen
	batch    bool
	parts    int // messages in a complete batch
	data     map[uint16][]byte
	parity   map[uint16][]byte
	last     int                  // octets of the last Data_PDU, by a Plan; 0: unknown
	octets   int                  // of data and parity
	kind     string               // the ledger's; empty: the message is not whole yet
	owed     map[*direction]int64 // octets that wait for kind
	spent    []spending           // the same for the timeline
	answered bool
}

// spending is octets and when they were sent.
type spending struct{ at, octets int64 }

const maxSpent = 64 // spendings of one message; later octets are added to the last one

// mulSite is the state of P_Mul on the link.
type mulSite struct {
	messages map[mulID]*mulMessage
	order    []mulID
	octets   int
	owing    int64 // messages without an acknowledgement
	flows    map[pmul.NodeID]map[uint32]envelope.Flow
	before   map[pmul.NodeID]*envelope.Histories
}

func newMulSite() *mulSite {
	return &mulSite{messages: map[mulID]*mulMessage{}, flows: map[pmul.NodeID]map[uint32]envelope.Flow{},
		before: map[pmul.NodeID]*envelope.Histories{}}
}

// message returns the record of a message; the oldest records make room.
func (m *mulSite) message(id mulID, at int64) *mulMessage {
	k := m.messages[id]
	if k != nil {
		return k
	}
	for len(m.order) >= maxMulMessages || m.octets > maxMulOctets && len(m.order) > 0 {
		if k := m.messages[m.order[0]]; !k.answered {
			m.owing--
		}
		m.messages[m.order[0]].settle(m, "payload")
		delete(m.messages, m.order[0])
		m.order = m.order[1:]
	}
	m.owing++
	k = &mulMessage{id: id.message, at: at, data: map[uint16][]byte{}, parity: map[uint16][]byte{}, owed: map[*direction]int64{}}
	m.messages[id] = k
	m.order = append(m.order, id)
	return k
}

// keep keeps a fragment or shard of a message that is not whole yet.
func (m *mulSite) keep(k *mulMessage, in map[uint16][]byte, at uint16, b []byte) {
	if k.kind != "" || in[at] != nil {
		return
	}
	in[at] = append([]byte{}, b...)
	k.octets += len(b) + chunkCost
	m.octets += len(b) + chunkCost
}

// settle charges the octets that waited for a message's kind, and drops its fragments.
func (k *mulMessage) settle(m *mulSite, kind string) {
	if k.kind == "" {
		k.kind = kind
	}
	for d, octets := range k.owed {
		d.ledger[k.kind] += octets
		for _, s := range k.spent {
			d.line.spend(s.at, k.kind, s.octets)
		}
		k.spent = nil
	}
	m.octets -= k.octets
	k.owed, k.data, k.parity, k.octets = nil, nil, nil, 0
}

// mul charges a frame of P_Mul as its sender does: to the kind of its first message or batch, to repair when that is a parity shard,
// otherwise to acknowledgement.
func (l *linkAnalyser) mul(d *direction, s *tcpSegment, f frame.PMul, octets int) {
	pdus, err := pmul.ParseCompact(f.Body, pmul.NodeID(d.nodes.from), pmul.NodeID(d.nodes.to))
	if err != nil {
		tallyIn(l.frames, "p_mul (unread)", octets)
		d.charge("ack", octets)
		return
	}
	var about *mulMessage
	repair := false
	name := ""
	for _, pdu := range pdus {
		if _, turn := pdu.(pmul.TurnPDU); name == "" && (!turn || len(pdus) == 1) {
			name = "p_mul " + pdu.Kind().String()
			if a, _ := pdu.(pmul.AddressPDU); a.Batch {
				name += " of a batch"
			}
		}
		switch pdu := pdu.(type) {
		case pmul.AddressPDU:
			k := l.pmul.message(mulID{pdu.Source, pdu.Message}, s.at)
			if pdu.Total > 0 {
				k.total, k.batch = int(pdu.Total), pdu.Batch
			}
			if pdu.Plan != nil {
				k.last = int(pdu.Plan.Last)
			}
			about = first(about, k)
			l.whole(pdu.Source, d, s, k)
		case pmul.DataPDU:
			k := l.pmul.message(mulID{pdu.Source, pdu.Message}, s.at)
			about = first(about, k)
			l.pmul.keep(k, k.data, pdu.Number, pdu.Fragment)
			l.whole(pdu.Source, d, s, k)
		case pmul.ParityPDU:
			repair = repair || about == nil
			if k := l.pmul.messages[mulID{pdu.Source, pdu.Message}]; k != nil {
				l.pmul.keep(k, k.parity, pdu.Index, pdu.Shard)
				l.whole(pdu.Source, d, s, k)
			}
		case pmul.AckPDU:
			l.acknowledged(pdu, s.at)
		}
	}
	tallyIn(l.frames, name, octets)
	switch {
	case repair:
		d.charge("repair", octets)
	case about == nil:
		d.charge("ack", octets)
	case about.kind != "":
		d.charge(about.kind, octets)
	default:
		about.owed[d] += int64(octets)
		if len(about.spent) < maxSpent {
			about.spent = append(about.spent, spending{d.at, 0})
		}
		about.spent[len(about.spent)-1].octets += int64(octets)
	}
}

func first(a, b *mulMessage) *mulMessage {
	if a != nil {
		return a
	}
	return b
}

// whole reads a message when all its fragments are there, or parity shards for the lost ones.
func (l *linkAnalyser) whole(source pmul.NodeID, d *direction, s *tcpSegment, k *mulMessage) {
	if k.kind != "" || k.total == 0 || len(k.data)+len(k.parity) < k.total {
		return
	}
	if len(k.data) < k.total && !pmul.Restore(uint16(k.total), k.last, k.data, k.parity) {
		clear(k.parity) // they are not tried again
		return
	}
	var body []byte
	for n := 1; n <= k.total; n++ {
		part, ok := k.data[uint16(n)]
		if !ok {
			return
		}
		body = append(body, part...)
	}
	list := []pmul.Message{{Key: pmul.Key{Source: source, Message: k.id}, Payload: body}}
	if k.batch {
		var err error
		if list, err = pmul.Unpack(list[0]); err != nil {
			l.a.damaged("a batch of messages that cannot be read", s.number, err)
		}
	}
	kind := ""
	for _, m := range list {
		if len(m.Payload) == 0 {
			continue
		}
		l.r.Messages++
		flows := l.pmul.flows[source]
		if flows == nil && len(l.pmul.flows) < maxWays {
			flows = map[uint32]envelope.Flow{}
			l.pmul.flows[source] = flows
			l.pmul.before[source] = &envelope.Histories{}
		}
		if one := l.envelope(d, s, flows, m.Payload, l.pmul.before[source], uint64(m.Message)); kind == "" || one == "payload" {
			kind = one
		}
	}
	k.parts = len(list)
	k.settle(l.pmul, cmp.Or(kind, "payload"))
}

// acknowledged notes messages that a receiver has in full.
func (l *linkAnalyser) acknowledged(pdu pmul.AckPDU, at int64) {
	for _, e := range pdu.Entries {
		k := l.pmul.messages[mulID{e.Source, e.Message}]
		if k != nil && len(e.Missing) == 0 && !e.Cut && !k.answered {
			k.answered = true
			l.pmul.owing--
			for range max(1, k.parts) {
				l.acked(at - k.at)
			}
		}
	}
}
