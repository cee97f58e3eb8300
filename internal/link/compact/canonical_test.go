package compact

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"aldis/internal/jxta"
)

// shape is the part of a document that a JXTA peer reads: names, attributes and trimmed texts.
func shape(n *jxta.Node) any {
	var kids []any
	for _, k := range n.Kids {
		if k.Name != "" {
			kids = append(kids, shape(k))
		}
	}
	if kids == nil {
		return []any{n.Name, n.Attr, n.Value()}
	}
	return []any{n.Name, n.Attr, kids}
}

func TestCanonical(t *testing.T) {
	docs := capturedDocs(t)
	m := NewMaker(41, testWords)
	for layout := range Layouts {
		docs = append(docs, doc{"jxta:PA made", m.Peer(layout, 100, true)}, doc{"jxta:MSA made", m.Spec(layout)})
	}
	var c Coder
	for _, d := range docs {
		canonical, ok := Canonical(d.text)
		if strings.Contains(d.name, " JxtaWire") {
			if ok {
				t.Errorf("%s is no JXTA document", d.name)
			}
			continue
		}
		if !ok {
			if !bytes.Contains(d.text, []byte("XMLSignature")) {
				t.Errorf("%s was refused", d.name)
			}
			continue
		}
		before, err := jxta.ParseXML(d.text, jxta.DefaultXML)
		if err != nil {
			t.Fatal(err)
		}
		after, err := jxta.ParseXML(canonical, jxta.DefaultXML)
		if err != nil || !reflect.DeepEqual(shape(before), shape(after)) {
			t.Errorf("%s says something else: %v\n%s", d.name, err, canonical)
		}
		coded, codec := c.AppendEquivalent(nil, d.text)
		back, err := c.Expand(codec, coded, len(canonical))
		if err != nil || !bytes.Equal(back, canonical) {
			t.Errorf("%s comes back otherwise: %v", d.name, err)
		}
		if again, ok := Canonical(back); !ok || !bytes.Equal(again, back) {
			t.Errorf("%s: the canonical form has another", d.name)
		}
	}
	signed := bytes.Replace(m.Spec(Compact), []byte("</jxta:MSA>"), []byte("<XMLSignatureInfo><digest>x</digest></XMLSignatureInfo></jxta:MSA>"), 1)
	for name, text := range map[string][]byte{
		"signed inside": signed, "an application's": []byte("<track><id>1</id></track>"), "the old wrapper": []byte("<jxta:SA><Signature>x</Signature></jxta:SA>"),
		"broken": []byte("<jxta:PA><PID></jxta:PA>"), "entities": []byte("<!DOCTYPE jxta:PA [<!ENTITY a \"b\">]><jxta:PA>&a;</jxta:PA>"), "nothing": nil,
	} {
		if out, ok := Canonical(text); ok {
			t.Errorf("%s: %s", name, out)
		}
		coded, codec := c.AppendEquivalent(nil, text)
		if back, err := c.Expand(codec, coded, len(text)); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s: not as it was: %v", name, err)
		}
	}
}

func TestRules(t *testing.T) {
	rules := append([]Rule{
		{Name: "secret*", Effort: None},
		{Type: "text/*", Octets: 10_000, Effort: Light},
	}, DefaultRules...)
	tests := []struct {
		mime, name string
		octets     int
		want       Effort
	}{
		{"text/xml;charset=UTF-8", "body", 500, Full},
		{"text/xml", "body", 20_000, Light},
		{"Image/PNG", "map", 500, None},
		{"video/mpeg; x=y", "film", 500, None},
		{"application/octet-stream", "body", 500, Full},
		{"", "", 0, Full},
		{"text/plain", "secret-orders", 10, None},
	}
	for _, tt := range tests {
		if got := EffortFor(rules, tt.mime, tt.name, tt.octets); got != tt.want {
			t.Errorf("%s %s %d: %v, want %v", tt.mime, tt.name, tt.octets, got, tt.want)
		}
	}
	for _, r := range rules {
		if err := CheckRule(r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, bad := range []Rule{{Type: "image/["}, {Name: "["}} {
		if CheckRule(bad) == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	text := benchmarkText(3000)
	var c Coder
	for effort, want := range map[Effort]Codec{Full: Modelled, Light: Deflated, None: Stored} {
		coded, codec := c.AppendElement(nil, text, effort)
		back, err := c.Expand(codec, coded, len(text))
		if codec != want || err != nil || !bytes.Equal(back, text) {
			t.Errorf("effort %v: %v, %v", effort, codec, err)
		}
	}
	if _, codec := c.AppendElement(nil, []byte{1, 2}, Light); codec != Stored {
		t.Errorf("two octets: %v", codec)
	}
}
