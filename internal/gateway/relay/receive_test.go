package relay

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/link/envelope"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// desk is the gateway around a carrier: it keeps the messages that are handed on, and notes which keys of the journal were written.
type desk struct {
	mail.Services
	Ways
	capsules []Capsule
	recorded map[string]bool
}

func (d *desk) Record(bucket string, key, value []byte) { d.recorded[bucket+string(key)] = true }
func (d *desk) Key(uint16, uint16, []byte) (seal.EndKey, bool) {
	return seal.NewEndKey([32]byte{1}), true
}
func (d *desk) Next(to uint16, _ ...uint16) (uint16, bool) { return to, true }
func (d *desk) Hand(_ time.Time, _ uint16, c *Capsule, _ site.Mark) bool {
	d.capsules = append(d.capsules, *c)
	return true
}

// An origin with more sets than one capsule has room for is told of all of them, in the capsules that follow at once.
func TestEverySetIsTold(t *testing.T) {
	const sets = 300
	d := &desk{recorded: map[string]bool{}}
	c := New(Config{Common: mail.Common{Self: 1, Peers: []*mail.Peer{{ID: 2}}, Services: d}, Ways: d})
	l := c.lines[2]
	l.own, l.far = stream{Number: 1}, stream{Number: 2}
	for set := range uint16(sets) {
		l.inflow(1+set).cumulative, l.in[1+set].news = 1<<20, true
	}
	l.owe(now, tellAfter)
	told := map[uint64]int{}
	at := now.Add(tellAfter)
	for range sets {
		if !l.tellsAt(9).Equal(at) {
			break
		}
		l.tell(at, 2)
	}
	key := seal.NewEndKey([32]byte{1})
	for _, capsule := range d.capsules {
		body, ok := key.Open(capsule.sealed, controlOctets, 0, capsule.head(2, 0))
		check.True(t, "sealed", ok)
		check.True(t, "octets", len(body) <= mostTold+16, len(body))
		for len(body) > 0 {
			check.Equal(t, "what is said", body[0], byte(sayReceipt))
			set, n := binary.Uvarint(body[1:])
			body = body[1+n:]
			told[set]++
			for range 2 {
				_, n := binary.Uvarint(body)
				body = body[n:]
			}
		}
	}
	check.Equal(t, "sets told", len(told), sets)
	check.Equal(t, "in capsules", len(d.capsules), 4)
	check.Equal(t, "recorded as told", len(d.recorded), sets)
	check.True(t, "nothing is left to tell", l.tellAt.IsZero())
}

func (d *desk) Secret(of []byte) (k [32]byte) {
	copy(k[:], of)
	return k
}

// A set of several outlives a member that was taken out: the others get another key.
func TestASetOutlivesAMember(t *testing.T) {
	d := &desk{recorded: map[string]bool{}}
	c := New(Config{Common: mail.Common{Self: 1, Peers: []*mail.Peer{{ID: 2}, {ID: 3}}, Services: d}, Ways: d})
	s := c.newSet(1, 0, []uint16{2, 3})
	c.lines[3].own = stream{Number: 7}
	before := c.secret(s)
	delete(c.lines, 3) // as Leave does, and a restart without that peer
	check.True(t, "another key", c.secret(s) != before)
}

// An origin that skips four thousand million numbers costs no more than one that skips two.
func TestSkipIsBounded(t *testing.T) {
	d := &desk{recorded: map[string]bool{}}
	c := New(Config{Common: mail.Common{Self: 1, Peers: []*mail.Peer{{ID: 2}}, Services: d}, Ways: d})
	l := c.lines[2]
	l.inflow(1).early[1<<32-1] = []byte{1}
	l.early++
	l.hear(now, binary.AppendUvarint(binary.AppendUvarint([]byte{saySkip}, 1), 1<<32-2))
	check.Equal(t, "until", l.in[1].cumulative, 1<<32-3)
	check.Equal(t, "kept", len(l.in[1].early), 1)
}

func (d *desk) Note(string, string, ...any) {}
func (d *desk) TellFates(time.Time)         {}

// A set of several that has given many numbers makes place for another: a recipient that none of them reached reads its first message. The
// messages under way still end, and then the full set is forgotten. The set of a single recipient goes on.
func TestASetOfSeveralIsFull(t *testing.T) {
	d := &desk{recorded: map[string]bool{}}
	ended := 0
	peers := []*mail.Peer{mail.NewPeer(2, "two", netip.AddrPort{}, d, false), mail.NewPeer(3, "three", netip.AddrPort{}, d, false)}
	store := mail.NewStore(d, 1, 1<<20, func(*mail.Entry, mail.Fate) { ended++ })
	c := New(Config{Common: mail.Common{Self: 1, Peers: peers, Services: d, Store: store}, Ways: d})
	m, err := store.New(envelope.Message{Payload: &site.Message{To: "pipe"}}, mail.Payload)
	check.NoError(check.Fatal(t), err)
	ids := []uint16{2, 3}
	s := c.setFor(m, ids)
	s.next = mostNumbers + 5
	for _, p := range peers {
		store.Start(p, m, s.at(mostNumbers), s.history)
	}
	next := c.setFor(m, ids)
	check.True(t, "another set", next != s && next.number != s.number && c.setFor(m, ids) == next)
	check.Equal(t, "its next number", next.next, 1)
	next.next = mostNumbers
	c.setFor(m, ids)
	check.True(t, "the full set is there while messages are under way", c.sets[s.number] == s)
	for _, l := range c.order {
		l.receipt(now, s.number, mostNumbers, mostNumbers)
	}
	check.Equal(t, "messages that ended", ended, 2)
	c.setFor(m, []uint16{3})
	check.True(t, "it is forgotten then", c.sets[s.number] == nil)
	one := c.setFor(m, []uint16{2})
	one.next = 1 << 20
	check.True(t, "the set of one", c.setFor(m, []uint16{2}) == one)
}

// Sets of single recipients take no room from those of several.
func TestSetsOfOneLeaveRoomForSeveral(t *testing.T) {
	d := &desk{recorded: map[string]bool{}}
	c := New(Config{Common: mail.Common{Self: 1, Services: d}, Ways: d})
	m := &mail.Message{Content: envelope.Message{Payload: &site.Message{To: "pipe"}}}
	for id := range uint16(mostSets) {
		c.setFor(m, []uint16{2 + id})
	}
	several := func(id uint16) *set { return c.together(m, []*mail.Peer{{ID: 2}, {ID: id}}) }
	for id := range uint16(mostSets) {
		check.True(t, "a set of two", several(3+id) != nil)
	}
	check.True(t, "one too many", several(200) == nil)
}

// A recipient that begins anew again and again leaves nothing of its sets behind, and messages still go to several at once.
func TestSetsOfARecipientThatBeginsAnewEnd(t *testing.T) {
	d := &desk{recorded: map[string]bool{}}
	peers := []*mail.Peer{mail.NewPeer(2, "two", netip.AddrPort{}, d, false), mail.NewPeer(3, "three", netip.AddrPort{}, d, false)}
	c := New(Config{Common: mail.Common{Self: 1, Peers: peers, Services: d, Store: mail.NewStore(d, 1, 1<<20, nil)}, Ways: d})
	for range 2 * mostSets {
		m := &mail.Message{Content: envelope.Message{Payload: &site.Message{To: "pipe"}}}
		check.True(check.Fatal(t), "a set of two", c.together(m, peers) != nil)
		delete(c.of, m.ID) // it has ended
		c.NewStore(peers[0])
	}
	check.True(t, "sets", len(c.sets) <= 1, len(c.sets))
}
