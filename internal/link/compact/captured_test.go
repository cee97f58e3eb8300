package compact

import (
	"bytes"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"aldis/internal/jxta"
)

// doc is a document for the tests, with its name.
type doc struct {
	name string
	text []byte
}

// capturedDocs are the documents in the messages captured from both peer generations (../jxta/testdata), each once: those
// in elements, and those wrapped in these as text, however deep.
func capturedDocs(t testing.TB) []doc {
	t.Helper()
	files, err := filepath.Glob("../../jxta/testdata/*.msg")
	if err != nil || len(files) == 0 {
		t.Fatal("no captured messages", err)
	}
	var docs []doc
	seen := map[string]bool{}
	add := func(file string, text []byte) {
		for depth := 0; depth < 4; depth++ {
			root, err := jxta.ParseXML(text, jxta.DefaultXML)
			if err != nil {
				return
			}
			if !seen[string(text)] {
				seen[string(text)] = true
				docs = append(docs, doc{strings.TrimSuffix(filepath.Base(file), ".msg") + " " + root.Name, bytes.Clone(text)})
			}
			var inner []byte
			root.Walk(func(n *jxta.Node) bool {
				if v := n.Value(); strings.HasPrefix(strings.TrimSpace(v), "<?xml") {
					inner = []byte(strings.TrimSpace(v) + "\n")
					return false
				}
				return true
			})
			if inner == nil {
				return
			}
			text = inner
		}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := jxta.ParseMessage(b, jxta.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Elements {
			add(f, e.Data)
		}
	}
	sort.SliceStable(docs, func(i, j int) bool { return docs[i].name < docs[j].name })
	return docs
}

// advertisement says whether a captured document is one that crosses the link.
func (d doc) advertisement() bool {
	for _, root := range []string{"PA", "PGA", "MCA", "MSA", "MIA", "PipeAdvertisement", "RA", "APA", "RdvAdvertisement"} {
		if strings.HasSuffix(d.name, " jxta:"+root) {
			return true
		}
	}
	return false
}

func TestCaptured(t *testing.T) {
	docs := capturedDocs(t)
	if len(docs) < 10 {
		t.Fatalf("only %d documents found", len(docs))
	}
	var c Coder
	for _, d := range docs {
		coded, codec := c.Append(nil, d.text)
		back, err := Expand(codec, coded, len(d.text))
		if err != nil || !bytes.Equal(back, d.text) {
			t.Errorf("%s does not come back: %v", d.name, err)
		}
		_, tokens := tokenizeXML(d.text)
		t.Logf("%-55s %6d %5d  %4.1f x  %s %v adv=%v", d.name, len(d.text), 1+len(coded), float64(len(d.text))/float64(1+len(coded)), codec, tokens, d.advertisement())
		if d.advertisement() {
			cc, k := c.AppendEquivalent(nil, d.text)
			t.Logf("   equivalent %d %s", len(cc)+1, k)
		}
	}
}
