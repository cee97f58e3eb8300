package keys

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// visit notes the datagrams that have come in a peer's name and do not count.
type visit struct {
	said    map[string]time.Time // when a log line or answer of a kind last went, by kind
	strange int                  // datagrams that no key of ours opens, since the last one that opened
	ran     seal.Incarnation     // an earlier start of which something new came in
	counter uint32               // the highest counter of that start
	signs   int                  // weight of the signs that an earlier start still runs
	began   time.Time            // when the newest start was heard first
	counted []seal.Incarnation   // starts that counted in this run: recorded datagrams of these are no sign
	// forgotten is how often the operator had the peer forgotten in this run.
	forgotten int
	forgeries forgeries
	stream    uint8 // of a stranger's numbers, as its newest start says
}

func newVisit(counted ...seal.Incarnation) visit {
	return visit{said: map[string]time.Time{}, counted: counted}
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

// may limits the log lines and answers that follow from datagrams that anybody could have sent.
func (v *visit) may(now time.Time, what string, every time.Duration) bool {
	if last, ok := v.said[what]; ok && now.Sub(last) < every {
		return false
	}
	v.said[what] = now
	return true
}

// unix is t as an incarnation number.
func unix(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }

// clockIsBehind says that starts of peers cannot be judged by this machine's clock: it shows a time before the first
// gateway, or one before this node's own earlier starts.
func (k *Keys) clockIsBehind(now time.Time) bool {
	return now.Before(earliest) || k.cfg.Incarnation.Number > unix(now.Add(clockSlack))
}

// Start judges the clock and the rosters at the first Step.
func (k *Keys) Start(now time.Time) {
	if k.clockIsBehind(now) {
		k.cfg.Services.Note("warn", "this node's clock is behind its last start, or before 2026; it does not check its peers' start times, and peers may refuse it. Set the clock and restart",
			"clock", now.UTC(), "this_start", incarnationTime(k.cfg.Incarnation.Number))
	}
	k.Rosters.part()
	k.Rosters.disputed("the configuration or the journal")
}

func incarnationTime(number uint32) time.Time { return time.Unix(int64(number), 0).UTC() }

// Opened is the result of opening a datagram.
type Opened struct {
	From  uint16 // the peer that it is from; 0: nobody knows
	Taken bool   // it counts
	Body  []byte // its frames
	Info  seal.OpenInfo
	Again bool // messages that the peer has not acknowledged should go again, for it has started anew
	// Idle: it was refused, counted and perhaps named in the log, and nothing else. The gateway need not look for work after it: anybody
	// can send such datagrams as fast as he likes.
	Idle bool
	Answer
}

// Answer is the reaction to a datagram that does not count.
type Answer struct {
	Hello     *frame.Hello    // of a peer of which nothing is known: it is counted, and what it says of the model is believed
	Octets    int             // that it takes
	Restarted bool            // the peer has a new start
	Heard     bool            // the peer is where its datagrams go
	Greeting  *frame.Greeting // to all
	At        netip.AddrPort  // of a peer that was never heard: its newest datagram came from there; invalid: it has an address
	Owe       time.Time       // the peer is owed a HELLO by then; zero: it is not
	Greet     *Greet          // goes at once; nil: none does
}

// Greet is a HELLO to an address that is not believed to be the peer's.
type Greet struct {
	Addr   netip.AddrPort
	Heard  uint32 // the start of the peer that it knows
	Stream *uint8 // and the stream of its numbers; nil: the one that any HELLO says
}

// Apply turns a HELLO for a peer into one for a stranger.
func (o *Greet) Apply(h *frame.Hello) {
	h.HeardIncarnation = o.Heard
	h.Ephemeral, h.HeardEphemeral = [frame.EphemeralOctets]byte{}, 0 // no answer is longer than the datagram that it answers
	if o.Stream != nil {
		h.HeardStream = *o.Stream
	}
}

// idle are reasons for which a refused datagram is Opened.Idle.
var idle = []error{seal.ErrShort, seal.ErrVersion, seal.ErrUnknownPeer, seal.ErrAuth, seal.ErrReplay, seal.ErrTooOld}

// Open opens a datagram; one that does not count is refused. silent: an order, a window or the configuration
// forbids this node to transmit.
func (k *Keys) Open(now time.Time, dg api.Datagram, silent bool) (o Opened) {
	k.forward.Step(now)
	k.opener.Bound(0)
	if !k.clockIsBehind(now) {
		k.opener.Bound(unix(now.Add(clockSlack)))
	}
	var err error
	o.From, o.Body, o.Info, err = k.opener.Open(dg.Data)
	o.Again = o.Info.NewIncarnation
	m := k.known[o.From]
	if errors.Is(err, seal.ErrUnproven) {
		if o.Answer, err = k.meet(now, m, dg, &o, silent); err == nil {
			o.Info.NewIncarnation, o.Info.Newest = true, true
		}
	}
	if err != nil {
		o.Idle = slices.ContainsFunc(idle, func(e error) bool { return errors.Is(err, e) })
		k.refuse(now, dg, &o, err, silent)
		return o
	}
	o.Taken = true
	m.strange = 0
	k.sealer.Heard(m.ID)
	if o.Info.NewIncarnation {
		m.signs, m.began = 0, now
		m.counted = append(m.counted, o.Info.Incarnation)
		m.counted = m.counted[max(0, len(m.counted)-countedMost):]
	}
	k.Rosters.used(m.ID, o.Info.Epoch)
	k.record(m.ID)
	return o
}

// meet takes a datagram of a peer of which nothing is known. It counts when it answers this very start; until then only
// its hello is looked at, for such an answer, and the peer gets a hello to answer.
func (k *Keys) meet(now time.Time, m *member, dg api.Datagram, o *Opened, silent bool) (a Answer, err error) {
	info := o.Info
	hello, octets, more := k.helloOf(o.Body)
	if hello != nil && hello.HeardIncarnation == k.cfg.Incarnation.Number {
		return a, k.opener.Confirm(m.ID, info)
	}
	if hello != nil {
		a.Hello, a.Octets = hello, octets
		k.overtaken(now, m, *hello)
	}
	if more || hello == nil {
		k.cfg.Services.Drop(dropReason(seal.ErrUnproven))
	}
	if hello != nil && info.Newest {
		m.stream = hello.Stream
	}
	a.Restarted = info.NewIncarnation
	unmet := m.Enrolled && m.LastHeard.IsZero() && info.Newest
	if unmet {
		a.At = dg.Addr
	}
	every := k.cfg.ProbeInterval
	toAll := info.Group && m.Link.Together()
	switch {
	case silent:
		if m.may(now, "silent", time.Hour) {
			k.cfg.Services.Note("warn", "this silent node has lost what it knew of a peer and may not ask; it refuses the peer's datagrams until the silence ends", "peer", m.Name)
		}
	case toAll && (info.NewIncarnation || info.Newest && m.may(now, "greeted", every)):
		m.said["greeted"] = now
		if greeting, ok := greetingOf(o.Body); ok {
			a.Greeting = &greeting
		} else {
			a.Owe = now.Add(k.cfg.AckDelay)
		}
	case unmet && !toAll || info.Newest && m.Handshake.Unmet && dg.Addr == m.Addr: // it has something for this node
		a.Heard, a.Owe = true, now
	case info.Newest && (dg.Addr == m.Addr || toAll): // datagrams for the peer go there anyway
		a.Heard = true
		if !m.Handshake.Owed {
			a.Owe = now.Add(k.cfg.AckDelay)
		}
	case info.NewIncarnation || info.Newest && m.may(now, "greeted", every) || !info.Newest && m.may(now, "lesser", lesserEvery):
		m.said["greeted"] = now
		a.Greet = greet(dg, info.Incarnation.Number, hello)
	}
	return a, errMet
}

// errMet says that meet has seen to a datagram.
var errMet = errors.New("gateway: a stranger's datagram")

// greet answers a datagram where it came from. heard is the start that the answer knows, its may be nil.
func greet(dg api.Datagram, heard uint32, its *frame.Hello) *Greet {
	g := &Greet{Addr: dg.Addr, Heard: heard}
	if its != nil {
		g.Stream = &its.Stream
	}
	return g
}

// helloOf finds the hello to this node among the frames of a datagram; more says that there are other frames, or octets that are none.
func (k *Keys) helloOf(body []byte) (hello *frame.Hello, octets int, more bool) {
	for len(body) > 0 {
		f, rest, err := frame.Parse(body)
		if err != nil {
			return hello, octets, true
		}
		h, ok := f.(frame.Hello)
		all, toAll := f.(frame.Greeting)
		if toAll {
			h, _, ok = all.For(k.cfg.ID)
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

// overtaken says that a peer knows a later start of this node than this one, so that it refuses the datagrams of this one.
func (k *Keys) overtaken(now time.Time, m *member, h frame.Hello) {
	if h.HeardIncarnation > k.cfg.Incarnation.Number && m.may(now, "overtaken", sayAgain) {
		k.cfg.Services.Note("error", "a peer has heard a later start of this node and refuses this one. Stop any other node with this id, or run gateway peer forget there",
			"peer", m.Name, "id", k.cfg.ID, "this_start", incarnationTime(k.cfg.Incarnation.Number), "later_start", incarnationTime(h.HeardIncarnation))
	}
}

// refuse counts a datagram that does not count, and says what an operator should know of it.
func (k *Keys) refuse(now time.Time, dg api.Datagram, o *Opened, err error, silent bool) {
	if err == errMet {
		return
	}
	k.cfg.Services.Drop(dropReason(err))
	m := k.known[o.From]
	switch {
	case errors.Is(err, seal.ErrAuth) && k.cfg.Trust != nil:
		k.otherName(now, dg)
	case errors.Is(err, seal.ErrAuth):
		k.otherKey(now, dg)
	case errors.Is(err, seal.ErrGone):
		k.isGone(now, o.From, dg)
	case errors.Is(err, seal.ErrForged):
		k.isForged(now, o.From, dg)
	case errors.Is(err, seal.ErrOwnID):
		if k.known[k.cfg.ID].may(now, "own id", time.Minute) {
			k.cfg.Services.Note("error", "two nodes with one id: another node of this network sends with this node's id; give one of them another",
				"id", k.cfg.ID, "address", dg.Addr)
		}
	case m == nil || !m.here:
	case errors.Is(err, seal.ErrUnknownIncarnation):
		// It does not know that we have lost what we knew of it: tell it so, if its address is known.
		if m.may(now, "unknown", time.Minute) {
			o.Owe = now
		}
	case errors.Is(err, seal.ErrFarIncarnation):
		if m.may(now, "far", sayAgain) {
			k.cfg.Services.Note("error", "a peer's start lies ahead of this clock; the gateway refuses the peer. Set the wrong clock, or run gateway peer forget ID --any-start here",
				"peer", m.Name, "id", m.ID, "its_start", incarnationTime(o.Info.Incarnation.Number), "clock", now.UTC(), "address", dg.Addr)
		}
	case errors.Is(err, seal.ErrTwin):
		k.twins(now, m, dg)
	case errors.Is(err, seal.ErrStaleIncarnation):
		k.stale(now, m, dg, o, silent)
	}
}

// stale looks for a node that still runs in an earlier start of a peer. A datagram that was recorded and sent again is no sign of one.
func (k *Keys) stale(now time.Time, m *member, dg api.Datagram, o *Opened, silent bool) {
	info := o.Info
	hello, _, _ := k.helloOf(o.Body)
	answers := hello != nil && hello.HeardIncarnation == k.cfg.Incarnation.Number && !slices.Contains(m.counted, info.Incarnation)
	if hello != nil && (answers || hello.HeardIncarnation == 0) && !silent && m.may(now, "stale", sayAgain) {
		o.Greet = greet(dg, k.opener.HeardIncarnation(m.ID), hello) // so that it can tell its operator
	}
	switch {
	case now.Before(m.began.Add(lateTrips * k.cfg.RoundTrip)):
		return
	case answers && (info.Incarnation != m.ran || info.Counter > m.counter):
		m.ran, m.counter = info.Incarnation, info.Counter
		m.signs += 2
	case info.Alive:
		m.signs++
	default:
		return
	}
	if m.signs > 2 { // one that answers, or two of the start before, may have been late on their way
		k.twins(now, m, dg)
	}
}

func (k *Keys) twins(now time.Time, m *member, dg api.Datagram) {
	if m.may(now, "twins", time.Minute) {
		k.cfg.Services.Note("error", "two nodes with one id, or a peer on an old copy of its data; each datagram of the older one is dropped",
			"id", m.ID, "peer", m.Name, "address", dg.Addr)
	}
}

// otherKey says that datagrams that seem to come from a peer open with no key of ours.
func (k *Keys) otherKey(now time.Time, dg api.Datagram) {
	m := k.sender(now, dg)
	if m == nil {
		return
	}
	m.strange++
	if m.strange >= keySigns && (m.LastHeard.IsZero() || now.Sub(m.LastHeard) >= time.Minute) && m.may(now, "key", sayAgain) {
		k.cfg.Services.Note("warn", "datagrams from a peer's address or id fail authentication; they are dropped. Does the peer have another network key?",
			"peer", m.Name, "address", dg.Addr, "datagrams", m.strange)
	}
}

// sender is the peer that a datagram seems to come from: by its address, or, of a peer without one, by what the datagram
// says in the clear.
func (k *Keys) sender(now time.Time, dg api.Datagram) (one *member) {
	for _, m := range k.peers {
		fits, incarnation := seal.Claims(dg.Data, m.ID)
		if fits && m.Known(dg.Addr) {
			return m
		}
		plausible := k.clockIsBehind(now) || incarnation >= unix(earliest) && incarnation <= unix(now.Add(clockSlack))
		if fits && !m.Addr.IsValid() && incarnation != 0 && plausible {
			if one != nil {
				return nil
			}
			one = m
		}
	}
	return one
}

const notAuthentic = "not_authentic"

// refusals are the reasons for which the door takes no datagram, besides notAuthentic.
var refusals = map[string]error{
	"short": seal.ErrShort, "version": seal.ErrVersion, "unknown_peer": seal.ErrUnknownPeer,
	"unknown_boot": seal.ErrUnknownIncarnation, "unproven": seal.ErrUnproven, "far_boot": seal.ErrFarIncarnation,
	"stale_boot": seal.ErrStaleIncarnation, "twin": seal.ErrTwin,
	"forged": seal.ErrForged, "gone": seal.ErrGone, "own_id": seal.ErrOwnID, "replay": seal.ErrReplay, "too_old": seal.ErrTooOld,
}

// Refuses says whether a reason of Status.Dropped is one for which a datagram of the link is not taken.
func Refuses(reason string) bool { return reason == notAuthentic || refusals[reason] != nil }

func dropReason(err error) string {
	for reason, e := range refusals {
		if errors.Is(err, e) {
			return reason
		}
	}
	return notAuthentic
}

const (
	forgedMost  = 64          // misses in one name, in forgedEvery
	forgedEvery = time.Minute // docs/decisions/trust.md
)

// forgeries counts the datagrams that members have sealed for all in another's name.
type forgeries struct {
	since time.Time // when the first of these came
	count int
	deaf  bool // datagrams for all in this name are not looked at
}

// enter counts one. deaf says that no more are looked at until forgedEvery is over.
func (f *forgeries) enter(now time.Time) (deaf bool) {
	if now.Sub(f.since) >= forgedEvery {
		f.since, f.count = now, 0
	}
	f.count++
	f.deaf = f.count >= forgedMost
	return f.deaf
}

// over ends the deafness.
func (f *forgeries) over(now time.Time) bool {
	if !f.deaf || now.Sub(f.since) < forgedEvery {
		return false
	}
	f.deaf = false
	return true
}

// isForged says that a member of the network has sealed for all in another's name: a peer's, or this node's.
func (k *Keys) isForged(now time.Time, id uint16, dg api.Datagram) {
	m, name, count := k.known[id], k.cfg.Name, uint64(1)
	if m.here {
		m.forged++
		name, count = m.Name, m.forged
	}
	if m.forgeries.enter(now) {
		k.opener.Mute(id, true)
	}
	if m.may(now, "forged", sayAgain) {
		k.cfg.Services.Note("error", "a member of the network sends group datagrams in another node's name; they are refused. Find it, and have the authority remove it from the roster",
			"in_the_name_of", name, "address", dg.Addr, "address_of", k.at(dg.Addr), "datagrams", count)
	}
}

// isGone says that a node which the roster does not name any more still sends.
func (k *Keys) isGone(now time.Time, id uint16, dg api.Datagram) {
	if m := k.known[id]; m != nil && m.may(now, "gone", sayAgain) {
		k.cfg.Services.Note("warn", "a node that the roster no longer names, or not with this key, sends datagrams; they are refused",
			"id", id, "address", dg.Addr)
	}
}

// otherName says that datagrams in the name of a peer were not sealed with its key: where each node has its own key, they do not come from
// a peer with another network's key, but from somebody else.
func (k *Keys) otherName(now time.Time, dg api.Datagram) {
	var one *member
	for _, m := range k.peers {
		if fits, _ := seal.Claims(dg.Data, m.ID); !fits {
			continue
		}
		if m.forgeries.over(now) {
			k.opener.Mute(m.ID, false)
		}
		if m.Known(dg.Addr) {
			one = m
			break
		}
		if one != nil {
			return // nobody knows in whose name
		}
		one = m
	}
	if one == nil || k.orphaned(one, dg.Data) {
		return
	}
	one.foreign++
	one.strange++
	if one.strange >= keySigns && one.may(now, "name", sayAgain) {
		k.cfg.Services.Note("warn", "datagrams in a peer's name fail authentication with its key; they are refused. A stranger sends them, or rosters or node keys differ",
			"in_the_name_of", one.Name, "address", dg.Addr, "address_of", k.at(dg.Addr), "datagrams", one.foreign)
	}
}

// orphaned says that a datagram which nobody can open may be sealed with the key of a start of this node that is over: a short one,
// of a peer that has not been heard since.
func (k *Keys) orphaned(m *member, datagram []byte) bool {
	_, incarnation := seal.Claims(datagram, m.ID)
	return k.forward != nil && m.LastHeard.IsZero() && incarnation == 0
}

// at names the peer that is believed to be at an address; "": none is.
func (k *Keys) at(addr netip.AddrPort) string {
	for _, m := range k.peers {
		if m.Addr == addr || m.Known(addr) {
			return m.Name
		}
	}
	return ""
}

// OpenAgain opens a peer's datagram that another node transmits, as seal.Original gives it. known: it has come before. The error is one
// of package seal.
func (k *Keys) OpenAgain(sealed []byte) (from uint16, body []byte, known bool, err error) {
	from, body, err = k.opener.OpenAgain(sealed)
	if known = errors.Is(err, seal.ErrReplay); err == nil {
		k.record(from)
	}
	if known {
		err = nil
	}
	return from, body, known, err
}
