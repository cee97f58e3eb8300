package jxtabridge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// TestMischiefOnTheLAN lets an attacker without any peer's key into the LAN for an hour: he opens connections and sends
// nothing, or another peer's welcome, polls for another peer, sends again messages that he has seen, from his addresses and by
// multicast, disconnects others, closes their pipes, forges messages in their names, invents peers, and floods. What
// docs/limits.md promises ("Peers on the LAN") holds: peers that sign, and peers that do not sign and answer at
// their first address, get all their messages, once and in order; he gets none of them, none of his messages goes out in a
// signed peer's name, and the gateway's memory is bounded.
func TestMischiefOnTheLAN(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { (&scoundrel{rng: rand.New(rand.NewPCG(seed, 77))}).play(t) })
	}
}

// scoundrel is the attacker.
type scoundrel struct {
	rng    *rand.Rand
	n      *node
	honest []*fake
	seen   [][]byte // bodies that honest peers have sent
	open   []*fake  // his connections
	did    map[string]int
}

// address is one of his addresses.
func (s *scoundrel) address() string {
	return fmt.Sprintf("10.66.1.%d:%d", 1+s.rng.IntN(6), 9000+s.rng.IntN(60))
}

// dial opens a connection with an id; "": he sends no welcome.
func (s *scoundrel) dial(id string) *fake {
	x := &fake{n: s.n, name: "scoundrel", id: id, addr: s.address(), dead: s.rng.IntN(3) > 0}
	if s.rng.IntN(3) == 0 {
		x.signed, x.signer = true, signerOf(900+s.rng.IntN(3))
	}
	if id == "" {
		s.n.conns++
		x.conn = s.n.conns
		s.n.peers[x.conn] = x
		s.n.step(Opened{Conn: x.conn, Remote: x.addr})
	} else if s.rng.IntN(3) == 0 {
		x.poll("http://" + s.n.cfg.HTTP + "/EndpointService:jxta-NetGroup/" + jxta.ClassRelay + "/connect,3600000,keep,true")
	} else {
		x.redial("")
	}
	if s.open = append(s.open, x); len(s.open) > 40 {
		s.hangUp(0)
	}
	return x
}

func (s *scoundrel) hangUp(i int) {
	s.open[i].hangUp()
	s.open = slices.Delete(s.open, i, i+1)
}

// mine is a connection of his.
func (s *scoundrel) mine() *fake {
	if len(s.open) == 0 {
		return s.dial(s.honest[0].id)
	}
	return s.open[s.rng.IntN(len(s.open))]
}

// act does one piece of mischief.
func (s *scoundrel) act(t *testing.T) {
	victim := s.honest[s.rng.IntN(len(s.honest))]
	old := s.seen[s.rng.IntN(len(s.seen))]
	kind := s.rng.IntN(13)
	s.did[fmt.Sprint(kind)]++
	switch kind {
	case 0:
		s.dial("") // half open
	case 1, 2:
		x := s.dial(victim.id)
		switch s.rng.IntN(3) {
		case 0:
			x.connect(jxta.NetGroup)
		case 1:
			x.disconnect(jxta.NetGroup)
		}
	case 3:
		if len(s.open) > 0 {
			s.hangUp(s.rng.IntN(len(s.open)))
		}
	case 4:
		s.n.step(Received{s.mine().conn, old})
	case 5:
		bad := slices.Clone(old)
		bad[s.rng.IntN(len(bad))] ^= 1 << s.rng.IntN(8)
		s.n.step(Received{s.mine().conn, bad[:1+s.rng.IntN(len(bad))]})
	case 6:
		s.n.hear(old) // by multicast
	case 7:
		s.n.hear(everybody(t, victim.id, jxta.NetGroup, jxta.URN(jxta.ClassResolver), ires, published(msa("forged"))))
	case 8:
		s.mine().wire(jxta.NetGroup, pipe1, fmt.Sprint("forged-", s.rng.Uint32()), body("forged in the name of "+victim.name))
	case 9:
		x := s.mine()
		x.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, s.rng.IntN(2) == 0)
		x.disconnect(jxta.NetGroup)
	case 10: // a peer that does not exist
		s.dial(peerName("uuid", 5000+s.rng.IntN(3000))).connect(jxta.NetGroup)
	case 11:
		x := s.mine()
		for range 30 {
			s.n.step(Received{x.conn, old})
		}
	default:
		junk := make([]byte, s.rng.IntN(400))
		for i := range junk {
			junk[i] = byte(s.rng.Uint32())
		}
		s.n.step(Received{s.mine().conn, junk})
	}
}

func (s *scoundrel) play(t *testing.T) {
	n := etherNode(t)
	n.cfg.HTTP = "10.0.1.1:9700"
	n.b = New(n.cfg, nil)
	s.n, s.did = n, map[string]int{}
	n.record = func(r Received) {
		if f := n.peers[r.Conn]; slices.Contains(s.honest, f) {
			if s.seen = append(s.seen, slices.Clone(r.Body)); len(s.seen) > 2000 {
				s.seen = s.seen[1000:]
			}
		}
	}
	for i, format := range []string{"cbid", "cbid", "uuid"} {
		f := n.peer(fmt.Sprint("honest", i), format)
		s.honest = append(s.honest, f)
		f.connect(jxta.NetGroup)
		f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypeUnicast, true)
	}
	n.pass(time.Minute)
	n.takeItems()
	n.takeCarry()
	for _, f := range s.honest {
		f.take()
	}
	n.notes = nil
	token := uint64(0)
	want, got := make([][]string, len(s.honest)), make([][]string, len(s.honest))
	for second := range 3600 {
		for range s.rng.IntN(3) {
			s.act(t)
		}
		if second%20 == 0 {
			for i, f := range s.honest {
				token++
				text := fmt.Sprintf("%s;%d", f.name, second)
				f.far(token, text)
				want[i] = append(want[i], text)
			}
		}
		if second%120 == 60 { // a message of an honest peer, and the messages that all have got
			f := s.honest[s.rng.IntN(len(s.honest))]
			f.wire(jxta.NetGroup, pipe2, fmt.Sprint("true-", second), body("true "+f.name))
			f.connect(jxta.NetGroup)
		}
		n.pass(time.Second)
		for i, f := range s.honest {
			got[i] = append(got[i], f.bodies()...)
		}
		s.judge(t)
		if t.Failed() {
			t.Fatalf("second %d", second)
		}
	}
	n.pass(2 * time.Minute)
	for i, f := range s.honest {
		got[i] = append(got[i], f.bodies()...)
		got[i] = slices.DeleteFunc(got[i], func(text string) bool { return !strings.HasPrefix(text, f.name) })
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s got %d messages of %d: %v", f.name, len(got[i]), len(want[i]), firstDifferent(got[i], want[i]))
		}
	}
	check.Equal(t, "kinds of mischief", len(s.did), 13)
	refused := uint64(0)
	for _, count := range n.b.Stats().Refused {
		refused += uint64(count)
	}
	check.True(t, "it was refused and counted", refused > 100, n.b.Stats().Refused)
	check.True(t, "the log is readable", len(n.notes) <= 60*mostNotes, len(n.notes))
}

// mostNotes are the lines of the log in a minute, on average, for his six hosts. The log takes at most 20 of one text, reason and
// host.
const mostNotes = 40

// judge checks that nothing is wrong now.
func (s *scoundrel) judge(t *testing.T) {
	for _, x := range s.open {
		for _, text := range x.bodies() {
			if strings.HasPrefix(text, "honest") {
				t.Errorf("he got %q, at %s in the name %s", text, x.addr, x.id)
			}
		}
	}
	for _, c := range s.n.takeCarry() {
		for _, f := range s.honest {
			if f.signed && c.Message.From == f.id && !strings.HasPrefix(string(c.Message.Parts[0].Data), "true") {
				t.Errorf("in the name of %s goes out %v", f.name, c.Message.Parts)
			}
		}
	}
	for _, it := range s.n.takeItems() {
		for _, f := range s.honest {
			if it.Gone && it.Owner == f.id && it.Kind != site.Document {
				t.Errorf("what %s has was taken back: %+v", f.name, it)
			}
		}
	}
	if peers := len(s.n.b.outlets.peers); peers > len(s.honest)+6*64+len(s.open) {
		t.Errorf("%d peers are known", peers)
	}
}

// firstDifferent says where two lists differ first.
func firstDifferent(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("at %d %q, not %q", i, got[i], want[i])
		}
	}
	return "one is shorter"
}
