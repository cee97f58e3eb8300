package mail

import (
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// TestShares: the octets of a message are divided among its adapters by their lengths, and none is lost or counted twice.
func TestShares(t *testing.T) {
	var s Shares
	s.GiveTo(&envelope.Message{Payload: &site.Message{Adapter: site.TAK}}, 100)
	s.GiveTo(&envelope.Message{Items: []site.Item{{Doc: make([]byte, 299)}, {Adapter: site.XMPP, Doc: make([]byte, 99)}}}, 40)
	s.GiveTo(&envelope.Message{Lost: []envelope.Lost{{}}}, 7)
	s.GiveTo(nil, 1)
	s.Give(17, 2)
	check.Equal(t, "octets by owner", s, Shares{gateways: 8, jxta: 30, tak: 100, xmpp: 10, others: 2})
	for octets := range 200 {
		sum := 0
		for _, n := range s.Scaled(octets) {
			sum += n
		}
		check.Equal(t, "octets, scaled", sum, octets)
	}
}

// TestReadLater: received octets count as unread until their message is read, and then under its adapter and kind; the sums stay equal.
func TestReadLater(t *testing.T) {
	var l Ledger
	l.Came(50)
	l.Named(Payload, 50)
	l.Read(&envelope.Message{Items: []site.Item{{Kind: site.Document}}}, 40)
	check.Equal(t, "as read", l.Of[Received][jxta][Advertisement], 43)
	check.Equal(t, "still unread", l.Of[Received][unread][Payload], 7)
	l.Read(&envelope.Message{Payload: &site.Message{Adapter: site.Corpora}}, 1000) // most of it came in an earlier run
	check.Equal(t, "no more than came", l.Of[Received][corpus][Payload], 7)
	check.Equal(t, "unread now", l.Of[Received][unread][Payload], 0)
	check.Equal(t, "in all", l.All[Received][Payload], 50)
}
