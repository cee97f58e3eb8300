package compact

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"
)

// drawn is a text, the histories of its flow and of another one, and the coder of both ends.
type drawn struct {
	r       *rand.Rand
	m       *Maker
	network *NetworkCorpus
	texts   [][]byte // of the flow until now
	h       History
	kin     bool
	text    []byte
	next    uint64
}

// drawText is a text of any shape, perhaps like the last one.
func (d *drawn) drawText() []byte {
	r := d.r
	var last []byte
	if len(d.texts) > 0 {
		last = d.texts[len(d.texts)-1]
	}
	switch r.IntN(16) {
	case 0:
		return nil
	case 1:
		return []byte{byte(r.Uint32())}
	case 2, 3:
		return fmt.Appendf(nil, "%d", 1790000000000+r.IntN(100_000_000))
	case 4:
		return fmt.Appendf(nil, "%08x", r.Uint32())
	case 5:
		return d.m.Octets(r.IntN(300))
	case 6:
		return bytes.Clone(last)
	case 7:
		return benchmarkText(1 + r.IntN(1<<r.IntN(13)))
	case 8:
		return d.m.Employees(1 + r.IntN(12))
	case 9:
		return hydrophone(r)
	case 10:
		return bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1<<r.IntN(11)))
	}
	return randomDocument(d.m, r, last)
}

// longText is a text that is coded with fewer contexts, block by block, or after another long one.
func (d *drawn) longText() []byte {
	if d.r.IntN(3) == 0 {
		return d.m.Employees(40 + d.r.IntN(80))
	}
	return append(benchmarkText(MaxLearned+d.r.IntN(3*MaxLearned)), d.m.Octets(d.r.IntN(40))...)
}

func draw(r *rand.Rand, network *NetworkCorpus) *drawn {
	d := &drawn{r: r, m: NewMaker(r.Uint64(), testWords)}
	if r.IntN(4) == 0 {
		d.network = network
	}
	d.h.Complete, d.h.Long = true, true
	long := r.IntN(60) == 0
	for range []int{0, 1, 2, 3, 7, 20, 60}[r.IntN(7)] {
		text := d.drawText()
		d.texts = append(d.texts, text)
		d.next++
		d.h.Add(d.next, text)
	}
	if d.text = d.drawText(); long {
		if d.text = d.longText(); r.IntN(2) == 0 {
			d.next++
			d.h.Add(d.next, append(bytes.Clone(d.text[:len(d.text)-1]), 'x'))
		}
	}
	d.next += uint64(1 + r.IntN(1<<r.IntN(9)))
	d.kin = r.IntN(5) == 0
	return d
}

// code codes the text, at once.
func (d *drawn) code(c *Coder) ([]byte, Codec) {
	if d.kin {
		return c.AppendKin(nil, d.text, &d.h, 7, d.next)
	}
	return c.AppendAfter(nil, d.text, &d.h, d.next)
}

// prepare codes the text in advance, about so many octets of it.
func (d *drawn) prepare(c *Coder, octets int) (done bool) {
	if d.kin {
		return c.PrepareKin(d.text, &d.h, d.next, octets)
	}
	return c.PrepareAfter(d.text, &d.h, d.next, octets)
}

func (d *drawn) expand(c *Coder, codec Codec, b []byte) ([]byte, error) {
	limit := max(len(d.text)+10, MaxLearned)
	if codec == Kin {
		return c.ExpandKin(b, &d.h, d.next, limit)
	}
	return c.ExpandAfter(codec, b, &d.h, d.next, limit)
}

// inSlices expands a code in slices of these sizes, one after the other.
func (d *drawn) inSlices(c *Coder, codec Codec, b []byte, size func() int) (text []byte, err error) {
	var reading Reading
	for err = ErrUnfinished; errors.Is(err, ErrUnfinished); {
		c.Read(&reading, size(), func() { text, err = d.expand(c, codec, b) })
	}
	return text, err
}

// sliceSize is the size of slices: the same for all, from 1 to 4,096, or another for each.
func sliceSize(r *rand.Rand) func() int {
	size := 1 + r.IntN(1<<r.IntN(13))
	if r.IntN(3) > 0 {
		return func() int { return size }
	}
	return func() int { return 1 + r.IntN(size) }
}

// cuts draws codes, and expects of each that it expands in slices of any size as at once, and that it is made in slices as
// at once; the same for a damaged code. The sum is over all codes.
func cuts(t *testing.T, seed uint64, draws int, network *NetworkCorpus) (codes hash.Hash) {
	r := rand.New(rand.NewPCG(seed, 30))
	plain, taught := &[3]Coder{}, &[3]Coder{{Network: network}, {Network: network}, {Network: network}} // one codes, one expands, one prepares
	codes = sha256.New()
	seen := map[Codec]int{}
	for i := range draws {
		d := draw(r, network)
		coders := plain
		if d.network != nil {
			coders = taught
		}
		own, other := &coders[0], &coders[1]
		b, codec := d.code(own)
		b = bytes.Clone(b)
		codes.Write(append(b, byte(codec)))
		seen[codec]++
		if d.h.Alike(codec, b, d.next) && !d.kin && r.IntN(2) == 0 {
			codec = Alike
		}
		size := sliceSize(r)
		text, err := d.inSlices(other, codec, b, size)
		if err != nil || !bytes.Equal(text, d.text) {
			t.Fatalf("seed %d, draw %d, %v after %d texts: %d octets come out of slices as %d, %v", seed, i, codec, len(d.texts), len(d.text), len(text), err)
		}
		if text, err := d.expand(other, codec, b); err != nil || !bytes.Equal(text, d.text) {
			t.Fatalf("seed %d, draw %d, %v: it does not come back at once: %v", seed, i, codec, err)
		}
		d.damaged(t, other, codec, b, size)
		if len(d.text) >= shortText {
			d.preparedAlike(t, &coders[2], codec, b, size)
		}
	}
	t.Logf("seed %d: %v", seed, seen)
	return codes
}

// damaged expects equal results in slices and at once for a code that is cut or changed.
func (d *drawn) damaged(t *testing.T, c *Coder, codec Codec, b []byte, size func() int) {
	if len(b) == 0 || d.r.IntN(4) > 0 {
		return
	}
	bad := bytes.Clone(b)
	if at := d.r.IntN(len(bad)); d.r.IntN(2) == 0 {
		bad = bad[:at]
	} else {
		bad[at] ^= 1 << d.r.IntN(8)
	}
	want, wantErr := d.expand(c, codec, bad)
	got, err := d.inSlices(c, codec, bad, size)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !bytes.Equal(got, want) {
		t.Fatalf("a damaged code of %v gives %d octets, %v in slices, and %d, %v at once", codec, len(got), err, len(want), wantErr)
	}
}

// preparedAlike expects the same code from slices as at once.
func (d *drawn) preparedAlike(t *testing.T, sliced *Coder, codec Codec, b []byte, size func() int) {
	for !d.prepare(sliced, size()) {
	}
	if got, as := d.code(sliced); codec != Alike && as != codec || !bytes.Equal(got, b) {
		t.Fatalf("%d octets are %v in %d octets when they are prepared in slices, and %v in %d at once", len(d.text), as, len(got), codec, len(b))
	}
}

// cutNetwork is a corpus for cuts.
func cutNetwork(t *testing.T) *NetworkCorpus {
	r := rand.New(rand.NewPCG(4, 4))
	var messages [][]byte
	for range 20 {
		messages = append(messages, hydrophone(r))
	}
	return taughtWith(t, messages)
}

// A text is the same wherever slices end, whichever codes came before it.
func TestCuts(t *testing.T) {
	cuts(t, 1, 750, cutNetwork(t))
}

// One code of each codec, cut at every octet, is refused, or gives the same text in slices as at once. After messages of
// another flow or of another peer, or without messages that it needs, nothing expands; later messages make no difference.
func TestCodesCutAtEveryOctet(t *testing.T) {
	network := cutNetwork(t)
	r := rand.New(rand.NewPCG(9, 30))
	left := map[Codec]bool{Deflated: true, Tokens: true, Modelled: true, ModelledXML: true, Taught: true, Learned: true, LearnedXML: true,
		Repeated: true, Kin: true, Following: true, Bulk: true}
	c := Coder{Network: network}
	for i := 0; len(left) > 0; i++ {
		if i > 20_000 {
			t.Fatalf("no code of %v", left)
		}
		d := draw(r, network)
		if left[Following] && i%20 == 0 {
			d.text = append(benchmarkText(2*MaxLearned), byte(i))
			d.h.Add(d.next-1, benchmarkText(2*MaxLearned))
			d.kin = false
		}
		own := Coder{Network: d.network}
		own.NoModel = i%7 == 0 // deflate
		b, codec := d.code(&own)
		if !left[codec] || len(b) < 4 {
			continue
		}
		b = bytes.Clone(b)
		delete(left, codec)
		d.everyCut(t, &c, codec, b)
		if m, ok := codec.ofModel(); ok && m.head > 0 || codec == Repeated {
			d.otherHistories(t, &c, codec, b)
		}
	}
}

func (d *drawn) everyCut(t *testing.T, c *Coder, codec Codec, b []byte) {
	step := 1 + len(b)/100
	for n := 0; n < len(b); n += step {
		want, wantErr := d.expand(c, codec, b[:n])
		got, err := d.inSlices(c, codec, b[:n], func() int { return 97 })
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !bytes.Equal(got, want) {
			t.Errorf("%v cut to %d of %d octets: %v in slices, %v at once", codec, n, len(b), err, wantErr)
		}
		if m, _ := codec.ofModel(); m.head > 0 && err == nil && !bytes.Equal(got, d.text) {
			t.Errorf("%v cut to %d of %d octets gives another text", codec, n, len(b))
		}
	}
}

func (d *drawn) otherHistories(t *testing.T, c *Coder, codec Codec, b []byte) {
	held := d.h
	for name, other := range map[string]func(number uint64, text []byte) (uint64, []byte){
		"of another flow":      func(n uint64, text []byte) (uint64, []byte) { return n, append([]byte("<other>"), text...) },
		"of another peer":      func(n uint64, text []byte) (uint64, []byte) { return n + 1, text },
		"that is not yet sent": func(n uint64, text []byte) (uint64, []byte) { return n + 1<<40, text },
	} {
		d.h = History{Complete: true, Long: true}
		for _, e := range append(append([]entry(nil), held.held...), held.long...) {
			d.h.Add(other(e.number, e.text))
		}
		if _, err := d.expand(c, codec, b); !errors.Is(err, ErrHistory) {
			t.Errorf("%v after a history %s: %v", codec, name, err)
		}
	}
	d.h = held
	if codec != Following { // four long messages are kept
		d.h.held = append([]entry(nil), held.held...)
		d.h.Add(d.next+1, []byte("what comes behind it"))
	}
	if text, err := d.expand(c, codec, b); err != nil || !bytes.Equal(text, d.text) {
		t.Errorf("%v with a later message: %v", codec, err)
	}
}
