package group

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// A packet about state for one peer alone goes to that peer; packets that others have to hear, or whose peer might not be reached alone, go
// to all.
func TestOnly(t *testing.T) {
	const state, payload = pmul.MessageID(1), pmul.MessageID(2)
	addr := netip.MustParseAddrPort("10.77.0.2:4711")
	proofs := 60
	c := &Carrier{
		Config: Config{Proven: func() int { return proofs }},
		peers:  map[uint16]*mail.Peer{}, silent: map[uint16]bool{4: true},
		out: map[pmul.MessageID]*mail.Message{state: {}, payload: {Content: envelope.Message{Payload: &site.Message{}}}},
	}
	c.engine.Hears = true
	var err error
	c.sender, err = pmul.NewSender(c.engine, nil)
	check.NoError(check.Fatal(t), err)
	for id := uint16(2); id <= 4; id++ {
		c.peers[id] = mail.NewPeer(id, "", addr, nil, false)
	}
	to := func(m pmul.MessageID, nodes ...pmul.NodeID) pmul.AddressPDU {
		p := pmul.AddressPDU{Total: 1, Message: m, Expiry: time.Unix(0, 0)}
		for _, n := range nodes {
			p.Destinations = append(p.Destinations, pmul.Destination{Node: n})
		}
		return p
	}
	data := func(m pmul.MessageID) pmul.DataPDU { return pmul.DataPDU{Message: m, Number: 1, Fragment: []byte("x")} }
	for _, tt := range []struct {
		name   string
		pdus   []pmul.PDU
		proofs int
		want   uint16
	}{
		{"a message", []pmul.PDU{to(state, 2), data(state)}, 60, 2},
		{"a question", []pmul.PDU{to(state, 3)}, 60, 3},
		{"few proofs", []pmul.PDU{to(state, 2), data(state)}, 31, 0},
		{"to two", []pmul.PDU{to(state, 2, 3), data(state)}, 60, 0},
		{"two messages", []pmul.PDU{to(state, 2), data(state), to(payload, 3), data(payload)}, 60, 0},
		{"with a fragment of another message", []pmul.PDU{to(state, 2), data(state), data(payload)}, 60, 0},
		{"fragments alone", []pmul.PDU{data(state)}, 60, 0},
		{"of an application", []pmul.PDU{to(payload, 2), data(payload)}, 60, 0},
		{"with a turn", []pmul.PDU{pmul.TurnPDU{}, to(state, 2), data(state)}, 60, 0},
		{"to a silent peer", []pmul.PDU{to(state, 4), data(state)}, 60, 0},
		{"to one that is not known", []pmul.PDU{to(state, 9), data(state)}, 60, 0},
	} {
		proofs = tt.proofs
		var got uint16
		if p := c.only(pmul.Packet{PDUs: tt.pdus}); p != nil {
			got = p.ID
		}
		check.Equal(t, tt.name, got, tt.want)
	}
}

// A Turn_PDU concerns only the peer that has the next turn: because of it, a peer that is behind gets no copy of PDUs for others.
func TestTurnConcerns(t *testing.T) {
	c, p := &Carrier{}, mail.NewPeer(3, "", netip.AddrPort{}, nil, false)
	check.True(t, "nobody's", !c.concerns(pmul.TurnPDU{Source: 1}, p))
	check.True(t, "another's", !c.concerns(pmul.TurnPDU{Source: 1, Next: 2}, p))
	check.True(t, "its own", c.concerns(pmul.TurnPDU{Source: 1, Next: 3}, p))
}

// A batch of state is charged to the kind of its first message, and goes to the one peer that it is for; a batch with a message of an
// application is payload.
func TestBatchIsCharged(t *testing.T) {
	radio, err := profile.Load("hf-2400", nil)
	check.NoError(check.Fatal(t), err)
	addr := netip.MustParseAddrPort("10.77.0.2:4711")
	c := &Carrier{Config: Config{Proven: func() int { return 60 }}, peers: map[uint16]*mail.Peer{2: mail.NewPeer(2, "", addr, nil, false)}, out: map[pmul.MessageID]*mail.Message{}}
	c.engine = pmul.ConfigFor(radio, 1, pmul.Compact, 20, nil)
	c.engine.Hears, c.engine.FirstMessage = true, 1
	c.sender, err = pmul.NewSender(c.engine, nil)
	check.NoError(check.Fatal(t), err)
	c.sender.Batch(true)
	now := time.Unix(1_800_000_000, 0)
	c.sender.Step(now, pmul.EMCON{Silent: true})
	for range 3 {
		a := c.sender.Step(now, pmul.Submit{Payload: make([]byte, 300), To: []pmul.NodeID{2}, Expires: now.Add(time.Hour)}).Accepted
		c.out[a[0].Message] = &mail.Message{Content: envelope.Message{Items: []site.Item{{Kind: site.Document}}}}
	}
	out := c.sender.Step(now, pmul.EMCON{Silent: false})
	check.True(check.Fatal(t), "a datagram", len(out.Send) > 0)
	first := out.Send[0]
	first.PDUs = slices.DeleteFunc(first.PDUs, func(pdu pmul.PDU) bool { _, turn := pdu.(pmul.TurnPDU); return turn })
	batch := first.PDUs[0].(pmul.AddressPDU)
	check.True(t, "a batch of three", batch.Batch && len(c.sender.Parts(batch)) == 3)
	check.Equal(t, "what it is charged to", c.kindOf(first.PDUs), mail.Advertisement)
	check.True(t, "it goes to one peer", c.only(first) == c.peers[2])
	for _, part := range c.sender.Parts(batch)[1:] {
		c.out[part.Message] = &mail.Message{Content: envelope.Message{Payload: &site.Message{}}}
	}
	check.Equal(t, "what it is charged to with a payload in it", c.kindOf(first.PDUs), mail.Payload)
	check.True(t, "it goes to all", c.only(first) == nil)
}
