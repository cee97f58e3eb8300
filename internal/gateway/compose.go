package gateway

import (
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// helloLimit is the longest that a peer which does not answer waits for the next hello.
const helloLimit = 10 * time.Minute

// letter is a datagram being composed.
type letter struct {
	budget int // octets left for frames
	frames []frame.Frame
	kinds  []ledgerKind
	ride   *frame.Receipt // room is kept for it: it goes with the first message, or else alone
}

// size is what f costs when another frame follows it.
func size(f frame.Frame) int { return len(frame.Append(nil, f, false)) }

// add puts f in if it fits: with another frame behind it, or at least as the last.
func (l *letter) add(f frame.Frame, kind ledgerKind) bool {
	switch n := size(f); {
	case n <= l.budget:
		l.budget -= n
	case len(frame.Append(nil, f, true)) <= l.budget:
		l.budget = 0
	default:
		return false
	}
	l.frames = append(l.frames, f)
	l.kinds = append(l.kinds, kind)
	return true
}

// addRiding is add for a message, which takes the receipt along that waits for one.
func (l *letter) addRiding(f frame.Data, kind ledgerKind) bool {
	r := l.ride
	if r != nil {
		f.Rides, f.Cumulative = true, uint8(r.Cumulative)
		l.ride = nil
		l.budget += size(*r)
	}
	if l.add(f, kind) {
		return true
	}
	if r != nil {
		l.ride = r
		l.budget -= size(*r)
	}
	return false
}

// compose seals the next datagram for p and returns its IP octets; 0 when there is nothing that may go.
func (g *Gateway) compose(now time.Time, p *peer) (int, error) {
	long := !p.knowsUs
	overhead := seal.OverheadShort
	if long {
		overhead = seal.OverheadLong
	}
	l := &letter{budget: g.cfg.Profile.DatagramOctets - overhead}
	probe := p.sender.ProbeDue(now)
	if probe {
		l.budget -= size(frame.Probe{})
	}
	if p.announce {
		l.budget -= size(frame.Silence{})
	}
	g.startBulk(now, p)

	hello := long || p.owesHello
	if hello {
		h := frame.Hello{Store: g.cfg.Store, Stream: p.stream, HeardBoot: g.opener.State(p.ID).Boot,
			HeardStream: p.inStream, Digest: g.replica.Digest(now, p.ID), Model: modelOf(), Forgot: p.forgot}
		l.add(h, kindKey)
	}
	for _, r := range p.receiver.Receipts() {
		if r.Lane == frame.Direct && len(r.Bitmap) == 0 && len(p.answers) == 0 && !g.custody.Reorder && size(r) <= l.budget {
			l.ride = &r
			l.budget -= size(r)
			continue
		}
		l.add(r, kindAck)
	}
	for _, id := range p.answers {
		l.add(frame.Answer{ID: id}, kindAck)
	}
	if !p.sender.Dead() {
		g.addMessages(now, p, l)
	}
	if l.ride != nil {
		l.frames = append([]frame.Frame{*l.ride}, l.frames...)
		l.kinds = append([]ledgerKind{kindAck}, l.kinds...)
	}
	if p.announce {
		l.frames = append([]frame.Frame{frame.Silence{Until: g.silence.wire()}}, l.frames...)
		l.kinds = append([]ledgerKind{kindAck}, l.kinds...)
	}
	if probe {
		f := frame.Probe{ID: p.sender.ProbeSent(now)}
		l.frames = append([]frame.Frame{f}, l.frames...)
		l.kinds = append([]ledgerKind{kindAck}, l.kinds...)
	}
	helloIsDue := !p.helloDue.IsZero() && !now.Before(p.helloDue)
	keepalive := g.cfg.Keepalive > 0 && !now.Before(p.lastSent.Add(g.cfg.Keepalive))
	receiptDue := !p.receiver.Due().IsZero() && !now.Before(p.receiver.Due())
	carries := p.announce || probe || len(p.answers) > 0 || helloIsDue || keepalive || receiptDue || l.carriesData()
	if !carries {
		p.readyAt = time.Time{}
		return 0, nil
	}
	return g.post(now, p, l, long, hello)
}

func (l *letter) carriesData() bool {
	for _, f := range l.frames {
		switch f.(type) {
		case frame.Data, frame.NORM:
			return true
		}
	}
	return false
}

// post seals what l holds and notes that it went.
func (g *Gateway) post(now time.Time, p *peer, l *letter, long, hello bool) (int, error) {
	var body []byte
	sizes := make([]int, len(l.frames))
	for i, f := range l.frames {
		n := len(body)
		body = frame.Append(body, f, i == len(l.frames)-1)
		sizes[i] = len(body) - n
	}
	data, err := g.sealer.Seal(nil, p.ID, long, body)
	if err != nil {
		return 0, err
	}
	state, payload := 0, false
	for i, n := range sizes {
		if d, ok := l.frames[i].(frame.Data); ok && d.Rides {
			p.ledger.add(sent, kindAck, 1)
			n--
		}
		p.ledger.add(sent, l.kinds[i], n)
		switch l.kinds[i] {
		case kindState, kindAdvertisement:
			state += n
		case kindPayload:
			payload = true
		}
	}
	g.told(now, p, state, payload)
	p.ledger.add(sent, kindHeader, profile.IPUDPOctets+seal.OverheadShort)
	if long {
		p.ledger.add(sent, kindKey, seal.OverheadLong-seal.OverheadShort)
	}
	p.count.DatagramsSent++
	if hello {
		p.owesHello = false
		p.helloDue = time.Time{}
		if !p.knowsUs {
			wait := g.custody.Prompt // the first may simply have been lost
			if p.helloTries > 0 {
				wait = g.cfg.Profile.ProbeInterval << min(p.helloTries-1, 10)
			}
			p.helloDue = now.Add(min(wait, helloLimit))
			p.helloTries++
		}
	}
	p.receiver.Settle()
	p.answers = nil
	p.announce = false
	p.readyAt = time.Time{}
	p.lastSent = now
	g.out.Datagrams = append(g.out.Datagrams, Datagram{Addr: p.addr, Data: data})
	return profile.IPUDPOctets + len(data), nil
}

// mostDirect is how many datagrams without NORM may go while NORM waits.
const mostDirect = 4

// addMessages fills l: what was lost, what waits, state, and NORM when none of these is there or it has waited enough.
func (g *Gateway) addMessages(now time.Time, p *peer, l *letter) {
	urgent := p.first(frame.Direct)
	if (urgent == nil || urgent.rank() <= routine) && len(p.normOut) > 0 && p.direct >= mostDirect && g.addNORM(now, p, l) {
		return
	}
	any := false
	for _, id := range p.sender.Lost(now) {
		m := p.underWay[id]
		if m == nil || !g.addData(now, p, l, id, m, kindRepair) {
			break
		}
		any = true
		p.count.Repeated++
	}
	// Behind what was lost, however urgent: the lane is read in order, so nothing is read before that.
	for m := p.first(frame.Direct); m != nil; m = p.first(frame.Direct) {
		id := custody.ID{Lane: frame.Direct, Number: p.sender.Next(frame.Direct)}
		if !g.addData(now, p, l, id, m, m.kind) {
			if len(l.frames) > 0 {
				break
			}
			p.toBulk(m) // it fits no datagram, though laneOf thought so: it must not stop those behind it
			continue
		}
		p.shift(frame.Direct)
		any = true
	}
	if may, _ := g.mayTell(now, p); may {
		for p.sender.Room(frame.Direct) && g.addState(now, p, l) {
			any = true
		}
	}
	if any {
		p.direct++
		return
	}
	g.addNORM(now, p, l)
}

// addData puts one message into l if it fits, assigning its number if it has none.
func (g *Gateway) addData(now time.Time, p *peer, l *letter, id custody.ID, m *message, kind ledgerKind) bool {
	body := g.encode(p, id, m)
	prompt := m.content.Payload == nil // others wait for what a site has
	f := frame.Data{Number: uint16(id.Number), Short: p.sender.Short(id), Prompt: prompt, Body: append([]byte(nil), body...)}
	if f.Short {
		f.Number &= 0xff
	}
	if !l.addRiding(f, kind) {
		return false
	}
	if p.underWay[id] == nil {
		g.assign(p, id, m)
		g.define(p, id, m)
	}
	m.gone = true
	if prompt {
		p.sender.SentPrompt(now, id)
	} else {
		p.sender.Sent(now, id)
	}
	return true
}

// assign gives m the next number of its lane, durably.
func (g *Gateway) assign(p *peer, id custody.ID, m *message) {
	if got := p.sender.Assign(id.Lane); got != id.Number {
		panic("gateway: numbers out of step")
	}
	p.underWay[id] = m
	if m.seq != 0 {
		g.record(bucketWaiting, seqKey(p.ID, m.seq), nil)
	} else {
		p.octets += len(m.full)
	}
	g.record(bucketOut, idKey(p.ID, id), m.full)
	g.recordPeer(p)
}

// addState puts changes of the site's state into l.
func (g *Gateway) addState(now time.Time, p *peer, l *letter) bool {
	if g.mul != nil {
		return false
	}
	for n := 8; n > 0; n /= 2 {
		items := g.replica.Next(now, p.ID, n)
		if len(items) == 0 {
			return false
		}
		content, items := g.stateMessage(now, p, items)
		m := &message{content: content, kind: kindOf(content.Items)}
		full, err := envelope.Append(nil, m.content, 0, true)
		if err != nil {
			g.note("warn", "an item of this site cannot be told to its peers", "peer", p.Name, "error", err)
			for _, it := range items {
				g.replica.Put(it.Withdrawal())
			}
			return false
		}
		m.full = full
		lane := g.laneOf(p, m)
		if lane == frame.Bulk && n > 1 {
			continue
		}
		if lane == frame.Bulk {
			if len(p.waiting[frame.Bulk]) > 0 || !g.enqueue(p, m) {
				return false // when that has gone
			}
			// Counted as on its way from now, so that it is not told twice. Its number follows with the air.
			g.replica.Sent(p.ID, waitingState|m.seq, items)
			return false
		}
		id := custody.ID{Lane: frame.Direct, Number: p.sender.Next(frame.Direct)}
		if g.addData(now, p, l, id, m, m.kind) {
			g.replica.Sent(p.ID, stateKey(id), items)
			return true
		}
		if l.carriesData() {
			return false // the next datagram has room
		}
	}
	return false
}

// stateKey names a message to the replica; waitingState marks one that has no number.
func stateKey(id custody.ID) uint64 { return uint64(id.Lane)<<56 | id.Number }

const waitingState = 1 << 60

func kindOf(items []site.Item) ledgerKind {
	for _, it := range items {
		if it.Kind == site.Document {
			return kindAdvertisement
		}
	}
	return kindState
}
