package gateway

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/profile"
)

// months are the accounts of the last calendar months, of earlier runs too. While something is on the air, the journal is
// at most a minute behind: a gateway that is killed loses what it counted in that minute.
type months struct {
	list    map[int]*billMonth // by number
	changed *billMonth         // since it was last recorded; nil: none
	before  *billMonth         // the one before, changed likewise
}

type billMonth struct {
	number int // of months since January 2000
	since  time.Time
	rows   map[uint16]*api.BillRow // by site; 0: all together
	minute map[uint16]int64        // the last in which something was on the air
}

// Bounds.
const (
	billSites = 512 // of a month: further sites count in the total alone
)

// bucketBill of the journal: the number of a month modulo 256 -> the month. A gateway that does not know the bucket ignores it.
const bucketBill = "bill"

func monthNumber(at time.Time) int { return (at.Year()-2000)*12 + int(at.Month()) - 1 }

func monthStart(number int) time.Time {
	return time.Date(2000, time.Month(1+number), 1, 0, 0, 0, 0, time.UTC)
}

// of is the account of the month in which at is; nil: the clock is not to be believed.
func (m *months) of(at time.Time) *billMonth {
	number := monthNumber(at.UTC())
	if one := m.list[number]; one != nil || number < 0 || number > 1<<16-1 {
		return one
	}
	if m.list == nil {
		m.list = map[int]*billMonth{}
	}
	one := &billMonth{number: number, since: at.UTC().Truncate(time.Second), rows: map[uint16]*api.BillRow{}, minute: map[uint16]int64{}}
	if m.list[number-1] != nil {
		one.since = monthStart(number)
	}
	m.list[number] = one
	return one
}

// count charges a datagram of so many IP octets to a site and to the total; 0: to the total alone.
func (m *months) count(at time.Time, site uint16, direction, octets, units int) {
	one := m.of(at)
	if one == nil {
		return
	}
	if m.changed != nil && m.changed != one {
		m.before = m.changed
	}
	m.changed = one
	one.charge(0, at, direction, octets, units)
	if site != 0 {
		one.charge(site, at, direction, octets, units)
	}
}

func (b *billMonth) charge(site uint16, at time.Time, direction, octets, units int) {
	row := b.rows[site]
	if row == nil && len(b.rows) > billSites {
		return
	}
	if row == nil {
		row = &api.BillRow{}
		b.rows[site] = row
	}
	if direction == mail.Sent {
		row.SentOctets, row.SentUnits = row.SentOctets+uint64(octets), row.SentUnits+uint64(units)
	} else {
		row.ReceivedOctets, row.ReceivedUnits = row.ReceivedOctets+uint64(octets), row.ReceivedUnits+uint64(units)
	}
	if minute := at.Unix() / 60; b.minute[site] != minute {
		b.minute[site] = minute
		row.Minutes++
	}
}

// record writes the months that have changed, and forgets the oldest beyond the bound.
func (m *months) record(g journal) {
	for _, one := range []*billMonth{m.before, m.changed} {
		if one != nil {
			g.Record(bucketBill, []byte{byte(one.number)}, one.append(nil))
		}
	}
	m.before, m.changed = nil, nil
	for len(m.list) > api.BillMonths {
		oldest := slices.Min(slices.Collect(maps.Keys(m.list)))
		delete(m.list, oldest)
		g.Record(bucketBill, []byte{byte(oldest)}, nil)
	}
}

func (b *billMonth) append(buf []byte) []byte {
	buf = binary.BigEndian.AppendUint16(buf, uint16(b.number))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.since.Unix()))
	for _, site := range slices.Sorted(maps.Keys(b.rows)) {
		r := b.rows[site]
		buf = binary.BigEndian.AppendUint16(buf, site)
		for _, n := range fields(r) {
			buf = binary.AppendUvarint(buf, *n)
		}
	}
	return buf
}

// fields of a row, in the order of the journal.
func fields(r *api.BillRow) [5]*uint64 {
	return [5]*uint64{&r.SentOctets, &r.ReceivedOctets, &r.SentUnits, &r.ReceivedUnits, &r.Minutes}
}

// restore takes a record.
func (m *months) restore(key, value []byte) error {
	if len(key) != 1 || len(value) < 10 || byte(binary.BigEndian.Uint16(value)) != key[0] {
		return mail.ErrRecord
	}
	one := &billMonth{number: int(binary.BigEndian.Uint16(value)), since: time.Unix(int64(binary.BigEndian.Uint64(value[2:])), 0).UTC(),
		rows: map[uint16]*api.BillRow{}, minute: map[uint16]int64{}}
	for value = value[10:]; len(value) > 0; {
		if len(value) < 2 {
			return mail.ErrRecord
		}
		r := &api.BillRow{}
		one.rows[binary.BigEndian.Uint16(value)] = r
		value = value[2:]
		for _, n := range fields(r) {
			v, octets := binary.Uvarint(value)
			if octets <= 0 {
				return mail.ErrRecord
			}
			*n, value = v, value[octets:]
		}
	}
	if m.list == nil {
		m.list = map[int]*billMonth{}
	}
	m.list[one.number] = one
	return nil
}

// recordBills writes the accounts of all bearers that have changed.
func (g *Gateway) recordBills() {
	for _, b := range g.bearers {
		b.billed.months.record(b.road)
	}
}

// last is the accounts of the last months, the newest first, at most so many. name names a site.
func (m *months) last(most int, name func(uint16) string) (list []api.BillMonth) {
	numbers := slices.SortedFunc(maps.Keys(m.list), func(a, b int) int { return cmp.Compare(b, a) })
	for _, number := range numbers[:min(most, len(numbers))] {
		list = append(list, m.list[number].row(name))
	}
	return list
}

// row is a month as operators see it. The last row counts octets and units that belong to no site.
func (b *billMonth) row(name func(uint16) string) api.BillMonth {
	row := api.BillMonth{Month: monthStart(b.number).Format("2006-01"), Since: b.since, Sites: []api.BillSite{}}
	others := api.BillRow{}
	for _, id := range slices.Sorted(maps.Keys(b.rows)) {
		r := b.rows[id]
		if id == 0 {
			row.Total, others = *r, *r
			continue
		}
		others.SentOctets, others.ReceivedOctets = others.SentOctets-r.SentOctets, others.ReceivedOctets-r.ReceivedOctets
		others.SentUnits, others.ReceivedUnits = others.SentUnits-r.SentUnits, others.ReceivedUnits-r.ReceivedUnits
		row.Sites = append(row.Sites, api.BillSite{Site: name(id), BillRow: *r})
	}
	others.Minutes = 0
	if others != (api.BillRow{}) {
		row.Sites = append(row.Sites, api.BillSite{BillRow: others})
	}
	return row
}

// billed counts the units of a bill, for all datagrams, authentic or not: the provider charges for both.
type billed struct {
	profile.Bill
	api.BillStatus
	months    months
	datagrams uint64 // both ways
}

// sent and received count a datagram at a time of the wall clock, to or from a site; 0: of none.
func (b *billed) sent(at time.Time, site uint16, payload int) {
	octets := payload + profile.IPUDPOctets
	b.datagrams++
	b.Sent += uint64(b.Units(octets))
	b.SentOctets += uint64(octets)
	b.months.count(at, site, mail.Sent, octets, b.Units(octets))
}

func (b *billed) received(at time.Time, site uint16, payload int) {
	octets := payload + profile.IPUDPOctets
	b.datagrams++
	b.Received += uint64(b.Units(octets))
	b.ReceivedOctets += uint64(octets)
	b.months.count(at, site, mail.Received, octets, b.Units(octets))
}

// month is the account of the last month; nil: there is none.
func (b *billed) month(name func(uint16) string) *api.BillMonth {
	if list := b.months.last(1, name); len(list) > 0 {
		return &list[0]
	}
	return nil
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
