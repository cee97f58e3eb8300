package gateway_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/toyface"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// boards is a world whose nodes have a bulletin beside their JXTA adapter, those in without excepted.
type boards struct {
	*sim.World
	of   map[uint16]*toyface.Bulletin // of the present run of each node
	told map[uint16][]toyface.Told
	seen map[uint16][]toyface.Line // shown to the users, over all runs
}

const scope = "jxta-NetGroup" // JXTA's own: names of both adapters are the same on purpose

func boardWorld(t *testing.T, nodes int, name string, without ...uint16) *boards {
	t.Helper()
	b := &boards{of: map[uint16]*toyface.Bulletin{}, told: map[uint16][]toyface.Told{}, seen: map[uint16][]toyface.Line{}}
	b.World = world(t, nodes, name, 7, func(c *sim.Config) {
		c.Group = c.Profile.Transport == profile.PMul
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			if slices.Contains(without, n.ID) {
				return
			}
			cfg := toyface.Config{Scope: scope, Sub: 3}
			for _, p := range g.Peers {
				cfg.Sites = append(cfg.Sites, p.ID)
			}
			g.Adapters[toyface.Number] = func(memories []site.Memory) (gateway.Adapter, error) {
				board, err := toyface.New(cfg, memories)
				b.of[n.ID] = board
				return board, err
			}
		}
		c.LAN = func(n *sim.Node, out api.Output) {
			for _, o := range out.LAN {
				if o.Adapter != toyface.Number {
					continue
				}
				switch o := o.Order.(type) {
				case toyface.Show:
					b.seen[n.ID] = append(b.seen[n.ID], o.Line)
				case toyface.Told:
					b.told[n.ID] = append(b.told[n.ID], o)
				}
			}
		}
	})
	return b
}

func (b *boards) tell(n *sim.Node, ev site.Event) { b.DeliverLAN(n, toyface.Number, ev) }

// jxtaItem and jxtaMessage have the very names that a bulletin's have.
func jxtaItem(kind site.Kind, owner, id, doc string) site.Item {
	return site.Item{Kind: kind, Sub: 3, Scope: scope, Owner: owner, ID: id, Doc: []byte(doc)}
}

func jxtaMessage(board, user, text string) site.Message {
	return site.Message{Published: true, Scope: scope, Topic: board, From: user, ID: text, Parts: []site.Part{{Name: "text", Data: []byte(text)}}}
}

// jxtaTexts are what the JXTA adapter of a node was handed, in order.
func jxtaTexts(n *sim.Node) (texts []string) {
	for _, g := range n.Site.Got {
		texts = append(texts, string(g.Payload.Parts[0].Data))
	}
	return texts
}

// Two gateways carry both adapters at once, by NORM and by P_Mul: items of either are replicated and withdrawn, messages of
// either arrive once, in order and at their own adapter, and every post's fate comes back.
func TestTwoAdapters(t *testing.T) {
	for _, name := range []string{"iridium-dialup", "hf-2400"} {
		t.Run(name, func(t *testing.T) {
			b := boardWorld(t, 2, name)
			hq, ship := b.Nodes[0], b.Nodes[1]
			b.Run(2 * time.Minute)
			b.tell(ship, toyface.Enter{User: "anna"})
			b.tell(ship, toyface.Enter{User: "bert"})
			b.tell(ship, toyface.Pin{Notice: "weather", Text: "gale from north west"})
			ship.Site.Put(b.World, jxtaItem(site.Endpoint, "anna", "", "of JXTA"))
			ship.Site.Put(b.World, jxtaItem(site.Document, "", "weather", "of JXTA"))
			b.Run(3 * time.Minute)
			if got := b.of[1].Users(2); !slices.Equal(got, []string{"anna", "bert"}) {
				t.Errorf("HQ's board knows the users %v", got)
			}
			if got := b.of[1].Notices(2); !maps.Equal(got, map[string]string{"weather": "gale from north west"}) {
				t.Errorf("HQ's board has the notices %v", got)
			}
			if got := hq.Site.Far[2]; !reflect.DeepEqual(got, ship.Site.Items) {
				t.Errorf("HQ's JXTA adapter knows %v, want %v", got, ship.Site.Items)
			}

			b.tell(ship, toyface.Leave{User: "anna"})
			b.tell(ship, toyface.Pin{Notice: "weather"})
			b.Run(3 * time.Minute)
			if got := b.of[1].Users(2); !slices.Equal(got, []string{"bert"}) {
				t.Errorf("after one left HQ's board knows the users %v", got)
			}
			if got := b.of[1].Notices(2); len(got) != 0 {
				t.Errorf("after it was taken down HQ's board has the notices %v", got)
			}
			if got := hq.Site.Far[2]; !reflect.DeepEqual(got, ship.Site.Items) {
				t.Errorf("after a withdrawal in the other adapter HQ's JXTA adapter knows %v, want %v", got, ship.Site.Items)
			}

			var lines []toyface.Line
			var texts []string
			for i := range 20 {
				text := fmt.Sprintf("position report %d, nothing else to report", i)
				b.At(time.Duration(i)*5*time.Second, func() {
					b.tell(ship, toyface.Post{ID: uint64(i), Board: "reports", User: "bert", Text: text})
					ship.Site.Send(b.World, jxtaMessage("reports", "bert", "JXTA: "+text), 1)
				})
				lines = append(lines, toyface.Line{Site: 2, Board: "reports", User: "bert", Text: text})
				texts = append(texts, "JXTA: "+text)
			}
			b.Run(10 * time.Minute)
			if got := b.seen[1]; !slices.Equal(got, lines) {
				t.Errorf("HQ's board was shown %v", got)
			}
			if got := jxtaTexts(hq); !slices.Equal(got, texts) {
				t.Errorf("HQ's JXTA adapter was handed %q", got)
			}
			if got := len(b.told[2]); got != 20 {
				t.Errorf("%d fates came back, want 20", got)
			}
			slices.SortFunc(b.told[2], func(a, b toyface.Told) int { return int(a.ID) - int(b.ID) }) // the fate of a lost one comes later
			for i, told := range b.told[2] {
				if want := (toyface.Told{ID: uint64(i), Site: 1}); told != want {
					t.Errorf("fate %d is %+v, want %+v", i, told, want)
				}
			}
			for _, n := range b.Nodes {
				if got := n.GW.Status(b.Now).Peers[0].Unreadable; got != 0 {
					t.Errorf("%s could not read %d messages", n.Name, got)
				}
			}
		})
	}
}

// An adapter finds its memories after a kill: posts that it was shown, notices that hang. Users whose connections died with
// the run are withdrawn. Messages under way still arrive once.
func TestAdapterAfterAKill(t *testing.T) {
	b := boardWorld(t, 2, "iridium-dialup")
	hq, ship := b.Nodes[0], b.Nodes[1]
	b.Run(time.Minute)
	b.tell(ship, toyface.Enter{User: "anna"})
	b.tell(ship, toyface.Pin{Notice: "weather", Text: "gale", Until: sim.Epoch.Add(3 * time.Hour)})
	b.tell(ship, toyface.Pin{Notice: "orders", Text: "none"})
	for i := range 10 {
		b.tell(ship, toyface.Post{ID: uint64(i), Board: "reports", User: "anna", Text: fmt.Sprint("before ", i)})
		b.tell(hq, toyface.Post{ID: uint64(i), Board: "reports", User: "carl", Text: fmt.Sprint("order ", i)})
	}
	b.Run(2 * time.Second)
	b.Kill(ship, time.Second)
	b.Run(time.Minute)
	b.Kill(hq, time.Second)
	b.Run(2 * time.Minute)

	var fromShip, fromHQ []toyface.Line
	for i := range 10 {
		fromShip = append(fromShip, toyface.Line{Site: 2, Board: "reports", User: "anna", Text: fmt.Sprint("before ", i)})
		fromHQ = append(fromHQ, toyface.Line{Site: 1, Board: "reports", User: "carl", Text: fmt.Sprint("order ", i)})
	}
	for _, at := range []struct {
		node uint16
		want []toyface.Line
	}{{1, fromShip}, {2, fromHQ}} {
		if got := b.of[at.node].Board(); !slices.Equal(got, at.want) {
			t.Errorf("the board of node %d holds %v, want %v", at.node, got, at.want)
		}
		if got := b.seen[at.node]; !slices.Equal(got, at.want) {
			t.Errorf("node %d was shown %v, want %v", at.node, got, at.want)
		}
	}
	if got := b.of[1].Users(2); len(got) != 0 {
		t.Errorf("HQ still knows the users %v of the ship's earlier run", got)
	}
	if got := b.of[1].Notices(2); !maps.Equal(got, map[string]string{"weather": "gale", "orders": "none"}) {
		t.Errorf("HQ has the notices %v", got)
	}
}

// Three adapters of one kind in one gateway use the same keys of memory, the same names of items and the same topics.
func TestAdaptersDoNotCollide(t *testing.T) {
	numbers := []site.Adapter{site.JXTA, toyface.Number, site.MaxAdapter}
	of := map[uint16]map[site.Adapter]*toyface.Bulletin{1: {}, 2: {}}
	w := world(t, 2, "iridium-dialup", 7, func(c *sim.Config) {
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			for _, number := range numbers {
				g.Adapters[number] = func(memories []site.Memory) (gateway.Adapter, error) {
					b, err := toyface.New(toyface.Config{Scope: scope, Sub: 1, Sites: []uint16{3 - n.ID}}, memories)
					of[n.ID][number] = b
					return b, err
				}
			}
		}
	})
	w.Run(time.Minute)
	for _, number := range numbers {
		w.DeliverLAN(w.Nodes[1], number, toyface.Enter{User: "anna"})
		w.DeliverLAN(w.Nodes[1], number, toyface.Pin{Notice: "which", Text: fmt.Sprint("adapter ", number)})
		w.DeliverLAN(w.Nodes[1], number, toyface.Post{Board: "b", User: "anna", Text: fmt.Sprint("from ", number)})
	}
	w.Run(2 * time.Minute)
	for range 2 { // as they came, and as a new start remembers them
		for _, number := range numbers {
			b := of[1][number]
			if got, want := b.Board(), []toyface.Line{{Site: 2, Board: "b", User: "anna", Text: fmt.Sprint("from ", number)}}; !slices.Equal(got, want) {
				t.Errorf("adapter %d shows %v, want %v", number, got, want)
			}
			if got, want := b.Notices(2), map[string]string{"which": fmt.Sprint("adapter ", number)}; !maps.Equal(got, want) {
				t.Errorf("adapter %d has the notices %v, want %v", number, got, want)
			}
			if got := b.Users(2); !slices.Equal(got, []string{"anna"}) {
				t.Errorf("adapter %d knows the users %v", number, got)
			}
		}
		w.Kill(w.Nodes[0], time.Second)
		w.Run(time.Minute)
	}
	w.DeliverLAN(w.Nodes[1], toyface.Number, toyface.Leave{User: "anna"})
	w.Run(time.Minute)
	for _, number := range numbers {
		want := 1
		if number == toyface.Number {
			want = 0
		}
		if got := len(of[1][number].Users(2)); got != want {
			t.Errorf("after one left adapter %d only, adapter %d knows %d users, want %d", toyface.Number, number, got, want)
		}
	}
}

// A gateway that lacks an adapter acknowledges its messages, drops them and counts them. The other adapters go on.
func TestGatewayWithoutTheAdapter(t *testing.T) {
	b := boardWorld(t, 3, "iridium-dialup", 3)
	hq, plain := b.Nodes[0], b.Nodes[2]
	b.Run(time.Minute)
	b.tell(hq, toyface.Enter{User: "carl"})
	for i := range 5 {
		b.tell(hq, toyface.Post{ID: uint64(i), Board: "reports", User: "carl", Text: fmt.Sprint("order ", i)})
		hq.Site.Send(b.World, jxtaMessage("reports", "carl", fmt.Sprint("JXTA ", i)), 2, 3)
	}
	b.Run(2 * time.Minute)
	b.tell(hq, toyface.Leave{User: "carl"})
	b.Kill(plain, time.Second)
	b.Run(2 * time.Minute)
	if got := len(b.seen[2]); got != 5 {
		t.Errorf("the gateway with the adapter showed %d posts, want 5", got)
	}
	s := plain.GW.Status(b.Now)
	if got := s.Peers[0].Pending; got != 0 {
		t.Errorf("%d messages wait for an adapter that is not there", got)
	}
	if got := len(plain.Site.Far[1]); got != 0 {
		t.Errorf("the JXTA adapter of the gateway without boards was told of %d items", got)
	}
	if got, want := jxtaTexts(plain), []string{"JXTA 0", "JXTA 1", "JXTA 2", "JXTA 3", "JXTA 4"}; !slices.Equal(got, want) {
		t.Errorf("the JXTA adapter of the gateway without boards was handed %q, want %q", got, want)
	}
	b.tell(hq, toyface.Post{ID: 9, Board: "reports", User: "carl", Text: "one more"})
	b.Run(time.Minute)
	if got := plain.GW.Status(b.Now).Dropped["face"]; got != 1 {
		t.Errorf("%d messages were counted as dropped since the start, want 1", got)
	}
	if got := len(b.told[1]); got != 12 {
		t.Errorf("%d fates came back for six posts to two sites, want 12", got)
	}
}

// JXTA's octets do not change when there is a second adapter, and its messages arrive as before when the second one talks.
func TestSecondAdapterCostsJXTANothing(t *testing.T) {
	type figures struct {
		up, down int64
		got      []sim.Got
	}
	play := func(w *sim.World, more func(i int)) figures {
		hq, ship := w.Nodes[0], w.Nodes[1]
		ship.Site.Put(w, jxtaItem(site.Endpoint, "anna", "", "here"))
		for i := range 30 {
			w.At(time.Duration(i)*4*time.Second+time.Minute, func() {
				ship.Site.Send(w, jxtaMessage("reports", "anna", fmt.Sprintf("report %d: all is well", i)), 1)
				more(i)
			})
		}
		w.Run(6 * time.Minute)
		up, down := w.Octets(ship)
		return figures{up, down, hq.Site.Got}
	}
	alone := play(world(t, 2, "iridium-dialup", 7), func(int) {})
	quiet := play(boardWorld(t, 2, "iridium-dialup").World, func(int) {})
	if alone.up != quiet.up {
		t.Errorf("the ship sends %d octets beside an adapter that says nothing, %d without it", quiet.up, alone.up)
	}
	if alone.down != quiet.down {
		t.Errorf("the ship receives %d octets beside an adapter that says nothing, %d without it", quiet.down, alone.down)
	}
	if !reflect.DeepEqual(alone.got, quiet.got) {
		t.Error("messages arrive at other times, or others, beside an adapter that says nothing")
	}
	b := boardWorld(t, 2, "iridium-dialup")
	busy := play(b.World, func(i int) {
		b.tell(b.Nodes[1], toyface.Post{ID: uint64(i), Board: "reports", User: "anna", Text: fmt.Sprintf("report %d: all is well", i)})
	})
	if got := len(b.seen[1]); got != 30 {
		t.Errorf("%d of 30 posts were shown", got)
	}
	if len(busy.got) != len(alone.got) {
		t.Fatalf("%d messages arrived beside an adapter that talks, %d without it", len(busy.got), len(alone.got))
	}
	for i, g := range busy.got {
		if got, want := g.Payload.Parts[0].Data, alone.got[i].Payload.Parts[0].Data; !bytes.Equal(got, want) {
			t.Errorf("message %d beside an adapter that talks is %q, want %q", i, got, want)
		}
	}
}
