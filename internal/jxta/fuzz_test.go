package jxta

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// seedMessages adds messages of real peers.
func seedMessages(f *testing.F, add func(m Message, body []byte)) {
	files, err := filepath.Glob("testdata/*.msg")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".msg")
		add(capturedMessage(f, name), captured(f, name))
	}
}

func FuzzParseMessage(f *testing.F) {
	seedMessages(f, func(m Message, body []byte) {
		f.Add(body)
		m.Version = 1
		if b, err := AppendMessage(nil, m); err == nil {
			f.Add(b)
		}
	})
	lim := Limits{Elements: 64, Name: 256, Total: 64 << 10}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, rest, err := ParseMessage(b, lim)
		if err != nil {
			return
		}
		again, err := AppendMessage(nil, m)
		if err != nil {
			return // an encoding in version 1
		}
		m2, rest2, err := ParseMessage(again, Limits{64, 256, 1 << 20})
		if err != nil || len(rest2) != 0 || !reflect.DeepEqual(m2, m) {
			t.Errorf("%x (%d left) came back as %+v, want %+v, %v", b, len(rest), m2, m, err)
		}
	})
}

// encoding/xml takes every document that parsePlain takes, and makes the same tree of it.
func FuzzParsePlain(f *testing.F) {
	seedMessages(f, func(m Message, body []byte) {
		for _, e := range m.Elements {
			f.Add(e.Data)
		}
	})
	for _, s := range []string{`<a b="c&lt;" d:e="'">x&amp;<f/>]]&gt; <g> </g></a>`, "<a\n b=\"\"\t></a >\n", "<a>\u00e9\uFFFD</a>", "<a>\uFFFE</a>",
		`<a b='c'/>`, `<a b="1"c="2"/>`, "<:a/>", "<a:/>", "<a:b:c/>", "<a:1/>", "<1/>", "<a>]]></a>", "<a>\r</a>", "<a>&#65;&lt</a>", "<a><![CDATA[x]]></a>",
		"<!DOCTYPE a>\n<!-- c --><a/>", "<!DOCTYPE a><!DOCTYPE b><a/>", "<?xml version=\"1.0\"?><?x?><a/>", "<a/><b/>", "<a></b>", "<a>", "</", " <a/> x"} {
		f.Add([]byte(s))
	}
	lim := XMLLimits{Octets: 4096, Depth: 6, Nodes: 60}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > lim.Octets {
			return
		}
		n, ok := parsePlain(b, lim)
		if !ok {
			return
		}
		want, err := parseAny(b, lim)
		if err != nil || !reflect.DeepEqual(n, want) {
			t.Errorf("%q: %s, want %s, %v", b, AppendXML(nil, n), AppendXML(nil, want), err)
		}
	})
}

func FuzzParseTrailer(f *testing.F) {
	seedMessages(f, func(m Message, body []byte) {
		if _, rest, err := ParseMessage(body, DefaultLimits); err == nil {
			f.Add(rest)
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := ParseTrailer(b)
		if err != nil {
			return
		}
		if !bytes.Equal(AppendTrailer(nil, tr), b) {
			t.Errorf("%x written again differs", b)
		}
		if tr.Verify(nil) == nil {
			t.Errorf("%x verifies over nothing", b)
		}
	})
}

func FuzzParsePackageHeader(f *testing.F) {
	f.Add(AppendPackageHeader(nil, 77))
	f.Add([]byte("\x03abc\x00\x01x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ParsePackageHeader(b)
		if err == nil {
			in := check.In(t, h)
			check.True(in, "n >= 1", n >= 1, n)
			check.True(in, "n <= len(b)", n <= len(b), n, len(b))
			check.True(in, "n <= MaxPackageHeader+1", n <= MaxPackageHeader+1, n, MaxPackageHeader+1)
		}
	})
}

func FuzzParseDatagram(f *testing.F) {
	d, err := AppendDatagram(nil, []byte("jxmg and a trailer"), 4)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d)
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := ParseDatagram(b)
		if err != nil {
			return
		}
		again, err := AppendDatagram(nil, body, len(body))
		if err != nil { // the header was shorter than ours
			return
		}
		if got, err := ParseDatagram(again); err != nil || string(got) != string(body) {
			t.Errorf("%x: %x, %v", b, got, err)
		}
	})
}

func FuzzParseWelcome(f *testing.F) {
	f.Add([]byte("JXTAHELLO tcp://a:1 tcp://b:2 urn:jxta:" + peerA + " 0 1 3.0\r\n"))
	f.Add([]byte("JXTAHELLO tcp://a:1 tcp://b:2 urn:jxta:" + peerA + " 1 1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWelcome(b)
		if err != nil {
			return
		}
		line, err := AppendWelcome(nil, w)
		if err != nil {
			return // longer than a line may be, by its line end
		}
		if w2, err := ParseWelcome(line); err != nil || w2 != w {
			t.Errorf("%q came back as %+v, %v", b, w2, err)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{peerA, groupA, NetGroup, "binaryID-x", "uuid-0003"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Normalize(s)
		if err != nil {
			return
		}
		if n2, err := Normalize(n); err != nil || n2 != n {
			t.Errorf("%q: %q, again %q, %v", s, n, n2, err)
		}
		if p, ok := SplitID(n); ok && p.Unique() != n && n != NetGroup {
			t.Errorf("%q: %+v is %q", s, p, p.Unique())
		}
		a, err := ParseAddress("jxta://" + n + "/a/b")
		if err != nil || a.Host != n {
			t.Errorf("%q as address: %+v, %v", n, a, err)
		}
	})
}

// Documents of every kind through every reader: a document that one takes can be written and taken again.
func FuzzDocuments(f *testing.F) {
	seedMessages(f, func(m Message, _ []byte) {
		for _, e := range m.Elements {
			if strings.Contains(e.Type, "xml") || strings.HasSuffix(e.Type, "gzip") {
				f.Add(e.Data)
			}
			if q, err := ParseResolverQuery(e.Data); err == nil {
				f.Add([]byte(q.Query))
			}
			if r, err := ParseResolverResponse(e.Data); err == nil {
				f.Add([]byte(r.Response))
			}
			if s, err := ParseResolverSRDI(e.Data); err == nil {
				f.Add([]byte(s.Payload))
			}
		}
	})
	f.Add(RouteQuery{peerA, route(), nil}.Append(nil))
	f.Add(RouteResponse{*route(), *route()}.Append(nil))
	f.Add(PipeResolver{true, pipeA, PipeTypeUnicast, []string{peerA}, true, "<pa/>"}.Append(nil))
	f.Add([]byte("<jxta:DiscoveryQuery><Type>2</Type><Attr></Attr><Value>b-uni</Value></jxta:DiscoveryQuery>"))
	f.Add([]byte("<a>x]]&gt;<b c='&#13;\"'> y </b></a>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 32<<10 {
			return
		}
		roundTrip(t, b, ParseRouterMessage)
		roundTrip(t, b, ParsePropagate)
		roundTrip(t, b, ParseWireHeader)
		roundTrip(t, b, ParseResolverQuery)
		roundTrip(t, b, ParseResolverResponse)
		roundTrip(t, b, ParseResolverSRDI)
		roundTrip(t, b, ParseDiscoveryQuery)
		roundTrip(t, b, ParseDiscoveryResponse)
		roundTrip(t, b, ParsePipeResolver)
		roundTrip(t, b, ParseSRDI)
		roundTrip(t, b, ParseRouteQuery)
		roundTrip(t, b, ParseRouteResponse)
		n, err := ParseXML(b, XMLLimits{Octets: 32 << 10, Depth: 32, Nodes: 2000})
		if err != nil {
			return
		}
		once := AppendDocument(nil, n)
		n2, err := ParseXML(once, DefaultXML)
		if err != nil {
			t.Fatalf("%q, written as %q: %v", b, once, err)
		}
		if twice := AppendDocument(nil, n2); !bytes.Equal(once, twice) {
			t.Errorf("%q written as %q, then as %q", b, once, twice)
		}
		if d := Describe(n); !reflect.DeepEqual(d, Describe(n2)) {
			t.Errorf("%q described as %+v, then as %+v", b, d, Describe(n2))
		}
		if p, err := ParsePeerAdvertisement(n); err == nil {
			p.Node()
		}
		if r, err := ParseRdvAdvertisement(n); err == nil {
			r.Node()
		}
	})
}

func roundTrip[T interface{ Append([]byte) []byte }](t *testing.T, b []byte, parse func([]byte) (T, error)) {
	t.Helper()
	v, err := parse(b)
	if err != nil {
		return
	}
	again := v.Append(nil)
	v2, err := parse(again)
	if err != nil || !reflect.DeepEqual(v, v2) {
		t.Errorf("%q is %+v, came back as %+v, %v", b, v, v2, err)
	}
}
