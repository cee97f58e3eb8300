package group

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// The kept messages of others are bounded, and a node that floods loses its own.
func TestWhatIsHeardOfOthersIsBounded(t *testing.T) {
	o := &Others{c: &Carrier{Config: Config{Rand: rand.New(rand.NewPCG(1, 1))}}}
	now := time.Unix(1800000000, 0)
	hear := func(from pmul.NodeID, id pmul.MessageID) {
		now = now.Add(time.Second)
		o.Overhear(make([]byte, 1000))
		o.overhear(now, from, []pmul.PDU{
			pmul.AddressPDU{Source: from, Message: id, Total: 1, Expiry: now.Add(time.Hour), Destinations: []pmul.Destination{{Node: 7}, {Node: 8}}},
			pmul.DataPDU{Source: from, Message: id, Number: 1, Fragment: []byte{1}},
		})
	}
	hear(2, 1)
	for id := range pmul.MessageID(1000) {
		hear(3, id+1)
	}
	check.True(t, "octets are bounded", o.octets <= mostOverheard, o.octets)
	check.True(t, "who says little is kept", o.held[pmul.Key{Source: 2, Message: 1}] != nil)
	check.True(t, "of who floods the oldest goes", o.held[pmul.Key{Source: 3, Message: 1}] == nil && o.held[pmul.Key{Source: 3, Message: 1000}] != nil)
	acked := pmul.AckPDU{Entries: []pmul.AckEntry{{Source: 2, Message: 1}}}
	o.overhear(now, 7, []pmul.PDU{acked})
	check.True(t, "a message that one recipient lacks is kept", o.held[pmul.Key{Source: 2, Message: 1}] != nil)
	o.overhear(now, 8, []pmul.PDU{acked})
	check.True(t, "a message that all have is not", o.held[pmul.Key{Source: 2, Message: 1}] == nil)
}
