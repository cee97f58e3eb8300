package lan

import (
	"bytes"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// ledger is a set of accounts in the test's own time.
type ledger struct {
	*testing.T
	*accounts
	time time.Time
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t, newAccounts(10 * time.Millisecond), time.Unix(1000, 0)}
}

func (l *ledger) now() time.Time { return l.time }

// fill hands over messages of a host until its account has no room, and returns how many.
func (l *ledger) fill(host string, id site.ConnID, body []byte) (count int) {
	l.Helper()
	for ; count < 100_000; count++ {
		a := l.of[host]
		if a != nil && !a.fits(a.guess(l.time, len(body), bytes.Contains(body, packed)), l.share) {
			return count
		}
		d, ok := l.enter(l.now, host, body, nil)
		if !ok {
			l.Fatal("turned away")
		}
		l.book(id, d)
	}
	return count
}

// An address may have at most as many messages with the loop as the loop handles in its share, whatever they cost.
func TestAccountIsALoopsShare(t *testing.T) {
	plain, packed := bytes.Repeat([]byte("x"), 1000), append([]byte{0x1f, 0x8b, 8}, make([]byte, 3000)...)
	for _, tt := range []struct {
		name   string
		body   []byte
		took   time.Duration // each
		at     int           // unhandled messages at first
		learnt int           // once their cost is known
		later  int           // after a minute
	}{
		{"small and cheap", plain, 30 * time.Microsecond, 28, 28, 454},
		{"packed, and the loop has much of it", packed, 5 * time.Millisecond, 4, 2, 4},
		{"packed and harmless", packed, 50 * time.Microsecond, 4, 4, 4},
		{"long and dear", bytes.Repeat([]byte("x"), 60_000), 4 * time.Millisecond, 10, 2, 71},
	} {
		l := newLedger(t)
		in := check.In(t, "what", tt.name)
		check.Equal(in, "messages under way at first", l.fill("a", 1, tt.body), tt.at)
		l.settle(l.time, 1, tt.took)
		for len(l.owed) > 0 {
			l.settle(l.time, 1, tt.took)
		}
		check.Equal(in, "underWay", l.of["a"].underWay, 0)
		check.Equal(in, "messages under way then", l.fill("a", 1, tt.body), tt.learnt)
		for len(l.owed) > 0 {
			l.settle(l.time, 1, 0)
		}
		l.time = l.time.Add(time.Minute)
		check.Equal(in, "messages under way after a minute", l.fill("a", 1, tt.body), tt.later)
	}
}

// An address that has used up its share does not hold up another. Readers that wait go on in the order in which they came.
func TestAccountsAreApart(t *testing.T) {
	l := newLedger(t)
	dear := append([]byte{0x1f, 0x8b, 8}, make([]byte, 3000)...)
	under := l.fill("a", 1, dear)
	turns := make(chan int)
	gone := make(chan struct{})
	waiting := func(n int) {
		check.Until(t, time.Minute, "so many wait", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.of["a"].waiting) == n
		})
	}
	for i := range 3 {
		go func() {
			var leave chan struct{}
			if i == 1 {
				leave = gone
			}
			if d, ok := l.enter(l.now, "a", dear, leave); ok {
				l.book(2, d)
				turns <- i
			} else {
				turns <- -1
			}
		}()
		waiting(i + 1)
	}
	if d, ok := l.enter(l.now, "b", dear, nil); !ok || d.host != "b" {
		t.Error("another address waits")
	}
	close(gone)
	check.Equal(t, "who has hung up", <-turns, -1)
	waiting(2)
	l.settle(l.time, 1, 0)
	check.Equal(t, "whose turn is next", <-turns, 0)
	l.settle(l.time, 1, 0)
	check.Equal(t, "whose turn comes then", <-turns, 2)
	for range under - 2 {
		l.settle(l.time, 1, 0)
	}
	l.settle(l.time, 2, 0)
	l.settle(l.time, 2, 0)
	l.settle(l.time, 2, 0) // on a connection that owes nothing
	check.Equal(t, "len(l.owed)", len(l.owed), 0)
	check.Equal(t, "l.of[a].underWay", l.of["a"].underWay, 0)
}

func TestAccountsAreForgotten(t *testing.T) {
	l := newLedger(t)
	for i := range 3 * maxAccounts {
		l.time = l.time.Add(time.Second)
		d, _ := l.enter(l.now, string(rune(i+1)), nil, nil)
		l.book(1, d)
		l.settle(l.time, 1, time.Second)
	}
	check.True(t, "len(l.of) <= maxAccounts", len(l.of) <= maxAccounts+1, len(l.of))
}

// With sockets: an address whose messages take long has at most its share of them with the loop, and all are handled in the
// end. Another address does not wait, over TCP and over HTTP.
func TestDearPeerIsReadLater(t *testing.T) {
	const took = 4 * time.Millisecond
	w := start(t, Config{Share: 10 * time.Millisecond})
	dear := append([]byte{0x1f, 0x8b, 8}, body(3000)...)
	hostile := w.from("127.0.0.2")
	w.say(hostile, []byte(hello1))
	for range 20 {
		w.say(hostile, jxta.AppendPackageHeader(nil, len(dear)), dear)
	}
	handled, most := 0, 0
	for handled < 20 {
		w.await("a message", func(e []site.Event) bool { return count[jxtabridge.Received](e) > handled })
		most = max(most, count[jxtabridge.Received](w.all())-handled)
		if handled == 5 {
			honest := w.from("127.0.0.3")
			before := count[jxtabridge.Received](w.all())
			w.say(honest, []byte(hello1), jxta.AppendPackageHeader(nil, 100), body(100))
			w.await("the message of another", func(e []site.Event) bool { return count[jxtabridge.Received](e) > before })
			w.lan.Handled(jxtabridge.Received{Conn: 2}, 0)
			handled++
			w.lan.Handled(jxtabridge.Received{Conn: 1}, took)
			handled++
			continue
		}
		w.lan.Handled(jxtabridge.Received{Conn: 1}, took)
		handled++
	}
	check.True(t, "messages under way at once <= 6", most <= 6, most)
	w.await("all of them", func(e []site.Event) bool { return count[jxtabridge.Received](e) == 21 })
	w.lan.accounts.mu.Lock()
	defer w.lan.accounts.mu.Unlock()
	check.True(t, "messages of which the loop has not told", w.lan.accounts.of["127.0.0.2"].messages <= 1, w.lan.accounts.of["127.0.0.2"].messages)
}
