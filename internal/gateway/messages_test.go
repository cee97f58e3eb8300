package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// known are the messages of a node, the oldest first, with their lives.
func known(n *sim.Node) (rows []api.MessageRow) {
	ids := n.GW.Messages().IDs()
	slices.Sort(ids)
	for _, id := range ids {
		if row, ok := n.GW.Messages().Row(id); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// whats are the kinds of the events of a life.
func whats(r api.MessageRow) string {
	var list []string
	for _, e := range r.Life {
		list = append(list, e.What)
	}
	return strings.Join(list, ", ")
}

// states are where a message stands with its recipients.
func states(r api.MessageRow) string {
	var list []string
	for _, to := range r.Recipients {
		list = append(list, to.Site+" "+to.State)
	}
	return strings.Join(list, ", ")
}

var orderRef uint64

// do gives an order about a message and returns the answer.
func do(w *sim.World, n *sim.Node, number uint64, what gateway.MessageDo, p site.Precedence) gateway.MessageAnswer {
	orderRef++
	w.Give(n, gateway.MessageOrder{Ref: orderRef, Message: number, Do: what, Precedence: p, By: "the test"})
	a, _ := n.GW.Messages().Answer(orderRef)
	return a
}

// texts are the numbers of the tracks that a site was handed, in order.
func texts(n *sim.Node) (list []string) {
	for _, g := range n.Site.Got {
		list = append(list, strings.Split(string(g.Payload.Parts[0].Data), ";")[1])
	}
	return list
}

// A message's life says when it was accepted, on the air and acknowledged, over either carrier.
func TestLifeOfAMessage(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 31) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			accepted := w.Now
			ship.Site.Send(w, track(2, pipeHQ, 7, 300), 1)
			w.Run(2 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 1)
			rows := known(ship)
			check.Equal(t, "messages", len(rows), 1)
			r := rows[0]
			check.Equal(t, "state", r.State, "ended")
			check.Equal(t, "states", states(r), "hq delivered")
			check.Equal(t, "life", whats(r), "accepted, on the air, delivered")
			check.Equal(t, "accepted", r.Accepted, accepted)
			check.Equal(t, "from", r.From, peerID(2))
			check.Equal(t, "pipe", r.ToPipe, pipeHQ)
			check.True(t, "coded octets are known", r.Coded > 0 && r.Coded < 400, r.Coded)
			check.Contains(t, "detail", r.Life[1].Detail, " octets")
		})
	}
}

// bothCarriers are worlds of n nodes in which messages go to each peer alone, and to all at once.
func bothCarriers(t *testing.T, n int, seed uint64, change ...func(*sim.Config)) map[string]*sim.World {
	return map[string]*sim.World{"unicast": world(t, n, "iridium-dialup", seed, change...), "group": mulWorld(t, n, seed, change...)}
}

// A held message does not go until it is released, also after a restart in between, and then goes once.
func TestHoldAndRelease(t *testing.T) {
	for name, w := range bothCarriers(t, 3, 32) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(2 * time.Minute)
			for i := range 30 {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1, 3)
			}
			w.Run(time.Second)
			rows := known(ship)
			check.Equal(t, "messages", len(rows), 30)
			last := rows[29]
			check.Equal(t, "state", states(last), "hq waiting, ship2 waiting")
			a := do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "it is held", a.Changed, a.Text)
			check.Contains(t, "answer", a.Text, "it does not go to hq, ship2 until it is released")
			a = do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "it is held already", a.Obeyed && !a.Changed, a.Text)
			w.Run(10 * time.Second)
			w.Kill(ship, time.Second)
			w.Run(20 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 29)
			check.Equal(t, "waiting", ship.GW.Status(w.Now).Peers[0].Waiting+ship.GW.Status(w.Now).Peers[0].UnderWay, 1)
			r, ok := ship.GW.Messages().Row(last.Number)
			check.True(t, "it is known after the restart", ok && r.Held, states(r))
			check.Equal(t, "states", states(r), "hq held, ship2 held")
			check.Equal(t, "accepted", r.Accepted, last.Accepted)
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			a = do(w, ship, last.Number, gateway.DoRelease, 0)
			check.True(t, "it is released", a.Changed, a.Text)
			w.Run(5 * time.Minute)
			for _, n := range []*sim.Node{hq, w.Nodes[2]} {
				check.Equal(t, "messages that arrived at "+n.Name, len(n.Site.Got), 30)
				check.Equal(t, "the last at "+n.Name, texts(n)[29], "29")
			}
			r, _ = ship.GW.Messages().Row(last.Number)
			check.Equal(t, "states", states(r), "hq delivered, ship2 delivered")
			check.Contains(t, "life", whats(r), "ordered")
			a = do(w, ship, last.Number, gateway.DoHold, 0)
			check.True(t, "nothing changes what has ended", a.Known && !a.Obeyed, a.Text)
			check.Contains(t, "answer", a.Text, "has ended")
		})
	}
}

// A cancelled message does not arrive and ends once; one that is under way goes through, and the answer says so.
func TestCancel(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 33) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(2 * time.Minute)
			for i := range 20 {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
			}
			w.Run(2 * time.Second)
			rows := known(ship)
			a := do(w, ship, rows[19].Number, gateway.DoCancel, 0)
			check.True(t, "it is cancelled", a.Changed, a.Text)
			a = do(w, ship, rows[0].Number, gateway.DoCancel, 0)
			check.True(t, "the first is under way", !a.Obeyed && a.Known, a.Text)
			check.Contains(t, "answer", a.Text, "goes through")
			a = do(w, ship, rows[0].Number, gateway.DoHold, 0)
			check.True(t, "the first cannot be held", !a.Obeyed && a.Known, a.Text)
			w.Kill(ship, time.Second)
			w.Run(20 * time.Minute)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), 19)
			check.True(t, "the last is not among them", !slices.Contains(texts(hq), "19"), texts(hq))
			s := ship.GW.Status(w.Now).Peers[0]
			check.Equal(t, "left", s.Waiting+s.UnderWay, 0)
		})
	}
}

// A message whose precedence is raised goes before those that it has passed, also after a restart.
func TestRaise(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 34) {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " killed ", kill), func(t *testing.T) {
				hq, ship := w.Nodes[0], w.Nodes[1]
				hq.Site.Got = nil
				w.Run(2 * time.Minute)
				for i := range 40 {
					ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
				}
				w.Run(200 * time.Millisecond) // later, all of them may be on the air as a batch
				rows := known(ship)
				rows = rows[len(rows)-40:]
				a := do(w, ship, rows[39].Number, gateway.DoPrecede, site.Flash)
				check.True(t, "it is raised", a.Changed, a.Text)
				r, _ := ship.GW.Messages().Row(rows[39].Number)
				check.Equal(t, "precedence", r.Precedence, "flash")
				if kill {
					w.Kill(ship, time.Second)
				}
				w.Run(20 * time.Minute)
				check.Equal(t, "messages that arrived", len(hq.Site.Got), 40)
				at := slices.Index(texts(hq), "39")
				check.True(t, "it has passed most", at >= 0 && at < 25, at)
				check.Equal(t, "the precedence that arrived", hq.Site.Got[max(at, 0)].Payload.Precedence, site.Flash)
				rest := slices.Delete(texts(hq), at, at+1)
				for i, text := range rest {
					if text != fmt.Sprint(i) {
						t.Fatalf("the others are out of order: %v", rest)
					}
				}
			})
		}
	}
}

// Orders at random moments, with crashes before and after commits: nothing arrives twice, cancelled messages do not arrive, all
// others do, also those that were held or went with another precedence, and nothing is left.
func TestOrdersAmongCrashes(t *testing.T) {
	obeyed := map[gateway.MessageDo]int{}
	for seed := range uint64(6) {
		crashes := func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.01, 0.01 }
		for name, w := range bothCarriers(t, 3, 400+seed, crashes) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				ship, rng := w.Nodes[1], rand.New(rand.NewPCG(seed, 9))
				const n = 60
				to := map[uint16]*sim.Node{1: w.Nodes[0], 3: w.Nodes[2]}
				cancelled, unsure, number := map[string]bool{}, map[string]bool{}, map[uint64]string{}
				w.Run(2 * time.Minute)
				for i := range n {
					at := time.Duration(i/12) * 80 * time.Second
					octets := 300
					if i%10 == 9 {
						octets = 2500
					}
					w.At(at, func() { ship.Site.Send(w, track(2, pipeHQ, i, octets), 1, 3) })
				}
				ended := map[string]string{} // final states, by message and site
				look := func() {
					if ship.GW == nil {
						return
					}
					for _, r := range known(ship) {
						for _, to := range r.Recipients {
							key := r.ID + " " + to.Site
							if final := to.State != "waiting" && to.State != "held" && to.State != "under_way"; final {
								if before := ended[key]; before != "" && before != to.State {
									t.Errorf("%s ended as %s and as %s", key, before, to.State)
								}
								ended[key] = to.State
							} else if ended[key] != "" {
								t.Errorf("%s goes on after it ended as %s", key, ended[key])
							}
						}
					}
				}
				for i := range 80 {
					w.At(time.Duration(i)*5*time.Second+3*time.Second, func() {
						look()
						if ship.GW == nil {
							return
						}
						rows := slices.DeleteFunc(known(ship), func(r api.MessageRow) bool { return r.State == api.StateEnded })
						if len(rows) == 0 {
							return
						}
						r := rows[rng.IntN(len(rows))]
						what := []gateway.MessageDo{gateway.DoHold, gateway.DoHold, gateway.DoRelease, gateway.DoPrecede, gateway.DoCancel}[rng.IntN(5)]
						orderRef++
						w.Give(ship, gateway.MessageOrder{Ref: orderRef, Message: r.Number, Do: what, Precedence: site.Precedence(rng.IntN(6)), By: "the test"})
						if ship.GW == nil { // it crashed over it
							unsure[r.ID] = unsure[r.ID] || what == gateway.DoCancel
							return
						}
						a, ok := ship.GW.Messages().Answer(orderRef)
						if a.Changed {
							obeyed[what]++
						}
						if ok && a.Changed && what == gateway.DoCancel {
							now, _ := ship.GW.Messages().Row(r.Number)
							for _, to := range now.Recipients {
								cancelled[r.ID+" "+to.Site] = to.State == "cancelled"
							}
						}
					})
				}
				for i := range 600 { // which message has which id is seen while it is there
					w.At(time.Duration(i)*time.Second, func() {
						if ship.GW == nil {
							return
						}
						for _, r := range known(ship) {
							number[r.Number] = r.ID
						}
					})
				}
				w.Run(10 * time.Minute)
				w.EndCrashes()
				w.Run(5 * time.Minute)
				for _, r := range known(ship) {
					if r.Held {
						do(w, ship, r.Number, gateway.DoRelease, 0)
					}
				}
				w.Run(40 * time.Minute)
				look()
				gone, maybe := map[string]int{}, 0
				for key, is := range cancelled {
					if is {
						_, site, _ := strings.Cut(key, " ")
						gone[site]++
					}
				}
				for _, is := range unsure {
					if is {
						maybe++
					}
				}
				for id, node := range to {
					got, seen := texts(node), map[string]bool{}
					for _, text := range got {
						if seen[text] {
							t.Errorf("message %s arrived at %s twice", text, node.Name)
						}
						seen[text] = true
					}
					if want := n - gone[node.Name]; len(got) > want || len(got) < want-maybe {
						t.Errorf("%d of %d arrived at %s, of which %d were cancelled and %d perhaps\n%s", len(got), n, node.Name, gone[node.Name], maybe, tail(w.Notes))
					}
					s := ship.GW.Status(w.Now).Peers[map[uint16]int{1: 0, 3: 1}[id]]
					check.Equal(t, "left for "+node.Name, s.Waiting+s.UnderWay, 0)
				}
				check.True(t, "messages were seen", len(number) > n/2, len(number))
			})
		}
	}
	for _, what := range []gateway.MessageDo{gateway.DoHold, gateway.DoRelease, gateway.DoPrecede, gateway.DoCancel} {
		check.True(t, "orders obeyed: "+string(what), obeyed[what] > 10, obeyed[what])
	}
	t.Logf("orders obeyed: %v", obeyed)
}

// A message that goes again to a site that has lost its store stays held, and one that was released goes.
func TestHeldForANewStore(t *testing.T) {
	w := world(t, 2, "iridium-directip", 35)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	for i := range 20 {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
	}
	w.Run(time.Second)
	last := known(ship)[19]
	check.True(t, "it is held", do(w, ship, last.Number, gateway.DoHold, 0).Changed)
	w.LoseStore(hq)
	w.Kill(hq, time.Second)
	w.Run(5 * time.Minute)
	check.True(t, "it has not arrived", !slices.Contains(texts(hq), "19"), texts(hq))
	var held api.MessageRow
	for _, r := range known(ship) {
		if r.Held {
			held = r
		}
	}
	r, _ := ship.GW.Messages().Row(last.Number)
	check.Equal(t, "where the first went", states(r), "hq again")
	check.Contains(t, "as what", r.Recipients[0].Detail, "as "+held.ID)
	check.True(t, "it is released", do(w, ship, held.Number, gateway.DoRelease, 0).Changed)
	w.Run(time.Minute)
	check.True(t, "it has arrived", slices.Contains(texts(hq), "19"), texts(hq))
}

// The lifetime of a held message runs, and a newer one of its key goes in its place.
func TestHeldExpiresAndIsReplaced(t *testing.T) {
	for name, w := range bothCarriers(t, 2, 36, urgency(t)) {
		t.Run(name, func(t *testing.T) {
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			order(w, ship, api.Silence{On: true})
			for i := range 10 {
				ship.Site.Send(w, track(2, pipeHQ, i, 300), 1)
			}
			ship.Site.Send(w, named("old", "OLD;1;", 80), 1)
			ship.Site.Send(w, named("track", "TRK;T-1;update=1;", 80), 1)
			w.Run(100 * time.Millisecond)
			rows := known(ship)
			for _, r := range rows[10:] {
				a := do(w, ship, r.Number, gateway.DoHold, 0)
				check.True(t, "it is held", a.Changed, a.Text)
			}
			check.Equal(t, "what it is about", rows[11].Label, "T-1")
			w.Run(30 * time.Second)
			ship.Site.Send(w, named("track", "TRK;T-1;update=2;", 80), 1)
			w.Run(time.Second)
			order(w, ship, api.Silence{})
			w.Run(5 * time.Minute)
			check.Equal(t, "what lives for a minute", len(arrivals(hq, "old")), 0)
			got := arrivals(hq, "track")
			check.Equal(t, "updates of the track", len(got), 1)
			check.True(t, "the newer one", strings.HasPrefix(string(got[0].Payload.Parts[0].Data), "TRK;T-1;update=2;"))
			r, _ := ship.GW.Messages().Row(rows[10].Number)
			check.Equal(t, "the old one", states(r), "hq expired")
			r, _ = ship.GW.Messages().Row(rows[11].Number)
			check.Equal(t, "the replaced one", states(r), "hq superseded")
		})
	}
}

// A long message over P_Mul of which a part is on the air can be withdrawn while no receiver can have all of it.
func TestCancelAPart(t *testing.T) {
	w := mulWorld(t, 2, 37)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(2 * time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 1, 20000), 1)
	w.Run(20 * time.Second)
	r := known(ship)[0]
	check.Equal(t, "state", states(r), "hq under_way")
	check.True(t, "a part of it is on the air", r.Coded > 1000 && r.Coded < 18000, r.Coded)
	a := do(w, ship, r.Number, gateway.DoHold, 0)
	check.True(t, "it cannot be held", !a.Obeyed, a.Text)
	a = do(w, ship, r.Number, gateway.DoCancel, 0)
	check.True(t, "it is cancelled", a.Changed, a.Text)
	ship.Site.Send(w, track(2, pipeHQ, 2, 200), 1)
	w.Run(30 * time.Minute)
	check.Equal(t, "what arrived", strings.Join(texts(hq), ","), "2")
	s := ship.GW.Status(w.Now).Peers[0]
	check.Equal(t, "left", s.Waiting+s.UnderWay, 0)
}

// Of a message that is under way to one site and waits for another, the precedence changes for the other alone, and both get it,
// also after a restart.
func TestRaiseForWhomItWaits(t *testing.T) {
	for _, kill := range []bool{false, true} {
		w := world(t, 3, "iridium-directip", 38)
		hq, ship, other := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		w.Run(time.Minute)
		for i := range 40 {
			ship.Site.Send(w, track(2, pipeHQ, 100+i, 200), 3)
		}
		ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1, 3)
		w.Run(1500 * time.Millisecond)
		rows := known(ship)
		r := rows[40]
		check.Equal(t, "states", states(r), "hq under_way, ship2 waiting")
		a := do(w, ship, r.Number, gateway.DoPrecede, site.Flash)
		check.Contains(t, "answer", a.Text, "it goes to ship2 as flash; to hq it is under way")
		ship.Site.Send(w, track(2, pipeHQ, 2, 200), 1, 3) // of the same flow as the first
		if kill {
			w.Kill(ship, time.Second)
		}
		w.Run(10 * time.Minute)
		check.Equal(t, "what arrived at HQ", strings.Join(texts(hq), ","), "1,2")
		check.Equal(t, "how many arrived at the other", len(other.Site.Got), 42)
		check.True(t, "before most", slices.Index(texts(other), "1") < 25, texts(other))
	}
}

// A message that the far gateway could not hand over is undeliverable in its life as well, with the reason.
func TestLifeOfAnUndeliverableMessage(t *testing.T) {
	w := world(t, 2, "iridium-directip", 39)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Keep = true // its peers are away
	w.Run(time.Minute)
	ship.Site.Send(w, track(2, pipeHQ, 1, 200), 1)
	w.Run(time.Minute)
	check.Equal(t, "states", states(known(ship)[0]), "hq delivered")
	hq.Site.GiveUp(w)
	w.Run(10 * time.Minute)
	r := known(ship)[0]
	check.Equal(t, "states", states(r), "hq undeliverable")
	check.Equal(t, "why", r.Recipients[0].Detail, site.LifeOver.String())
	check.Equal(t, "life", whats(r), "accepted, on the air, delivered, undeliverable")
}

// A notice of undeliverable messages waits for its sender's peer, which comes back with a new store: the numbers that the notice names are
// those of other messages by now, which were delivered.
func TestANoticeOfAnEarlierStore(t *testing.T) {
	w := world(t, 2, "iridium-directip", 40)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Keep = true // its peers are away
	w.Run(time.Minute)
	before := tracks(w, ship, []uint16{1}, 3, 200, time.Second)
	w.Run(time.Minute)
	once(t, w, hq.Site, 2, *before)
	w.Outage(ship, 5*time.Minute)
	for i := range 60 { // so that HQ acknowledges before its notice goes
		hq.Site.Send(w, track(1, pipeShip, i, 200), 2)
	}
	hq.Site.GiveUp(w)
	w.Run(time.Minute)
	w.LoseStore(ship)
	w.Kill(ship, time.Second)
	w.Run(time.Minute)
	for i := range 3 {
		ship.Site.Send(w, track(2, pipeHQ, 10+i, 200), 1)
	}
	w.Run(20 * time.Minute)
	check.Equal(t, "messages at HQ", len(hq.Site.Got), 6)
	for _, r := range known(ship) {
		check.Equal(t, "states", states(r), "hq delivered")
	}
	check.Equal(t, "undeliverable, of the earlier store", ship.GW.Status(w.Now).Peers[0].Undeliverable, 3)
}

// A message that waits on one bearer, and is under way on another, goes through: an order to withdraw or hold it is not obeyed.
func TestOrdersForAMessageThatChangedItsBearer(t *testing.T) {
	for _, what := range []gateway.MessageDo{gateway.DoCancel, gateway.DoHold} {
		w := world(t, 2, "iridium-directip", 7, func(c *sim.Config) {
			c.Second = &sim.Second{Name: "second", Profile: load(t, "iridium-dialup"), Price: 2 * gateway.UsualPrice}
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(2 * time.Minute)
		ship.Site.Send(w, track(2, pipeHQ, 1, 20_000), 1)
		w.Run(2 * time.Second)
		ship.Site.Send(w, track(2, pipeHQ, 2, 200), 1)
		w.Run(100 * time.Millisecond)
		w.Cut(0, ship, true)
		r := known(ship)[1]
		for at := w.Now; !strings.Contains(whats(r), "moved") && w.Now.Sub(at) < time.Minute; r, _ = ship.GW.Messages().Row(r.Number) {
			w.Run(100 * time.Millisecond)
		}
		check.Contains(t, "life", whats(r), "on the air, moved")
		a := do(w, ship, r.Number, what, 0)
		check.True(t, "it is not obeyed", a.Known && !a.Obeyed, a.Text)
		check.Contains(t, "answer", a.Text, "to hq it is under way: it goes through as it is")
		w.Cut(0, ship, false)
		w.Run(20 * time.Minute)
		check.Equal(t, "what arrived", strings.Join(texts(hq), ","), "2,1")
	}
}
