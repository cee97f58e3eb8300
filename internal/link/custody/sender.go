package custody

import (
	"math"
	"slices"
	"time"

	"aldis/internal/link/frame"
)

// Config derives from the link's profile.
type Config struct {
	Window        [frame.Queues]int // under way and not acknowledged: octets of the direct queue, messages of the bulk queue
	Most          int               // largest window of the direct queue, while acknowledgements show that the link carries it; at least its Window
	Least         int               // least octets that a message of the direct queue counts in its window, until the window has grown
	RoundTrip     time.Duration     // the longest that a datagram and its answer take, queues included
	Prompt        time.Duration     // the same without queues: an unacknowledged prompt message goes again, once, after it
	AckDelay      time.Duration     // an acknowledgement may wait so long at the receiver for something to ride on
	GapAge        time.Duration     // 0, or how far the link may reorder: a gap is believed when so old
	Reorder       bool              // the link does not keep order: numbers and acknowledgements in full
	ProbeInterval time.Duration     // between probes of a silent peer
	Hasty         bool              // another bearer waits, so a dead link should be found early: an acknowledgement that was asked for is missed after Prompt
	EagerInterval time.Duration     // the same while messages wait; 0: a third of ProbeInterval, but not before the last probe could be answered
}

// answers is how long a probe waits for its answer before the link counts as dead.
func (c *Config) answers() time.Duration {
	if c.Hasty {
		return c.Prompt
	}
	return c.RoundTrip
}

// MaxAhead bounds how far a number may be ahead of the oldest that is not acknowledged.
const MaxAhead = 2047

// ByteAhead is the same for a peer that sends only 8 bits of its cumulative number, or that takes numbers no further ahead.
const ByteAhead = 255

// ShortAhead is the same where a message carries only 8 bits of its number.
const ShortAhead = 127

// A dead link is probed every ProbeInterval. After probeSteady intervals the interval grows, by one ProbeInterval each
// time, to maxProbeInterval. During probeEager intervals, a new message brings the next probes forward, to one every
// EagerInterval: three, or as many as fit into a ProbeInterval.
const (
	maxProbeInterval = 4
	maxProbes        = 64 // probes whose answers can be told apart
	probeSteady      = 20
	probeEager       = 40
	eagerProbes      = 3
)

// ID names a message of a peer.
type ID struct {
	Queue  frame.Queue
	Number uint64
}

type flight struct {
	weight  int       // in the window of its queue
	sent    time.Time // last transmission; zero: never since the start
	firstTx uint64
	lastTx  uint64
	lost    bool      // to be sent again
	asked   bool      // its acknowledgement has already been awaited once
	waited  bool      // the message asked for its acknowledgement at once, which shows how long answers take
	prompt  time.Time // when it goes again if that acknowledgement has not come; zero: not by time
}

// Sender is the sending half towards one peer.
type Sender struct {
	cfg    Config
	next   [frame.Queues]uint64 // to be assigned
	first  [frame.Queues]uint64 // of this start
	flight [frame.Queues]map[uint64]*flight
	weight [frame.Queues]int             // of all messages in flight
	oldest [frame.Queues]uint64          // at most base
	held   [frame.Queues]map[uint64]bool // at the peer, but not all before them is
	ahead  int                           // how far numbers may be ahead of the oldest under way
	beyond [frame.Queues]uint64          // the last acknowledgement had no room for numbers above this; 0: it had room for all
	grown  int                           // octets by which the window of the direct queue has grown: they were acknowledged while it was used
	idle   time.Time                     // since when no message of the direct queue is under way; zero: some are
	tx     uint64                        // transmissions so far, of anything that an acknowledgement can answer

	dead      bool // a probe was not answered in time
	listening bool // the peer has said that it will be silent: it hears us and does not answer
	ask       bool // probe at the next chance
	eager     int  // so many probes come sooner, because messages wait
	revived   bool // the link answers again, and it is not known yet which messages were lost
	probing   bool // a probe is out
	probeID   uint8
	probeTx   uint64
	probes    uint8 // how many, up to probeID, have gone one after the other with nothing between: an answer may be to any of them
	probeSent time.Time
	died      time.Time // when the link was found dead
	lately
	lateness
}

// lately is when the last authentic datagram of the peer came, when a message of the direct queue last went, and when one last asked.
type lately struct{ heard, sent, asked time.Time }

// Asks says whether the next message should ask for its acknowledgement at once, so that a dead link is found early. It
// should if the peer was not heard since the last message went, and nothing has asked for as long as an answer takes.
// SentAsking follows.
func (s *Sender) Asks(now time.Time) bool {
	return s.cfg.Hasty && !s.listening && s.heard.Before(s.lately.sent) && now.Sub(s.heard) >= s.cfg.Prompt/2 && now.Sub(s.lately.asked) >= s.cfg.Prompt
}

// SentAsking is Sent for a message that asks for its acknowledgement and does not go again by itself.
func (s *Sender) SentAsking(now time.Time, id ID) {
	s.Sent(now, id)
	s.lately.asked = now
	if f := s.flight[id.Queue][id.Number]; f != nil {
		f.waited = true
	}
}

// NewSender starts with no message under way; next is the next number of each queue (at least 1).
func NewSender(cfg Config, next [frame.Queues]uint64) *Sender {
	if cfg.EagerInterval == 0 {
		cfg.EagerInterval = min(max(cfg.Prompt, cfg.ProbeInterval/eagerProbes), cfg.ProbeInterval)
	}
	s := &Sender{cfg: cfg, next: next, first: next, oldest: next, ahead: ByteAhead}
	for l := range s.flight {
		s.flight[l], s.held[l] = map[uint64]*flight{}, map[uint64]bool{}
	}
	return s
}

// Restore adds a message that was under way when the gateway stopped. Before it goes again, the sender asks whether it
// arrived.
func (s *Sender) Restore(id ID) {
	s.flight[id.Queue][id.Number] = &flight{}
	s.next[id.Queue] = max(s.next[id.Queue], id.Number+1)
	s.oldest[id.Queue] = min(s.oldest[id.Queue], id.Number)
	s.first[id.Queue] = s.next[id.Queue]
	s.ask = true
}

// Ahead says whether the peer takes numbers up to MaxAhead ahead.
func (s *Sender) Ahead(takes bool) {
	s.ahead = ByteAhead
	if takes {
		s.ahead = MaxAhead
	}
}

// Next is the number that Assign would give.
func (s *Sender) Next(l frame.Queue) uint64 { return s.next[l] }

// UnderWay counts the messages of a queue that the peer does not have.
func (s *Sender) UnderWay(l frame.Queue) int { return len(s.flight[l]) }

// Dead says that the link does not answer: only probes are worth its air.
func (s *Sender) Dead() bool { return s.dead }

// Weight is the weight of the messages under way, in the window of their queue.
func (s *Sender) Weight(l frame.Queue) int { return s.weight[l] }

// HasNumber says whether a message may go that is not bounded by the window of its queue.
func (s *Sender) HasNumber(l frame.Queue) bool {
	return !s.dead && !(s.probing && s.cfg.Hasty) && s.next[l]-s.base(l) < uint64(s.ahead) // a probe is out: the link may be dead, and another bearer waits
}

// Room says whether another message of the queue may go.
func (s *Sender) Room(l frame.Queue) bool { return s.RoomFor(l, 0) }

// Window is how much of a queue may be under way while nothing is urgent. The window of the direct queue grows by what is
// acknowledged while half of it is used. It returns to its first size when nothing was under way for a round trip or the
// link does not answer, so a dead link swallows little.
func (s *Sender) Window(l frame.Queue) int {
	if l == frame.Direct {
		return s.cfg.Window[l] + s.grown
	}
	return s.cfg.Window[l]
}

// RoomFor is Room with a window that is larger by extra, for messages that must not wait for acknowledgements.
func (s *Sender) RoomFor(l frame.Queue, extra int) bool {
	// While the peer listens, acknowledgements come when its silence ends.
	return s.HasNumber(l) && (s.listening || s.weight[l] < s.Window(l)+extra)
}

// Listening says that the peer will be silent (EMCON) from now on: messages go out once and are kept, the peer is asked
// nothing, and its silence is no sign of a dead link. This lasts until the next datagram of the peer.
func (s *Sender) Listening() {
	s.listening, s.dead, s.probing, s.ask, s.revived = true, false, false, false, false
}

// IsListening says whether the peer is believed to be silent.
func (s *Sender) IsListening() bool { return s.listening }

// base is the oldest number not acknowledged, or next.
func (s *Sender) base(l frame.Queue) uint64 {
	if b := s.oldest[l]; s.flight[l][b] != nil || s.held[l][b] {
		return b
	}
	b := s.next[l]
	for n := range s.flight[l] {
		b = min(b, n)
	}
	for n := range s.held[l] {
		b = min(b, n)
	}
	s.oldest[l] = b
	return b
}

// Weigh is the weight of a message of so many octets in the window of the direct queue: these octets, but at least so much
// that half of the numbers that may be ahead fill the window. So other numbers are left while one is missing. Until the
// window has grown, the weight is at least Least, so that a dead link swallows few messages, however short.
func (s *Sender) Weigh(octets int) int {
	window := s.Window(frame.Direct)
	least := s.cfg.Least
	if most := s.cfg.Most - s.cfg.Window[frame.Direct]; most > 0 {
		least = least * (most - s.grown) / most
	}
	return max(octets, least, window/(s.ahead/2))
}

// Assign takes the next number of the queue. weight is the message's weight in the window of the queue: Weigh for the
// direct queue, 1 for the bulk queue, and 0 for a message with a bound of its own. The caller makes the number durable
// before the message goes out.
func (s *Sender) Assign(l frame.Queue, weight int) uint64 {
	n := s.next[l]
	s.next[l]++
	s.flight[l][n] = &flight{weight: weight}
	s.weight[l] += weight
	return n
}

// land takes a message off those in flight; nil: it was not in flight.
func (s *Sender) land(l frame.Queue, n uint64) *flight {
	f := s.flight[l][n]
	if f != nil {
		s.weight[l] -= f.weight
		delete(s.flight[l], n)
	}
	return f
}

// Short says whether the low 8 bits of a message's number name it: all numbers under way are near, and the link keeps
// order, so that no older datagram comes after a newer one.
func (s *Sender) Short(id ID) bool {
	return !s.cfg.Reorder && max(s.next[id.Queue], id.Number+1)-min(s.base(id.Queue), id.Number) <= ShortAhead
}

// Widen finds the cumulative number whose low 8 bits came in a datagram newer than all others.
func (s *Sender) Widen(l frame.Queue, low uint8) uint16 {
	base := s.base(l)
	return uint16(base-1) + uint16(low-uint8(base-1))
}

// Sent notes that the message went out, for the first time or again.
func (s *Sender) Sent(now time.Time, id ID) {
	f := s.flight[id.Queue][id.Number]
	if f == nil {
		return
	}
	s.tx++
	if !s.idle.IsZero() && id.Queue == frame.Direct {
		if now.Sub(s.idle) > s.cfg.Prompt {
			s.grown = 0
		}
		s.idle = time.Time{}
	}
	if f.firstTx == 0 {
		f.firstTx = s.tx
	}
	f.sent, f.lastTx, f.lost, f.prompt = now, s.tx, false, time.Time{}
	if id.Queue == frame.Direct {
		s.lately.sent = now
	}
}

// SentPrompt is Sent for a message whose acknowledgement was asked for at once: it goes again by itself, once.
func (s *Sender) SentPrompt(now time.Time, id ID) {
	s.SentTwice(now, id, s.cfg.Prompt+s.granted)
	if f := s.flight[id.Queue][id.Number]; f != nil {
		f.waited = true
	}
}

// SentTwice is Sent for a message that must not wait until its loss is noticed: it goes again by itself, once, so long after.
func (s *Sender) SentTwice(now time.Time, id ID, after time.Duration) {
	f := s.flight[id.Queue][id.Number]
	s.Sent(now, id)
	if f != nil && !f.asked && !s.listening {
		f.asked, f.prompt = true, now.Add(after)
	}
}

// ResendAll says that the peer has begun anew, or cannot say any more what it lacks. Messages that it has not acknowledged
// by now never reached it, or their acknowledgement is on its way. All of them go again.
func (s *Sender) ResendAll() {
	for _, f := range s.flight[frame.Direct] {
		f.lost, f.asked = true, false
	}
}

// Heard notes an authentic datagram of the peer: the link is there.
func (s *Sender) Heard(now time.Time) {
	s.heard = now
	if s.dead || s.listening {
		s.revived = s.dead
		s.dead, s.listening = false, false
		s.ask = true // messages under way when the link died have arrived or are lost; Answer tells which if the answer is in this datagram
	}
}

// Ask asks the peer at once what has arrived, if messages are under way to it or it did not answer. The caller knows that
// the peer can be reached again.
func (s *Sender) Ask() {
	switch {
	case s.listening:
	case s.dead:
		s.probeSent = time.Time{}
	case len(s.flight[frame.Direct])+len(s.flight[frame.Bulk]) > 0:
		s.ask = true
	}
}

// Doubt asks the peer at once whether it is there, if nothing else sent to it asks for an answer.
func (s *Sender) Doubt() { s.ask = !s.listening && !s.dead }

// Ack applies an acknowledgement. acked are the messages that it acknowledges for the first time, in order. held are
// messages after a missing one that it names for the first time: they do not go again, but they are not acknowledged. The
// peer reads them when the missing message has come; if it never comes, the peer may be unable to read them.
func (s *Sender) Ack(now time.Time, r frame.Ack) (acked, held []ID) {
	l := r.Queue
	if int(l) >= frame.Queues || len(s.flight[l])+len(s.held[l]) == 0 {
		return nil, nil
	}
	base := s.base(l)
	// The cumulative number lies between base-1 and next-1; an acknowledgement with another number is of another time.
	cum := base - 1 + uint64(r.Cumulative-uint16(base-1))
	if cum >= s.next[l] {
		return nil, nil
	}
	s.beyond[l] = 0
	if reach := r.Reach(); reach < math.MaxInt {
		s.beyond[l] = cum + uint64(reach)
	}
	var latest uint64 // latest transmission that the acknowledgement proves to have arrived
	weight := s.weight[l]
	var last, waited time.Time // when it went, and when the last message went that asked for this
	arrived := func(n uint64) bool {
		f := s.land(l, n)
		if f == nil {
			return false
		}
		if f.firstTx > latest {
			latest, last = f.firstTx, f.sent
		}
		if f.waited && f.sent.After(waited) {
			waited = f.sent
		}
		return true
	}
	for n := base; n <= cum; n++ {
		if arrived(n) || s.held[l][n] {
			delete(s.held[l], n)
			acked = append(acked, ID{l, n})
		}
	}
	for i, octet := range r.Bitmap {
		for bit := range 8 {
			if n := cum + 1 + uint64(i*8+bit); octet>>bit&1 != 0 && arrived(n) {
				s.held[l][n] = true
				held = append(held, ID{l, n})
			}
		}
	}
	if !waited.IsZero() && waited.Equal(last) { // an acknowledgement that a later message triggered does not show how long an answer takes
		s.note(now, now.Sub(waited)-s.cfg.Prompt)
	}
	if l == frame.Direct { // the link keeps order: messages that went out before are lost
		s.loseBefore(now, latest)
		s.grow(now, weight-s.weight[l])
	}
	return acked, held
}

// Dropped returns the messages that the peer does not hold any more, as an acknowledgement in its newest datagram shows: it
// could not read them when their turn came. They go again.
func (s *Sender) Dropped(r frame.Ack) (again []ID) {
	l := r.Queue
	if int(l) >= frame.Queues {
		return nil
	}
	reach := r.Reach()
	for n := range s.held[l] {
		if behind(r.Cumulative, n) <= reach && !names(r, n) {
			again = append(again, ID{l, n})
		}
	}
	slices.SortFunc(again, func(a, b ID) int { return int(int64(a.Number - b.Number)) })
	for _, id := range again {
		delete(s.held[l], id.Number)
		s.flight[l][id.Number] = &flight{lost: true}
	}
	return again
}

// Resend says that the peer cannot read messages in their present coding: messages of the direct queue that it has not read
// go again. as reports the numbers whose coding does not matter, which are left out. held are those that had arrived.
func (s *Sender) Resend(as func(n uint64) bool) (held []ID) {
	l := frame.Direct
	for n := range s.held[l] {
		if !as(n) {
			held = append(held, ID{l, n})
			s.flight[l][n] = &flight{}
		}
	}
	for _, id := range held {
		delete(s.held[l], id.Number)
	}
	for n, f := range s.flight[l] {
		if !as(n) {
			f.lost = true
		}
	}
	return held
}

// grow is called when acknowledgements have named so much of the direct queue for the first time.
func (s *Sender) grow(now time.Time, acked int) {
	l := frame.Direct
	if s.weight[l]+acked >= s.Window(l)/2 {
		s.grown = max(0, min(s.grown+acked, s.cfg.Most-s.cfg.Window[l]))
	}
	if len(s.flight[l]) == 0 {
		s.idle = now
	}
}

// Wanted says that a message has come for the peer: a dead link is probed sooner.
func (s *Sender) Wanted() {
	if s.dead {
		s.eager = max(eagerProbes, int(s.cfg.ProbeInterval/max(1, s.cfg.EagerInterval)))
	}
}

// Back says that the acknowledgement just applied was in the peer's newest datagram. On a link that was dead, it tells
// which messages have arrived: a message that it does not name and that went longer ago than a round trip is lost, and need
// not be asked about.
func (s *Sender) Back(now time.Time) {
	if !s.revived {
		return
	}
	s.open()
	s.ask = len(s.flight[frame.Bulk]) > 0
	for n, f := range s.flight[frame.Direct] {
		if now.Sub(f.sent) >= s.cfg.RoundTrip+s.granted && s.wasNamed(n) {
			f.lost = true
		} else {
			s.ask = true
		}
	}
}

// open is called when a link that was dead has answered. Many messages have waited for it, so the window becomes as large as it gets.
func (s *Sender) open() {
	s.revived, s.grown = false, max(0, s.cfg.Most-s.cfg.Window[frame.Direct])
}

// loseBefore marks the direct messages that were last sent before transmission tx.
func (s *Sender) loseBefore(now time.Time, tx uint64) {
	for n, f := range s.flight[frame.Direct] {
		if f.lastTx < tx && now.Sub(f.sent) >= s.cfg.GapAge && s.wasNamed(n) {
			f.lost = true
		}
	}
}

// wasNamed says whether the last acknowledgement would have named a number of the direct queue that had arrived.
func (s *Sender) wasNamed(n uint64) bool {
	return s.beyond[frame.Direct] == 0 || n <= s.beyond[frame.Direct]
}

// Answer applies the answer to a probe: the acknowledgements before it in the same datagram name all that had arrived.
func (s *Sender) Answer(now time.Time, id uint8) {
	if id == s.doubted && !s.doubtAt.IsZero() { // the link had carried the probe and the answer: only a machine was late
		s.note(now, now.Sub(s.doubtAt)-s.cfg.RoundTrip)
		s.doubtAt = time.Time{}
	}
	if later := s.probeID - id; s.probing && later < s.probes {
		if s.revived {
			s.open()
		}
		if later == 0 {
			s.note(now, now.Sub(s.probeSent)-s.cfg.RoundTrip)
		}
		s.probing, s.ask = false, false
		s.loseBefore(now, s.probeTx-uint64(later))
	}
}

// Lost returns the direct messages that have to go again, oldest first; none while the link is dead, and none beyond the
// numbers that the peer takes.
func (s *Sender) Lost(now time.Time) []ID {
	if s.dead || len(s.flight[frame.Direct]) == 0 {
		return nil
	}
	var ids []ID
	late := map[time.Time]bool{} // when datagrams went whose acknowledgement is overdue: all messages in them go again
	for _, f := range s.flight[frame.Direct] {
		if !f.prompt.IsZero() && !now.Before(f.prompt) && f.waited {
			late[f.sent] = true
		}
	}
	take := s.base(frame.Direct) + uint64(s.ahead)
	for n, f := range s.flight[frame.Direct] {
		if n >= take {
			continue
		}
		if f.lost || !f.prompt.IsZero() && !now.Before(f.prompt) || late[f.sent] {
			ids = append(ids, ID{frame.Direct, n})
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return int(int64(a.Number - b.Number)) })
	return ids
}

// overdue is when the acknowledgement of the oldest message without one should have come; zero: no message waits.
func (s *Sender) overdue() time.Time {
	var oldest, asked time.Time
	for l := range s.flight {
		for _, f := range s.flight[l] {
			if !f.sent.IsZero() && !f.lost && (oldest.IsZero() || f.sent.Before(oldest)) {
				oldest = f.sent
			}
			if s.cfg.Hasty && f.waited && s.heard.Before(f.sent) && (asked.IsZero() || f.sent.Before(asked)) {
				asked = f.sent
			}
		}
	}
	if oldest.IsZero() {
		return oldest
	}
	at := oldest.Add(s.cfg.RoundTrip + s.cfg.AckDelay)
	if early := asked.Add(s.cfg.Prompt + s.granted); !asked.IsZero() && early.Before(at) {
		return early
	}
	return at
}

// Deadline is when ProbeDue or Lost may change by themselves; zero: never.
func (s *Sender) Deadline() time.Time {
	due := s.probeDeadline()
	if s.dead {
		return due
	}
	for _, f := range s.flight[frame.Direct] {
		if !f.prompt.IsZero() && (due.IsZero() || f.prompt.Before(due)) {
			due = f.prompt
		}
	}
	return due
}

func (s *Sender) probeDeadline() time.Time {
	if s.listening {
		return time.Time{}
	}
	if s.probing {
		if !s.dead {
			return s.probeSent.Add(s.cfg.answers() + s.granted)
		}
		return s.probeSent.Add(s.interval())
	}
	due := s.overdue()
	if due.IsZero() && !s.unknown() {
		return due
	}
	if again := s.probeSent.Add(s.cfg.ProbeInterval); again.After(due) {
		due = again // a receiver that answers and still lacks the message gets the message again, not another probe
	}
	return due
}

// unknown says whether a message was under way when the gateway stopped and its arrival is still unknown: the probe that
// asked, or its answer, was lost.
func (s *Sender) unknown() bool {
	for l := range s.flight {
		for _, f := range s.flight[l] {
			if f.sent.IsZero() && !f.lost {
				return true
			}
		}
	}
	return false
}

func (s *Sender) interval() time.Duration {
	silent := s.probeSent.Sub(s.died)
	if s.eager > 0 && silent < probeEager*s.cfg.ProbeInterval {
		return s.cfg.EagerInterval
	}
	intervals := int(silent / max(1, s.cfg.ProbeInterval))
	return time.Duration(min(max(1, 1+intervals-probeSteady), maxProbeInterval)) * s.cfg.ProbeInterval
}

// ProbeDue says whether to send a probe now; it also notices that the last one was not answered.
func (s *Sender) ProbeDue(now time.Time) bool {
	if s.listening {
		return false
	}
	if s.probing && !s.dead && !now.Before(s.probeSent.Add(s.cfg.answers()+s.granted)) {
		s.probing = false
		if s.heard.Before(s.probeSent) {
			s.dead, s.probing, s.grown, s.eager, s.died = true, true, 0, 0, now
			s.doubted, s.doubtAt = s.probeID, s.probeSent
		} // else only the probe or its answer was lost: ask again below
	}
	if s.dead {
		return !now.Before(s.probeSent.Add(s.interval()))
	}
	if s.ask {
		return true
	}
	due := s.probeDeadline()
	return !s.probing && !due.IsZero() && !now.Before(due)
}

// ProbeSent notes that a probe goes out and returns its number.
func (s *Sender) ProbeSent(now time.Time) uint8 {
	s.tx++
	s.probeID++
	if !s.dead || s.probeTx+1 != s.tx {
		s.probes = 0
	}
	if s.probes < maxProbes {
		s.probes++
	}
	s.probing, s.ask, s.eager, s.probeSent, s.probeTx = true, false, max(0, s.eager-1), now, s.tx
	return s.probeID
}
