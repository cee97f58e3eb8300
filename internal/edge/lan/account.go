package lan

import (
	"bytes"
	"sync"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

// The loop handles the messages of all peers one after the other. So each address has an account of the loop's time: its
// messages that were handed over and are not handled yet may take at most Config.Share. An address that has used up its share
// is read later. A message of another address waits no longer than that share.
//
// The time that a message will take is not known in advance. It is guessed from the message's size and from the longest time
// that a message of the address has taken lately.

const (
	// DefaultShare keeps the wait for one address within what a person calls instant.
	DefaultShare = 10 * time.Millisecond

	dearestHalves = 10 * time.Second // half-life of an address's longest time for a message
	firstGuess    = time.Millisecond // for a message of an unknown address

	// Bounds of the time that a message takes on a slow machine, for itself and for each octet.
	leastMessage, leastOctet = 20 * time.Microsecond, 2 * time.Nanosecond
	mostMessage, mostOctet   = 200 * time.Microsecond, 150 * time.Nanosecond
	// A message that contains something packed counts as expensive until it has been handled: a kilobyte may become a thousand.
	leastPacked, mostPacked = 2 * time.Millisecond, 20 * time.Millisecond
)

var packed = []byte{0x1f, 0x8b, 0x08} // the first octets of gzip

// accounts are the accounts of all addresses that have messages with the loop, or had lately.
type accounts struct {
	share time.Duration // 0: no accounts are kept

	mu   sync.Mutex
	of   map[string]*account
	owed map[site.ConnID][]debt // the debts of each connection's unhandled messages, in order
}

// account is the account of one address.
type account struct {
	underWay time.Duration
	messages int
	waiting  []chan struct{} // readers, in order of arrival
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

// guess is the time that a message of an address will take; dear: it contains something packed.
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

// enter waits until a message may go to the loop, or until gone is closed: then it returns false. The caller passes the debt
// that it returns to book or drop.
func (s *accounts) enter(now func() time.Time, host string, body []byte, gone <-chan struct{}) (d debt, ok bool) {
	if s.share == 0 {
		return debt{}, true
	}
	dear := bytes.Contains(body, packed) // searches the whole body, once, and before it takes the lock
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
			s.wake(a) // another message may fit too
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

// leave removes a reader from the queue; if its turn had come, the next reader gets it.
func (s *accounts) leave(a *account, turn chan struct{}) {
	for i, w := range a.waiting {
		if w == turn {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			return
		}
	}
	s.wake(a)
}

// wake lets the reader go that has waited longest.
func (s *accounts) wake(a *account) {
	if len(a.waiting) > 0 && (a.messages == 0 || a.underWay < s.share) {
		close(a.waiting[0])
		a.waiting = a.waiting[1:]
	}
}

// book records the connection over which a message goes to the loop.
func (s *accounts) book(id site.ConnID, d debt) {
	if s.share == 0 {
		return
	}
	s.mu.Lock()
	s.owed[id] = append(s.owed[id], d)
	s.mu.Unlock()
}

// settle records that the oldest message of a connection has been handled, and how long it took.
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

// drop cancels the debt of a message that does not go to the loop.
func (s *accounts) drop(d debt) {
	if s.share == 0 {
		return
	}
	s.mu.Lock()
	s.giveBack(d)
	s.mu.Unlock()
}

// giveBack takes a message's debt off its account.
func (s *accounts) giveBack(d debt) {
	a := s.of[d.host]
	a.underWay -= d.cost
	a.messages--
	s.wake(a)
}

// maxAccounts is the number of accounts beyond which idle ones are forgotten.
const maxAccounts = 1024

func (s *accounts) forget(now time.Time) {
	for host, a := range s.of {
		if a.messages == 0 && len(a.waiting) == 0 && now.Sub(a.since) > 4*dearestHalves {
			delete(s.of, host)
		}
	}
}

// Handled reports that the loop has handled an event, and how long that took.
func (l *LAN) Handled(ev site.Event, took time.Duration) {
	if r, ok := ev.(jxtabridge.Received); ok {
		l.accounts.settle(time.Now(), r.Conn, took)
	}
}
