package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// A question for a peer of another site goes without custody where nothing else is under way: the answer is its acknowledgement, and needs none
// itself, because a site that lacks the answer asks again. docs/decisions/asked-for.md.

// queries are the questions of this site, and its last answers.
type queries struct {
	g     *Gateway
	fresh []string // keys of questions that local peers have just asked
	out   []*query
	told  map[uint16][frame.MaxRef + 1]toldAnswer
	last  uint64
}

// query is a question that one peer has been asked.
type query struct {
	item    site.Item
	leg     *leg
	ref     uint8
	message uint64 // by which the replica knows it
	tries   int
	at      time.Time // when it goes again
}

// toldAnswer is the last answer to a peer under a number.
type toldAnswer struct {
	key   string // of the question
	until time.Time
	reply frame.Told
	items []string // keys of the items in the answer
}

const (
	queryLife  = time.Hour // of a question: jxtabridge.Config.Ask as it is usually
	queryTries = 3
	// queryMessage and the numbers after it belong to no message of the store.
	queryMessage = 1 << 63
)

func newQueries(g *Gateway) queries {
	return queries{g: g, told: map[uint16][frame.MaxRef + 1]toldAnswer{}}
}

// asked notes that a local peer looks for something.
func (q *queries) asked(it site.Item) {
	if envelope.Asks(it) {
		q.fresh = append(q.fresh, it.Key())
	}
}

// begin asks the peers for which nothing else waits. Its other questions go in custody.
func (q *queries) begin(now time.Time) {
	for _, key := range q.fresh {
		for _, p := range q.g.peers {
			l := p.best(nil)
			it, lacks := q.g.replica.Lacking(now, p.ID, key)
			life := it.Expires.Sub(now)
			if !lacks || l == nil || !l.asks() || life < queryLife-time.Minute || life > queryLife {
				continue
			}
			used := 0
			for _, o := range q.out {
				if o.leg.ID == p.ID {
					used |= 1 << o.ref
				}
			}
			for ref := uint8(1); ref <= frame.MaxRef; ref++ {
				if used>>ref&1 == 0 {
					q.last++
					o := &query{item: it, leg: l, ref: ref, message: queryMessage | q.last, at: now}
					q.out = append(q.out, o)
					q.g.replica.Sent(p.ID, o.message, []site.Item{it})
					break
				}
			}
		}
	}
	q.fresh = nil
}

// asks says that a peer can be asked on a leg at once.
func (l *leg) asks() bool {
	b := l.bearer
	news, _, _ := l.Box.News()
	return b.Relay == nil && !b.sharesGroup() && !b.mute() && l.goes() && l.met() && l.Addr.IsValid() &&
		news == 0 && l.Box.Waiting(frame.Direct, frame.Bulk) == 0
}

// pump sends questions on a bearer, and gives up those asked in vain.
func (q *queries) pump(now time.Time, b *bearer) {
	for _, o := range slices.Clone(q.out) {
		switch {
		case o.leg.bearer != b || now.Before(o.ready()):
		case o.tries >= queryTries || !o.leg.goes() || o.leg.Gone:
			q.end(o)
			q.g.replica.Unsent(o.leg.ID, o.message)
		default:
			body, short := envelope.AppendQuery(nil, o.item)
			o.at = now.Add(2 * b.Common.Timing.RoundTrip << o.tries)
			o.tries++
			q.send(now, o.leg, frame.Query{Ref: o.ref, Regular: short, Body: body})
		}
	}
}

// ready is when a question may go.
func (o *query) ready() time.Time {
	air, _ := o.leg.Link.Air()
	return due.Latest(o.at, air.Free)
}

func (q *queries) end(o *query) {
	q.out = slices.DeleteFunc(q.out, func(is *query) bool { return is == o })
}

// due is when pump has something to do; zero: never.
func (q *queries) due() (at time.Time) {
	for _, o := range q.out {
		if !o.leg.bearer.mute() {
			at = due.Earliest(at, o.ready())
		}
	}
	return at
}

func (q *queries) send(now time.Time, l *leg, f frame.Frame) {
	b, body := l.bearer, frame.Append(nil, f, true)
	data, ok := b.road.Seal(l.ID, false, body)
	if !ok {
		return
	}
	l.Ledger.Head(mail.Sent, false)
	l.Ledger.Charge(mail.Sent, mail.State, mail.Whole(site.JXTA, len(data)-seal.Overhead(false)))
	l.Counts.DatagramsSent++
	l.LastSent = now
	air, rate := l.Link.Air()
	air.Sent(now, &b.Profile, len(data), rate)
	b.road.Send(l.Addr, data)
}

// receive takes a frame of a peer; false: it is no question and no answer.
func (q *queries) receive(now time.Time, l *leg, f frame.Frame, octets int) bool {
	switch f := f.(type) {
	case frame.Query:
		it, err := envelope.ParseQuery(f.Body, f.Regular)
		if err != nil {
			q.g.Drop("query")
			return true
		}
		it.Expires = now.Add(queryLife)
		q.answer(now, l, f.Ref, it)
	case frame.Told:
		q.answered(now, l, f)
	default:
		return false
	}
	l.Ledger.Charge(mail.Received, mail.State, mail.Whole(site.JXTA, octets))
	return true
}

// answer answers a peer's question with the items that are here, or with the last answer to the same question. An answer that does not fit a
// datagram goes in custody.
func (q *queries) answer(now time.Time, l *leg, ref uint8, it site.Item) {
	g, id, answers := q.g, l.ID, q.told[l.ID]
	if was := answers[ref]; was.key == it.Key() && now.Before(was.until) {
		if !l.bearer.mute() {
			q.send(now, l, was.reply)
		}
		return
	}
	g.farItems(now, l.of, []site.Item{it})
	if l.bearer.mute() || !l.met() {
		return
	}
	reply, items := q.found(now, l, it)
	reply.Ref = ref
	t := toldAnswer{key: it.Key(), until: now.Add(2 * l.bearer.Common.Timing.RoundTrip << queryTries), reply: reply}
	if len(items) > 0 {
		q.last++
		g.replica.Sent(id, queryMessage|q.last, items)
		for _, h := range g.replica.Acked(id, queryMessage|q.last) {
			g.Record(copyRecord(id, h))
			t.items = append(t.items, h.Key)
		}
	}
	answers[ref] = t
	q.told[id] = answers
	q.send(now, l, reply)
}

// found are the items that a question finds here, and the answer with them. Items that do not fit an answer go in custody.
func (q *queries) found(now time.Time, l *leg, question site.Item) (frame.Told, []site.Item) {
	g := q.g
	items := g.replica.Next(now, l.ID, 8)
	if len(items) == 0 || slices.ContainsFunc(items, func(it site.Item) bool { return it.Gone }) {
		return frame.Told{}, nil
	}
	if len(items) == 1 {
		if body, short := envelope.AppendFound(nil, question, items[0]); short {
			return frame.Told{Regular: true, Body: body}, items
		}
	}
	coder := g.coders.to(l.Peer)
	body, err := envelope.Packed(coder, envelope.Message{Items: items}, 0, true, &envelope.Texts{Coder: coder, Rules: g.cfg.Rules})
	if err != nil || len(body) > l.bearer.groupRoom()-1 {
		return frame.Told{}, nil
	}
	return frame.Told{Body: slices.Clone(body)}, items
}

// answered takes an answer.
func (q *queries) answered(now time.Time, l *leg, f frame.Told) {
	g := q.g
	i := slices.IndexFunc(q.out, func(o *query) bool { return o.leg.ID == l.ID && o.ref == f.Ref })
	if i < 0 {
		g.Drop("query_late")
		return
	}
	o, items := q.out[i], []site.Item(nil)
	var err error
	if f.Regular {
		var it site.Item
		it, err = envelope.ParseFound(o.item, f.Body)
		items = []site.Item{it}
	} else if len(f.Body) > 0 {
		var m envelope.Message
		m, _, _, err = envelope.ParseCoded(f.Body, nil, &envelope.Texts{Coder: g.coders.of(l.Peer)})
		items = m.Items
	}
	if err != nil {
		g.Drop("query")
		return
	}
	q.end(o)
	for _, h := range g.replica.Acked(l.ID, o.message) {
		g.Record(copyRecord(l.ID, h))
	}
	g.farItems(now, l.of, items)
}

// inCustody: a peer asks once more, in custody. No answer has reached it, so it may not hold the items of one.
func (q *queries) inCustody(id uint16, it site.Item) {
	for _, t := range q.told[id] {
		if t.key != "" && t.key == it.Key() {
			for _, h := range q.g.replica.Unheld(id, t.items) {
				q.g.Record(copyRecord(id, h))
			}
		}
	}
}
