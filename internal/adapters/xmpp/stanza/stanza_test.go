package stanza_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

const header = "<?xml version='1.0'?><stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:component:accept' id='3BF96D32' from='hq.example'>"

// read feeds a stream in parts of so many octets, and returns what the Splitter gave.
func read(text string, part int) (said []string, err error) {
	var s stanza.Splitter
	for len(text) > 0 && err == nil {
		n := min(part, len(text))
		err = s.Feed([]byte(text[:n]), func(e *stanza.Element, f *stanza.Fault) {
			switch {
			case f == nil:
				said = append(said, string(e.Append(nil, stanza.Component)))
			case e == nil:
				said = append(said, string(f.Reason))
			default:
				said = append(said, string(f.Reason)+" from "+e.Get("from"))
			}
		})
		text = text[n:]
	}
	return said, err
}

// A stream is cut into stanzas, wherever the network has cut it; namespaces are found by their prefixes.
func TestStream(t *testing.T) {
	text := header + "\n <message from='a@ship.example/x' to=\"b@hq.example\" type='chat'><body>a &lt;b&gt; &#xE9;<![CDATA[ <x> ]]>\n</body><p:x xmlns:p='urn:p' p:q='&apos;1&apos;'><p:y/><z/></p:x></message>" +
		"<presence/><iq id='1' type='get'><ping xmlns='urn:xmpp:ping'/></iq> <a xmlns=''><b/></a></stream:stream>"
	want := []string{
		"<stream xmlns='http://etherx.jabber.org/streams' id='3BF96D32' from='hq.example'/>",
		"<message from='a@ship.example/x' to='b@hq.example' type='chat'><body>a &lt;b&gt; \u00e9 &lt;x&gt; \n</body><x xmlns='urn:p'><y/><z xmlns='jabber:component:accept'/></x></message>",
		"<presence/>",
		"<iq id='1' type='get'><ping xmlns='urn:xmpp:ping'/></iq>",
		"<a xmlns=''><b/></a>",
	}
	for _, part := range []int{1, 2, 3, 7, 64, len(text)} {
		said, err := read(text, part)
		if !errors.Is(err, stanza.ErrEnded) {
			t.Errorf("in parts of %d: the end is %v", part, err)
		}
		check.Equal(t, fmt.Sprint("in parts of ", part), strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// A stanza beyond the bounds is skipped, and the next one is read; text that is not XMPP ends the stream.
func TestHostileStreams(t *testing.T) {
	open := header + "<message from='eve'>"
	for _, tt := range []struct{ name, text, said string }{
		{"10 MB", open + "<body>" + strings.Repeat("x", 10_000_000) + "</body></message>", "too_long from eve"},
		{"depth", open + strings.Repeat("<a>", 10_000) + strings.Repeat("</a>", 10_000) + "</message>", "too_deep from eve"},
		{"nodes", open + strings.Repeat("<a/>", 20_000) + "</message>", "too_deep from eve"},
		{"attributes", header + "<message from='eve'" + func() (text string) {
			for i := range 1500 {
				text += fmt.Sprintf(" a%d=''", i)
			}
			return text
		}() + "/>", ""},
		{"control", open + "<body>\x01</body></message>", "letters from eve"},
		{"control by number", open + "<body>&#1;</body></message>", "letters from eve"},
		{"no UTF-8", open + "<body>\xff\xfe</body></message>", "letters from eve"},
		{"name beyond ASCII", open + "<\u00e9/></message>", "letters from eve"},
		{"no name beyond ASCII", open + "<a \u00d7='1'/></message>", "letters from eve"},
		{"noncharacter", open + "<body>\uFFFE</body></message>", "letters from eve"},
	} {
		said, err := read(tt.text+"<presence/>", 4096)
		if err != nil || len(said) != 3 || said[2] != "<presence/>" || tt.said != "" && said[1] != tt.said {
			t.Errorf("%s: %.80q, %v", tt.name, said, err)
		}
	}
	for _, tt := range []struct {
		name, text string
		reason     stanza.Reason
	}{
		{"document type", "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]>", stanza.Doctype},
		{"document type inside", open + "<!DOCTYPE x>", stanza.Doctype},
		{"entity", open + "<body>&lol9;</body></message>", stanza.Doctype},
		{"comment", open + "<!-- x --></message>", stanza.Doctype},
		{"instruction", open + "<?php x?></message>", stanza.Syntax},
		{"tags that cross", open + "<a><b></a></b></message>", stanza.Syntax},
		{"another end", open + "</presence>", stanza.Syntax},
		{"prefix", open + "<q:a/></message>", stanza.Syntax},
		{"attribute twice", open + "<a b='1' b='2'/></message>", stanza.Syntax},
		{"CDATA as a name", header + "<message xmlns:c='x'><c:![CDATA[/></message>", stanza.Syntax},
		{"end of CDATA as a name", header + "<message xmlns:c='x'><c:]]></c:]]></message>", stanza.Syntax},
		{"number as a name", open + "<1/></message>", stanza.Syntax},
		{"two prefixes", open + "<a:b:c xmlns:a='x'/></message>", stanza.Syntax},
		{"prefix alone", open + "<a: xmlns:a='x'/></message>", stanza.Syntax},
		{"colon first", open + "<:a/></message>", stanza.Syntax},
		{"name of an attribute", open + "<a b[='1'/></message>", stanza.Syntax},
		{"two prefixes of an attribute", open + "<a xml:b:c='1'/></message>", stanza.Syntax},
		{"prefix of a declaration", open + "<a xmlns:1='x'/></message>", stanza.Syntax},
		{"namespace of declarations", open + "<a xmlns='http://www.w3.org/2000/xmlns/'/></message>", stanza.Syntax},
		{"namespace of XML", open + "<b:a xmlns:b='http://www.w3.org/XML/1998/namespace'/></message>", stanza.Syntax},
		{"another xml", open + "<a xmlns:xml='x'/></message>", stanza.Syntax},
		{"text between", header + "hello<presence/>", stanza.Syntax},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n", stanza.Syntax},
		{"no stream", "<html>", stanza.Syntax},
		{"tag in tag", open + "<a <b></a></message>", stanza.Syntax},
		{"long tag", open + "<a b='" + strings.Repeat("x", 20_000), stanza.TooLong},
	} {
		said, err := read(tt.text, 100)
		var f *stanza.Fault
		if !errors.As(err, &f) || f.Reason != tt.reason {
			t.Errorf("%s: %.80q, %v", tt.name, said, err)
		}
	}
	var s stanza.Splitter
	if err := s.Feed([]byte(open+"<body>half"), func(*stanza.Element, *stanza.Fault) {}); err != nil || !s.Open() {
		t.Errorf("half a stanza is not open: %v", err)
	}
}

// The handshake of XEP-0114, with a digest that sha1sum has made.
func TestHandshake(t *testing.T) {
	h := stanza.Handshake{Domain: "plays.shakespeare.lit", Secret: "test"}
	check.Equal(t, "hello", string(h.Hello()),
		"<?xml version='1.0'?><stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='plays.shakespeare.lit'>")
	var said []string
	do := func(e *stanza.Element, f *stanza.Fault) { said = append(said, e.Name) }
	reply, err := h.Feed([]byte(header), do)
	check.NoError(t, err)
	check.Equal(t, "digest", string(reply), "<handshake>"+digest+"</handshake>")
	check.Equal(t, "ready too early", h.Ready(), false)
	reply, err = h.Feed([]byte("<message/><handshake/><message/><presence/>"), do)
	check.NoError(t, err)
	check.Equal(t, "reply", len(reply), 0)
	check.Equal(t, "ready", h.Ready(), true)
	check.Equal(t, "stanzas before the handshake are nobody's", strings.Join(said, " "), "message presence")
	bad := stanza.Handshake{Domain: "x", Secret: "wrong"}
	_, err = bad.Feed([]byte(header+"<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>no</text></stream:error></stream:stream>"), do)
	if !errors.Is(err, stanza.ErrRefused) || !strings.Contains(err.Error(), "not-authorized: no") {
		t.Errorf("refused as %v", err)
	}
}

const digest = "aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e"

// FuzzStream: no stream makes the splitter panic or hold more than its bound; a stanza that was read and written is read again
// unchanged, and parts do not matter.
func FuzzStream(f *testing.F) {
	f.Add(header+"<message from='a' to='b'><body>x &amp; <![CDATA[y]]></body></message><presence/>", 3)
	f.Add(header+"<a xmlns:p='q'><p:b p:c=\"d\"/></a></stream:stream>", 1)
	f.Add(header+"<a>&#x41;</a><!DOCTYPE", 5)
	f.Fuzz(func(t *testing.T, text string, part int) {
		said, err := read(text, max(1, part&0xff))
		whole, err2 := read(text, len(text)+1)
		if strings.Join(said, "\n") != strings.Join(whole, "\n") || (err == nil) != (err2 == nil) {
			t.Fatalf("in parts %q, %v; at once %q, %v", said, err, whole, err2)
		}
		for _, one := range said {
			if !strings.HasPrefix(one, "<") || strings.HasPrefix(one, "<stream ") {
				continue
			}
			again, err := read(header+one, 50)
			if err != nil || len(again) != 2 || again[1] != one {
				t.Fatalf("%q is read again as %q, %v", one, again, err)
			}
		}
	})
}

const groupchat = "<message to='ops@conference.hq.example' from='anna@ship.example/Gajim.LT1XQZ0A' type='groupchat' id='7a1a1b6c-1f7e-4c0d-9c39-a5f0b2f0f5a1' xml:lang='en'><body>Request permission to come alongside at 1430</body><origin-id xmlns='urn:xmpp:sid:0' id='7a1a1b6c-1f7e-4c0d-9c39-a5f0b2f0f5a1'/><thread>e0ffe42b28561960c6b12b944a092794b9683a38</thread></message>"

// BenchmarkStream is for docs/decisions/xmpp-parser.md: this package compared with the decoder under mellium.im/xmpp.
func BenchmarkStream(b *testing.B) {
	b.Run("own", func(b *testing.B) {
		var s stanza.Splitter
		s.Feed([]byte(header), func(*stanza.Element, *stanza.Fault) {})
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Feed([]byte(groupchat), func(*stanza.Element, *stanza.Fault) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-xml", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := xml.NewDecoder(strings.NewReader(groupchat))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// Each character may be in a name or not: an accepted name is in its canonical form, can be written, and cannot be mistaken for
// another part of an address.
func TestNames(t *testing.T) {
	taken := 0
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r > 0x3100 && r%13 != 0 {
			continue
		}
		for _, text := range []string{string(r), "a" + string(r) + "b"} {
			if local, ok := stanza.Local(text); ok {
				taken++
				again, ok := stanza.Local(local)
				if !ok || again != local || strings.ContainsAny(local, "@/\"&'<>: ") || !stanza.Printable(local) {
					t.Errorf("%U makes the name %q", r, local)
				}
				a, b, c, ok := stanza.CutAddress(local + "@ship.example")
				if !ok || a != local || b != "ship.example" || c != "" {
					t.Errorf("%U: %q is no address", r, local)
				}
			}
			if resource, ok := stanza.Resource(text); ok {
				if again, ok := stanza.Resource(resource); !ok || again != resource {
					t.Errorf("%U makes the resource %q", r, resource)
				}
			}
		}
	}
	check.True(t, "letters make names", taken > 20_000)
	for _, bad := range []string{"", "@", "a@", "@b", "a@b@c", "a@b/", "/", "a@/c", "a b@c", "a@b c", "a@b\x00", strings.Repeat("a", 1024) + "@b", "a@" + strings.Repeat("b", 1024), "\xff@b"} {
		if _, _, _, ok := stanza.CutAddress(bad); ok {
			t.Errorf("%.40q is an address", bad)
		}
	}
}
