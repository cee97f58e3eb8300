package seal

import (
	"bytes"
	"crypto/ecdh"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// end is one node of a pair in tests, with everything that one of its starts has.
type end struct {
	id          uint16
	incarnation Incarnation
	state       PeerState // its journal's state of the other
	sealer      *Sealer
	opener      *Opener
	forward     *Forward
}

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func chanceOf(rng *rand.Rand) func(*[keyLen]byte) {
	return func(k *[keyLen]byte) {
		for i := range k {
			k[i] = byte(rng.Uint32())
		}
	}
}

// start begins a start of an end.
func (e *end) start(t testing.TB, other uint16, rng *rand.Rand, now time.Time) {
	e.incarnation = Incarnation{e.incarnation.Number + 1, uint16(rng.Uint32())}
	ring := ringOf(t, e.id, epochOf(1, e.id, other))
	e.sealer = NewSealer(ring, e.id, e.incarnation)
	e.opener = NewOpener(ring, e.id, e.incarnation, map[uint16]PeerState{other: e.state})
	e.forward = NewForward(ring, e.id, e.incarnation, chanceOf(rng), nil)
	e.forward.Step(now)
	e.sealer.Forward(e.forward)
	e.opener.Forward(e.forward)
}

// hello is the body of a datagram in these tests: an ephemeral key, the half heard, and a text.
func (e *end) hello(other uint16, text string) []byte {
	public, heard := e.forward.Says(other)
	return append(binary.BigEndian.AppendUint16(public[:], heard), text...)
}

// hear opens a datagram, and takes its keys.
func (e *end) hear(other uint16, datagram []byte) (text string, info OpenInfo, err error) {
	from, body, info, err := e.opener.Open(datagram)
	if err != nil || from != other {
		return "", info, err
	}
	if info.Newest {
		e.forward.Hear(other, info.Incarnation, [keyLen]byte(body), binary.BigEndian.Uint16(body[keyLen:]))
	}
	return string(body[keyLen+2:]), info, nil
}

func pairOfEnds(t testing.TB, rng *rand.Rand) (a, b *end) {
	a, b = &end{id: 1, state: PeerState{Incarnation: 1}}, &end{id: 2, state: PeerState{Incarnation: 1}}
	a.incarnation, b.incarnation = Incarnation{Number: 1}, Incarnation{Number: 1}
	a.start(t, 2, rng, newYear)
	b.start(t, 1, rng, newYear)
	return a, b
}

// say sends a datagram, which the other end receives.
func say(t testing.TB, from, to *end, long bool, text string) (datagram []byte, info OpenInfo) {
	t.Helper()
	datagram, err := from.sealer.Seal(nil, to.id, long, from.hello(to.id, text))
	check.NoError(check.Fatal(t), err)
	got, info, err := to.hear(from.id, datagram)
	check.NoError(t, err)
	check.Equal(t, "text", got, text)
	return datagram, info
}

func TestForwardAgrees(t *testing.T) {
	a, b := pairOfEnds(t, rand.New(rand.NewPCG(1, 1)))
	_, one := say(t, a, b, true, "the first carries data")
	_, two := say(t, b, a, true, "and its answer")
	check.True(t, "the first two are sealed by the nodes' own keys", !one.Forward && !two.Forward)
	check.True(t, "who has heard an answer has the key", a.forward.InForce(2) && !b.forward.InForce(1))
	third, info := say(t, a, b, false, "so the third is secret")
	check.True(t, "it is", info.Forward)
	check.Equal(t, "octets that it adds", len(third)-keyLen-2-len("so the third is secret"), 19)
	_, info = say(t, b, a, false, "and the fourth")
	check.True(t, "it is too", info.Forward)
	check.True(t, "private halves are wiped", none(&a.forward.peers[2].own) && none(&b.forward.peers[1].own))
	public, heard := a.forward.Says(2)
	check.True(t, "nothing more is said of it", none(&public) && heard == 0)
	_, info = say(t, a, b, true, "a long one is for who may know nothing")
	check.True(t, "it is not secret", !info.Forward)
	a.forward.Silent(2, true)
	_, info = say(t, a, b, false, "nor is one for the silent")
	check.True(t, "it is not secret either", !info.Forward)
}

// A node that gets a HELLO without its own half sends this half again; a node that gets a HELLO with it does not.
func TestForwardTellsAgain(t *testing.T) {
	a, b := pairOfEnds(t, rand.New(rand.NewPCG(6, 6)))
	half := func(of *end, other uint16) [keyLen]byte { public, _ := of.forward.Says(other); return public }
	theirs, mine := half(b, 1), half(a, 2)
	check.True(t, "new", a.forward.Hear(2, b.incarnation, theirs, 0))
	check.True(t, "it has not heard this one's", a.forward.Hear(2, b.incarnation, theirs, 0))
	check.True(t, "it has", !a.forward.Hear(2, b.incarnation, theirs, echo(&mine)))
	check.True(t, "an older word of it", !a.forward.Hear(2, b.incarnation, theirs, 0))
}

// The key of a pair of starts, computed with other libraries.
func TestForwardVector(t *testing.T) {
	a, b := pairOfEnds(t, rand.New(rand.NewPCG(1, 1)))
	say(t, a, b, true, "")
	mine, err := ecdh.X25519().NewPrivateKey(a.forward.peers[2].own[:])
	check.NoError(check.Fatal(t), err)
	pub := a.forward.peers[2].public
	say(t, b, a, true, "")
	theirs, err := ecdh.X25519().NewPublicKey(a.forward.peers[2].theirs[:])
	check.NoError(check.Fatal(t), err)
	shared, err := mine.ECDH(theirs)
	check.NoError(check.Fatal(t), err)
	want := blake(t, 32, shared, []byte("aldis forward key 1"), independentPair(t, 1, 2),
		binary.BigEndian.AppendUint64(nil, startID(1, a.incarnation)), pub[:], binary.BigEndian.AppendUint64(nil, startID(2, b.incarnation)), theirs.Bytes())
	check.Equal(t, "base", hex.EncodeToString(a.forward.peers[2].base[:]), hex.EncodeToString(want))
}

// An attacker who takes both nodes' own keys afterwards, and the content of their memory, opens datagrams from before there
// was a key of both starts, and none that was sealed with a key that is over.
func TestForwardSecrecy(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	a, b := pairOfEnds(t, rng)
	var first, later [][]byte
	keep := func(list *[][]byte, from, to *end, long bool) {
		d, _ := say(t, from, to, long, "words")
		*list = append(*list, d)
	}
	keep(&first, a, b, true)
	keep(&first, b, a, true)
	for range 20 {
		keep(&later, a, b, false)
		keep(&later, b, a, false)
	}
	now := newYear
	for range 3 { // they continue to talk
		now = now.Add(61 * time.Minute)
		for range 3 {
			a.forward.Step(now)
			b.forward.Step(now)
			say(t, a, b, false, "on")
			say(t, b, a, false, "on")
			now = now.Add(11 * time.Minute)
		}
	}
	a.forward.Step(now)
	b.forward.Step(now)
	opens := func(d []byte, f *Forward) bool {
		for _, e := range []*end{a, b} {
			other := 3 - e.id
			thief := NewOpener(ringOf(t, e.id, epochOf(1, 1, 2)), e.id, Incarnation{}, map[uint16]PeerState{other: {Incarnation: 3 - 1, Salt: map[uint16]*end{1: a, 2: b}[other].incarnation.Salt}})
			if f != nil && f.self == e.id {
				thief.Forward(f)
			}
			if _, _, _, err := thief.Open(d); err == nil {
				return true
			}
		}
		return false
	}
	for _, d := range first {
		check.True(t, "what went at first is read with the nodes' own keys", opens(d, nil))
	}
	for i, d := range later {
		check.True(t, fmt.Sprintf("datagram %d is not read with these", i), !opens(d, nil))
		check.True(t, fmt.Sprintf("datagram %d is not read with what is in memory either", i), !opens(d, a.forward) && !opens(d, b.forward))
	}
	last, err := a.sealer.Seal(nil, 2, false, a.hello(2, "now"))
	check.NoError(t, err)
	check.True(t, "the thief is able: what goes now is read with what is in memory", !opens(last, nil) && opens(last, b.forward))
}

// Two nodes talk for weeks over a link that drops, delays, repeats and sends back, and start anew at any point, also both
// at once. A checker with all keys sees that no key has a nonce twice; no datagram is accepted twice or changed; after each
// turmoil datagrams arrive again and are secret again.
func TestForwardProperty(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 77))
		a, b := pairOfEnds(t, rng)
		ends := []*end{a, b}
		now := newYear
		type use struct {
			key     [keyLen]byte
			counter uint32
		}
		used := map[use]bool{}
		taken, sent := map[string]bool{}, map[string]bool{}
		type flight struct {
			to *end
			d  []byte
		}
		var air, past []flight
		send := func(from, to *end, long bool) {
			from.forward.Step(now)
			text := fmt.Sprint(len(sent))
			body := from.hello(to.id, text)
			key, ok := from.sealer.pick(to.id, long)
			check.True(t, "a key", ok)
			u := use{*key, from.sealer.counter + 1}
			if used[u] {
				t.Fatalf("seed %d: a nonce twice", seed)
			}
			used[u], sent[text] = true, true
			d, err := from.sealer.Seal(nil, to.id, long, body)
			check.NoError(check.Fatal(t), err)
			air = append(air, flight{to, d})
			past = append(past, flight{to, d})
		}
		secret := false
		arrive := func(f flight) bool {
			f.to.forward.Step(now)
			text, info, err := f.to.hear(3-f.to.id, f.d)
			f.to.state = f.to.opener.State(3 - f.to.id) // durable
			if err != nil {
				return false
			}
			if !sent[text] || taken[text] {
				t.Fatalf("seed %d: %q is taken twice, or was never said", seed, text)
			}
			taken[text], secret = true, info.Forward
			return true
		}
		for step := range 400 {
			from := ends[rng.IntN(2)]
			to := ends[2-from.id]
			switch n := rng.IntN(100); {
			case n < 2:
				from.start(t, to.id, rng, now)
			case n < 3:
				a.start(t, 2, rng, now)
				b.start(t, 1, rng, now)
			case n < 40:
				send(from, to, rng.IntN(4) == 0)
			case n < 50 && len(air) > 0: // lost
				i := rng.IntN(len(air))
				air = append(air[:i], air[i+1:]...)
			case n < 85 && len(air) > 0: // in any order
				i := rng.IntN(len(air))
				f := air[i]
				air = append(air[:i], air[i+1:]...)
				arrive(f)
			case n < 90 && len(past) > 0: // again
				arrive(past[rng.IntN(len(past))])
			case n < 94 && len(past) > 0: // back to its sender
				f := past[rng.IntN(len(past))]
				f.to = ends[2-f.to.id]
				if arrive(f) {
					t.Fatalf("seed %d: its own datagram is taken", seed)
				}
			default:
				now = now.Add(time.Duration(rng.IntN(40)) * time.Minute)
			}
			if step%100 == 99 { // no faults for a while
				air = nil
				for round := range 3 {
					for _, e := range ends { // an end that has started greets, and is greeted
						send(e, ends[2-e.id], round == 0 || !e.forward.InForce(3-e.id))
						if ok := arrive(air[0]); !ok {
							t.Fatalf("seed %d, step %d: what goes when all is well does not arrive", seed, step)
						}
						air = nil
					}
				}
				check.True(t, fmt.Sprintf("seed %d, step %d: secret again", seed, step), secret && a.forward.InForce(2) && b.forward.InForce(1))
			}
		}
		check.True(t, "much was said", len(taken) > 50, len(taken))
	}
}

// Memory for agreements is bounded, and keys that are over are wiped from it.
func TestForwardMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var held []byte
	ids := []uint16{1}
	for id := range uint16(300) {
		ids = append(ids, id+2)
	}
	ring := ringOf(t, 1, epochOf(1, ids...))
	f := NewForward(ring, 1, Incarnation{Number: 1}, chanceOf(rng), func(octets []byte) { held = octets })
	for _, id := range ids[1:] {
		f.Says(id)
		x := [keyLen]byte{9, byte(id)}
		f.Hear(id, Incarnation{Number: 1}, x, 0)
	}
	check.Equal(t, "agreements", len(f.peers), forwardMost)
	check.True(t, "a peer beyond them is told nothing", !f.Lacks(ids[300]) && !f.InForce(ids[300]))
	check.True(t, "the secrets lie where they are held", bytes.Contains(held, f.peers[2].base[:]) && bytes.Contains(held, f.peers[200].own[:]))
	f.rekey(ringOf(t, 1, epochOf(2, 1)))
	check.True(t, "nothing is left of who is gone", bytes.Equal(held, make([]byte, len(held))))
	check.True(t, "not even a word for it", f.InForce(2) == false)
}

// A datagram of a node that the roster does not name any more is refused as such, and not as a stranger's.
func TestForwardGone(t *testing.T) {
	a, b := pairOfEnds(t, rand.New(rand.NewPCG(5, 5)))
	say(t, a, b, true, "")
	say(t, b, a, true, "")
	say(t, a, b, false, "")
	say(t, b, a, false, "")
	a.opener.Rekey(ringOf(t, 1, epochOf(2, 1, 3), epochOf(1, 1, 2)))
	for range 2 {
		d, err := b.sealer.Seal(nil, 1, false, []byte("still here"))
		check.NoError(t, err)
		from, body, _, err := a.opener.Open(d)
		check.True(t, "refused as gone", errors.Is(err, ErrGone) && from == 2 && body == nil, err)
	}
	check.True(t, "and told nothing", !a.forward.InForce(2))
	a.forward.Step(newYear.Add(25 * time.Hour))
	check.True(t, "the key is not kept for ever", none(&a.forward.peers[2].past))
}

// BenchmarkForwardSealOpen is BenchmarkSealOpen with a key that both ends wipe.
func BenchmarkForwardSealOpen(b *testing.B) {
	from, to := pairOfEnds(b, rand.New(rand.NewPCG(1, 1)))
	for range 3 {
		say(b, from, to, true, "hello")
		say(b, to, from, true, "hello")
	}
	if !from.forward.InForce(to.id) {
		b.Fatal("there is no such key")
	}
	body := make([]byte, 200)
	var d []byte
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		d, _ = from.sealer.Seal(d[:0], to.id, false, body)
		if _, _, _, err := to.opener.Open(d); err != nil {
			b.Fatal(err)
		}
	}
}
