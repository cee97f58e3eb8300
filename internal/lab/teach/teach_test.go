package teach

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
)

// samplesOf are messages of two made-up formats, and octets from which nothing can be learned.
func samplesOf(seed uint64, n int) (list []Sample) {
	r := rand.New(rand.NewPCG(seed, 7))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(128+r.IntN(128)) ^ byte(r.IntN(2)*0x9f)
		}
		return string(b)
	}
	for i := range n {
		from := fmt.Sprint("file", i)
		list = append(list,
			Sample{fmt.Appendf(nil, "@@BILGE well %d; level=%d.%d cm; pump=%s; smell of oil? %v; next sounding %02d%02d@@\n", r.IntN(9), r.IntN(40), r.IntN(10),
				[]string{"running", "stopped", "choked"}[r.IntN(3)], r.IntN(2) == 0, r.IntN(24), r.IntN(60)), from},
			Sample{fmt.Appendf(nil, `{"larder":%d,"loaves":%d,"kegs":{"ale":%d,"water":%d},"cook":"galley-%d"}`, r.IntN(5), r.IntN(100), r.IntN(9), r.IntN(30), r.IntN(3)), from},
			Sample{[]byte("ZZ " + noise(200)), from})
	}
	return list
}

// The same samples in any order make the same file, and kinds that gain nothing are not in it.
func TestBuild(t *testing.T) {
	samples := samplesOf(1, 100)
	file, r, err := Build(samples, Options{})
	check.NoError(check.Fatal(t), err)
	byName := map[string]compact.Kind{}
	for _, k := range r.Kinds {
		byName[k.Kind] = k
		t.Logf("%+v", k)
	}
	check.True(check.Fatal(t), "three kinds, or a fourth of noise that looks like something else", len(r.Kinds) >= 3)
	for _, name := range []string{"lines BILGE", "json cook,kegs,larder"} {
		k := byName[name]
		check.True(t, name, k.Held == heldOfKind && k.Taught == k.Samples && k.After*2 < k.Before && !k.LeftOut, k)
	}
	check.True(t, "noise is left out", byName["lines ZZ"].LeftOut && byName["lines ZZ"].Taught == 0)
	for seed := range uint64(3) {
		shuffled := append(slices.Clone(samples), samples[:10]...)
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, report, err := Build(shuffled, Options{})
		check.NoError(check.Fatal(t), err)
		check.True(t, "the same file", bytes.Equal(again, file), seed)
		check.Equal(t, "repeated", report.Repeated, 10)
	}
	f, err := compact.ReadCorpus(file)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "messages", len(f.Messages), r.Messages)
	check.Equal(t, "name", r.Name, fmt.Sprintf("%08x", (&compact.Coder{Network: f.Learn()}).Network.Name()))
}

func TestNothingToLearn(t *testing.T) {
	_, _, err := Build(nil, Options{})
	check.ErrorIs(t, err, ErrNothing)
	_, _, err = Build([]Sample{{nil, "b"}}, Options{})
	check.ErrorIs(t, err, ErrNothing)
}

// Only the beginning of a sample that is too long for a corpus is taken.
func TestLongSamples(t *testing.T) {
	long := bytes.Repeat([]byte("long "), compact.MaxCorpusMessage/5+1)
	file, r, err := Build([]Sample{{long, "a"}, {append(long, "and longer"...), "b"}}, Options{})
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "too long", r.Long, 2)
	check.Equal(t, "with the same beginning", r.Repeated, 1)
	f, err := compact.ReadCorpus(file)
	check.NoError(check.Fatal(t), err)
	check.True(t, "its beginning", len(f.Messages) == 1 && bytes.Equal(f.Messages[0], long[:compact.MaxCorpusMessage]), len(f.Messages))
}

// A kind gets as much room as it gains from: one of few words only the first, one of many words all that there is. The report counts the
// samples that did not fit.
func TestRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var words []string
	for range 9000 {
		words = append(words, fmt.Sprintf("%c%c%c%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26)))
	}
	samples := func(head string, words []string) (list []Sample) {
		for i := range 800 {
			text := fmt.Sprintf("%s %d:", head, i)
			for range 30 {
				text += " " + words[r.IntN(len(words))]
			}
			list = append(list, Sample{[]byte(text + "\n"), "f"})
		}
		return list
	}
	for _, c := range []struct {
		samples     []Sample
		least, most int
	}{
		{samples("%RICH", words), compact.MaxCorpus - 1024, compact.MaxCorpus},
		{samples("%POOR", words[:1]), FirstRoom - 1024, FirstRoom},
	} {
		_, report, err := Build(c.samples, Options{})
		check.NoError(check.Fatal(t), err)
		k := report.Kinds[0]
		check.True(t, k.Kind, len(report.Kinds) == 1 && c.least <= k.TaughtOctets && k.TaughtOctets <= c.most, k)
		check.True(t, "what was not taken", k.NotTaken == k.Samples-k.Taught && k.NotTaken > 0 && k.Room >= c.least && k.Room <= c.most, k)
	}
}

// However many samples there are, the file and the number of measured messages have bounds.
func TestBuildBounds(t *testing.T) {
	var samples []Sample
	for i := range 40 {
		for j := range 60 {
			samples = append(samples, Sample{fmt.Appendf(nil, "%s%c report no %d of the day: %s\n", string(rune('a'+i%26))+string(rune('a'+i/26)), 'q', j, strings.Repeat(fmt.Sprint(" item ", j*i), 10)), "f"})
		}
	}
	file, r, err := Build(samples, Options{Progress: func(done, most int) { check.True(t, "progress", done <= 2*most, done, most) }})
	check.NoError(check.Fatal(t), err)
	check.True(t, "octets", len(file) <= compact.MaxCorpusFile, len(file))
	held := 0
	for _, k := range r.Kinds {
		held += k.Held
		check.True(t, k.Kind, k.TaughtOctets <= max(FirstRoom, compact.MaxCorpus/len(r.Kinds)*2), k.TaughtOctets)
	}
	check.True(t, "held back", held <= MostHeld, held)
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		"<?xml version=\"1.0\"?>\n<!-- c > d -->\n<!DOCTYPE x>\n<q:event uid='1'>": "xml event",
		"\xef\xbb\xbf<event/>":            "xml event",
		"<":                               "other",
		"<!--":                            "other",
		`{"type":"Point","a":1}`:          "json a,type",
		`{"broken"`:                       "json",
		"[1,2]":                           "json",
		"$GPRMC,1,2":                      "lines GPRMC",
		"!!HYDRO/7;stn=1":                 "lines HYDRO",
		"We will be there in ten minutes": "text",
		"12;34;56":                        "other",
		"":                                "other",
		"  \n":                            "other",
	} {
		check.Equal(t, text, compact.KindOf([]byte(text)), want)
	}
}

// Secrets and persons are found, and masked if requested; texts that only look like them are left alone.
func TestPrivate(t *testing.T) {
	for _, c := range []struct{ text, what, masked string }{
		{"user=ops password=h4lyard! now", "password, key or token", "user=ops password=xxxxxxxx now"},
		{`{"api_key": "3f9c-77aa","n":1}`, "password, key or token", `{"api_key": "xxxxxxxxx","n":1}`},
		{"<login><passphrase>five tall masts</passphrase></login>", "password, key or token", "<login><passphrase>xxxx tall masts</passphrase></login>"},
		{"Authorization: Bearer abc.def", "authorization", "Authorization: Bearer xxxxxxx"},
		{"-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----\n", "PEM block", strings.Repeat("x", 30) + "\nxxxxxx\n" + strings.Repeat("x", 28) + "\n"},
		{"id AKIA0123456789ABCDEF.", "access key or signed token", "id " + strings.Repeat("x", 20) + "."},
		{"From: j.doe@fleet.example", "e-mail address", "From: somebody@unit.example"},
		{"Seen by James Halloran at noon", "personal name", ""},
		{`"last_name":"Ødegård"`, "personal name", ""},
		{"the token ring is down, Cape Wrath in sight, New York", "", "the token ring is down, Cape Wrath in sight, New York"},
	} {
		found := map[string]*Private{}
		out := string(look([]byte(c.text), "f", found))
		if c.what == "" {
			check.Equal(t, c.text, len(found), 0)
		} else if check.True(t, c.text, found[c.what] != nil && found[c.what].Samples == 1) {
			check.True(t, "changed", out != c.text, out)
		}
		if c.masked != "" {
			check.Equal(t, "masked", out, c.masked)
		}
		again := map[string]*Private{}
		look([]byte(out), "f", again)
		check.Equal(t, "found in "+out, len(again), 0)
	}
}

func TestMask(t *testing.T) {
	var samples []Sample
	for i := range 30 {
		samples = append(samples, Sample{fmt.Appendf(nil, "watch %d: %s, reached at m%d.k@ship.example, pin-token=%d\n", i, []string{"James Kettle", "Mary Lowther"}[i%2], i, 100000+i*37), "f"})
	}
	for _, mask := range []bool{false, true} {
		file, r, err := Build(samples, Options{Mask: mask})
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "what is said", len(r.Private), 3)
		for _, secret := range []string{"Kettle", "Lowther", "@ship.example", "token=100"} {
			check.Equal(t, secret, bytes.Contains(file, []byte(secret)), !mask)
		}
	}
}
