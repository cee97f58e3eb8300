package compact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"aldis/internal/lab/check"
)

// hydrophone is a message of a format that does not exist: it was invented for these tests.
func hydrophone(r *rand.Rand) []byte {
	b := fmt.Appendf(nil, "!!HYDRO/7;stn=%s-%02d;at=%02d.%02d.25'%02d%02d\n", among(r, []string{"KRAKE", "MOLLUSK", "TRITON", "NAUTIL", "BARNACLE", "SEPIA"}),
		r.IntN(40), 1+r.IntN(28), 1+r.IntN(12), r.IntN(24), r.IntN(60))
	for i := range 2 + r.IntN(4) {
		b = fmt.Appendf(b, "  ~lin%02d <freq> %d.%d Hz <lvl> -%d dB <brg> %03d (%s)\n", i+1, 20+r.IntN(900), r.IntN(10), 40+r.IntN(50), r.IntN(360),
			among(r, []string{"tonal", "broadband", "cavitation", "transient-unclassified"}))
	}
	return fmt.Appendf(b, "  ~sal %d.%02d psu ~tmp %d.%d degC ~dep %d m\nquality:%s;next-report-due=%dmin;operator-remark=none!!\n", 30+r.IntN(6), r.IntN(100),
		2+r.IntN(12), r.IntN(10), 20+r.IntN(300), among(r, []string{"GOOD", "FAIR", "POOR(ship noise)"}), 5*(1+r.IntN(12)))
}

// manifest is another such message, in XML.
func manifest(r *rand.Rand) []byte {
	b := fmt.Appendf(nil, "<?xml version=\"1.0\"?>\n<lading:sheet xmlns:lading=\"http://quay.example/lading/3\" no=\"%d\" hold=\"%d\">\n", 100000+r.IntN(900000), 1+r.IntN(6))
	for range 2 + r.IntN(3) {
		b = fmt.Appendf(b, "  <lading:crate mark=\"%s%04d\"><lading:goods>%s</lading:goods><lading:gross unit=\"kg\">%d.%d</lading:gross><lading:stowed tier=\"%d\"/></lading:crate>\n",
			among(r, []string{"QX", "ZB", "VV", "OP"}), r.IntN(10000), among(r, []string{"rope, manila", "tinned fish", "pump spares", "blankets", "lamp oil"}), r.IntN(900), r.IntN(10), 1+r.IntN(5))
	}
	return fmt.Appendf(b, "  <lading:tallied by=\"%s\" checked=\"%v\"/>\n</lading:sheet>\n", among(r, []string{"aft gang", "fore gang", "crane 2"}), r.IntN(2) == 0)
}

var inventedKinds = []stranger{
	{"hydrophone lines, invented", func(r *rand.Rand) func() []byte { return func() []byte { return hydrophone(r) } }},
	{"cargo sheets in XML, invented", func(r *rand.Rand) func() []byte { return func() []byte { return manifest(r) } }},
}

func invented(s stranger, seed uint64, n int) (list [][]byte) {
	next := s.flow(rand.New(rand.NewPCG(seed, 12)))
	for range n {
		list = append(list, next())
	}
	return list
}

// taughtWith is a corpus of samples as a gateway has learned it.
func taughtWith(t testing.TB, messages [][]byte) *NetworkCorpus {
	t.Helper()
	b, err := AppendCorpus(nil, messages)
	check.NoError(check.Fatal(t), err)
	f, err := ReadCorpus(b)
	check.NoError(check.Fatal(t), err)
	return f.Learn()
}

// A kind that only the network's corpus has costs less than with zstd and a dictionary of the same samples: 72 and 80 octets.
func TestTaughtKinds(t *testing.T) {
	most := map[string]float64{inventedKinds[0].kind: 30, inventedKinds[1].kind: 45}
	for _, s := range inventedKinds {
		n := taughtWith(t, invented(s, 1, 60))
		before, after := Coder{}, Coder{Network: n}
		var sums [3]float64
		held := invented(s, 2, 20)
		for _, text := range held {
			plain, _ := before.Append(nil, text)
			code, codec := after.Append(nil, text)
			back, err := after.Expand(codec, code, len(text))
			check.NoError(check.Fatal(t), err)
			check.True(check.Fatal(t), "the text comes back", bytes.Equal(back, text), codec)
			_, err = before.Expand(codec, code, len(text))
			check.ErrorIs(t, err, ErrModel)
			for i, octets := range []int{len(text), 1 + len(plain), 1 + len(code)} {
				sums[i] += float64(octets) / float64(len(held))
			}
		}
		t.Logf("%s: %.0f octets, %.1f, taught %.1f", s.kind, sums[0], sums[1], sums[2])
		check.True(t, s.kind, sums[2] <= most[s.kind], sums[2])
	}
}

// Texts unlike the network's corpus are coded as without it, and every gateway reads them.
func TestTaughtLeavesOthersAlone(t *testing.T) {
	n := taughtWith(t, invented(inventedKinds[0], 1, 60))
	plain, with := Coder{}, Coder{Network: n}
	for _, s := range strangerKinds {
		for _, text := range strangerFirst(s)[:3] {
			a, ka := plain.Append(nil, text)
			b, kb := with.Append(nil, text)
			check.True(t, s.kind, ka == kb && bytes.Equal(a, b), ka, kb, len(a), len(b))
		}
	}
}

// Codes made with one corpus never expand with another one.
func TestOtherCorpus(t *testing.T) {
	a := Coder{Network: taughtWith(t, invented(inventedKinds[0], 1, 40))}
	b := Coder{Network: taughtWith(t, invented(inventedKinds[0], 3, 40))}
	for _, text := range invented(inventedKinds[0], 2, 20) {
		code, codec := a.Append(nil, text)
		check.Equal(check.Fatal(t), "codec", codec, Taught)
		_, err := b.Expand(codec, code, len(text))
		check.ErrorIs(t, err, ErrModel)
	}
}

// A flow is learned with the corpus as without, at once and in slices; and if only one end uses the corpus, an end that has
// it can still read the flow.
func TestTaughtFlows(t *testing.T) {
	n := taughtWith(t, invented(inventedKinds[0], 1, 60))
	for _, sender := range []*Coder{{Network: n}, {}} {
		receiver := Coder{Network: n}
		var h History
		for i, text := range invented(inventedKinds[0], 5, 6) {
			number := uint64(i + 1)
			code, codec := sender.AppendAfter(nil, text, &h, number)
			prepared := Coder{Network: sender.Network}
			for !prepared.PrepareAfter(text, &h, number, 64) {
			}
			again, _ := prepared.AppendAfter(nil, text, &h, number)
			check.True(t, "coded in slices", bytes.Equal(again, code), i)
			back, err := receiver.ExpandAfter(codec, code, &h, number, len(text))
			check.NoError(t, err)
			check.True(t, "comes back", bytes.Equal(back, text), i)
			if h.Alike(codec, code, number) {
				codec = Alike
			}
			var r Reading
			for turns := 0; ; turns++ {
				receiver.Read(&r, 100, func() { back, err = receiver.ExpandAfter(codec, code, &h, number, len(text)) })
				if !errors.Is(err, ErrUnfinished) {
					break
				}
				check.True(check.Fatal(t), "ends", turns < 1000)
			}
			check.NoError(t, err)
			check.True(t, "read in slices", bytes.Equal(back, text), i)
			h.Add(number, text)
		}
	}
}

// An invented corpus file is refused, in bounded time and memory.
func FuzzReadCorpus(f *testing.F) {
	good, err := AppendCorpus(nil, invented(inventedKinds[0], 1, 3))
	check.NoError(check.Fatal(f), err)
	f.Add(good)
	f.Add(good[:len(good)-9])
	f.Add([]byte(corpusMark))
	f.Add(append([]byte(corpusMark), 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ReadCorpus(b)
		if err != nil {
			check.ErrorIs(t, err, ErrCorpus)
			return
		}
		again, err := AppendCorpus(nil, n.Messages)
		check.NoError(t, err)
		check.True(t, "the same file", bytes.Equal(again, b))
	})
}

func TestCorpusBounds(t *testing.T) {
	message := bytes.Repeat([]byte("x"), MaxCorpusMessage)
	for name, messages := range map[string][][]byte{
		"none": nil, "an empty one": {{}}, "a long one": {append(message, 'x')},
		"too many octets": {message, message, message, message, message, message, message, message, message},
		"too many":        slicesOf([]byte("ab"), MaxCorpusMessages+1),
	} {
		_, err := AppendCorpus(nil, messages)
		check.True(t, name, errors.Is(err, ErrCorpus), err)
	}
	b, err := AppendCorpus(nil, slicesOf(message[:32], MaxCorpusMessages))
	check.NoError(t, err)
	check.True(t, "within the bound of a file", len(b) <= MaxCorpusFile, len(b))
	for i := range len(b) / 97 {
		damaged := bytes.Clone(b)
		damaged[i*97] ^= 4
		if _, err := ReadCorpus(damaged); !errors.Is(err, ErrCorpus) {
			t.Fatalf("octet %d: %v", i*97, err)
		}
	}
}

func slicesOf(m []byte, n int) (list [][]byte) {
	for range n {
		list = append(list, m)
	}
	return list
}

// A full corpus of all kinds of strangers crosses a link in an eighth of its octets.
func TestCorpusAcrossALink(t *testing.T) {
	var messages [][]byte
	octets := 0
	var samples [][][]byte
	for _, s := range strangerKinds {
		samples = append(samples, strangerSamples(s))
	}
	for i := range samples[0] {
		for _, list := range samples {
			if octets+len(list[i]) <= MaxCorpus {
				messages, octets = append(messages, list[i]), octets+len(list[i])
			}
		}
	}
	file, err := AppendCorpus(nil, messages)
	if err != nil {
		t.Fatal(err)
	}
	var c Coder
	code, _ := c.Append(nil, file)
	t.Logf("%d messages, a file of %d octets: %d", len(messages), len(file), len(code))
	if 8*len(code) > len(file) {
		t.Errorf("%d octets of %d", len(code), len(file))
	}
}
