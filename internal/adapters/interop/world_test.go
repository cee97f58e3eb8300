package interop_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/rules/query"
	"aldis/internal/site"
)

const (
	tracks = "uuid-59616261646162614E50472050325033000000000000000000000000000000A104"
	words  = "uuid-59616261646162614E50472050325033000000000000000000000000000000A204"
)

// world is gateways with both adapters, which meet by rules, and peers and devices on their LANs.
type world struct {
	*sim.World
	t        *testing.T
	meetings map[uint16]*interop.Meeting
	bridges  map[uint16]*jxtabridge.Bridge
	adapters map[uint16]*tak.Adapter
	peers    []*peer
	devices  []*device
	conns    site.ConnID
	xmpp     func(*sim.Node, xmpp.Send) // what the XMPP adapter writes
}

// newWorld makes gateways, worldOver over another link than iridium-dialup; rules are those of each node, by its number.
func newWorld(t *testing.T, nodes int, rules map[uint16][]interop.Rule) *world {
	t.Helper()
	return worldOver(t, "iridium-dialup", 7, nodes, rules)
}

func worldOver(t *testing.T, link string, seed uint64, nodes int, rules map[uint16][]interop.Rule, change ...func(*sim.Node, *gateway.Config)) *world {
	t.Helper()
	w := &world{t: t, meetings: map[uint16]*interop.Meeting{}, bridges: map[uint16]*jxtabridge.Bridge{}, adapters: map[uint16]*tak.Adapter{}}
	load := func(name string) profile.Profile {
		p, err := profile.Load(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var err error
	air := load(link)
	shared := air.Transport == profile.PMul
	w.World, err = sim.New(sim.Config{Nodes: nodes, Profile: air, Wire: load("wire"), Seed: seed, Group: shared, Down: 3 * time.Second,
		Configure: func(n *sim.Node, g *gateway.Config) {
			id := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte{0xa1, 0xd1, 15: byte(n.ID)}}
			bridge := jxtabridge.Config{Name: g.Name, Site: g.ID, Address: lan(n), Identity: jxtabridge.Identity{Peer: id.Unique()}, Hold: gateway.Hold(g.Profile), AskAfter: gateway.AskAfter(g.Profile)}
			adapter := tak.Config{Shared: shared, Twice: air.Free()}
			for _, p := range g.Peers {
				adapter.Sites = append(adapter.Sites, p.ID)
			}
			g.Adapters[site.JXTA] = func(memories []site.Memory) (gateway.Adapter, error) {
				w.bridges[n.ID] = jxtabridge.New(bridge, memories)
				return w.bridges[n.ID], nil
			}
			g.Adapters[site.TAK] = func(memories []site.Memory) (f gateway.Adapter, err error) {
				w.adapters[n.ID], err = tak.New(adapter, memories)
				return w.adapters[n.ID], err
			}
			id.UUID[0] = 0xb1
			if own := rules[n.ID]; own != nil {
				g.Meeting = func(memories []site.Memory) (m gateway.Meeting, err error) {
					w.meetings[n.ID], err = interop.New(interop.Config{Rules: own, Peer: id.Unique(), Name: g.Name + " TAK"}, memories)
					return w.meetings[n.ID], err
				}
			}
			for _, f := range change {
				f(n, g)
			}
		},
		LAN: w.output})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// lan is a node's address on its LAN.
func lan(n *sim.Node) string { return fmt.Sprintf("10.20.%d.1:9701", n.ID) }

func (w *world) output(n *sim.Node, out api.Output) {
	for _, o := range out.LAN {
		if o.Adapter == site.TAK {
			w.events(n, o.Order)
			continue
		} else if s, ok := o.Order.(xmpp.Send); ok {
			w.xmpp(n, s)
			continue
		}
		conn, _ := o.Order.Concerns()
		i := slices.IndexFunc(w.peers, func(p *peer) bool { return p.conn == conn })
		if i < 0 {
			continue
		}
		p := w.peers[i]
		switch o := o.Order.(type) {
		case jxtabridge.Welcome:
			w.At(0, func() { p.do(edgepeer.Welcomed{Welcome: o.Line}) })
		case jxtabridge.Send:
			body := slices.Clone(o.Body)
			w.At(0, func() {
				if p.conn != o.Conn {
					return
				}
				p.do(edgepeer.Received{Body: body})
				if o.Token != 0 {
					w.DeliverJXTA(n, jxtabridge.Written{Conn: o.Conn, Token: o.Token})
				}
			})
		}
	}
}

// peer is a JXTA peer and the messages that it was given.
type peer struct {
	*edgepeer.Peer
	w    *world
	node *sim.Node
	conn site.ConnID
	due  time.Time
	got  []edgepeer.Message
}

// join connects a JXTA peer to a node's LAN, which listens on pipes.
func (w *world) join(n *sim.Node, name string, pipes ...string) *peer {
	p := &peer{w: w, node: n, Peer: edgepeer.New(edgepeer.Config{Name: name, Rand: rand.New(rand.NewPCG(uint64(n.ID), uint64(len(w.peers))))})}
	w.peers = append(w.peers, p)
	p.dial()
	for _, id := range pipes {
		p.do(edgepeer.Listen{Pipe: id, Kind: jxta.PipeTypePropagate})
	}
	w.Run(time.Second)
	return p
}

// dial connects the peer, again if need be.
func (p *peer) dial() {
	w := p.w
	if p.conn != 0 {
		p.do(edgepeer.Lost{})
	}
	w.conns++
	p.conn = w.conns
	local := fmt.Sprintf("10.20.%d.9:%d", p.node.ID, 4711+int(p.conn))
	w.DeliverJXTA(p.node, jxtabridge.Opened{Conn: p.conn, Remote: local})
	p.do(edgepeer.Dialled{Remote: lan(p.node), Local: local})
}

func (p *peer) do(ev edgepeer.Event) {
	w := p.w
	out := p.Step(w.Now, ev)
	conn := p.conn
	if line := out.Welcome; line != nil {
		w.At(0, func() { w.DeliverJXTA(p.node, jxtabridge.Welcomed{Conn: conn, Welcome: *line}) })
	}
	for _, body := range out.Send {
		w.At(0, func() { w.DeliverJXTA(p.node, jxtabridge.Received{Conn: conn, Body: body}) })
	}
	if at := out.Deadline; !at.IsZero() && !at.Equal(p.due) {
		p.due = at
		w.At(max(0, at.Sub(w.Now)), func() {
			if p.due.Equal(at) {
				p.due = time.Time{}
				p.do(nil)
			}
		})
	}
	for _, n := range out.Notices {
		if m, ok := n.(edgepeer.Message); ok {
			for i, e := range m.Elements {
				m.Elements[i].Data = slices.Clone(e.Data)
			}
			p.got = append(p.got, m)
		}
	}
}

func (p *peer) say(pipe, text string) {
	p.do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(text)}}})
	p.w.Run(time.Second)
}

// heard are the elements that the peer was given with this text in them.
func (p *peer) heard(text string) (list []string) {
	for _, m := range p.got {
		for _, e := range m.Elements {
			if e.Name == "body" && strings.Contains(string(e.Data), text) {
				list = append(list, string(e.Data))
			}
		}
	}
	return list
}

// device is a stream of TAK.
type device struct {
	w    *world
	node *sim.Node
	conn site.ConnID
	got  []*cot.Event
}

// connect connects a TAK device to a node's LAN.
func (w *world) connect(n *sim.Node) *device {
	d := &device{w: w, node: n}
	w.devices = append(w.devices, d)
	d.again()
	return d
}

func (d *device) again() {
	d.w.conns++
	d.conn = d.w.conns
	d.w.DeliverLAN(d.node, site.TAK, tak.Opened{Conn: d.conn, Remote: fmt.Sprintf("10.0.0.%d:5000", d.conn)})
}

func (w *world) events(n *sim.Node, o site.Order) {
	for _, d := range w.devices {
		xml := tak.Given(o, d.conn)
		if d.node != n || xml == nil {
			continue
		}
		e, err := cot.ParseXML(xml)
		if err != nil {
			w.t.Errorf("a device was given %s: %v", xml, err)
			continue
		}
		d.got = append(d.got, e)
	}
}

func (d *device) say(xml string) {
	d.w.DeliverLAN(d.node, site.TAK, tak.Heard{Conn: d.conn, Frame: []byte(xml)})
	d.w.Run(time.Second)
}

// of are the events of a unit that the device was given.
func (d *device) of(uid string) (list []*cot.Event) {
	for _, e := range d.got {
		if e.UID == uid {
			list = append(list, e)
		}
	}
	return list
}

// times are how many different reports of a unit the device was given.
func (d *device) times(uid string) int {
	seen := map[time.Time]bool{}
	for _, e := range d.of(uid) {
		seen[e.Time] = true
	}
	return len(seen)
}

// lines are the chats with this text that the device was given.
func (d *device) lines(text string) (list []*cot.Event) {
	for _, e := range d.got {
		if r := e.Find("remarks"); e.Type == "b-t-f" && r != nil && r.Inside() == text {
			list = append(list, e)
		}
	}
	return list
}

func stamp(t time.Time) string { return t.UTC().Format(cot.TimeFormat) }

// report is a TAK device's own position.
func (w *world) report(uid, callsign string, lat float64) string {
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="a-f-G-U-C" time="%s" start="%s" stale="%s" how="m-g"><point lat="%v" lon="10.1" hae="22" ce="4.7" le="9999999.0"/><detail><contact endpoint="*:-1:stcp" callsign="%s"/><__group role="Team Member" name="Cyan"/><track course="0" speed="0"/></detail></event>`,
		uid, stamp(w.Now), stamp(w.Now), stamp(w.Now.Add(5*time.Minute)), lat, callsign)
}

// chat is a line as ATAK sends it.
func (w *world) chat(uid, callsign, room, message, text string) string {
	f := stamp(w.Now)
	return fmt.Sprintf(`<event version="2.0" uid="GeoChat.%s.%s.%s" type="b-t-f" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="0" lon="0" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chat parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="%s"/></__chat><link uid="%s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%s" to="%s" time="%s">%s</remarks></detail></event>`,
		uid, room, message, f, f, stamp(w.Now.Add(24*time.Hour)), message, room, room, callsign, uid, room, room, uid, uid, room, f, text)
}

// track is a unit in the form in which the peers of these tests report it.
func (w *world) track(id string, lat float64) string {
	return fmt.Sprintf(`<track id="%s" lat="%v" lon="10.2" time="%s"><name>%s</name><course>90</course><speed>10</speed></track>`, id, lat, stamp(w.Now), "boat "+id)
}

func at(t testing.TB, text string) query.Condition {
	t.Helper()
	c, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func template(t testing.TB, text string, words []string) interop.Template {
	t.Helper()
	m, err := interop.ParseTemplate(text, words)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// trackRule is the rule for those tracks, both ways.
func trackRule(t testing.TB) interop.Rule {
	return interop.Rule{Label: "tracks", Group: jxta.NetGroup, Pipe: tracks, Space: "trk", Element: "body", FromJXTA: true, FromTAK: true, As: "a-f-S", Life: 5 * time.Minute,
		At: interop.At{ID: at(t, "xml:/track/@id"), Lat: at(t, "xml:/track/@lat"), Lon: at(t, "xml:/track/@lon"), Time: at(t, "xml:/track/@time"),
			Callsign: at(t, "xml:/track/name"), Course: at(t, "xml:/track/course"), Speed: at(t, "xml:/track/speed")},
		Speed: 1852.0 / 3600,
		Write: template(t, `<track id="{id}" lat="{lat}" lon="{lon}" time="{time}"><name>{callsign}</name><course>{course}</course><speed>{speed}</speed></track>`, interop.TrackWords)}
}

// chatRule is the rule for one room.
func chatRule(t testing.TB) interop.Rule {
	return interop.Rule{Label: "the room", Group: jxta.NetGroup, Pipe: words, Space: "trk", Element: "body", FromJXTA: true, FromTAK: true, Room: "All Chat Rooms",
		At:    interop.At{From: at(t, "xml:/say/@by"), Text: at(t, "xml:/say")},
		Write: template(t, `<say by="{from}">{text}</say>`, interop.LineWords)}
}

func (w *world) noTrouble() {
	w.t.Helper()
	for id, r := range w.meetings {
		for what, n := range r.Counts() {
			if strings.HasPrefix(what, "refused") || what == "undelivered" {
				w.t.Errorf("at node %d %s: %d", id, what, n)
			}
		}
	}
}

// message is a message with this element, on the pipe of any rule.
func message(text string) *site.Message {
	return &site.Message{Published: true, Scope: jxta.NetGroup, ID: "m", From: "uuid-" + strings.Repeat("0", 64) + "03", Parts: []site.Part{{Name: "body", Data: []byte(text)}}}
}
