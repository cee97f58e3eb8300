package trace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

const (
	maxWays  = 1024    // pairs of UDP ends that are looked at
	maxFlows = 1 << 16 // flows of one direction
)

// LinkRow is one account of the airtime ledger (design 8): IP octets from one node to another.
type LinkRow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Kind   string `json:"kind"`
	Octets int64  `json:"octets"`
}

// LinkReport is the traffic between gateways.
type LinkReport struct {
	Datagrams int64     `json:"datagrams"`
	Octets    int64     `json:"octets"` // IP octets
	Opened    int64     `json:"opened"`
	Unopened  []Row     `json:"unopened"` // by reason
	Ledger    []LinkRow `json:"ledger"`
	Layers    []Row     `json:"layers"`    // every octet of the opened datagrams, outermost layer first
	Frames    []Row     `json:"frames"`    // by type
	Envelopes []Row     `json:"envelopes"` // messages under custody, each once, by their contents; octets as they crossed
	Messages  int64     `json:"messages"`  // under custody
	Repeats   int64     `json:"repeats"`   // DATA frames of a number that was seen before
	Acked     int64     `json:"acked"`     // messages whose acknowledgement is in the capture
	MeanS     float64   `json:"ack_mean_s"`
	MaxS      float64   `json:"ack_max_s"`
	Objects   int64     `json:"norm_objects"` // put together
	Unread    int64     `json:"envelopes_unread"`

	Timeline *Timeline     `json:"timeline,omitempty"` // by the ledger's kinds
	AckS     *Distribution `json:"ack_s,omitempty"`
}

type nodePair struct{ from, to uint16 }

type wayKey struct{ src, dst netip.AddrPort }

// way is one direction between two UDP ends.
type way struct {
	datagrams, octets int64
	hint              byte // of the sender's id
	seen              bool
	pairs             []nodePair // pairs whose openers opened a datagram of the way
	copies            copies
}

// linkAnalyser reads the traffic of gateways.
type linkAnalyser struct {
	a            *Analyser
	key          seal.Key
	nodes        []uint16 // the nodes of the network; empty: to be found out
	ways         map[wayKey]*way
	openers      map[nodePair]*seal.Opener
	incarnations map[uint16]seal.PeerState // latest start of each node
	dirs         map[nodePair]*direction
	unopened     map[string]*Tally
	layers       [len(layerNames)]Tally
	frames       map[string]*Tally
	kinds        map[string]*Tally
	wait         spread
	pmul         *mulSite
	clear        clearing
	search       int
	vain         error // the last error, when the search was given up
	// Objects being put together, oldest first, and their octets.
	assembly  []*object
	assembled int64
	coder     compact.Coder
	lacking   map[uint32]bool // corpora of the network by which messages were coded, and which are not available
	line      timeline
	acks      samples
	owing     int64 // messages without an acknowledgement
	r         LinkReport
}

func tallyIn[K comparable](m map[K]*Tally, name K, octets int) {
	t := m[name]
	if t == nil {
		t = &Tally{}
		m[name] = t
	}
	t.add(octets)
}

func newLink(a *Analyser) *linkAnalyser {
	l := &linkAnalyser{
		a: a, nodes: a.opt.Nodes, ways: map[wayKey]*way{}, dirs: map[nodePair]*direction{},
		openers: map[nodePair]*seal.Opener{}, incarnations: map[uint16]seal.PeerState{}, unopened: map[string]*Tally{},
		frames: map[string]*Tally{}, kinds: map[string]*Tally{}, pmul: newMulSite(), clear: clearing{take: a.opt.Clear},
	}
	l.coder.Network = a.opt.Corpus
	if a.opt.Key != nil {
		l.key = *a.opt.Key
	}
	return l
}

// sealed says whether a payload may be a sealed datagram: version 1 (package seal).
func sealed(b []byte) bool { return len(b) >= seal.OverheadShort && b[0]>>5 == 1 }

// udp takes in one datagram.
func (a *Analyser) udp(s *tcpSegment) {
	if a.mesh(s) {
		return
	}
	if !sealed(s.data) {
		a.other++
		a.strangers.kind(otherKey{atUDP, min(s.src.Port(), s.dst.Port())})
		return
	}
	if a.link == nil {
		a.link = newLink(a)
	}
	a.link.datagram(s)
}

func (l *linkAnalyser) datagram(s *tcpSegment) {
	if l.r.Datagrams == 0 && l.a.totals.packets == 0 {
		l.a.start = s.at
	}
	l.a.end = max(l.a.end, s.at)
	l.r.Datagrams++
	l.r.Octets += int64(s.ip)
	key := wayKey{s.src, s.dst}
	w := l.ways[key]
	if w == nil {
		if len(l.ways) >= maxWays {
			tallyIn(l.unopened, "too many senders", s.ip)
			l.clear.sealed(s)
			return
		}
		w = &way{}
		l.ways[key] = w
	}
	w.datagrams++
	w.octets += int64(s.ip)
	w.hint, w.seen = s.data[0]%idStep, true
	shut := ""
	switch {
	case l.a.opt.Key == nil && l.a.opt.Ring == nil:
		shut = "no key given"
	case len(s.data) < s.length:
		shut = "cut by the snap length"
	}
	if shut != "" {
		tallyIn(l.unopened, shut, s.ip)
		l.clear.sealed(s)
		return
	}
	d, body, info, err := l.open(w, l.ways[wayKey{s.dst, s.src}], s.data)
	if errors.Is(err, seal.ErrReplay) {
		if o := w.copies.find(s.at, s.data); o != nil {
			l.secondCopy(s, o)
			l.clear.sealed(s)
			return
		}
	}
	if err != nil {
		tallyIn(l.unopened, reason(err), s.ip)
		l.clear.sealed(s)
		return
	}
	w.copies.remember(s.at, s.data, d, info)
	l.r.Opened++
	d.at = s.at - l.a.start
	back := l.dirs[nodePair{d.nodes.to, d.nodes.from}]
	l.owing -= d.unacked() + back.unacked()
	defer func() {
		l.owing += d.unacked() + back.unacked()
		l.line.wait(d.at, l.owing+l.pmul.owing)
	}()
	l.around(d, s, info.Long)
	if info.Proofs > 0 {
		d.charge("key", info.Proofs)
		l.layer(layerSeal, info.Proofs)
	}
	whole := body
	defer func() { l.clear.opened(s, d.nodes, info, whole) }()
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			tallyIn(l.frames, "(malformed)", len(body))
			l.a.damaged("a malformed frame: does the gateway run another version?", s.number, err)
			d.charge("unread", len(body))
			l.layer(layerMalformed, len(body))
			return
		}
		l.inside(f, len(body)-len(rest))
		l.frame(d, s, f, len(body)-len(rest))
		body = rest
	}
}

// noteHello notes a HELLO: numbering starts anew if its store or stream is another one than before.
func (d *direction) noteHello(store uint32, stream uint8) {
	if d.store != store || d.stream != uint16(stream)+1 {
		if d.stream != 0 {
			d.forget()
		}
		d.store, d.stream = store, uint16(stream)+1
	}
}

// frame charges one frame as the sender's airtime ledger does, and reads its contents.
func (l *linkAnalyser) frame(d *direction, s *tcpSegment, f frame.Frame, octets int) {
	switch f := f.(type) {
	case frame.Hello:
		d.corpus = f.Corpus
		tallyIn(l.frames, "hello", octets)
		d.charge("key", octets)
		d.noteHello(f.Store, f.Stream)
	case frame.Greeting:
		d.corpus = f.Corpus
		tallyIn(l.frames, "greeting", octets)
		d.charge("key", octets)
		d.noteHello(f.Store, f.Stream)
	case frame.Ack:
		tallyIn(l.frames, "ack", octets)
		d.charge("ack", octets)
		l.ack(d, s, f)
	case frame.Data:
		octets -= l.rides(d, s, f.Rides, f.Cumulative)
		tallyIn(l.frames, "data", octets)
		d.charge(l.data(d, s, f), octets)
	case frame.Segment:
		octets -= l.rides(d, s, f.Rides, f.Cumulative)
		tallyIn(l.frames, "segment", octets)
		d.charge(l.segment(d, s, f), octets)
	case frame.PMul:
		l.mul(d, s, f, octets)
	case frame.NORM:
		d.charge(l.norm(d, s, f.Body, octets), octets)
	case frame.Talkers:
		tallyIn(l.frames, "talkers", octets)
		d.charge("key", octets)
	case frame.Query, frame.Told, frame.Rollup, frame.Rolled:
		tallyIn(l.frames, frameName(f), octets)
		d.charge("state", octets)
	case frame.LinkProbe:
		tallyIn(l.frames, "link_probe", octets)
		d.charge("link_probe", octets)
	default:
		tallyIn(l.frames, frameName(f), octets)
		d.charge("ack", octets)
	}
}

func frameName(f frame.Frame) string {
	switch f.(type) {
	case frame.Probe:
		return "probe"
	case frame.Answer:
		return "answer"
	case frame.Beside:
		return "beside"
	case frame.Digest:
		return "digest"
	case frame.Open:
		return "open"
	case frame.Query:
		return "query"
	case frame.Rollup, frame.Rolled:
		return "rollup"
	case frame.Told:
		return "told"
	}
	return fmt.Sprintf("%T", f)[len("frame."):]
}

// rides reads the acknowledgement that a frame carries, and returns its octets.
func (l *linkAnalyser) rides(d *direction, s *tcpSegment, rides bool, cumulative uint8) int {
	if !rides {
		return 0
	}
	tallyIn(l.frames, "ack", 1)
	d.charge("ack", 1)
	if number, ok := l.riding(d, cumulative); ok {
		l.ack(d, s, frame.Ack{Cumulative: number})
	}
	return 1
}

// data returns the ledger's kind of a DATA frame.
func (l *linkAnalyser) data(d *direction, s *tcpSegment, f frame.Data) string {
	number := d.number(f.Number, f.Short)
	if !d.first(frame.Direct, uint16(number), s.at) {
		l.r.Repeats++
		l.layer(layerAgain, len(f.Body))
		return "repair"
	}
	l.r.Messages++
	return l.envelope(d, s, d.flows, f.Body, &d.before, number)
}

// Bounds of the messages that messages over P_Mul may be coded after, for a flow and element: as many as a gateway keeps.
const (
	lateKept       = 256
	lateKeptOctets = 64 << 10
)

// envelope reads a message under custody and returns the ledger's kind. flows are those of its sender. before is the history after which
// it may be coded, nil for a queue without one, and custody its number there: the message is read if the capture has the messages of that
// history, in any order.
func (l *linkAnalyser) envelope(d *direction, s *tcpSegment, flows map[uint32]envelope.Flow, body []byte, before *envelope.Histories, custody uint64) string {
	texts := &envelope.Texts{Coder: &l.coder}
	if before != nil {
		texts.Decode = before.Decode(&l.coder, custody)
	}
	if before == &d.before {
		rest := l.measured(texts)
		defer func() { rest(len(body)) }()
	}
	m, number, defined, err := envelope.ParseCoded(body, func(n uint32) (envelope.Flow, bool) {
		f, ok := flows[n]
		return f, ok
	}, texts)
	switch {
	case before == &d.before:
		d.settle(custody, earlier{number, m.Payload})
	case before != nil && m.Payload != nil:
		envelope.Elements(number, m.Payload, func(i int, data []byte) {
			before.InsertElement(number, i, custody, data, lateKept, lateKeptOctets)
		})
	}
	if defined != "" && number != 0 && flows != nil && len(flows) < maxFlows {
		flows[number] = defined
	}
	if err != nil {
		l.r.Unread++
		if l.lacks(d, s, err) {
			tallyIn(l.kinds, "unread", len(body))
			return "payload"
		}
		if l.r.Unread == 1 && !errors.Is(err, envelope.ErrUnknownFlow) && !errors.Is(err, compact.ErrHistory) { // flows and histories that began before the capture
			l.a.damaged("a message under custody that cannot be read", s.number, err)
		}
		tallyIn(l.kinds, "unread", len(body))
		return "payload"
	}
	l.clear.message(&m)
	kind := "state"
	switch {
	case m.Payload != nil:
		kind = "payload"
		l.payload(d, s, m.Payload)
	case slices.ContainsFunc(m.Items, func(it site.Item) bool { return it.Kind == site.Document }):
		kind = "advertisement"
		l.services(d, s, m.Items)
	}
	tallyIn(l.kinds, kind, len(body))
	return kind
}

// lacks says whether a message cannot be read because its sender codes by a corpus that is not available. It reports each corpus once.
func (l *linkAnalyser) lacks(d *direction, s *tcpSegment, err error) bool {
	if d.corpus == 0 || d.corpus == l.a.opt.Corpus.Name() || !errors.Is(err, compact.ErrModel) {
		return false
	}
	if !l.lacking[d.corpus] {
		if l.lacking == nil {
			l.lacking = map[uint32]bool{}
		}
		if len(l.lacking) < maxProblems {
			l.lacking[d.corpus] = true
			l.a.damaged(fmt.Sprintf("a message coded by the corpus %08x of the network: --corpus FILE reads it", d.corpus), s.number, nil)
		}
	}
	return true
}

// services emits the services of a site.
func (l *linkAnalyser) services(d *direction, s *tcpSegment, items []site.Item) {
	for _, it := range items {
		if name := field(it.Doc, "Name"); it.Kind == site.Document && name != "" && bytes.Contains(it.Doc, msaName) {
			l.a.emit(Event{
				Event: EventPublish, From: nodeName(d.nodes.from), To: nodeName(d.nodes.to), Origin: it.Owner, at: s.at, Name: name,
				ID: it.ID, Pipe: unique(field(it.Doc, "Id")), Kind: "propagate", Octets: len(it.Doc),
			})
		}
	}
}

// payload emits an application's message.
func (l *linkAnalyser) payload(d *direction, s *tcpSegment, p *site.Message) {
	ev := Event{Event: EventSend, From: nodeName(d.nodes.from), To: nodeName(d.nodes.to), Origin: p.From, Pipe: p.Topic, Kind: "propagate", at: s.at}
	if !p.Published {
		ev.Kind, ev.Pipe = "unicast", unique(p.Param)
	}
	for i := range p.Parts {
		e := &p.Parts[i]
		name := e.Name
		if e.Namespace != "" {
			name = e.Namespace + ":" + name
		}
		ev.add(name, e.Type, e.Data)
	}
	l.a.emit(ev)
}

// riding is the full cumulative number of an acknowledgement of which 8 bits rode with a message, among the numbers that the other end
// has used.
func (l *linkAnalyser) riding(d *direction, low uint8) (uint16, bool) {
	back := l.dirs[nodePair{d.nodes.to, d.nodes.from}]
	if back == nil {
		return 0, false
	}
	return uint16(back.last) - uint16(uint8(back.last)-low), true
}

// ack notes the messages of the other direction that are now durable.
func (l *linkAnalyser) ack(d *direction, s *tcpSegment, f frame.Ack) {
	back := l.dirs[nodePair{d.nodes.to, d.nodes.from}]
	if back == nil || f.Queue >= frame.Queues {
		return
	}
	for number, at := range back.waiting[f.Queue] {
		ahead := number - f.Cumulative
		durable := int16(ahead) <= 0
		if i := int(ahead) - 1; !durable && i/8 < len(f.Bitmap) {
			durable = f.Bitmap[i/8]>>(i%8)&1 == 1
		}
		if durable {
			delete(back.waiting[f.Queue], number)
			l.acked(s.at - at)
		}
	}
}

func (l *linkAnalyser) acked(after int64) {
	l.r.Acked++
	l.wait.add(float64(after) / 1e9)
	l.acks.add(float64(after) / 1e9)
}

func nodeName(id uint16) string {
	if id == seal.Group {
		return "all nodes"
	}
	return fmt.Sprintf("node %d", id)
}

// finish adds the results to a report.
func (l *linkAnalyser) finish() *LinkReport {
	r := &l.r
	for _, k := range l.pmul.messages {
		k.settle(l.pmul, "payload")
	}
	r.MeanS, r.MaxS = l.wait.mean(), l.wait.max
	r.Timeline, r.AckS = l.line.result(), l.acks.result()
	for p, d := range l.dirs {
		for kind, octets := range d.ledger {
			r.Ledger = append(r.Ledger, LinkRow{nodeName(p.from), nodeName(p.to), kind, octets})
		}
	}
	slices.SortFunc(r.Ledger, func(a, b LinkRow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(b.Octets, a.Octets), cmp.Compare(a.Kind, b.Kind))
	})
	r.Unopened, r.Frames, r.Envelopes = rowsOf(l.unopened), rowsOf(l.frames), rowsOf(l.kinds)
	r.Layers = l.layerRows()
	return r
}

// Edge is the node that counts as the edge of a trace: the one with the largest id, because shore is set up first.
func (r *LinkReport) Edge() string {
	edge, best := "", 0
	for _, row := range r.Ledger {
		if id, err := strconv.Atoi(strings.TrimPrefix(row.From, "node ")); err == nil && id > best {
			edge, best = row.From, id
		}
	}
	return edge
}

func rowsOf(m map[string]*Tally) []Row {
	rows := []Row{}
	for name, t := range m {
		rows = append(rows, Row{name, *t})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Octets, a.Octets), cmp.Compare(a.Name, b.Name)) })
	return rows
}
