package lan

import (
	"bytes"
	"sync"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

// The loop handles the messages of all peers one after the other. So each address has an account of the loop's time: its
// messages under way, handed over and not handled yet, may take Config.Share at the most. An address that has used that
// up is read later, and a message of another address waits for that long and no longer.
//
// The time that a message will take is not known before. It is guessed from its size and from what the dearest message
// of the address took lately.

const (
	// DefaultShare keeps the time that others wait for one address within what a person calls at once.
	DefaultShare = 10 * time.Millisecond

	dearestHalves = 10 * time.Second // half-life of the dearest message of an address
	firstGuess    = time.Millisecond // for a message of an address of which nothing is known

	// A message takes between these two, for itself and for each octet, on a slow machine.
	leastMessage, leastOctet = 20 * time.Microsecond, 2 * time.Nanosecond
	mostMessage, mostOctet   = 200 * time.Microsecond, 150 * time.Nanosecond
	// One with something packed inside is dear until it has been handled: a kilobyte may become a thousand.
	leastPacked, mostPacked = 2 * time.Millisecond, 20 * time.Millisecond
)

var packed = []byte{0x1f, 0x8b, 0x08} // how gzip begins

// accounts are those of all addresses that have something under way, or had lately.
type accounts struct {
	share time.Duration // 0: none is kept

	mu   sync.Mutex
	of   map[string]*account
	owed map[site.ConnID][]debt // what each connection has under way, in order
}

// account is that of one address.
type account struct {
	underWay time.Duration
	messages int
	waiting  []chan struct{} // readers, in the order in which they came
	dearest  time.Duration
	since    time.Time // of dearest
}

type debt struct {
	host string
	cost time.Duration
}

func newAccounts(share time.Duration) *accounts {
	return &accounts{share: share, of: map[string]*account{}, owed: map[site.ConnID][]debt{}}
}

// guess is what a message of an address will take; a dear one has something packed inside.
func (a *account) guess(now time.Time, octets int, dear bool) time.Duration {
	if halves := now.Sub(a.since) / dearestHalves; halves > 0 {
		a.dearest >>= min(halves, 40)
		a.since = a.since.Add(halves * dearestHalves)
	}
	size := time.Duration(octets)
	least, most := leastMessage+size*leastOctet, mostMessage+size*mostOctet
	if dear {
		least, most = least+leastPacked, most+mostPacked
	}
	return min(max(a.dearest, least), most)
}

// fits reports whether a message may go to the loop.
func (a *account) fits(cost, share time.Duration) bool {
	return a.messages == 0 || a.underWay+cost <= share
}

// enter waits until a message may go to the loop, or until gone is closed: then it reports false. The debt that it
// answers is given to book, or back.
func (s *accounts) enter(now func() time.Time, host string, body []byte, gone <-chan struct{}) (d debt, ok bool) {
	if s.share == 0 {
		return debt{}, true
	}
	dear := bytes.Contains(body, packed) // looks through all of it: once, and while nobody waits for the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	for first := true; ; first = false {
		a := s.of[host]
		if a == nil {
			a = &account{dearest: firstGuess, since: now()}
			s.of[host] = a
		}
		cost := a.guess(now(), len(body), dear)
		if a.fits(cost, s.share) && (!first || len(a.waiting) == 0) {
			a.underWay += cost
			a.messages++
			s.wake(a) // there may be room for one more
			return debt{host, cost}, true
		}
		turn := make(chan struct{})
		if first {
			a.waiting = append(a.waiting, turn)
		} else {
			a.waiting = append([]chan struct{}{turn}, a.waiting...)
		}
		s.mu.Unlock()
		left := false
		select {
		case <-turn:
		case <-gone:
			left = true
		}
		s.mu.Lock()
		if left {
			s.leave(a, turn)
			return debt{}, false
		}
	}
}

// leave takes back a place in the row; if its turn had come, it is the next one's.
func (s *accounts) leave(a *account, turn chan struct{}) {
	for i, w := range a.waiting {
		if w == turn {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			return
		}
	}
	s.wake(a)
}

// wake gives its turn to the message that has waited longest.
func (s *accounts) wake(a *account) {
	if len(a.waiting) > 0 && (a.messages == 0 || a.underWay < s.share) {
		close(a.waiting[0])
		a.waiting = a.waiting[1:]
	}
}

// book notes over which connection a message goes to the loop.
func (s *accounts) book(id site.ConnID, d debt) {
	if s.share == 0 {
		return
	}
	s.mu.Lock()
	s.owed[id] = append(s.owed[id], d)
	s.mu.Unlock()
}

// settle takes in that the oldest message of a connection has been handled, and how long it took.
func (s *accounts) settle(now time.Time, id site.ConnID, took time.Duration) {
	if s.share == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.owed[id]
	if len(list) == 0 {
		return
	}
	d := list[0]
	s.owed[id] = list[1:]
	if len(list) == 1 {
		delete(s.owed, id)
	}
	s.giveBack(d)
	a := s.of[d.host]
	if took > a.dearest {
		a.dearest, a.since = took, now
	}
	if len(s.of) > maxAccounts {
		s.forget(now)
	}
}

// drop gives a debt back for a message that does not go to the loop.
func (s *accounts) drop(d debt) {
	if s.share == 0 {
		return
	}
	s.mu.Lock()
	s.giveBack(d)
	s.mu.Unlock()
}

// giveBack takes a message off the account.
func (s *accounts) giveBack(d debt) {
	a := s.of[d.host]
	a.underWay -= d.cost
	a.messages--
	s.wake(a)
}

// maxAccounts is the number of accounts from which those are forgotten that nothing is known of any more.
const maxAccounts = 1024

func (s *accounts) forget(now time.Time) {
	for host, a := range s.of {
		if a.messages == 0 && len(a.waiting) == 0 && now.Sub(a.since) > 4*dearestHalves {
			delete(s.of, host)
		}
	}
}

// Handled tells that the loop has handled an event, and how long that took.
func (l *LAN) Handled(ev site.Event, took time.Duration) {
	if r, ok := ev.(jxtabridge.Received); ok {
		l.accounts.settle(time.Now(), r.Conn, took)
	}
}
