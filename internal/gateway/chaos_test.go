package gateway_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// TestChaos plays everything bad at once, by chance: data put back, lost records and stores, power cuts of hours, crashes
// in the middle of a turn, clocks that are set by hours and by a year, new addresses, datagrams of yesterday, changed ones,
// and a member of the network that lies. Each message ends in one state at its sender, and the state is true: it arrived, once,
// but for what docs/decisions/put-back.md says that cannot be mended. After the last of it, when the clocks are right and the
// operator has done what the log asks for, new messages arrive as on the first day.
func TestChaos(t *testing.T) {
	for seed := range plays(10, 1000) {
		if c := newChaos(t, seed); !c.play() {
			t.Errorf("seed %d, %s: %s\n%s\n%s", seed, c.link, strings.Join(c.faults, "\n"), strings.Join(c.story, "\n"), tail(c.w.Notes))
		}
	}
}

// TestChaosGroup does the same to three gateways on one radio channel: each message goes to both others by P_Mul, and ships
// fall silent for hours.
func TestChaosGroup(t *testing.T) {
	for seed := range plays(4, 400) {
		if c := newChaosGroup(t, seed); !c.play() {
			t.Errorf("seed %d, %s: %s\n%s\n%s", seed, c.link, strings.Join(c.faults, "\n"), strings.Join(c.story, "\n"), tail(c.w.Notes))
		}
	}
}

// chaos is one run.
type chaos struct {
	w            *sim.World
	rng          *rand.Rand
	link         string
	trust        bool        // each has a key of its own
	group        bool        // all share a channel, and P_Mul carries what is for several
	nodes        []*sim.Node // that are honest; the first is ashore
	liar         *sim.Node   // in the network, with the key; nothing that it says is true
	air          [][]byte    // what was on the air
	noise        float64     // share of datagrams that somebody changes or repeats
	lies         *seal.Sealer
	lied         func(data []byte)                   // is given what the liar sends; nil: nobody looks
	roster       *roster.Roster                      // the newest that was signed; nil: all share a key
	forger       [][]*seal.Sealer                    // by the node in whose name
	all          map[string]map[uint16]*chaosMessage // by the text's head, for each node that should get it
	ids          map[chaosID]string                  // their heads
	counts       map[[2]uint16]api.PeerCounts        // of a node, for a peer, at the last look
	incarnations map[uint16]uint32
	// acked is how many messages that a node had confirmed it may have lost, told how many of its own a node knows to have come
	// to nothing behind their acknowledgements, by the peer.
	acked map[uint16]int
	told  map[[2]uint16]int
	// said is how many messages the log of a node says that another may have lost.
	said   map[[2]uint16]int
	given  map[uint16][]int // at each commit of a node: how much it has handed over
	back   int              // commits taken back
	story  []string
	faults []string
}

// chaosID is a message in a sender's journal.
type chaosID struct {
	node uint16
	id   uint64
}

// chaosMessage is what became of a message for one who should get it.
type chaosMessage struct {
	from, to uint16
	accepted bool
	ended    string // the state at its sender; "": not ended
	start    uint32 // of its sender, in which it ended
	twice    bool   // it may have come twice
	lost     bool   // the sender's own journal lost it
	got      int
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 2006))}
	c.link = []string{"iridium-directip", "iridium-dialup", "iridium-certus-100"}[c.rng.IntN(3)]
	c.begin(t, 2, 20_000+seed)
	return c
}

func newChaosGroup(t *testing.T, seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 2014)), group: true}
	c.link = []string{"vhf-cnr-16k", "hf-2400"}[c.rng.IntN(2)]
	c.begin(t, 3, 30_000+seed)
	return c
}

// begin makes a World of so many honest nodes.
func (c *chaos) begin(t *testing.T, honest int, seed uint64) {
	c.all, c.ids, c.given = map[string]map[uint16]*chaosMessage{}, map[chaosID]string{}, map[uint16][]int{}
	c.counts, c.incarnations, c.acked = map[[2]uint16]api.PeerCounts{}, map[uint16]uint32{}, map[uint16]int{}
	c.told, c.said = map[[2]uint16]int{}, map[[2]uint16]int{}
	c.w = world(t, honest+1, c.link, seed, func(cfg *sim.Config) {
		cfg.Committed, cfg.Group, cfg.Roster = c.committed, c.group, c.trust
		if c.rng.IntN(2) == 0 {
			cfg.CrashBeforeCommit, cfg.CrashAfterCommit = 0.003, 0.003
		}
	})
	c.nodes, c.liar = c.w.Nodes[:honest], c.w.Nodes[honest]
	c.w.Tap = c.tap
}

// others are the honest nodes but one.
func (c *chaos) others(n *sim.Node) []*sim.Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(o *sim.Node) bool { return o == n })
}

// peer is what a node says of another.
func (c *chaos) peer(n, other *sim.Node) api.PeerStatus {
	list := n.GW.Status(c.w.Clock(n)).Peers
	return list[slices.IndexFunc(list, func(p api.PeerStatus) bool { return p.ID == other.ID })]
}

func (c *chaos) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *chaos) say(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf("%8.3f ", c.w.Now.Sub(sim.Epoch).Seconds())+fmt.Sprintf(format, args...))
}

// head names a message: the digits that its text begins with.
func head(text []byte) string {
	parts := strings.SplitN(string(text[:min(len(text), 20)]), ";", 3)
	return strings.Join(parts[:min(2, len(parts))], ";")
}

// committed follows the journals: which messages are in custody, and as what they ended.
func (c *chaos) committed(n *sim.Node, out api.Output) {
	if n == c.liar {
		return
	}
	if len(out.Records) > 0 {
		c.given[n.ID] = append(c.given[n.ID], len(n.Site.Got))
	}
	c.listen(n, out.Notes)
	ended, stays := map[uint16][]*chaosMessage{}, map[*chaosMessage]uint64{} // by peer; under which ID
	for _, r := range out.Records {
		switch r.Bucket {
		case "mail":
			if name := c.content(r.Value); r.Value != nil && name != "" {
				c.ids[chaosID{n.ID, binary.BigEndian.Uint64(r.Key)}] = name
			}
		case "to":
			to, id := binary.BigEndian.Uint16(r.Key), binary.BigEndian.Uint64(r.Key[2:])
			m := c.all[c.ids[chaosID{n.ID, id}]][to]
			switch {
			case m == nil:
			case r.Value != nil:
				if m.ended == "delivered" { // it was acknowledged, and could not be read
					if pair := [2]uint16{n.ID, to}; m.start == n.Incarnation() { // counts begin with a start
						counts := c.counts[pair]
						counts.Delivered--
						c.counts[pair] = counts
					}
					m.ended = ""
				}
				m.accepted, stays[m] = true, id
			default:
				if ended[to] = append(ended[to], m); stays[m] == id {
					delete(stays, m)
				}
			}
		}
	}
	if c.incarnations[n.ID] != n.Incarnation() {
		c.incarnations[n.ID] = n.Incarnation()
		for _, other := range c.nodes {
			delete(c.counts, [2]uint16{n.ID, other.ID})
		}
	}
	for _, other := range c.others(n) {
		pair := [2]uint16{n.ID, other.ID}
		counts := c.counts[pair]
		if now := c.peer(n, other).PeerCounts; now.Undeliverable > counts.Undeliverable {
			c.told[pair] += int(now.Undeliverable - counts.Undeliverable)
			counts.Delivered -= now.Revoked - counts.Revoked
			counts.Undeliverable, counts.Revoked = now.Undeliverable, now.Revoked
			c.counts[pair] = counts
		} else { // a store that was lost does not know any more whether that was a message
			c.told[pair] += askedInVain(out.Notes, other)
		}
		list := slices.DeleteFunc(ended[other.ID], func(m *chaosMessage) bool { return stays[m] != 0 }) // it goes on under another number
		if len(list) > 0 {
			c.end(n, other, list)
		}
	}
}

// askedInVain is how many messages a node's log says that another has asked for again, and that it does not keep.
func askedInVain(notes []site.Note, other *sim.Node) (n int) {
	for _, note := range notes {
		if note.Text == "a peer asks for a message that this node no longer has; the message is undeliverable there" && slices.Contains(note.Attrs, any(other.Name)) {
			n++
		}
	}
	return n
}

// listen reads a node's log for what it says of messages that another may have lost.
func (c *chaos) listen(n *sim.Node, notes []site.Note) {
	for _, note := range notes {
		for _, other := range c.others(n) {
			pair := [2]uint16{n.ID, other.ID}
			switch {
			case !slices.Contains(note.Attrs, any(other.Name)):
			case strings.HasPrefix(note.Text, "a peer has lost its store"):
				c.said[pair] = math.MaxInt32 // nobody knows how many
			case slices.Contains(note.Attrs, any("it_may_have_lost")):
				lost, _ := note.Attrs[slices.Index(note.Attrs, any("it_may_have_lost"))+1].(int)
				c.said[pair] = min(c.said[pair]+lost, math.MaxInt32)
			}
		}
	}
}

// end notes as what a node says that these messages have ended for another.
func (c *chaos) end(n, other *sim.Node, list []*chaosMessage) {
	pair := [2]uint16{n.ID, other.ID}
	now, before := c.peer(n, other).PeerCounts, c.counts[pair]
	c.counts[pair] = now
	fate := ""
	switch delivered, expired := now.Delivered-before.Delivered, now.Expired-before.Expired; {
	case delivered == uint64(len(list)) && expired == 0:
		fate = "delivered"
	case expired == uint64(len(list)) && delivered == 0 && c.group:
		fate = "expired"
	default:
		fate = fmt.Sprintf("one of %d: %d delivered, %d expired, %d cancelled", len(list), delivered, expired, now.Cancelled-before.Cancelled)
		c.fault("%s ended %d messages for %s and says: %s", n.Name, len(list), other.Name, fate)
	}
	for _, m := range list {
		if m.ended != "" {
			c.fault("a message of %s ended twice: %s, %s", n.Name, m.ended, fate)
		}
		m.ended, m.start = fate, n.Incarnation()
	}
}

// content is the head of the message in a record of the bucket mail; "": it is news of a site.
func (c *chaos) content(value []byte) string {
	content, _, _, err := envelope.Parse(value, nil)
	if err != nil || content.Payload == nil {
		return ""
	}
	return head(content.Payload.Parts[0].Data)
}

// mailOf are the messages in a node's journal.
func (c *chaos) mailOf(n *sim.Node) map[*chaosMessage]bool {
	list := map[*chaosMessage]bool{}
	journal := n.Journal()
	for _, r := range journal {
		if r.Bucket == "to" {
			name := c.content(journal["mail\x00"+string(r.Key[2:])].Value)
			if m := c.all[name][binary.BigEndian.Uint16(r.Key)]; m != nil {
				list[m] = true
			}
		}
	}
	return list
}

// inbound are the messages of others that a node has confirmed and not handed over, by their keys in its journal.
func inbound(n *sim.Node) map[string]api.Record {
	list := map[string]api.Record{}
	for key, r := range n.Journal() {
		switch {
		case r.Bucket == "early" && len(r.Value) > 0, r.Bucket == "deliver":
			list[key] = r
		}
	}
	return list
}

// questionsIn is how many messages a peer asks for again in one that waits for its turn, and which peer that is. A node that
// loses the question does not know that they could not be read (docs/decisions/put-back.md).
func questionsIn(r api.Record) (from uint16, n int) {
	if r.Bucket != "early" {
		return 0, 0
	}
	a, err := mail.ParseEarly(r.Key[2:], r.Value)
	if err != nil {
		return 0, 0
	}
	content, _, _, err := envelope.Parse(a.Body, nil)
	if err != nil {
		return 0, 0
	}
	return binary.BigEndian.Uint16(r.Key), len(content.Again)
}

// talk has all send n messages to all others, one every so often, a few of them long.
func (c *chaos) talk(first, n int, every time.Duration) {
	for i := range n {
		for _, from := range c.nodes {
			octets := 60 + c.rng.IntN(200)
			if c.rng.IntN(12) == 0 {
				octets = 3000
			}
			p := track(from.ID, pipeHQ, first+i, octets)
			c.w.At(time.Duration(i)*every+time.Duration(c.rng.IntN(1000))*time.Millisecond, func() {
				var to []uint16
				messages := map[uint16]*chaosMessage{}
				for _, other := range c.others(from) {
					to = append(to, other.ID)
					messages[other.ID] = &chaosMessage{from: from.ID, to: other.ID}
				}
				c.all[head(p.Parts[0].Data)] = messages
				from.Site.Send(c.w, p, to...)
			})
		}
	}
}

// tap is the air: what passes is kept, and somebody without the key changes or repeats some of it.
func (c *chaos) tap(from, to *sim.Node, data []byte) [][]byte {
	if c.air = append(c.air, data); len(c.air) > 5000 {
		c.air = c.air[1000:]
	}
	if c.rng.Float64() >= c.noise {
		return [][]byte{data}
	}
	switch old := c.air[c.rng.IntN(len(c.air))]; c.rng.IntN(4) {
	case 0:
		bad := slices.Clone(data)
		bad[c.rng.IntN(len(bad))] ^= 1 << c.rng.IntN(8)
		return [][]byte{bad, data}
	case 1:
		c.w.At(time.Duration(c.rng.IntN(9000))*time.Millisecond, func() { c.w.Late(from, to, data) })
		return nil
	case 2:
		return [][]byte{old, data, old}
	default:
		c.w.Inject(to, old)
		return [][]byte{data, data[:c.rng.IntN(len(data))]}
	}
}

// lie sends authentic datagrams of a member of the network, whose frames are changed ones of a true kind, or noise.
func (c *chaos) lie(to *sim.Node, n int) {
	for range n {
		var body []byte
		for range 1 + c.rng.IntN(3) {
			var f frame.Frame
			switch c.rng.IntN(5) {
			case 0:
				f = frame.Hello{Store: c.rng.Uint32(), Stream: uint8(c.rng.Uint32()), HeardIncarnation: to.Incarnation(), HeardStream: uint8(c.rng.IntN(3)),
					Digest: c.rng.Uint32(), Seen: uint16(c.rng.Uint32()), End: c.rng.IntN(4) == 0, Ended: c.rng.IntN(4) == 0, Void: c.rng.IntN(4) == 0}
			case 1:
				f = frame.Data{Number: uint16(c.rng.IntN(40)), Prompt: c.rng.IntN(2) == 0, Body: c.bytes(c.rng.IntN(100))}
			case 2:
				f = frame.Ack{Queue: frame.Queue(c.rng.IntN(2)), Cumulative: uint16(c.rng.IntN(100)), Bitmap: c.bytes(c.rng.IntN(4))}
			case 3:
				f = frame.PMul{Body: c.bytes(c.rng.IntN(60))}
			default:
				body = append(body, c.bytes(c.rng.IntN(60))...)
				continue
			}
			if h, ok := f.(frame.Hello); ok && c.trust {
				h.Roster = uint16(c.rng.IntN(9))
				f = h
			}
			body = frame.Append(body, f, false)
		}
		if len(body) > 0 && c.rng.IntN(2) == 0 {
			body[c.rng.IntN(len(body))] ^= 1 << c.rng.IntN(8)
		}
		data, err := c.lies.Seal(nil, to.ID, c.rng.IntN(3) > 0, body)
		if err == nil {
			if c.lied != nil {
				c.lied(data)
			}
			c.w.Late(c.liar, to, data)
		}
	}
}

func (c *chaos) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(c.rng.Uint32())
	}
	return b
}

// handed is how much a node had handed over so many commits ago.
func (c *chaos) handed(n *sim.Node, back int) int {
	given := c.given[n.ID]
	rest := given[:max(0, len(given)-back)]
	c.given[n.ID], c.back = rest, 0
	if len(rest) == 0 {
		return 0
	}
	return rest[len(rest)-1]
}

// hurt changes a node's data and starts it with them: what it had to send and has no more may be lost, what it has again
// may come twice, and so may what others still have and it no longer knows.
func (c *chaos) hurt(n *sim.Node, down time.Duration, what func()) {
	before, held := c.mailOf(n), inbound(n)
	what()
	after := c.mailOf(n)
	for m := range before {
		if !after[m] {
			m.lost = true
		}
	}
	for m := range after {
		m.twice, m.ended = true, ""
	}
	for _, other := range c.others(n) {
		for m := range c.mailOf(other) {
			m.twice = m.twice || m.to == n.ID
		}
	}
	have := inbound(n)
	for key, r := range held {
		if _, ok := have[key]; !ok {
			c.acked[n.ID]++
			from, questions := questionsIn(r)
			c.told[[2]uint16{n.ID, from}] += questions
		}
	}
	// What was handed over since the copy may be handed over again.
	for _, g := range n.Site.Got[c.handed(n, c.back):] {
		if m := c.all[head(g.Payload.Parts[0].Data)][n.ID]; m != nil {
			m.twice = true
		}
	}
	c.w.Kill(n, down)
}

// spare are the buckets of which a gateway can do without a record.
var spare = []string{"deliver", "own", "far", "copy"}

// harm does one bad thing.
func (c *chaos) harm() {
	n := c.nodes[c.rng.IntN(len(c.nodes))]
	down := time.Duration(c.rng.IntN(20)) * time.Second
	kinds := 9
	if c.group {
		kinds = 11
	}
	switch c.rng.IntN(kinds) {
	case 0:
		back := 1 + c.rng.IntN(40)
		c.say("%s is put back by %d commits", n.Name, back)
		c.hurt(n, down, func() {
			c.back = min(back, n.Commits())
			c.w.PutBack(n, back)
		})
	case 1:
		var gone string
		c.hurt(n, down, func() {
			j := n.Journal()
			keys := slices.DeleteFunc(slices.Sorted(maps.Keys(j)), func(k string) bool { return !slices.Contains(spare, j[k].Bucket) })
			if len(keys) > 0 {
				gone = keys[c.rng.IntN(len(keys))]
				delete(j, gone)
				n.SetJournal(j)
			}
		})
		c.say("%s loses a record: %q", n.Name, gone)
	case 2:
		down = time.Duration(1+c.rng.IntN(5)) * time.Hour
		c.say("%s is off for %v", n.Name, down)
		c.w.Kill(n, down)
	case 3:
		c.say("%s loses its store", n.Name)
		c.hurt(n, down, func() {
			c.w.LoseStore(n)
			c.given[n.ID] = append(c.given[n.ID], len(n.Site.Got))
		})
	case 4:
		c.say("%s has another address", c.nodes[1].Name)
		c.w.Redial(c.nodes[1])
	case 5:
		c.say("yesterday's datagrams to %s", n.Name)
		for range 30 {
			if len(c.air) > 0 {
				c.w.Late(c.nodes[c.rng.IntN(len(c.nodes))], n, c.air[c.rng.IntN(len(c.air))])
			}
		}
	case 6:
		c.say("lies to %s", n.Name)
		c.lie(n, 30)
	case 7:
		c.say("%s is killed", n.Name)
		c.w.Kill(n, down)
	case 8:
		most := []time.Duration{time.Hour, 12 * time.Hour, 400 * 24 * time.Hour}[c.rng.IntN(3)]
		by := time.Duration(c.rng.Int64N(int64(2*most))) - most
		c.say("the clock of %s is set by %v", n.Name, by.Round(time.Second))
		c.w.SetClock(n, by)
		if c.rng.IntN(2) == 0 {
			c.w.Kill(n, down)
		}
	default:
		n, d := c.nodes[1+c.rng.IntN(len(c.nodes)-1)], time.Duration(1+c.rng.IntN(120))*time.Minute
		if n.GW != nil {
			c.say("%s is silent for %v", n.Name, d)
			c.w.Give(n, api.Silence{On: true, Until: c.w.Clock(n).Add(d), Announce: c.rng.IntN(2) == 0})
		}
	}
}

// operate does what an operator does whose log says that a start is refused for the clock by which it is numbered.
func (c *chaos) operate() {
	for _, n := range c.nodes {
		for _, other := range c.others(n) {
			if c.peer(n, other).Link != "up" && refusesForItsClock(c.w, n, other) {
				c.say("at %s %s is forgotten, its next start may have any number", n.Name, other.Name)
				c.w.Give(n, api.Forget{Peer: other.ID, AnyStart: true})
			}
		}
	}
}

// play answers whether all went as it must.
func (c *chaos) play() bool {
	w := c.w
	w.Kill(c.liar, 1000*time.Hour)
	c.lies = seal.NewSealer(seal.Key{1, 2, 3}, c.liar.ID, seal.Incarnation{Number: c.liar.Incarnation() + 1, Salt: 7})
	if c.trust {
		c.roster = w.First()
		c.insider()
	}
	for _, n := range c.nodes {
		n.Site.Put(w, pipeItem(n.ID, []string{pipeHQ, pipeShip, pipeHQ}[n.ID-1]))
	}
	c.noise = 0.1 * c.rng.Float64()
	every, pause := time.Duration(4+c.rng.IntN(4))*time.Second, time.Second
	if c.group { // all share the air
		every, pause = 8*every, 8*time.Second
	}
	c.talk(0, 40, every)
	for range 3 + c.rng.IntN(5) {
		w.Run(time.Duration(5+c.rng.IntN(50)) * pause)
		c.harm()
		c.rollover()
	}
	w.EndCrashes()
	for slices.ContainsFunc(c.nodes, func(n *sim.Node) bool { return n.GW == nil }) { // nodes that are off come back
		w.Run(time.Minute)
	}
	w.Run(5 * time.Minute)
	for _, n := range c.nodes {
		w.SetClock(n, -w.Wrong(n))
		if c.group { // P_Mul tells when a message's life is over, so a gateway that started with a wrong clock starts anew
			w.Give(n, api.Silence{})
			w.Kill(n, time.Second)
		}
	}
	w.Run(time.Minute)
	c.operate()
	if c.trust { // a copy that was put back may have lost the last one: its operator gives it again
		for _, n := range c.nodes {
			w.Give(n, gateway.NewRoster{Roster: c.roster})
		}
	}
	w.Run(5 * time.Minute)
	c.noise = 0
	w.Run(20 * time.Minute)
	if c.group {
		w.Run(3 * time.Hour)
	}
	c.talk(1000, 5, 10*pause)
	w.Run(60 * pause)
	c.operate() // a peer that nobody could reach may be refused only now
	w.Run(5 * 60 * pause)
	c.judge()
	return len(c.faults) == 0
}

// judge holds what has happened against the promise.
func (c *chaos) judge() {
	for _, n := range c.nodes {
		if s := n.GW.Status(c.w.Clock(n)).Roster; c.trust && s.Serial != c.roster.Serial {
			c.fault("%s goes by roster %d, not %d", n.Name, s.Serial, c.roster.Serial)
		}
		for _, other := range c.others(n) {
			if s := c.peer(n, other); s.Waiting+s.UnderWay+s.Pending > 0 || s.Link != "up" {
				c.fault("%s to %s: %d waiting, %d under way, %d pending, link %s", n.Name, other.Name, s.Waiting, s.UnderWay, s.Pending, s.Link)
			}
		}
		for _, g := range n.Site.Got {
			if m := c.all[head(g.Payload.Parts[0].Data)][n.ID]; m == nil || m.from != g.From {
				c.fault("%s was handed what nobody sent: %.30q", n.Name, g.Payload.Parts[0].Data)
			} else {
				m.got++
			}
		}
	}
	lost := map[[2]uint16][]string{} // by sender and recipient
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		for _, m := range c.all[name] {
			c.judgeOne(name, m, lost)
		}
	}
	for _, n := range c.nodes {
		all := 0
		for _, other := range c.others(n) {
			pair := [2]uint16{other.ID, n.ID}
			silently := max(0, len(lost[pair])-c.told[pair])
			if all += silently; silently > c.said[pair] {
				c.fault("messages %v for %s ended as delivered and did not come; %s says of %d that they may be lost", lost[pair], n.Name, other.Name, c.said[pair])
			}
		}
		if all > c.acked[n.ID] {
			c.fault("of messages %v for node %d, which ended as delivered and did not come, %v were told; it may have lost %d", lost, n.ID, c.told, c.acked[n.ID])
		}
	}
}

// judgeOne judges a message for one who should have got it; lost takes the names of those that ended as delivered and did not
// come.
func (c *chaos) judgeOne(name string, m *chaosMessage, lost map[[2]uint16][]string) {
	fresh := len(name) == len("1;1000")
	switch {
	case !m.accepted && m.got > 0 || !m.accepted && fresh:
		c.fault("message %s was never accepted, and came %d times", name, m.got)
	case m.got > 1 && (fresh || !m.twice):
		c.fault("message %s came %d times (ended: %q)", name, m.got, m.ended)
	case m.got == 0 && fresh:
		c.fault("message %s, after all was well again, did not come (ended: %q)", name, m.ended)
	case m.got == 0 && m.lost || !m.accepted:
	case m.got == 0 && m.ended == "delivered":
		lost[[2]uint16{m.from, m.to}] = append(lost[[2]uint16{m.from, m.to}], name)
	case m.ended == "expired": // its life was over, and nobody has confirmed it
	case m.got == 0 || m.ended == "" && !m.lost:
		c.fault("message %s for node %d came %d times and ended as %q", name, m.to, m.got, m.ended)
	}
}
