package compact

import (
	"bytes"
	"strings"
	"testing"
)

// plainDress is a document of a format that the corpus does not have.
const plainDress = `<?xml version="1.0" encoding="UTF-8"?>
<beaconLog station="KJELSVIK" issue="417">
  <watch keeper="A. Moberg" from="2025-03-14T18:00:00Z" until="2025-03-15T00:00:00Z">
    <sighting nr="1" quality="fair">
      <hullColour>dark green</hullColour>
      <rig>ketch</rig>
      <bearingTrue>214.5</bearingTrue>
      <rangeCables>37</rangeCables>
      <lamp pattern="Fl(2)" period="9.5"/>
    </sighting>
    <sighting nr="2" quality="poor">
      <hullColour>white</hullColour>
      <rig>trawler</rig>
      <bearingTrue>187.0</bearingTrue>
      <rangeCables>52</rangeCables>
      <lamp pattern="Oc" period="4.0"/>
    </sighting>
    <tide height="1.83" trend="falling"/>
    <note>second vessel answered by lamp only</note>
  </watch>
</beaconLog>
`

// dresses are the same document in the styles of other writers.
func dresses() []doc {
	re := func(old, new string) []byte { return []byte(strings.ReplaceAll(plainDress, old, new)) }
	declared := func(d string) []byte {
		return []byte(strings.Replace(plainDress, `<?xml version="1.0" encoding="UTF-8"?>`, d, 1))
	}
	return []doc{
		{"a comment", re("  <watch", "  <!-- night -->\n  <watch")},
		{"CDATA", re("second vessel answered by lamp only", "<![CDATA[second vessel answered by lamp only]]>")},
		{"CR LF", re("\n", "\r\n")},
		{"a byte order mark", []byte(bom + plainDress)},
		{"a space before />", re("/>", " />")},
		{"single quotes", re(`"`, "'")},
		{"standalone", declared(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`)},
		{"ISO-8859-1", declared(`<?xml version="1.0" encoding="ISO-8859-1"?>`)},
		{"version 1.1", declared(`<?xml version="1.1" encoding="UTF-8"?>`)},
		{"no declaration", declared("")[1:]},
		{"a line end between attributes", re(` issue=`, "\n  issue=")},
		{"two spaces between attributes", re(` trend=`, "  trend=")},
		{"a document type", re("<beaconLog ", "<!DOCTYPE beaconLog>\n<beaconLog ")},
		{"an instruction", re("<beaconLog ", "<?print two?>\n<beaconLog ")},
		{"one attribute in other quotes", re(`quality="poor"`, `quality='poor'`)},
	}
}

// The model copes with any style of a document: each dress costs at most 5 % more than the plain one.
func TestDressesCostLittle(t *testing.T) {
	var c Coder
	plain, codec := c.Append(nil, []byte(plainDress))
	if codec != ModelledXML {
		t.Fatalf("the plain document: %v", codec)
	}
	most := 1 + len(plain) + (1+len(plain))/20
	for _, d := range dresses() {
		coded, codec := c.Append(nil, d.text)
		t.Logf("%s: %d, plain %d", d.name, 1+len(coded), 1+len(plain))
		if codec != ModelledXML || 1+len(coded) > most {
			t.Errorf("%s: %v, %d octets, want at most %d", d.name, codec, 1+len(coded), most)
		}
		if back, err := c.Expand(codec, coded, len(d.text)); err != nil || !bytes.Equal(back, d.text) {
			t.Errorf("%s: comes back as %q, %v", d.name, back, err)
		}
	}
}

// Documents escaped within others cost about as much as alone; broken markup comes back unchanged.
func TestDocumentsWithinDocuments(t *testing.T) {
	m := NewMaker(31, testWords)
	inner := string(m.Pipe(Compact, false))
	var c Coder
	alone, _ := c.Append(nil, []byte(inner))
	for i, e := range escapers {
		outer := []byte("<answer><count>1</count><found>" + e.Replace(inner) + "</found></answer>")
		stream, ok := tokenizeXML(outer)
		if !ok || !bytes.Contains(stream, []byte{tokInner, escapesMark | byte(i)&stillNeeded(inner)}) {
			t.Errorf("escapes %d: not seen through", i)
		}
		coded, codec := c.Append(nil, outer)
		if codec != ModelledXML || len(coded) > len(alone)+40 {
			t.Errorf("escapes %d: %v, %d octets, alone %d", i, codec, len(coded), len(alone))
		}
		if back, err := c.Expand(codec, coded, len(outer)); err != nil || !bytes.Equal(back, outer) {
			t.Errorf("escapes %d: %v", i, err)
		}
	}
	deep := "<a>x</a>"
	for range 7 {
		deep = "<a>" + escapers[escapesGreater].Replace(deep) + "</a>"
	}
	for _, s := range []string{deep, "<a>&lt;b&gt;&lt;/c&gt;</a>", "<a>&lt;b", "<a>1 &lt; 2 and 3 &gt; 2 and 4</a>", "<a><b></a>", "<a", "<!--", "<a><!-- ", "<a b=c/>", "<a/><b/>", "<a></a >", "<a x='1\"'/>", "<a>\r</a>", "<a>\r\n\n</a>", "<?xml", "<a><![CDATA[<b>]]></a>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a>text", "<a b  =  'c'>d</a>", "<a>&lt;?xml version=\"1.0\"?&gt;\n&lt;!DOCTYPE b&gt;\n&lt;b/&gt;</a>"} {
		coded, codec := c.Append(nil, []byte(s))
		if back, err := c.Expand(codec, coded, len(s)); err != nil || string(back) != s {
			t.Errorf("%q comes back as %q by %v, %v", s, back, codec, err)
		}
		if stream, ok := tokenizeXML([]byte(s)); ok {
			if back, err := expandTokens(stream, len(s)); err != nil || string(back) != s {
				t.Errorf("%q: tokens give %q, %v", s, back, err)
			}
		}
	}
}

// stillNeeded is the set of characters in a text that must be escaped.
func stillNeeded(text string) (set byte) {
	for i, c := range []string{">", `"`, "'"} {
		if strings.Contains(text, c) {
			set |= 1 << i
		}
	}
	return set
}

// A counter comes back from its octet with the group of its count, and with a probability as near as the octet allows.
func TestPackedCounters(t *testing.T) {
	for s, v := range states {
		got := states[packedState(v)]
		if d := stretch(int(got>>16)) - stretch(int(v>>16)); v > 0 && (d*d > 1 || got>>8&0xff != v>>8&0xff) {
			t.Errorf("state %d is %#x, which packs to %#x", s, v, got)
		}
	}
	var c counters
	c.forget("")
	c.over[c.line(77)+3] = states[100] | 0x5a
	packed := string(c.pack())
	var d counters
	d.forget(packed)
	if got := d.slot(77, 3); got != states[100]|0x5a {
		t.Errorf("%#x", got)
	}
	d.over[d.line(77)+3] = 1
	for range 1 << (32 - idxBits) { // as many rounds as have numbers
		d.forget(packed)
		if got := d.slot(77, 3); got != states[100]|0x5a {
			t.Fatalf("%#x after it was forgotten", got)
		}
	}
}

func (c *counters) slot(hash, n uint32) uint32 {
	return c.over[c.line(hash)+n]
}
