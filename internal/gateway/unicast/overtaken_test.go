package unicast

import (
	"math/rand/v2"
	"testing"

	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/link/custody"
)

// builderOf is a datagram with one message on a link that reorders.
type builderOf struct {
	stamp  mail.Stamp
	number uint64
	at     int // when it comes
}

// reordered sends messages with only the low 8 bits of their numbers, and lost ones again, over a link that holds any datagram up by as
// much as slack. It says how many late ones were understood and how many were not. None may be taken for another.
func reordered(t *testing.T, rng *rand.Rand, slack int) (known, unknown int) {
	var passed passages
	var newest uint32
	base, next, read := uint64(1), uint64(1), uint64(0)
	held, air := map[uint64]bool{}, []builderOf{}
	acks := map[int]uint64{} // when the sender hears up to which number all was read
	for now := range 5000 {
		if a, ok := acks[now]; ok {
			base = max(base, a+1)
		}
		n := base + uint64(rng.IntN(int(next-base)+1))
		if n == next && next-base < custody.ShortAhead {
			next++
		}
		if n < next && rng.IntN(20) > 0 {
			air = append(air, builderOf{mail.Stamp{Incarnation: 1, Counter: uint32(now + 1)}, n, now + rng.IntN(slack)})
		}
		left := air[:0]
		for _, d := range air {
			if d.at > now {
				left = append(left, d)
				continue
			}
			if d.stamp.Counter > newest {
				newest = d.stamp.Counter
				passed.newest(d.stamp, read)
			} else if got, ok := passed.widen(d.stamp, uint8(d.number)); !ok {
				unknown++
			} else {
				known++
				check.Equal(check.Fatal(t), "number", got, uint16(d.number))
			}
			held[d.number] = true
		}
		air = left
		for ; held[read+1]; read++ {
			delete(held, read+1)
		}
		acks[now+1+rng.IntN(slack)] = read
	}
	return known, unknown
}

// TestOvertaken: a short number of a late datagram is understood, and never as another, however far the link reorders.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		known, unknown := reordered(t, rng, 2+rng.IntN(40))
		check.True(t, "late ones are understood", known > 300 && unknown < known/20)
		reordered(t, rng, 1000)
	}
}

// TestOvertakenByTooMany: the number of a datagram is not guessed if so many have overtaken it that nobody knows when it was sent, or if it
// is of another start.
func TestOvertakenByTooMany(t *testing.T) {
	var p passages
	for i := range uint32(2 * maxPassages) {
		p.newest(mail.Stamp{Incarnation: 1, Counter: 10 * (i + 1)}, uint64(i))
	}
	for _, tt := range []struct {
		at    mail.Stamp
		known bool
	}{{mail.Stamp{Incarnation: 1, Counter: 20*maxPassages - 5}, true}, {mail.Stamp{Incarnation: 1, Counter: 10*maxPassages + 15}, true},
		{mail.Stamp{Incarnation: 1, Counter: 10 * maxPassages}, false}, {mail.Stamp{Incarnation: 1, Counter: 5}, false}, {mail.Stamp{Incarnation: 2, Counter: 20*maxPassages - 5}, false}} {
		_, known := p.widen(tt.at, 7)
		check.Equal(t, "known", known, tt.known)
	}
	p.newest(mail.Stamp{Incarnation: 2, Counter: 1}, 0)
	check.Equal(t, "passages of another start", len(p), 1)
}
