package gateway

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// door decides which datagrams count: docs/decisions/boots.md. It also says what an operator should know of the others.
type door struct {
	g      *Gateway
	visits map[uint16]*visit
}

// visit is what has come in a peer's name and does not count.
type visit struct {
	said    map[string]time.Time // by what was said or sent, when last
	strange int                  // datagrams that no key of ours opens, since the last that one did
	ran     seal.Boot            // an earlier start of which something new came in
	counter uint32               // of that, the highest
	signs   int                  // and how much that says
	began   time.Time            // when the newest start was heard first
	counted []seal.Boot          // starts that counted in this run: what was recorded of them is no sign
	// forgotten is how often the operator had the peer forgotten in this run.
	forgotten int
	forged    forgeries
	stream    uint8 // of a stranger's numbers, as its newest start says
}

// earliest is a time before every gateway of this kind: a clock behind it is wrong.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	clockSlack  = 24 * time.Hour   // how far the clocks of two nodes may differ
	sayAgain    = 10 * time.Minute // between two log lines of one kind about one peer
	lesserEvery = time.Minute      // between two answers to starts of a stranger that are not its newest
	countedMost = 64               // starts of a peer that are remembered
	keySigns    = 3                // so many datagrams make a wrong key likely
	lateTrips   = 2                // round trips after a start in which datagrams of the one before it may be late on their way
)

// ForgetMost is how often a peer can be forgotten in one run.
const ForgetMost = seal.ForgetMost

func newDoor(g *Gateway) door {
	d := door{g: g, visits: map[uint16]*visit{g.cfg.ID: {said: map[string]time.Time{}}}}
	for id := range g.byID {
		state := g.keys.opener.State(id)
		d.visits[id] = &visit{said: map[string]time.Time{}, counted: []seal.Boot{{Number: state.Boot, Salt: state.Salt}}}
	}
	g.keys.opener.Strict()
	return d
}

// may limits what is said or sent because of a datagram that anybody could have sent.
func (v *visit) may(now time.Time, what string, every time.Duration) bool {
	if last, ok := v.said[what]; ok && now.Sub(last) < every {
		return false
	}
	v.said[what] = now
	return true
}

// unix is t as a boot number.
func unix(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }

// clockIsBehind says that starts of peers cannot be judged by this machine's clock: it shows a time before the first
// gateway, or one before this node's own earlier starts.
func (d door) clockIsBehind(now time.Time) bool {
	return now.Before(earliest) || d.g.cfg.Boot.Number > unix(now.Add(clockSlack))
}

// begin judges the clock at the first Step.
func (d door) begin(now time.Time) {
	if d.clockIsBehind(now) {
		d.g.Note("warn", "the clock is behind, or was ahead at an earlier start: starts of peers are not judged by it, and peers whose clock is right may refuse this node; set the clock, start once with gateway run --start-by-clock, and have this node forgotten there: gateway peer forget",
			"clock", now.UTC(), "this_start", bootTime(d.g.cfg.Boot.Number))
	}
}

func bootTime(number uint32) time.Time { return time.Unix(int64(number), 0).UTC() }

// strangers are reasons for which a datagram is refused, counted and perhaps named in the log, and nothing else: what anybody can send
// as fast as he likes costs no look at what there is to do.
var strangers = []error{seal.ErrShort, seal.ErrVersion, seal.ErrUnknownPeer, seal.ErrAuth, seal.ErrReplay, seal.ErrTooOld}

// open opens a datagram that counts; what does not is counted and gone. again says that what the peer has not
// acknowledged should go again, for it has started anew.
func (d door) open(now time.Time, dg api.Datagram) (p *peer, body []byte, info seal.OpenInfo, again, ok bool) {
	d.g.keys.forward.Step(now)
	d.g.keys.opener.Bound(0)
	if !d.clockIsBehind(now) {
		d.g.keys.opener.Bound(unix(now.Add(clockSlack)))
	}
	from, body, info, err := d.g.keys.opener.Open(dg.Data)
	again = info.NewBoot
	if errors.Is(err, seal.ErrUnproven) {
		if err = d.meet(now, d.g.byID[from], dg, body, info); err == nil {
			info.NewBoot, info.Newest = true, true
		}
	}
	if err != nil {
		d.g.touched = !slices.ContainsFunc(strangers, func(e error) bool { return errors.Is(err, e) })
		d.refuse(now, from, dg, body, info, err)
		return nil, nil, info, false, false
	}
	v := d.visits[from]
	v.strange = 0
	if info.NewBoot {
		v.signs, v.began = 0, now
		v.counted = append(v.counted, info.Boot)
		v.counted = v.counted[max(0, len(v.counted)-countedMost):]
	}
	return d.g.byID[from], body, info, again, true
}

// meet takes a datagram of a peer of which nothing is known. It counts when it answers this very start; until then only
// what its hello says of that is looked at, and it gets a hello to answer.
func (d door) meet(now time.Time, p *peer, dg api.Datagram, body []byte, info seal.OpenInfo) error {
	hello, octets, more := d.helloOf(body)
	if hello != nil && hello.HeardBoot == d.g.cfg.Boot.Number {
		return d.g.keys.opener.Confirm(p.ID, info)
	}
	v := d.visits[p.ID]
	if hello != nil {
		p.Counts.DatagramsReceived++
		p.Ledger.Head(mail.Received, info.Long)
		p.Ledger.Add(mail.Received, mail.Key, info.Proofs)
		p.Ledger.Add(mail.Received, mail.Key, octets)
		d.overtaken(now, p, *hello)
	}
	if more || hello == nil {
		d.g.Drop(dropReason(seal.ErrUnproven))
	}
	if hello != nil && info.Newest {
		v.stream = hello.Stream
		p.Met.Model = cmp.Or(p.Met.Model, hello.Model) // only what is sent is coded by it
	}
	if info.NewBoot {
		p.Link.Restarted()
	}
	every := d.g.cfg.Profile.ProbeInterval
	toAll := info.Group && p.Link.Together()
	switch {
	case d.g.silence.on:
		if v.may(now, "silent", time.Hour) {
			d.g.Note("warn", "nothing is known of a peer, and a silent node cannot ask it: what it sends is not taken until the silence ends", "peer", p.Name)
		}
	case toAll && (info.NewBoot || info.Newest && v.may(now, "greeted", every)):
		v.said["greeted"] = now
		if greeting, ok := greetingOf(body); ok {
			p.Link.Greeting(now, greeting)
		} else {
			p.Met.Owe(now.Add(d.g.cfg.Profile.AckDelay))
		}
	case info.Newest && (dg.Addr == p.Addr || toAll): // what is for the peer goes there anyway
		p.Link.Heard(now)
		if !p.Met.Owed {
			p.Met.Owe(now.Add(d.g.cfg.Profile.AckDelay))
		}
	case info.NewBoot || info.Newest && v.may(now, "greeted", every) || !info.Newest && v.may(now, "lesser", lesserEvery):
		v.said["greeted"] = now
		d.greet(now, p, dg, info.Boot.Number, hello)
	}
	return errMet
}

// errMet says that meet has seen to a datagram.
var errMet = errors.New("gateway: a stranger's datagram")

// greet answers an address that is not believed to be the peer's. heard is the start that the answer knows, its may be nil.
func (d door) greet(now time.Time, p *peer, dg api.Datagram, heard uint32, its *frame.Hello) {
	hello := d.g.Hello(now, p.Peer)
	hello.HeardBoot = heard
	hello.Ephemeral, hello.HeardEphemeral = [frame.EphemeralOctets]byte{}, 0 // nothing goes out that is longer than what comes in
	if its != nil {
		hello.HeardStream = its.Stream
	}
	p.Link.Greet(now, dg.Addr, hello)
}

// heardOf is what a hello to a peer says of its start and stream, proven or not.
func (d door) heardOf(p *mail.Peer) (boot uint32, stream uint8) {
	boot, stream = d.g.keys.opener.HeardBoot(p.ID), p.Met.InStream
	if d.g.keys.opener.State(p.ID).Boot == 0 && boot != 0 {
		stream = d.visits[p.ID].stream
	}
	return boot, stream
}

// helloOf finds the hello to this node among the frames of a datagram; more says that there are others, or what is no frame.
func (d door) helloOf(body []byte) (hello *frame.Hello, octets int, more bool) {
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			return hello, octets, true
		}
		h, ok := f.(frame.Hello)
		all, toAll := f.(frame.Greeting)
		if toAll {
			h, _, ok = all.For(d.g.cfg.ID)
		}
		if ok && hello == nil {
			hello, octets = &h, len(body)-len(rest)
		} else if !toAll {
			more = true
		}
		body = rest
	}
	return hello, octets, more
}

// greetingOf is the greeting that a datagram begins with.
func greetingOf(body []byte) (frame.Greeting, bool) {
	f, _, err := frame.Parse(body)
	greeting, ok := f.(frame.Greeting)
	return greeting, ok && err == nil
}

// overtaken says that a peer knows a later start of this node than this one, so that it refuses what this one sends.
func (d door) overtaken(now time.Time, p *peer, h frame.Hello) {
	if h.HeardBoot > d.g.cfg.Boot.Number && d.visits[p.ID].may(now, "overtaken", sayAgain) {
		d.g.Note("error", "a peer has heard a later start of this node than this one, and refuses what it sends: another node runs with this id, or the store was lost or put back and the clock is behind; end the other node, or let the peer forget this one there: gateway peer forget",
			"peer", p.Name, "id", d.g.cfg.ID, "this_start", bootTime(d.g.cfg.Boot.Number), "later_start", bootTime(h.HeardBoot))
	}
}

// refuse counts what does not count, and says what an operator should know of it.
func (d door) refuse(now time.Time, from uint16, dg api.Datagram, body []byte, info seal.OpenInfo, err error) {
	if err == errMet {
		return
	}
	d.g.Drop(dropReason(err))
	p := d.g.byID[from]
	switch {
	case errors.Is(err, seal.ErrAuth) && d.g.keys.trust != nil:
		d.otherName(now, dg)
	case errors.Is(err, seal.ErrAuth):
		d.otherKey(now, dg)
	case errors.Is(err, seal.ErrGone):
		d.gone(now, from, dg)
	case errors.Is(err, seal.ErrForged):
		d.forged(now, from, dg)
	case errors.Is(err, seal.ErrOwnID):
		if d.visits[d.g.cfg.ID].may(now, "own id", time.Minute) {
			d.g.Note("error", "two nodes with one id: another node of this net sends with our id; give one of them another",
				"id", d.g.cfg.ID, "address", dg.Addr)
		}
	case p == nil:
	case errors.Is(err, seal.ErrUnknownBoot):
		// It does not know that we have lost what we knew of it: tell it where its address is known.
		if d.visits[from].may(now, "unknown", time.Minute) {
			p.Met.Owe(now)
		}
	case errors.Is(err, seal.ErrFarBoot):
		if d.visits[from].may(now, "far", sayAgain) {
			d.g.Note("error", "a peer's start lies ahead of this clock and is refused: set the clock that is wrong; where it was ahead, start that gateway once with gateway run --start-by-clock; to hear the peer all the same: gateway peer forget ID --any-start",
				"peer", p.Name, "id", from, "its_start", bootTime(info.Boot.Number), "clock", now.UTC(), "address", dg.Addr)
		}
	case errors.Is(err, seal.ErrTwin):
		d.twins(now, p, dg)
	case errors.Is(err, seal.ErrStaleBoot):
		d.stale(now, p, dg, body, info)
	}
}

// stale looks for a node that still runs in an earlier start of a peer. What was recorded and sent again is no sign of one.
func (d door) stale(now time.Time, p *peer, dg api.Datagram, body []byte, info seal.OpenInfo) {
	v := d.visits[p.ID]
	hello, _, _ := d.helloOf(body)
	answers := hello != nil && hello.HeardBoot == d.g.cfg.Boot.Number && !slices.Contains(v.counted, info.Boot)
	if hello != nil && (answers || hello.HeardBoot == 0) && !d.g.silence.on && v.may(now, "stale", sayAgain) {
		d.greet(now, p, dg, d.g.keys.opener.HeardBoot(p.ID), hello) // so that it can tell its operator
	}
	switch {
	case now.Before(v.began.Add(lateTrips * p.bearer.Common.Timing.RoundTrip)):
		return
	case answers && (info.Boot != v.ran || info.Counter > v.counter):
		v.ran, v.counter = info.Boot, info.Counter
		v.signs += 2
	case info.Alive:
		v.signs++
	default:
		return
	}
	if v.signs > 2 { // one that answers, or two of the start before, may have been late on their way
		d.twins(now, p, dg)
	}
}

func (d door) twins(now time.Time, p *peer, dg api.Datagram) {
	if d.visits[p.ID].may(now, "twins", time.Minute) {
		d.g.Note("error", "two nodes with one id, or one that was put back to an old copy of its data: what the older one sends is dropped",
			"id", p.ID, "peer", p.Name, "address", dg.Addr)
	}
}

// otherKey says that what seems to come from a peer opens with no key of ours.
func (d door) otherKey(now time.Time, dg api.Datagram) {
	p := d.sender(now, dg)
	if p == nil {
		return
	}
	v := d.visits[p.ID]
	v.strange++
	if v.strange >= keySigns && (p.LastHeard.IsZero() || now.Sub(p.LastHeard) >= time.Minute) && v.may(now, "key", sayAgain) {
		d.g.Note("warn", "datagrams that seem to come from a peer do not authenticate: has it another net key?",
			"peer", p.Name, "address", dg.Addr, "datagrams", v.strange)
	}
}

// sender is the peer that a datagram seems to come from: by its address, or, of a peer without one, by what the datagram
// says in the clear.
func (d door) sender(now time.Time, dg api.Datagram) (one *peer) {
	for _, p := range d.g.peers {
		fits, boot := seal.Claims(dg.Data, p.ID)
		if fits && p.Known(dg.Addr) {
			return p
		}
		plausible := d.clockIsBehind(now) || boot >= unix(earliest) && boot <= unix(now.Add(clockSlack))
		if fits && !p.Addr.IsValid() && boot != 0 && plausible {
			if one != nil {
				return nil
			}
			one = p
		}
	}
	return one
}

// close shuts out what a peer had sealed before it began to count its messages anew: its numbers mean others.
func (d door) close(p *peer) {
	d.g.keys.opener.Close(p.ID)
	state := d.g.keys.opener.State(p.ID)
	d.g.Record(bucketSeal, peerKey(p.ID, nil), state.Append(nil))
}

// forget obeys the operator: nothing is known of a peer's starts and addresses any more.
func (d door) forget(now time.Time, ev api.Forget) {
	p := d.g.byID[ev.Peer]
	if p == nil || !d.estrange(now, p, ev.AnyStart) {
		d.g.Note("warn", "a peer was not forgotten: there is none with this id, or it was forgotten too often since the start of this gateway: restart it", "id", ev.Peer)
		return
	}
	d.g.Note("info", "a peer was forgotten: what it sends counts again when it has answered", "peer", p.Name, "id", p.ID, "any_start", ev.AnyStart)
}

// estrange makes a stranger of a peer; false: that was done too often in this run.
func (d door) estrange(now time.Time, p *peer, anyStart bool) bool {
	if !d.g.keys.opener.Forget(p.ID, anyStart) {
		return false
	}
	d.g.Record(bucketSeal, peerKey(p.ID, nil), nil)
	d.visits[p.ID] = &visit{said: map[string]time.Time{}, forgotten: d.visits[p.ID].forgotten + 1, counted: d.visits[p.ID].counted}
	p.Paths.Forget()
	p.Link.RecordPaths()
	p.LastHeard = time.Time{}
	p.Met.KnowsUs = false
	p.Met.Owe(now)
	return true
}

const notAuthentic = "not_authentic"

// refusals are the reasons for which the door takes no datagram, besides notAuthentic.
var refusals = map[string]error{
	"short": seal.ErrShort, "version": seal.ErrVersion, "unknown_peer": seal.ErrUnknownPeer,
	"unknown_boot": seal.ErrUnknownBoot, "unproven": seal.ErrUnproven, "far_boot": seal.ErrFarBoot,
	"stale_boot": seal.ErrStaleBoot, "twin": seal.ErrTwin,
	"forged": seal.ErrForged, "gone": seal.ErrGone, "own_id": seal.ErrOwnID, "replay": seal.ErrReplay, "too_old": seal.ErrTooOld,
}

// RefusesDatagrams says whether a reason of Status.Dropped is one for which a datagram of the link is not taken.
func RefusesDatagrams(reason string) bool { return reason == notAuthentic || refusals[reason] != nil }

func dropReason(err error) string {
	for reason, e := range refusals {
		if errors.Is(err, e) {
			return reason
		}
	}
	return notAuthentic
}
