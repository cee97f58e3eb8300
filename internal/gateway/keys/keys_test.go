package keys_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

var start = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// book is the Services of a node.
type book struct {
	records, dropped []string
}

func (b *book) Record(bucket string, _, _ []byte) { b.records = append(b.records, bucket) }
func (b *book) Note(string, string, ...any)       {}
func (b *book) Drop(reason string)                { b.dropped = append(b.dropped, reason) }

// node is the keys of a node, and its peers by id.
type node struct {
	*keys.Keys
	book  book
	peers map[uint16]*mail.Peer
}

func issue(t *testing.T, old *roster.Roster, ids ...uint16) *roster.Roster {
	var list []roster.Node
	for _, id := range ids {
		list = append(list, roster.Node{ID: id, Name: string(rune('a' + id)), Public: sim.NodeKey(id).Public()})
	}
	r, err := roster.Issue("net", old, list, start, time.Time{}, [roster.RandomForIssue]byte{byte(len(ids))}, sim.Authority())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newNode(t *testing.T, id uint16, first *roster.Roster, others ...uint16) *node {
	n := &node{peers: map[uint16]*mail.Peer{}}
	var list []*mail.Peer
	states := map[uint16]seal.PeerState{}
	for _, other := range others {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(other)}), 4242)
		n.peers[other] = mail.NewPeer(other, string(rune('a'+other)), addr, nil, false)
		list, states[other] = append(list, n.peers[other]), seal.PeerState{}
	}
	n.Keys = keys.New(keys.Config{ID: id, Name: string(rune('a' + id)), Incarnation: seal.Incarnation{Number: uint32(start.Unix()) + uint32(id)}, Services: &n.book,
		Trust:    &keys.Trust{Own: sim.NodeKey(id), Authority: sim.Authority().Public(), Roster: first},
		AckDelay: time.Second, ProbeInterval: time.Minute, RoundTrip: time.Second}, list)
	if err := n.Begin(states); err != nil {
		t.Fatal(err)
	}
	n.Start(start)
	return n
}

// hello is a datagram with a HELLO of one node to another.
func (n *node) hello(t *testing.T, to uint16) api.Datagram {
	h := frame.Hello{Store: 1, Stream: 1}
	n.Hello(n.peers[to], &h)
	data, ok := n.Seal(to, true, frame.Append(nil, h, true))
	if !ok {
		t.Fatal("nothing can be sealed")
	}
	return api.Datagram{Addr: netip.MustParseAddrPort("10.9.9.9:4242"), Data: data}
}

// A datagram of a stranger does not count; it asks for a HELLO to where it came from, and its sender counts when it has answered that.
// Octets that are no datagram ask for nothing.
func TestStranger(t *testing.T) {
	first := issue(t, nil, 1, 2)
	a, b := newNode(t, 1, first, 2), newNode(t, 2, first, 1)
	o := b.Open(start, a.hello(t, 2), false)
	check.Equal(t, "taken", o.Taken, false)
	if o.Greet == nil || o.Hello == nil || !o.Owe.IsZero() {
		t.Fatalf("a stranger asks for %+v", o.Answer)
	}
	check.Equal(t, "answered by a silent node", b.Open(start, a.hello(t, 2), true).Greet != nil, false)
	o = a.Open(start, b.hello(t, 1), false) // it has heard a
	check.Equal(t, "an answer is taken", o.Taken, true)
	check.Equal(t, "the start that counts", a.Incarnation(2), uint32(start.Unix())+2)
	check.Equal(t, "last record", a.book.records[len(a.book.records)-1], keys.BucketSeal)
	o = a.Open(start, api.Datagram{Data: []byte("noise")}, false)
	check.Equal(t, "noise is idle", o.Idle && !o.Taken, true)
	check.Equal(t, "dropped", slices.Contains(a.book.dropped, "short"), true)
}

// An operator's roster is told to all, as a change of the rosters that they have once these are known. A node that is told goes by it, and
// a node that it does not name is gone at both.
func TestRosterIsTold(t *testing.T) {
	first := issue(t, nil, 1, 2, 3)
	a, b := newNode(t, 1, first, 2, 3), newNode(t, 2, first, 1, 3)
	everyone := func(*mail.Peer) bool { return true }
	check.Equal(t, "told before", len(a.Rosters.Tell(start, everyone)), 0)
	a.Rosters.Give(issue(t, first, 1, 2))
	check.Equal(t, "named at a", [2]bool{a.Rosters.Names(2), a.Rosters.Names(3)}, [2]bool{true, false})
	list := a.Rosters.Tell(start, everyone)
	if len(list) != 1 || len(list[0].To) != 1 || list[0].To[0].ID != 2 {
		t.Fatalf("told: %+v", list)
	}
	check.Equal(t, "owed", len(b.Rosters.Arrived(start, 1, list[0].Octets)), 0)
	check.Equal(t, "named at b", [2]bool{b.Rosters.Names(1), b.Rosters.Names(3)}, [2]bool{true, false})
	a.Rosters.Refused(start, list[0], list[0].To) // there was no room: it is told again
	check.Equal(t, "again at once", len(a.Rosters.Tell(start, everyone)), 0)
	list = a.Rosters.Tell(start.Add(time.Minute), everyone)
	check.Equal(t, "again in a minute", len(list), 1)
	a.Rosters.Ended(start.Add(2*time.Minute), 2, list[0].Octets, true)
	check.Equal(t, "once all have it", len(a.Rosters.Tell(start.Add(time.Hour), everyone)), 0)
	check.Equal(t, "owed by what is not signed", len(b.Rosters.Arrived(start, 1, []byte("no roster"))), 1)
}
