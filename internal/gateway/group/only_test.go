package group

import (
	"net/netip"
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// What is about state and for one peer alone goes to that peer; what others have to hear, or could not be told of, goes to all.
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
