package lan

import (
	"math"
	"net"
	"sync"
	"time"
)

// All bodies that are being read share one allowance of memory. A body that finds none left waits, and its peer with it, until
// others are complete. An address may hold at most a quarter, so that a stranger who begins many bodies and completes none
// leaves room for others. The body that began first need not wait, so one body always goes on.
//
// Where waiting does not help, because many addresses do this, or because one address has honest peers as well, the room gives
// up the slowest body of the address that holds most: its peer has had time, and others wait.
const (
	roomShare = 4 // an address may hold one part in so many
	// A body may be given up when its peer has had roomPatience and sent less than roomPace octets a second.
	roomPatience = 2 * time.Second
	roomPace     = 32 << 10
	roomRetry    = 50 * time.Millisecond // until a waiting body looks again for a slow one
	roomLook     = 5 * time.Millisecond  // least time between two such looks for one address
)

// room is the shared allowance.
type room struct {
	most int // octets; the first body may exceed it

	mu      sync.Mutex
	count   uint64
	held    int // of all
	hosts   map[string]*tenant
	changed chan struct{} // closed when octets were given back
}

// tenant is an address whose bodies are being read.
type tenant struct {
	held   int // of all its bodies, octets
	bills  map[*bill]bool
	first  uint64    // number of its body that began first
	looked time.Time // when a slow body was last looked for
}

// bill is the memory that one body holds.
type bill struct {
	host string
	cut  func() // stops reading it

	number uint64 // in the order of beginning; 0: none yet
	held   int
	came   int       // octets that came since the first reservation
	since  time.Time // when they began to come; moved on by the time that the body waited for room
	waits  bool
	over   bool // given up
}

func newRoom(most int) *room {
	return &room{most: most, hosts: map[string]*tenant{}, changed: make(chan struct{})}
}

// enter enters a body that has no number yet.
func (r *room) enter(b *bill, now time.Time) *tenant {
	t := r.hosts[b.host]
	if t == nil {
		t = &tenant{bills: map[*bill]bool{}}
		r.hosts[b.host] = t
	}
	if b.number == 0 {
		r.count++
		b.number, b.since = r.count, now
		t.bills[b] = true
		t.order()
	}
	return t
}

// order finds the address's body that began first.
func (t *tenant) order() {
	t.first = math.MaxUint64
	for b := range t.bills {
		if !b.over {
			t.first = min(t.first, b.number)
		}
	}
}

// reserve waits until there is room for further octets of a body.
func (r *room) reserve(b *bill, octets int, gone <-chan struct{}) error {
	began := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.enter(b, began)
	b.waits = true
	defer func() { b.waits = false }()
	for !r.fits(b, t, octets) {
		if b.held+octets > r.most {
			return errMemory // it can never fit
		}
		r.evict(t, time.Now())
		if err := r.sleep(gone); err != nil {
			return err
		}
	}
	b.since = b.since.Add(time.Since(began))
	b.held += octets
	t.held += octets
	r.held += octets
	return nil
}

// sleep releases the lock until something has changed.
func (r *room) sleep(gone <-chan struct{}) error {
	changed := r.changed
	r.mu.Unlock()
	defer r.mu.Lock()
	timer := time.NewTimer(roomRetry)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-gone:
		return net.ErrClosed
	}
	return nil
}

// fits reports whether there is room for further octets.
func (r *room) fits(b *bill, t *tenant, octets int) bool {
	switch {
	case b.held+octets > r.most:
		return false
	case r.held+octets <= r.most:
		return t.first == b.number || t.held+octets <= r.most/roomShare
	case t.first != b.number:
		return false
	}
	for _, other := range r.hosts {
		if other.first < b.number {
			return false
		}
	}
	return true // it began first of all
}

// evict gives up the slowest body of the address that is in the way of t, if its peer has had time.
func (r *room) evict(t *tenant, now time.Time) {
	if now.Sub(t.looked) < roomLook {
		return
	}
	t.looked = now
	in := t
	if t.held <= r.most/roomShare-firstChunk { // addresses other than its own are in the way
		for _, x := range r.hosts {
			if x.held > in.held {
				in = x
			}
		}
	}
	var slowest *bill
	for x := range in.bills {
		if x.waits || x.over || now.Sub(x.since) < roomPatience || x.pace(now) >= roomPace {
			continue
		}
		if slowest == nil || x.pace(now) < slowest.pace(now) {
			slowest = x
		}
	}
	if slowest != nil {
		slowest.over = true
		in.order()
		go slowest.cut() // in a goroutine: cut may take locks of its own
	}
}

// pace is how fast a body comes, in octets a second.
func (b *bill) pace(now time.Time) float64 { return float64(b.came) / now.Sub(b.since).Seconds() }

// arrived counts further octets of a body, and reports whether it may go on.
func (r *room) arrived(b *bill, octets int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.came += octets
	return !b.over
}

// free gives back the memory that a body holds.
func (r *room) free(b *bill) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.number == 0 {
		return
	}
	t := r.hosts[b.host]
	r.held -= b.held
	t.held -= b.held
	delete(t.bills, b)
	t.order()
	if len(t.bills) == 0 {
		delete(r.hosts, b.host)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}
