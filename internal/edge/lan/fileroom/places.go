package fileroom

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds of the files that are in memory while devices upload or fetch them.
const (
	mostBodies     = 8
	mostBodiesHost = 3       // of one host
	keptBodies     = 2       // kept free for hosts that have none
	leastRate      = 4 << 10 // octets a second that a body must keep up, after twice the time that a device waits
)

// places are the bodies in memory, shared among hosts, so that a slow or hostile host takes none from the others.
type places struct {
	mu    sync.Mutex
	all   int
	hosts map[string]int
	freed chan struct{} // closed when a place becomes free
}

var errBusy = errors.New("too many files at once: try again")

func newPlaces() *places {
	return &places{hosts: map[string]int{}, freed: make(chan struct{})}
}

// enter waits for a place until late fires (nil: never) or the request ends. Without an error the caller must call leave.
func (p *places) enter(ctx context.Context, host string, late <-chan time.Time) (leave func(), err error) {
	for {
		p.mu.Lock()
		has := p.hosts[host]
		if p.all < mostBodies && (has == 0 || has < mostBodiesHost && p.all < mostBodies-keptBodies) {
			p.all++
			p.hosts[host]++
			p.mu.Unlock()
			return func() { p.leave(host) }, nil
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-late:
			return nil, errBusy
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *places) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	p.hosts[host]--
	if p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// steady is a request body that must keep up leastRate.
type steady struct {
	io.ReadCloser
	until func(time.Time) error // sets the deadline for reading
	next  time.Time
}

func newSteady(w http.ResponseWriter, body io.ReadCloser, patience time.Duration) *steady {
	return &steady{ReadCloser: body, until: http.NewResponseController(w).SetReadDeadline, next: time.Now().Add(2 * patience)}
}

func (s *steady) Read(b []byte) (n int, err error) {
	if err := s.until(s.next); err != nil {
		return 0, err
	}
	n, err = s.ReadCloser.Read(b)
	s.next = s.next.Add(timeFor(int64(n)))
	return n, err
}

// timeFor is how long so many octets take at leastRate.
func timeFor(octets int64) time.Duration { return time.Duration(octets) * time.Second / leastRate }
