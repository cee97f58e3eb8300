package compact

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/primer"
)

// Whether the kind of a row of docs/sizes.md is in the corpus. A row without one of these fails TestEveryRowSaysIfItIsKnown.
const (
	kindKnown    = "yes"      // the same generator makes the corpus, with other names
	kindPartly   = "in part"  // some of its flows are of the corpus' kinds
	kindCaptured = "captured" // its kind is in the corpus; the row itself is a peer's document, or one with other names
	kindUnknown  = "no"
)

var kindsOfRows = []string{kindKnown, kindPartly, kindCaptured, kindUnknown}

// dressed is the same information in another writer's style: none of the corpus' names, another order, other white space,
// other separators. Values stay, but ids are in lower case and without their "urn:jxta:".
func dressed(text []byte) []byte {
	if root, err := jxta.ParseXML(text, jxta.XMLLimits{Octets: 1 << 20, Depth: 48, Nodes: 50_000}); err == nil {
		var b strings.Builder
		dressNode(&b, root, 0)
		return []byte(b.String())
	}
	var b []byte
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		fields := strings.FieldsFunc(strings.TrimSuffix(line, "\r"), func(r rune) bool { return r == ';' || r == ',' })
		for i := len(fields) - 1; i >= 0; i-- {
			key, value, named := strings.Cut(fields[i], "=")
			if named {
				b = append(append(b, invent(key)...), ": "...)
				key = value
			}
			b = append(append(b, strings.ReplaceAll(key, "$", "")...), " | "[:min(3, 3*i)]...)
		}
		b = append(b, '\n')
	}
	return b
}

var (
	idsOf   = regexp.MustCompile(`urn:jxta:((?:uu|cb)id-)([0-9A-F]+)`)
	markOf  = strings.NewReplacer("&", "&amp;", "<", "&lt;", "'", "&apos;")
	oneLine = func(s string) bool { return !strings.Contains(s, "\n") }
)

// dressNode writes an element: leaves that occur once become its attributes.
func dressNode(b *strings.Builder, n *jxta.Node, depth int) {
	tabs := strings.Repeat("   ", depth)
	b.WriteString(tabs + "<" + invent(n.Name))
	attr := func(name, value string) { fmt.Fprintf(b, " %s='%s'", invent(name), dressValue(value)) }
	for _, a := range n.Attr {
		if !strings.HasPrefix(a.Name, "xml") {
			attr(a.Name, a.Value)
		}
	}
	var kids []*jxta.Node
	for _, k := range n.Kids {
		switch {
		case k.Name == "":
		case leafOf(k) && len(n.All(k.Name)) == 1:
			attr(k.Name, k.Value())
		default:
			kids = append(kids, k)
		}
	}
	if len(kids) == 0 {
		if v := n.Value(); strings.TrimSpace(v) != "" {
			fmt.Fprintf(b, ">%s</%s>\n", dressValue(strings.TrimSpace(v)), invent(n.Name))
			return
		}
		b.WriteString("/>\n")
		return
	}
	b.WriteString(">\n")
	for _, k := range kids {
		dressNode(b, k, depth+1)
	}
	fmt.Fprintf(b, "%s</%s>\n", tabs, invent(n.Name))
}

func leafOf(n *jxta.Node) bool {
	return oneLine(strings.TrimSpace(n.Value())) && len(n.Attr) == 0 && (len(n.Kids) == 0 || len(n.Kids) == 1 && n.Kids[0].Name == "")
}

func dressValue(v string) string {
	return markOf.Replace(idsOf.ReplaceAllStringFunc(strings.TrimSpace(v), func(id string) string { return strings.ToLower(strings.TrimPrefix(id, "urn:jxta:")) }))
}

// invent is a word for a name, the same one each time.
func invent(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 5))
	var b []byte
	for range 2 + r.IntN(2) {
		b = append(b, "bdfgklmnprstvz"[r.IntN(14)], "aeiou"[r.IntN(5)])
	}
	return string(b)
}

// The dress has all values of the document, and none of its names.
func TestDressed(t *testing.T) {
	m := NewMaker(5, testWords)
	for _, text := range [][]byte{m.Spec(Compact), m.Spec(Old), m.Peer(Pretty, -1, true), m.Employees(2), m.Track().XML(), m.Picture(0, 3).Next()} {
		root, err := jxta.ParseXML(text, jxta.DefaultXML)
		check.NoError(check.Fatal(t), err)
		got := dressed(text)
		_, err = jxta.ParseXML(got, jxta.DefaultXML)
		check.NoError(check.Fatal(t), err)
		root.Walk(func(n *jxta.Node) bool {
			if v := dressValue(n.Value()); n.Name != "" && !bytes.Contains(got, []byte(v)) {
				t.Errorf("%q is not in %s", v, got)
			}
			check.True(t, "the name is another", n.Name == "" || !bytes.Contains(got, []byte("<"+n.Name)), n.Name)
			return false
		})
	}
	check.Equal(t, "a line", string(dressed([]byte("TRK;A-1;seq=5;lat=1.5\n"))), invent("lat")+": 1.5 | "+invent("seq")+": 5 | A-1 | TRK\n")
}

var (
	numbersOf = regexp.MustCompile(`[0-9]+`)
	indentsOf = regexp.MustCompile(`(?m)^[ \t]+`)
	hexesOf   = regexp.MustCompile(`[0-9A-Fa-f]{8,}|[A-Za-z0-9+/=]{40,}`)
)

// shapeOf is a text without the parts that all formats have: numbers, random octets and indentation.
func shapeOf(text []byte) []byte {
	return indentsOf.ReplaceAll(numbersOf.ReplaceAll(hexesOf.ReplaceAll(text, []byte("h")), []byte("0")), nil)
}

// known is the share of a text's shape that is in the corpus, in runs of eight octets: 0 to 1.
func known(corpus map[string]bool, text []byte) float64 {
	shape := shapeOf(text)
	n, has := 0, 0
	for i := 0; i+8 <= len(shape); i++ {
		if n++; corpus[string(shape[i:i+8])] {
			has++
		}
	}
	return float64(has) / float64(max(n, 1))
}

// Each row of docs/sizes.md says truly whether its kind is in the corpus: of a kind in the corpus at least half of the
// shape is there, of another kind about a third at most (addresses and names of classes are values, and stay). Each row of
// a kind in the corpus is followed by the same information in another dress.
func TestEveryRowSaysIfItIsKnown(t *testing.T) {
	grams := map[string]bool{}
	shape := shapeOf(primer.Corpus())
	for i := 0; i+8 <= len(shape); i++ {
		grams[string(shape[i:i+8])] = true
	}
	rows := sizes(t)
	for i, r := range rows {
		var share float64
		for _, d := range r.docs {
			share += known(grams, d) / float64(len(r.docs))
		}
		t.Logf("%-60s %-8s %.2f", r.name, r.kind, share)
		switch r.kind {
		case kindKnown, kindPartly:
			check.True(t, r.name+": the corpus has its shape", share >= map[string]float64{kindKnown: 0.5, kindPartly: 0.25}[r.kind], share)
			check.True(t, r.name+": the same in another dress follows", i+1 < len(rows) && rows[i+1].kind == kindUnknown && strings.HasPrefix(rows[i+1].name, otherDress))
		case kindCaptured:
			check.True(t, r.name+": the corpus has its shape", share >= 0.5, share)
		case kindUnknown:
			check.True(t, r.name+": the corpus does not have its shape", share <= 0.35, share)
		default:
			t.Errorf("%s does not say whether its kind is in the corpus: one of %q", r.name, kindsOfRows)
		}
	}
}

// ofOtherPeers are specifications as peers of this generation write them, with the names of other peers.
func ofOtherPeers(text []byte, n int) (docs [][]byte) {
	m := NewMaker(1415, testWords)
	for range n {
		name := m.Name()
		value := func(element, v string) {
			text = regexp.MustCompile(`(<`+element+`>\s*)[^<\s][^<]*?(\s*</)`).ReplaceAll(text, []byte("${1}"+v+"${2}"))
		}
		value("Name", name)
		value("Desc", m.Name())
		value("Crtr", m.Pick(m.Words.Units))
		value("SURI", "http://"+strings.ToLower(strings.ReplaceAll(m.Pick(m.Words.Services), " ", "-")))
		text = regexp.MustCompile(`(urn:jxta:....-)([0-9A-F]+)(0[46])(\s*<)`).ReplaceAllFunc(text, func(id []byte) []byte {
			part := regexp.MustCompile(`(urn:jxta:....-)([0-9A-F]+)(0[46])(\s*<)`).FindSubmatch(id)
			hex := string(part[2])
			switch {
			case strings.HasPrefix(hex, PipePrefix):
				hex = PipePrefix + m.Hex(16)
			case hex[:32] == hex[32:]: // JXSE's
				hex = strings.Repeat(m.Hex(16), 2)
			default:
				hex = m.Hex(32)
			}
			return []byte(string(part[1]) + hex + string(part[3]) + string(part[4]))
		})
		docs = append(docs, bytes.Clone(text))
	}
	return docs
}
