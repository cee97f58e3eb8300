package compact

import (
	"aldis/internal/jxta"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Maker makes documents of the kinds that cross a link. The sizes in docs/sizes.md are of its documents: the
// corpus has none of their names. Same seed and words, same documents.
type Maker struct {
	Rand  *rand.Rand
	Words *Words
}

// Words are what names are put together from.
type Words struct {
	Services, Units, Places, First, Last, Titles []string
}

// NewMaker returns a maker of documents with these words.
func NewMaker(seed uint64, w *Words) *Maker {
	return &Maker{rand.New(rand.NewPCG(seed, 0xa1d15)), w}
}

// Pick draws one of a list.
func (m *Maker) Pick(list []string) string { return list[m.Rand.IntN(len(list))] }

// Octets returns n random octets.
func (m *Maker) Octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Rand.Uint32())
	}
	return b
}

// Hex returns n random octets as hexadecimal digits.
func (m *Maker) Hex(n int) string { return fmt.Sprintf("%X", m.Octets(n)) }

// Name is a name of about 20 characters, as operators give them.
func (m *Maker) Name() string {
	s, u, p := m.Pick(m.Words.Services), m.Pick(m.Words.Units), m.Pick(m.Words.Places)
	switch m.Rand.IntN(6) {
	case 4:
		return s
	case 5:
		return u
	case 0:
		return u + " " + s
	case 1:
		return s + " " + p
	case 2:
		return u + "-" + s
	}
	return p + " " + s + " " + fmt.Sprint(1+m.Rand.IntN(9))
}

// The generation of the peer that writes: layouts and ids differ (wire 9.3).
const (
	Compact = iota // JXSE 2.7, xml:space preserve
	Pretty         // JXSE 2.7, xml:space default
	Old            // JXTA 2.2: pretty, no xml:space, children of advertisements too
	Bare           // as a gateway writes it: package jxta's own, of a 2.7 document
	Layouts
)

// node is an element to be written: text or children.
type node struct {
	name, attr, text string
	kids             []node
}

func leaf(name, text string) node         { return node{name: name, text: text} }
func tree(name string, kids ...node) node { return node{name: name, kids: kids} }
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(s)
}

const (
	nsAttr       = ` xmlns:jxta="http://jxta.org"`
	preserveAttr = ` xml:space="preserve"`
	defaultAttr  = ` xml:space="default"`
)

// document writes a whole document in a layout.
func document(root node, layout int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE %s>\n", root.name)
	root.attr = rootAttr(layout, false) + root.attr
	if layout == Compact || layout == Bare {
		writeCompact(&b, root, true)
	} else {
		writePretty(&b, root, layout, 0)
	}
	b.WriteByte('\n')
	if layout == Bare {
		bare, err := jxta.ParseXML([]byte(b.String()), jxta.DefaultXML)
		if err != nil { // it was written just now
			panic(err)
		}
		return jxta.AppendDocument(nil, bare)
	}
	return []byte(b.String())
}

func rootAttr(layout int, swap bool) string {
	switch {
	case layout == Old:
		return nsAttr
	case layout == Pretty:
		return defaultAttr + nsAttr
	case swap:
		return nsAttr + preserveAttr
	}
	return preserveAttr + nsAttr
}

func writeCompact(b *strings.Builder, n node, root bool) {
	b.WriteString("<" + n.name + n.attr + ">")
	if root {
		b.WriteString("\n\t\n")
	}
	b.WriteString(escape(n.text))
	for _, k := range n.kids {
		if strings.HasPrefix(k.name, "jxta:") {
			k.attr = rootAttr(Compact, k.name != "jxta:RA") + k.attr
		}
		writeCompact(b, k, false)
	}
	b.WriteString("</" + n.name + ">")
}

func writePretty(b *strings.Builder, n node, layout, depth int) {
	tabs := strings.Repeat("\t", depth)
	b.WriteString(tabs + "<" + n.name + n.attr + ">\n")
	if layout == Pretty && len(n.kids) > 0 {
		b.WriteString(tabs + "\t\n")
	}
	if n.text != "" {
		b.WriteString(tabs + "\t" + escape(n.text) + "\n")
	}
	for _, k := range n.kids {
		if strings.HasPrefix(k.name, "jxta:") {
			k.attr = nsAttr + k.attr
			if layout == Pretty { // a copied element keeps its own space
				k.attr += preserveAttr
				b.WriteString(tabs + "\t<" + k.name + k.attr + ">\n" + tabs + "\t\t\n")
				for _, kk := range k.kids {
					writeCompact(b, kk, false)
				}
				b.WriteString(tabs + "\t</" + k.name + ">\n")
				continue
			}
		}
		writePretty(b, k, layout, depth+1)
	}
	b.WriteString(tabs + "</" + n.name + ">")
	if depth > 0 {
		b.WriteString("\n")
	}
}

// The ids of a document's world.
const (
	peerPrefix = "59616261646162614A78746150325033"
	PipePrefix = "59616261646162614E50472050325033"
)

func (m *Maker) format(layout int) string {
	if layout != Old && m.Rand.IntN(2) == 0 {
		return "urn:jxta:cbid-"
	}
	return "urn:jxta:uuid-"
}

// PeerID returns the id of a peer as it stands in a layout.
func (m *Maker) PeerID(layout int) string { return m.format(layout) + peerPrefix + m.Hex(16) + "03" }

func (m *Maker) pipeNode(layout int, name string, desc bool) node {
	kinds := []string{"JxtaUnicast", "JxtaPropagate", "JxtaUnicast", "JxtaUnicastSecure"}
	n := tree("jxta:PipeAdvertisement", leaf("Id", m.format(layout)+PipePrefix+m.Hex(16)+"04"), leaf("Type", m.Pick(kinds)), leaf("Name", name))
	if desc {
		n.kids = append(n.kids, leaf("Desc", m.Name()))
	}
	return n
}

// Pipe is a pipe advertisement.
func (m *Maker) Pipe(layout int, desc bool) []byte {
	return document(m.pipeNode(layout, m.Name(), desc), layout)
}

// Spec is a module specification with a pipe.
func (m *Maker) Spec(layout int) []byte {
	name := m.Name()
	class := m.Hex(16)
	spec := m.format(layout)
	if strings.HasSuffix(spec, "cbid-") {
		spec += class + class + "06"
	} else {
		spec += class + m.Hex(16) + "06"
	}
	msa := tree("jxta:MSA", leaf("MSID", spec), leaf("Name", "JXTASPEC:"+name))
	if m.Rand.IntN(2) == 0 {
		msa.kids[1] = leaf("Name", name)
	}
	crtr, suri, vers := leaf("Crtr", m.Pick([]string{"aldis", m.Pick(m.Words.Units), "jxta.org", m.Pick(m.Words.Units)})),
		leaf("SURI", m.Pick([]string{"urn:", "http://", "http://"})+strings.ToLower(m.Pick(m.Words.Services))), leaf("Vers", m.Pick([]string{"1.0", "Version 1.0", "1", "2.0"}))
	desc := leaf("Desc", m.Name())
	switch layout {
	case Old:
		msa.kids = append(msa.kids, crtr, suri, vers, desc)
	default:
		if m.Rand.IntN(2) == 0 {
			msa.kids = append(msa.kids, desc)
		}
		msa.kids = append(msa.kids, crtr, suri, vers)
	}
	msa.kids = append(msa.kids, m.pipeNode(layout, name, false))
	return document(msa, layout)
}

// Class is a module class advertisement.
func (m *Maker) Class(layout int) []byte {
	return document(tree("jxta:MCA", leaf("MCID", m.format(layout)+m.Hex(16)+"05"), leaf("Name", "JXTAMOD:"+m.Name()), leaf("Desc", m.Name())), layout)
}

// Group is a peer group advertisement.
func (m *Maker) Group(layout int) []byte {
	return document(tree("jxta:PGA", leaf("GID", m.format(layout)+m.Hex(16)+"02"),
		leaf("MSID", "urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE000000010306"), leaf("Name", m.Name()), leaf("Desc", m.Name())), layout)
}

// Implementation is a module implementation advertisement.
func (m *Maker) Implementation(layout int) []byte {
	words := m.Words.Services
	class := strings.Fields(m.Pick(words))[0]
	class = strings.ToUpper(class[:1]) + class[1:]
	return document(tree("jxta:MIA", leaf("MSID", "urn:jxta:uuid-"+m.Hex(32)+"06"),
		tree("Comp", leaf("Efmt", "JDK1.4.1"), leaf("Bind", "V2.0 Ref Impl")),
		leaf("Code", "net.jxta.impl."+strings.ToLower(class)+"."+class+"Service"), leaf("PURI", "http://jxta-jxse.dev.java.net/download/jxta.jar"),
		leaf("Prov", "sun.com"), leaf("Desc", m.Name())), layout)
}

func (m *Maker) address() string {
	host := fmt.Sprintf("%d.%d.%d.%d", []int{10, 172, 192, 10}[m.Rand.IntN(4)], m.Rand.IntN(256), m.Rand.IntN(256), 1+m.Rand.IntN(254))
	return fmt.Sprintf("%s://%s:%d", m.Pick([]string{"tcp", "tcp", "http"}), host, m.pick2(9701, 9702, 9700, 1024+m.Rand.IntN(60000)))
}

func (m *Maker) pick2(list ...int) int { return list[m.Rand.IntN(len(list))] }

func (m *Maker) route(layout int, pid string, most int, hops bool) node {
	id := strings.TrimPrefix(pid, "urn:jxta:")
	dst := tree("jxta:APA")
	if layout != Old {
		if m.Rand.IntN(2) == 0 {
			dst.kids = append(dst.kids, leaf("PID", pid))
		}
	} else {
		dst.kids = append(dst.kids, leaf("EA", "relay://"+id))
	}
	for range 1 + m.Rand.IntN(most) {
		dst.kids = append(dst.kids, leaf("EA", m.address()))
	}
	switch {
	case layout == Old:
		dst.kids = append(dst.kids, leaf("EA", "cbjx://"+id), leaf("EA", "jxtatls://"+id))
	case m.Rand.IntN(2) == 0:
		dst.kids = append(dst.kids, leaf("EA", "jxtatls://"+id), leaf("EA", "relay://"+id))
	}
	ra := tree("jxta:RA")
	if layout != Old {
		ra.kids = append(ra.kids, leaf("DstPID", pid))
	}
	ra.kids = append(ra.kids, tree("Dst", dst))
	if hops {
		ra.kids = append(ra.kids, tree("Hops", tree("jxta:APA", leaf("PID", m.PeerID(layout)), leaf("EA", m.address()))))
	}
	return ra
}

// Route is a route advertisement with its hops.
func (m *Maker) Route(layout int) []byte {
	return document(m.route(layout, m.PeerID(layout), 2, true), layout)
}

const wellKnown = "urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE000000"

// Peer is a peer advertisement with a route, and with a certificate that stands for a self-signed one of cert
// octets; 0 for none, -1 for one as JXTA peers make it. With hops it is reached through a relay.
func (m *Maker) Peer(layout, cert int, hops bool) []byte {
	pid := m.PeerID(layout)
	pa := tree("jxta:PA", leaf("PID", pid), leaf("GID", "urn:jxta:jxta-NetGroup"), leaf("Name", m.Name()))
	switch m.Rand.IntN(12) { // few set one; 2.7 has its own
	case 0:
		pa.kids = append(pa.kids, leaf("Desc", m.Name()))
	case 1, 2, 3, 4, 5:
		if layout != Old {
			pa.kids = append(pa.kids, leaf("Desc", "Created by NetworkManager"))
		}
	}
	svc := func(id string, parm node) {
		pa.kids = append(pa.kids, tree("Svc", leaf("MCID", wellKnown+id), tree("Parm", parm)))
	}
	rest := []func(){
		func() { svc("0805", m.route(layout, pid, 1, hops)) },
		func() { svc("0605", leaf("Rdv", m.Pick([]string{"true", "false"}))) },
	}
	if cert != 0 {
		rest = append(rest, func() {
			octets := m.Octets(max(cert, 0))
			if cert < 0 {
				octets = m.certificate(layout)
			}
			width := 64
			if layout != Old {
				width = 76
			}
			root := leaf("RootCert", inLines(base64.StdEncoding.EncodeToString(octets), width))
			switch {
			case layout == Old:
			case m.Rand.IntN(2) == 0:
				root.attr = ` type="jxta:cert"` + preserveAttr + nsAttr
			default:
				root.attr = preserveAttr + nsAttr + ` type="jxta:cert"`
			}
			svc("0105", root)
		})
	}
	m.Rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for _, f := range rest {
		f()
	}
	return document(pa, layout)
}

// inLines cuts a text into lines of width characters.
func inLines(text string, width int) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + "\n")
		text = text[width:]
	}
	return b.String() + text
}

// certificate is X.509 as JXTA peers write it: RSA of 1024 bits with SHA-1, issuer and subject the same. Its modulus and
// signature are random octets.
func (m *Maker) certificate(layout int) []byte {
	der := func(tag byte, parts ...[]byte) []byte {
		var body []byte
		for _, p := range parts {
			body = append(body, p...)
		}
		out := []byte{tag}
		switch n := len(body); {
		case n < 128:
			out = append(out, byte(n))
		case n < 256:
			out = append(out, 0x81, byte(n))
		default:
			out = append(out, 0x82, byte(n>>8), byte(n))
		}
		return append(out, body...)
	}
	attr := func(oid byte, kind byte, text string) []byte {
		return der(0x31, der(0x30, []byte{6, 3, 0x55, 4, oid}, der(kind, []byte(text))))
	}
	ou := fmt.Sprintf("%X", m.Octets(10))
	parts := [][]byte{attr(10, 0x0c, "www.jxta.org")}
	if layout == Old {
		ou = strings.ToLower(ou)
		parts = append(parts, attr(7, 0x0c, "SF"), attr(6, 0x13, "US"))
	}
	parts = append(parts, attr(3, 0x0c, m.Pick(m.Words.Units)+"-CA"), attr(11, 0x0c, ou))
	name := der(0x30, parts...)
	rsa := func(last byte) []byte {
		return der(0x30, []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last, 5, 0})
	}
	start := fmt.Sprintf("%02d%02d%02d%02d%02dZ", 1+m.Rand.IntN(12), 1+m.Rand.IntN(28), m.Rand.IntN(24), m.Rand.IntN(60), m.Rand.IntN(60))
	year := 20 + m.Rand.IntN(10)
	validity := der(0x30, der(0x17, fmt.Appendf(nil, "%02d%s", year, start)), der(0x17, fmt.Appendf(nil, "%02d%s", year+10, start)))
	modulus := append([]byte{0}, m.Octets(128)...)
	modulus[1] |= 0x80
	public := der(0x30, rsa(1), der(3, []byte{0}, der(0x30, der(2, modulus), []byte{2, 3, 1, 0, 1})))
	return der(0x30, der(0x30, []byte{0xa0, 3, 2, 1, 2}, []byte{2, 1, 1}, rsa(5), name, validity, name, public),
		rsa(5), der(3, []byte{0}, m.Octets(128)))
}

// Rendezvous is what a rendezvous says of itself.
func (m *Maker) Rendezvous(layout int) []byte {
	pid := m.PeerID(layout)
	service := wellKnown + "0605NetGroup"
	if m.Rand.IntN(2) == 0 {
		service = wellKnown + "0F05"
	}
	return document(tree("jxta:RdvAdvertisement", leaf("RdvGroupId", "urn:jxta:jxta-NetGroup"), leaf("RdvPeerId", pid),
		leaf("RdvServiceName", service), leaf("Name", m.Name()), tree("RdvRoute", m.route(layout, pid, 2, m.Rand.IntN(2) == 0))), layout)
}

// Employees is a document of the shape of demmings-2007, figure 10.
func (m *Maker) Employees(n int) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE employees>\n<employees>\n")
	for range n {
		fmt.Fprintf(&b, "  <employee id=\"%06d\">\n    <fname>%s</fname>\n    <lname>%s</lname>\n    <age>%d</age>\n    <jobtitle>%s</jobtitle>\n    <phone>%03d-%04d</phone>\n  </employee>\n",
			100000+m.Rand.IntN(900000), m.Pick(m.Words.First), m.Pick(m.Words.Last), 20+m.Rand.IntN(45), m.Pick(m.Words.Titles), 200+m.Rand.IntN(800), m.Rand.IntN(10000))
	}
	b.WriteString("</employees>\n")
	return []byte(b.String())
}

// Sentence is an NMEA 0183 sentence with its checksum.
func Sentence(body string) string {
	sum := byte(0)
	for _, c := range []byte(body) {
		sum ^= c
	}
	return fmt.Sprintf("$%s*%02X\r\n", body, sum)
}
