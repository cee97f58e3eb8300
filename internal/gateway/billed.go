package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/profile"
)

// billed counts the units of a bill, of datagrams that are authentic or not: the carrier does not ask.
type billed struct {
	profile.Bill
	api.BillStatus
	months months
}

// sent and received count a datagram at a time of the wall clock, to or from a site; 0: of none.
func (b *billed) sent(at time.Time, site uint16, payload int) {
	octets := payload + profile.IPUDPOctets
	b.Sent += uint64(b.Units(octets))
	b.SentOctets += uint64(octets)
	b.months.count(at, site, mail.Sent, octets, b.Units(octets))
}

func (b *billed) received(at time.Time, site uint16, payload int) {
	octets := payload + profile.IPUDPOctets
	b.Received += uint64(b.Units(octets))
	b.ReceivedOctets += uint64(octets)
	b.months.count(at, site, mail.Received, octets, b.Units(octets))
}

// status is nil where every octet counts: the ledger has those.
func (b *billed) status() *api.BillStatus {
	if b.Bill.UnitOctets == 0 {
		return nil
	}
	s := b.BillStatus
	s.UnitOctets = b.Bill.UnitOctets
	return &s
}
