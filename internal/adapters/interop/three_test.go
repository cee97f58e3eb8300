package interop_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// three is two gateways with some of the adapters, and the data that their clients were given.
type three struct {
	*world
	stanzas map[uint16][]string
	conns   map[uint16]map[string]site.ConnID // of the stand-in for the XMPP server of a node, by domain
}

var everyAdapter = []site.Adapter{site.JXTA, site.TAK, site.XMPP}

func xmppDomain(id uint16) string { return fmt.Sprintf("site%d.example", id) }

func newThree(t *testing.T, link string, seed uint64, adapters ...site.Adapter) *three {
	w := &three{stanzas: map[uint16][]string{}, conns: map[uint16]map[string]site.ConnID{}}
	w.world = worldOver(t, link, seed, 2, nil, func(n *sim.Node, g *gateway.Config) {
		cfg := xmpp.Config{ID: n.ID, Domain: xmppDomain(n.ID), Rooms: "rooms." + xmppDomain(n.ID), Occupants: -1}
		cfg.Suit(g.Profile.Gathers())
		far := 3 - n.ID
		cfg.Sites = []xmpp.Site{{ID: far, Domain: xmppDomain(far), Rooms: "rooms." + xmppDomain(far)}}
		g.Adapters[site.XMPP] = func(memories []site.Memory) (gateway.Adapter, error) { return xmpp.New(cfg, memories) }
		for _, a := range everyAdapter {
			there := false
			for _, b := range adapters {
				there = there || a == b
			}
			if !there {
				delete(g.Adapters, a)
			}
		}
	})
	w.xmpp = w.order
	return w
}

func (w *three) begin() {
	for _, n := range w.Nodes {
		w.world.conns += 10
		far := xmppDomain(3 - n.ID)
		w.conns[n.ID] = map[string]site.ConnID{far: w.world.conns, "rooms." + far: w.world.conns + 1}
		for domain, conn := range w.conns[n.ID] {
			w.DeliverLAN(n, site.XMPP, xmpp.Opened{Conn: conn, Domain: domain})
		}
	}
}

var pinged = regexp.MustCompile(`^<iq type='get' id='(aldis-ping-[0-9]+)' from='([^']*)' to='([^']*)'>`)

func (w *three) order(n *sim.Node, o xmpp.Send) {
	if m := pinged.FindSubmatch(o.XML); m != nil {
		w.At(0, func() { w.stanza(n, string(m[2]), "<iq type='result' id='%s' from='%s' to='%s'/>", m[1], m[3], m[2]) })
		return
	}
	w.stanzas[n.ID] = append(w.stanzas[n.ID], string(o.XML))
}

func (w *three) stanza(n *sim.Node, domain, format string, args ...any) {
	w.t.Helper()
	e, fault := stanza.Parse(fmt.Appendf(nil, format, args...))
	if fault != nil {
		w.t.Fatal(fault)
	}
	w.DeliverLAN(n, site.XMPP, xmpp.Heard{Conn: w.conns[n.ID][domain], Element: e})
}

const said = 10

// play makes clients of some adapters send for ten minutes, and returns the octets on the link. Everything must arrive once.
func (w *three) play(traffic ...site.Adapter) (octets int64) {
	w.t.Helper()
	hq, ship := w.Nodes[0], w.Nodes[1]
	speaks := map[site.Adapter]bool{}
	for _, a := range traffic {
		speaks[a] = true
	}
	up, down := w.Octets(ship)
	var teller, listener *peer
	var aboard, ashore *device
	if speaks[site.JXTA] {
		listener, teller = w.join(hq, "listener", words), w.join(ship, "teller", words)
	}
	if speaks[site.TAK] {
		ashore, aboard = w.connect(hq), w.connect(ship)
	}
	if speaks[site.XMPP] {
		w.begin()
	}
	w.Run(3 * time.Minute)
	for i := range said {
		began := w.Now
		if speaks[site.JXTA] {
			teller.say(words, fmt.Sprintf("<say>the teller says number %d.</say>", i))
		}
		if speaks[site.TAK] {
			aboard.say(w.chat("ANDROID-1", "FALCON", "All Chat Rooms", fmt.Sprint("m-", i), fmt.Sprintf("FALCON says number %d.", i)))
		}
		if speaks[site.XMPP] {
			w.stanza(ship, xmppDomain(1), "<message from='anna@%s/x' to='bert@%s' type='chat' id='a%d'><body>Anna says number %d.</body></message>", xmppDomain(2), xmppDomain(1), i, i)
		}
		w.Run(began.Add(30 * time.Second).Sub(w.Now))
	}
	w.Run(3 * time.Minute)
	for i := range said {
		number := fmt.Sprintf("says number %d.", i)
		if speaks[site.JXTA] {
			check.Equal(w.t, "JXTA's "+number, len(listener.heard("teller "+number)), 1)
		}
		if speaks[site.TAK] {
			check.Equal(w.t, "TAK's "+number, len(ashore.lines("FALCON "+number)), 1)
		}
		if speaks[site.XMPP] {
			check.Equal(w.t, "XMPP's "+number, strings.Count(strings.Join(w.stanzas[1], "\n"), "Anna "+number), 1)
		}
	}
	upNow, downNow := w.Octets(ship)
	return upNow + downNow - up - down
}

// JXTA, TAK and XMPP are on one gateway at once. The traffic of one of them takes the same octets as on a gateway without other
// adapters, so that the figures of each page hold; when all send, everything arrives once, and takes no more octets than each alone.
func TestThreeAtOnce(t *testing.T) {
	for _, link := range []string{"iridium-directip", "hf-2400"} {
		for seed := uint64(1); seed <= 3; seed++ {
			var sum int64
			for _, a := range everyAdapter {
				alone := newThree(t, link, seed, a).play(a)
				beside := newThree(t, link, seed, everyAdapter...).play(a)
				check.Equal(t, fmt.Sprintf("octets of the adapter %v on %s, seed %d, beside the others", a, link, seed), beside, alone)
				sum += alone
			}
			together := newThree(t, link, seed, everyAdapter...).play(everyAdapter...)
			t.Logf("%s, seed %d: each alone %d octets, at once %d", link, seed, sum, together)
			if together > sum {
				t.Errorf("on %s, seed %d, all at once take %d octets, each alone %d", link, seed, together, sum)
			}
		}
	}
}
