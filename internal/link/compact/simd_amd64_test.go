package compact

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"aldis/internal/lab/check"
)

// narrowly computes one by one for the duration of a test.
func narrowly(t *testing.T) {
	if !wide {
		t.Log("this processor has no AVX2: there is nothing to compare")
	}
	was := wide
	wide = false
	t.Cleanup(func() { wide = was })
}

// randomModel has counters, maps and weights of every kind, in the middle of an octet.
func randomModel(r *rand.Rand, contexts int, some bool) *model {
	m := newModel()
	m.prime(primed)
	m.most, m.some = contexts, some
	for i := range m.Sm {
		m.Sm[i] = uint16(r.Uint32())
	}
	for _, w := range [][]int32{m.MixA[:], m.MixB[:], m.MixC[:]} {
		for i := range w {
			w[i] = int32(r.Uint32()) >> r.IntN(20)
		}
	}
	m.half = 1 << r.IntN(4)
	m.half |= r.Uint32() & (m.half - 1)
	for j := range m.hash {
		m.hash[j] = r.Uint32()
	}
	m.findLines(uint32(r.IntN(2)) * m.half)
	from, to := m.asked()
	m.used = masks[from][to]
	for j := from; j < to; j++ {
		for i := range m.counters.over[m.line[j]:][:lineSlots] {
			check := m.hash[j]>>8 + m.half*0x3d + uint32(r.IntN(3)/2)
			m.counters.over[m.line[j]+uint32(i)] = uint32(r.IntN(1<<16))<<16 | uint32(r.IntN(1+r.IntN(256)))<<8 | check&0xff
		}
	}
	for i := range m.in {
		m.in[i] = int32(r.IntN(2*stretchMax+1) - stretchMax)
	}
	return m
}

// Computing eight contexts at once gives the same as one by one, bit for bit.
func TestWideIsNarrow(t *testing.T) {
	if !wide {
		t.Log("this processor has no AVX2: there is nothing to compare")
		return
	}
	r := rand.New(rand.NewPCG(91, 1))
	for i := range 3000 {
		seed := r.Uint64()
		make := func() *model {
			return randomModel(rand.New(rand.NewPCG(seed, 2)), []int{contexts, light}[i%2], i%8 == 6)
		}
		a, b := make(), make()
		bit := i >> 3 & 1
		a.steps, b.steps = []*[256]uint32{stepsCoding, stepsPriming}[i>>4&1], []*[256]uint32{stepsCoding, stepsPriming}[i>>4&1]
		wa, wb, wc, we := r.IntN(setMatch-6*64)*inputs, r.IntN(setNode)*inputs, r.IntN(setKey)*inputs, r.IntN(setNode)*mixes
		w, each := &a.weighing, r.IntN(2)*64*inputs
		w.over, w.a, w.b, w.c, w.end = &a.counters.over[0], &a.MixA[wa], &a.MixB[wb], &a.MixC[wc], &a.MixEnd[we]
		w.eachSeen = 4 * each
		st, seen := foreseeWide(&a.looked, w, a.half)
		if want := bits.OnesCount32(b.ask() & lastOctets); seen != want {
			t.Fatalf("%d: %d say something, want %d", i, seen, want)
		}
		wa += seen * each
		from, to := a.asked()
		for j := from; j < to; j++ {
			if a.slot[j] != b.slot[j] || a.count[j] != b.count[j] || a.speaks[j] != b.speaks[j] || b.speaks[j] != 0 && a.smAt[j] != b.smAt[j] {
				t.Fatalf("%d: context %d is at %d with %#x, %#x, %d; want %d with %#x, %#x, %d", i, j,
					a.slot[j], a.count[j], a.speaks[j], a.smAt[j], b.slot[j], b.count[j], b.speaks[j], b.smAt[j])
			}
		}
		for j := range inputs {
			if want := b.in[j] * int32(btoi(j < others || from <= j-others && j-others < to)); a.in[j] != want {
				t.Fatalf("%d: input %d is %d, want %d", i, j, a.in[j], want)
			}
		}
		clear(b.in[others+to:])
		x, y, z := dots(b.in[:inputs], b.MixA[wa:], b.MixB[wb:], b.MixC[wc:])
		if want := mixed([mixes]int64{x, y, z}, b.MixEnd[we:], &b.out, &b.mixed); st != want || a.out != b.out || a.mixed != b.mixed {
			t.Fatalf("%d: %d of %d as %d, want %d of %d as %d", i, st, a.out, a.mixed, want, b.out, b.mixed)
		}
		ea, eb, ec := int64(r.IntN(1<<21)-1<<20), int64(r.IntN(1<<21)-1<<20), int64(r.IntN(1<<21)-1<<20)
		nudgeWide(&a.in[0], &a.MixA[wa], &a.MixB[wb], &a.MixC[wc], ea, eb, ec)
		nudge(b.in[:inputs], b.MixA[wa:], b.MixB[wb:], b.MixC[wc:], ea, eb, ec)
		learnWide(&a.looked, &a.counters.over[0], &a.Sm[0], a.steps, bit)
		b.learn(int32(bit) * 65535)
		if a.tables != b.tables {
			t.Fatalf("%d: maps or weights differ", i)
		}
		for s := lineSlots; s < int(a.counters.used); s++ {
			if a.counters.over[s] != b.counters.over[s] {
				t.Fatalf("%d: counter %d is %#x, want %#x", i, s, a.counters.over[s], b.counters.over[s])
			}
		}
	}
}

// Lines are found whether they were sought before or not.
func TestWideFindsLines(t *testing.T) {
	if !wide {
		t.Log("this processor has no AVX2: there is nothing to compare")
		return
	}
	r := rand.New(rand.NewPCG(92, 1))
	m := randomModel(r, contexts, false)
	for i := range 3000 {
		m.most, m.some = []int{contexts, light}[i%2], i%8 == 6
		for j := range m.hash {
			m.hash[j] = r.Uint32() % 5000
		}
		m.hash[3], m.ahead.octet = m.hash[2], 0
		if i%3 > 0 {
			m.ahead.octet = 0x100 | uint32(r.IntN(256))
		}
		for nth := range 2 {
			m.half = 0
			if nth == 0 {
				m.firstLines()
			} else {
				m.half = 1<<4 | m.ahead.octet>>4&15
				m.secondLines()
			}
			got := m.line
			m.findLines(m.half)
			if got != m.line {
				t.Fatalf("%d: lines %d, want %d", i, got, m.line)
			}
		}
	}
}

// The lines of the primed model are the same, unpacked in either way.
func TestWideUnpacks(t *testing.T) {
	var c, d counters
	c.forget(primed.lines)
	for n := uint32(0); n < 1<<primedLines && wide; n += lanes {
		var line, base [lanes]uint32
		for j := range base {
			base[j] = n + uint32(j)
		}
		c.room()
		c.used = bringWide(1<<lanes-1, &line, &base, c.at, &c.over[0], unsafe.StringData(c.base), &states[0], c.used, c.gen)
	}
	d.forget(primed.lines)
	for n := range uint32(1 << primedLines) {
		d.line(n)
	}
	for i := lineSlots; i < int(c.used); i++ {
		if c.over[i] != d.over[i] {
			t.Fatalf("slot %d is %#x, want %#x", i, c.over[i], d.over[i])
		}
	}
}

// Codes are the same on another processor.
func TestNarrowCodes(t *testing.T) {
	narrowly(t)
	TestVectors(t)
	TestLearnedVectors(t)
}

// The same with slices of any size: one kind of processor makes the same codes as the other.
func TestNarrowCuts(t *testing.T) {
	network := cutNetwork(t)
	codes := cuts(t, 2, 400, network).Sum(nil)
	narrowly(t)
	check.True(t, "the codes are the same", bytes.Equal(cuts(t, 2, 400, network).Sum(nil), codes))
}

// GODEBUG=cpu.avx2=off computes one by one, as on a processor without AVX2.
func TestNarrowSwitch(t *testing.T) {
	if os.Getenv("GODEBUG") == narrowSwitch {
		check.True(t, "it is wide all the same", !wide)
		TestVectors(t)
		return
	}
	again := exec.Command(os.Args[0], "-test.run", "^TestNarrowSwitch$", "-test.v")
	again.Env = append(os.Environ(), "GODEBUG="+narrowSwitch)
	out, err := again.CombinedOutput()
	check.NoError(check.In(t, string(out)), err)
	check.True(t, "it has run", bytes.Contains(out, []byte("PASS")), string(out))
}

const narrowSwitch = "cpu.avx2=off"

// BenchmarkNarrowAfterTwelve is BenchmarkAfterTwelve on a processor that computes one by one.
func BenchmarkNarrowAfterTwelve(b *testing.B) {
	was := wide
	wide = false
	defer func() { wide = was }()
	BenchmarkAfterTwelve(b)
}

// The assembly code expects the fields of looked at their actual places.
func TestLookedIsLaidOutAsTheKernelsHaveIt(t *testing.T) {
	var l looked
	for i, at := range []uintptr{unsafe.Offsetof(l.hash), unsafe.Offsetof(l.line), unsafe.Offsetof(l.slot), unsafe.Offsetof(l.count),
		unsafe.Offsetof(l.smAt), unsafe.Offsetof(l.smWas), unsafe.Offsetof(l.speaks), unsafe.Offsetof(l.used)} {
		if want := uintptr(64 * i); at != want {
			t.Errorf("field %d is at %d, want %d", i, at, want)
		}
	}
}
