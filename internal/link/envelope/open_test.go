package envelope

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// openMessages are a track of chance as in the rows of docs/groups.md, and others.
func openMessages() map[string]*site.Message {
	random := make([]byte, 256)
	for i, r := 0, rand.New(rand.NewPCG(1, 1)); i < len(random); i++ {
		random[i] = byte(r.Uint32())
	}
	with := func(parts ...site.Part) *site.Message {
		return &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04",
			From: "cbid-59616261646162614A7874615032503302569155EBF440C2B9C89E114D3E269303", Parts: parts}
	}
	keyed := with(site.Part{Namespace: "trk", Name: "body", Data: random})
	keyed.Key = 0x123456
	return map[string]*site.Message{
		"chance":   with(site.Part{Namespace: "trk", Name: "body", Data: random}),
		"text":     with(site.Part{Namespace: "trk", Name: "body", Type: "text/plain", Data: []byte(strings.Repeat("course 045 speed 12; ", 40))}),
		"blank":    with(site.Part{Namespace: "trk", Name: "body", Data: make([]byte, 60000)}),
		"two":      with(site.Part{Name: "a", Data: []byte("x")}, site.Part{Name: "b", Data: random[:20], Signature: &site.Part{Name: "s", Data: random[:9]}}),
		"nothing":  with(),
		"keyed":    keyed,
		"an event": {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "event", Parts: []site.Part{{Name: "a-u-G", Data: random[:40]}}},
	}
}

func TestOpenMessageWithItsNamesOrTheirHash(t *testing.T) {
	for name, p := range openMessages() {
		in := check.In(t, name)
		coder := &compact.Coder{}
		texts := &Texts{Coder: coder}
		packed, err := PackedOpen(coder, p, true, texts)
		full := bytes.Clone(packed)
		check.NoError(in, err)
		short, err := PackedOpen(coder, p, false, texts)
		check.NoError(in, err)
		flow, octets := Names(p)
		t.Logf("%s: %d octets of names, %d octets with names, %d without", name, octets, len(full), len(short))
		if name == "chance" {
			check.Equal(in, "octets with names and without", [2]int{len(full), len(short)}, [2]int{317, 259})
		}
		defined, ok := Defined(full)
		check.True(in, "it has its names", ok && defined == flow)
		_, ok = Defined(short)
		check.True(in, "it has no names", !ok)
		for _, b := range [][]byte{full, short} {
			m, names, err := ParseOpen(b, func(ref uint32) (Flow, bool) { return flow, ref == flow.Ref() }, texts)
			check.NoError(in, err)
			check.True(in, "only the full one names a flow for others", (names == flow) == (len(b) == len(full)) && (names == "") == (len(b) == len(short)))
			check.Equal(in, "flow", FlowOf(m.Payload), flow)
			check.Equal(in, "key", m.Payload.Key, p.Key)
			want := flat(p.Parts)
			for i, e := range flat(m.Payload.Parts) {
				check.True(in, "data", bytes.Equal(e.Data, want[i].Data))
			}
		}
		_, _, err = ParseOpen(short, func(uint32) (Flow, bool) { return "", false }, texts)
		check.True(in, "names that are not known", errors.Is(err, ErrUnknownFlow))
	}
}

// Whatever comes, an open message is read within the bounds of a message, and one that refers to names says none.
func FuzzParseOpen(f *testing.F) {
	for _, p := range openMessages() {
		for _, names := range []bool{true, false} {
			coder := &compact.Coder{}
			b, err := PackedOpen(coder, p, names, &Texts{Coder: coder})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.Clone(b))
		}
	}
	flow := FlowOf(openMessages()["two"])
	f.Fuzz(func(t *testing.T, b []byte) {
		asked := false
		m, defined, err := ParseOpen(b, func(uint32) (Flow, bool) { asked = true; return flow, true }, &Texts{Coder: &compact.Coder{}})
		if err == nil && asked && defined != "" {
			t.Error("it refers to names and says some")
		}
		if err == nil && m.Octets() > MostExpanded(len(b)) {
			t.Errorf("%d octets of %d", m.Octets(), len(b))
		}
		if named, ok := Defined(b); err == nil && !asked && m.Payload != nil && (!ok || named != defined) {
			t.Errorf("it names %q, and %q", named, defined)
		}
	})
}
