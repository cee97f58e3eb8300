package jxta

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func TestParseXMLRefuses(t *testing.T) {
	small := XMLLimits{Octets: 4096, Depth: 8, Nodes: 50}
	tests := []struct {
		name, doc string
		err       error
	}{
		{"nested 10,000 deep", strings.Repeat("<a>", 1000), ErrTooLong},
		{"too many elements", "<a>" + strings.Repeat("<b/>", 60) + "</a>", ErrTooLong},
		{"too many attributes", "<a" + strings.Repeat(` b="c"`, 60) + "/>", ErrTooLong},
		{"too long", "<a>" + strings.Repeat("x", 5000) + "</a>", ErrTooLong},
		{"entity declaration", `<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>`, ErrMismatch},
		{"external subset", `<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>`, ErrMismatch},
		{"unknown entity", "<a>&nbsp;</a>", ErrSyntax},
		{"element declaration", "<!ELEMENT a ANY><a/>", ErrMismatch},
		{"doctype inside", "<a><!DOCTYPE a></a>", ErrMismatch},
		{"wrong end", "<a><b></a></b>", ErrSyntax},
		{"not closed", "<a><b></b>", ErrShort},
		{"two roots", "<a/><b/>", ErrSyntax},
		{"text outside", "<a/>x", ErrSyntax},
		{"empty", "", ErrShort},
		{"no XML", "hello", ErrSyntax},
		{"not UTF-8", "<a>\xff</a>", ErrSyntax},
		{"other encoding", `<?xml version="1.0" encoding="ISO-8859-1"?><a/>`, ErrSyntax},
		{"attribute without quotes", "<a b=c/>", ErrSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n, err := ParseXML([]byte(tt.doc), small); !errors.Is(err, tt.err) {
				t.Errorf("ParseXML = %+v, %v; want %v", n, err, tt.err)
			}
		})
	}
}

func TestXMLLayouts(t *testing.T) {
	pretty := "<?xml version=\"1.0\"?>\n<!DOCTYPE jxta:PipeAdvertisement>\n<!-- 2.2 -->\n<jxta:PipeAdvertisement xmlns:jxta=\"http://jxta.org\">\n\t<Id>\n\t\turn:jxta:" +
		pipeA + "\n\t</Id>\n\t<Type>\n\t\tJxtaPropagate\n\t</Type>\n\t<Name>\n\t\ta &amp; &lt;b> &#65;\n\t</Name>\n\t<Desc/>\n</jxta:PipeAdvertisement>\n"
	n, err := ParseXML([]byte(pretty), DefaultXML)
	if err != nil {
		t.Fatal(err)
	}
	want := `<jxta:PipeAdvertisement xmlns:jxta="http://jxta.org"><Id>urn:jxta:` + pipeA +
		`</Id><Type>JxtaPropagate</Type><Name>a &amp; &lt;b> A</Name><Desc/></jxta:PipeAdvertisement>`
	if got := string(AppendXML(nil, n)); got != want {
		t.Errorf("compact:\n%s\nwant\n%s", got, want)
	}
	check.Equal(t, `n.KidValue("Name")`, n.KidValue("Name"), "a & <b> A")
	check.Equal(t, `n.AttrValue("xmlns:jxta")`, n.AttrValue("xmlns:jxta"), "http://jxta.org")
	check.Equal(t, `n.KidValue("Nothing")`, n.KidValue("Nothing"), "")
	check.Equal(t, `len(n.All("Type"))`, len(n.All("Type")), 1)
	doc := string(AppendDocument(nil, n))
	if doc != "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE jxta:PipeAdvertisement>\n"+want+"\n" {
		t.Errorf("document: %q", doc)
	}
	mixed := "<a>one <b>two</b> three</a>"
	if n, err = ParseXML([]byte(mixed), DefaultXML); err != nil || string(AppendXML(nil, n)) != mixed {
		t.Errorf("mixed content: %s, %v", AppendXML(nil, n), err)
	}
	c := n.Clone()
	c.Kids[0].Text = "changed"
	if n.Kids[0].Text != "one " {
		t.Error("Clone shares")
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, value string
		want           bool
	}{
		{"abc", "abc", true}, {"abc", "Abc", false}, {"a*", "abc", true}, {"*c", "abc", true}, {"*b*", "abc", true},
		{"*", "", true}, {"**", "x", true}, {"a*c", "abc", false}, {"*x", "abc", false}, {"", "", true}, {"", "a", false},
	}
	for _, tt := range tests {
		if got := Match(tt.pattern, tt.value); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.value, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		name, doc string
		want      Description
	}{
		{"pipe", "<jxta:PipeAdvertisement><Id>urn:jxta:" + pipeA + "</Id><Type>JxtaUnicast</Type><Name>p</Name></jxta:PipeAdvertisement>",
			Description{"jxta:PipeAdvertisement", TypeAdv, pipeA, []Field{{"Name", "p"}, {"Id", URN(pipeA)}}, false}},
		{"group, signed", "<jxta:PGA><GID>urn:jxta:" + groupA + "</GID><Name>g</Name><XMLSignature/></jxta:PGA>",
			Description{"jxta:PGA", TypeGroup, groupA, []Field{{"Name", "g"}, {"GID", URN(groupA)}}, true}},
		{"subtype", `<x:Own type="jxta:MCA"><MCID>urn:jxta:` + ClassRelay + "</MCID></x:Own>",
			Description{"jxta:MCA", TypeAdv, ClassRelay, []Field{{"MCID", URN(ClassRelay)}}, false}},
		{"unknown", "<app:Thing><Colour> red </Colour><Deep><Name>x</Name></Deep></app:Thing>",
			Description{"app:Thing", TypeAdv, "h-", []Field{{"Colour", "red"}}, false}},
	}
	for _, tt := range tests {
		n, err := ParseXML([]byte(tt.doc), DefaultXML)
		if err != nil {
			t.Fatal(err)
		}
		got := Describe(n)
		if strings.HasPrefix(got.ID, "h-") && len(got.ID) == 34 {
			got.ID = "h-"
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	a, _ := ParseXML([]byte("<x><y>1</y></x>"), DefaultXML)
	b, _ := ParseXML([]byte("<?xml version='1.0'?>\n<x>\n\t<y>\n\t\t1\n\t</y>\n</x>\n"), DefaultXML)
	if Describe(a).ID != Describe(b).ID {
		t.Error("two layouts of one document have two ids")
	}
}

func route() *Route {
	return &Route{Dest: peerA, Access: AccessPoint{Peer: peerA}, Hops: []AccessPoint{{Peer: "uuid-0103", Addresses: []string{"tcp://10.0.0.1:9701"}}}}
}

// Each document, written and read again, is the same value.
func TestDocumentsRoundTrip(t *testing.T) {
	same := func(name string, want any, got any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	erm := RouterMessage{Src: peerA, Dest: Address{"jxta", "uuid-0203", "PipeService", URN(pipeA)}, Last: "uuid-0103",
		Fwd: []AccessPoint{{Peer: "uuid-0503"}}, Rvs: []AccessPoint{{Peer: "uuid-0103"}}, Route: route()}
	gotERM, err := ParseRouterMessage(erm.Append(nil))
	same("jxta:ERM", erm, gotERM, err)
	p := Propagate{"id-1", "svc", "param", 2, []string{peerA, "uuid-0103"}}
	gotP, err := ParsePropagate(p.Append(nil))
	same("propagate", p, gotP, err)
	w := WireHeader{peerA, pipeA, "m-1", 200}
	gotW, err := ParseWireHeader(w.Append(nil))
	same("JxtaWire", w, gotW, err)
	q := ResolverQuery{HandlerDiscovery, 7, 1, peerA, route(), "<a>&amp;</a>"}
	gotQ, err := ParseResolverQuery(q.Append(nil))
	same("ResolverQuery", q, gotQ, err)
	r := ResolverResponse{HandlerPipe, -1, "<x/>"}
	gotR, err := ParseResolverResponse(r.Append(nil))
	same("ResolverResponse", r, gotR, err)
	s := ResolverSRDI{HandlerPipe, "<y/>"}
	gotS, err := ParseResolverSRDI(s.Append(nil))
	same("ResolverSRDI", s, gotS, err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(s.Append(nil))
	z.Close()
	gotS, err = ParseResolverSRDI(packed.Bytes())
	same("ResolverSRDI, gzip", s, gotS, err)
	dq := DiscoveryQuery{TypeGroup, 5, "<pa/>", "Name", "a*"}
	gotDQ, err := ParseDiscoveryQuery(dq.Append(nil))
	same("DiscoveryQuery", dq, gotDQ, err)
	dr := DiscoveryResponse{TypeAdv, "", "Name", "x", []Found{{time.Hour, "<a/>"}, {MaxLife, "<b/>"}}}
	gotDR, err := ParseDiscoveryResponse(dr.Append(nil))
	same("DiscoveryResponse", dr, gotDR, err)
	pr := PipeResolver{true, pipeA, PipeTypeUnicast, []string{peerA}, true, "<pa/>"}
	gotPR, err := ParsePipeResolver(pr.Append(nil))
	same("PipeResolver", pr, gotPR, err)
	srdi := SRDI{peerA, PipeTypePropagate, 1, []SRDIEntry{{"Id", URN(pipeA), MaxLife}, {"Id", URN(pipeA), 0}}}
	gotSRDI, err := ParseSRDI(srdi.Append(nil))
	same("GenSRDI", srdi, gotSRDI, err)
	rq := RouteQuery{peerA, route(), []string{"uuid-0903"}}
	gotRQ, err := ParseRouteQuery(rq.Append(nil))
	same("ERQ", rq, gotRQ, err)
	rr := RouteResponse{*route(), Route{Dest: "uuid-0103", Access: AccessPoint{"uuid-0103", []string{"tcp://10.0.0.1:9701"}}}}
	gotRR, err := ParseRouteResponse(rr.Append(nil))
	same("ERR", rr, gotRR, err)
	rdv := RdvAdvertisement{groupA, peerA, "svc", "name", route()}
	gotRdv, err := ParseRdvAdvertisement(rdv.Node())
	same("RdvAdvertisement", rdv, gotRdv, err)
}

func TestDocumentsRefuse(t *testing.T) {
	many := func(what string, n int) string { return strings.Repeat(what, n) }
	tests := []struct {
		name string
		err  error
		call func() error
	}{
		{"ERM without Dest", ErrMissing, func() error {
			_, err := ParseRouterMessage([]byte("<jxta:ERM><Src>jxta://" + peerA + "</Src></jxta:ERM>"))
			return err
		}},
		{"ERM by transport address", ErrMismatch, func() error {
			_, err := ParseRouterMessage([]byte("<jxta:ERM><Src>tcp://a</Src><Dest>jxta://" + peerA + "/x</Dest></jxta:ERM>"))
			return err
		}},
		{"endless path", ErrTooLong, func() error {
			_, err := ParsePropagate([]byte("<jxta:RendezVousPropagateMessage><MessageId>1</MessageId><TTL>1</TTL>" +
				many("<Path>"+URN(peerA)+"</Path>", 65) + "</jxta:RendezVousPropagateMessage>"))
			return err
		}},
		{"TTL no number", ErrSyntax, func() error {
			_, err := ParsePropagate([]byte("<jxta:RendezVousPropagateMessage><MessageId>1</MessageId><TTL>x</TTL></jxta:RendezVousPropagateMessage>"))
			return err
		}},
		{"wire header without MsgId", ErrMismatch, func() error {
			_, err := ParseWireHeader([]byte("<JxtaWire><PipeId>" + URN(pipeA) + "</PipeId><TTL>1</TTL></JxtaWire>"))
			return err
		}},
		{"query of another root", ErrMismatch, func() error { _, err := ParseResolverQuery([]byte("<a/>")); return err }},
		{"discovery type 3", ErrMismatch, func() error {
			_, err := ParseDiscoveryQuery([]byte("<jxta:DiscoveryQuery><Type>3</Type></jxta:DiscoveryQuery>"))
			return err
		}},
		{"endless response", ErrTooLong, func() error {
			_, err := ParseDiscoveryResponse([]byte("<jxta:DiscoveryResponse>" + many("<Response>x</Response>", 300) + "</jxta:DiscoveryResponse>"))
			return err
		}},
		{"expiration no number", ErrSyntax, func() error {
			_, err := ParseDiscoveryResponse([]byte(`<jxta:DiscoveryResponse><Response Expiration="soon">x</Response></jxta:DiscoveryResponse>`))
			return err
		}},
		{"pipe resolver of no kind", ErrMismatch, func() error { _, err := ParsePipeResolver([]byte("<jxta:PipeResolver/>")); return err }},
		{"endless index", ErrTooLong, func() error {
			_, err := ParseSRDI([]byte("<jxta:GenSRDI><PID>" + URN(peerA) + "</PID>" + many("<Entry/>", 4100) + "</jxta:GenSRDI>"))
			return err
		}},
		{"gzip bomb", ErrTooLong, func() error {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			for range 64 {
				z.Write(make([]byte, 64<<10))
			}
			z.Close()
			_, err := ParseResolverSRDI(b.Bytes())
			return err
		}},
		{"gzip cut", ErrSyntax, func() error { _, err := Gunzip(unhex(t, "1f8b0800")); return err }},
	}
	for _, tt := range tests {
		if err := tt.call(); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
	}
	var pe *ParseError
	if _, err := ParseURN("x"); !errors.As(err, &pe) || fmt.Sprint(err) != "jxta: ID: urn:jxta has an unexpected value" {
		t.Errorf("error text: %v", err)
	}
}
