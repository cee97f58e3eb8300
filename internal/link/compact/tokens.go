package compact

import (
	"bytes"
	"strings"
)

// Forms of an id in a token stream. formCBID is added for "cbid-".
const (
	formKnown  = 0 // the next octet is the number of one of the document's ids, from 0
	formPeer   = 1 // prefixes[form-1], 16 octets, type; so up to formNamed with other lengths
	formPipe   = 2
	formClass  = 3
	formNamed  = 4
	formDouble = 5 // 16 octets twice, type
	formLong   = 6 // 32 octets, type
	formHalf   = 7 // the first 16 octets of the document's id whose number is the next octet, then 16 more, type
	formShort  = 8 // 16 octets, type
	formAny    = 9 // length, octets
	formCBID   = 0x10
)

// countedIDs is how many ids of a document have a number of one octet: the first ones.
const countedIDs = 256

// idOctets is how many octets follow the type; -1 when the form has none.
func idOctets(form byte) int {
	switch form & 0x0f {
	case formPeer, formPipe, formDouble, formHalf, formShort:
		return 16
	case formClass:
		return 1
	case formNamed:
		return 12
	case formLong:
		return 32
	}
	return -1
}

// Whole openings that the decoder knows, by number. %s is the root's name.
var prologs = [...]string{
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE %s>\n",
	"<?xml version=\"1.0\"?>\n<!DOCTYPE %s>\n",
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
	"<?xml version=\"1.0\"?>\n",
	"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n",
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
	"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n",
	"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>",
	"<?xml version=\"1.0\" encoding=\"utf-8\"?>",
	"<?xml version=\"1.0\"?>",
	"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n",
	"<?xml version=\"1.1\" encoding=\"UTF-8\"?>\n",
	"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n",
}

// Elements and attributes of JXTA documents (wire 9.1), by number. Only appended to.
var knownTags = [...]string{
	"jxta:PA", "PID", "GID", "Name", "Desc", "Svc", "MCID", "Parm", "jxta:PGA", "MSID", "jxta:MCA", "jxta:MSA", "Crtr",
	"SURI", "Vers", "jxta:PipeAdvertisement", "Proxy", "Auth", "jxta:MIA", "Comp", "Code", "PURI", "Prov", "Id", "Type",
	"jxta:RA", "DstPID", "Dst", "Hops", "jxta:APA", "EA", "jxta:RdvAdvertisement", "RdvGroupId", "RdvPeerId",
	"RdvServiceName", "RdvRoute", "jxta:SA", "Signature", "Advertisement", "RootCert", "Rdv", "XMLSignatureInfo",
	"digest", "encodedkey", "keyalgorithm", "signaturealgorithm", "XMLSignature", "signature", "Efmt", "Bind", "track", "tracks",
	"jxta:TransportAdvertisement", "jxta:TCPTransportAdvertisement", "jxta:HTTPTransportAdvertisement", "Addr", "PVer",
	"jxta:ERM", "Src", "Dest", "Last", "Fwd", "Rvs", "jxta:ResolverQuery", "jxta:ResolverResponse", "HandlerName", "QueryID",
	"Query", "Response", "SrcPeerID", "HopCount", "jxta:DiscoveryQuery", "jxta:DiscoveryResponse", "Count", "PeerAdv",
	"Threshold", "Attr", "Value", "JxtaWire", "jxta:RendezVousPropagateMessage", "MessageId", "DestSName", "DestSParam",
	"TTL", "Path", "jxta:PipeResolver", "MsgType", "PipeId", "Found", "Cached", "Peer", "jxta:Cred", "PeerGroupID", "PeerID",
	"Certificate",
}

var knownAttrs = [...]string{
	`xmlns:jxta="http://jxta.org"`, `xml:space="preserve"`, `xml:space="default"`, `type="jxta:cert"`, `type="jxta:PA"`,
	`type="jxta:MSA"`, `type="jxta:MCA"`, `type="jxta:MIA"`, `type="jxta:PGA"`, `type="jxta:PipeAdvertisement"`,
	`type="jxta:RA"`, `type="jxta:APA"`, `type="jxta:RdvAdvertisement"`, `type="Peer"`, `type="Group"`, `type="Adv"`,
	`xmlns="http://jxta.org"`,
}

// Properties of a whole document, in the octet after tokStyle, with styleMark.
const (
	styleCRLF   = 1 << iota // lines end with CR LF
	styleSingle             // attributes stand in single quotes
	styleSpace              // a space stands before />
	styleBOM                // a byte order mark comes first
	styleMark   = 0x40      // in every such octet, so that it is never a mark
	styles      = 1<<4 - 1
)

const bom = "\xef\xbb\xbf"

// Bounds of a tokenizer.
const (
	maxInner = 4 // documents escaped within each other
	minInner = 16
)

// tokenizer writes an XML text as tokens. Markup that it cannot take apart it writes unchanged, between tokRaw and tokEnd.
type tokenizer struct {
	in       string
	out      []byte
	style    byte
	unit     string // of indentation
	names    []string
	stack    []string
	base     int // elements of the stack that belong to outer documents
	inner    int // how many outer documents there are
	ids      []string
	value    bool // an attribute's value was last: text must be set off
	elements bool // there was an element: this is XML
	bad      bool // there was markup that XML does not allow
	never    [len(rawKinds)]bool
}

// tokenizeXML returns the token stream of a document, or false for a text that is not XML. expandTokens gives back an
// accepted text octet for octet.
func tokenizeXML(text []byte) ([]byte, bool) {
	lf, crlf, ok := lineEnds(text)
	if !ok {
		return nil, false
	}
	t := &tokenizer{in: string(text), out: make([]byte, 0, len(text)/2)}
	if lf > 0 && crlf == lf {
		t.style |= styleCRLF
		t.in = strings.ReplaceAll(t.in, "\r\n", "\n")
	}
	if rest, ok := strings.CutPrefix(t.in, bom); ok {
		t.style |= styleBOM
		t.in = rest
	}
	markup := strings.HasPrefix(strings.TrimLeft(t.in, " \n\t"), "<")
	t.begin()
	t.document()
	if !t.elements || t.bad && !markup {
		return nil, false
	}
	if len(t.stack) > 0 {
		if !markup {
			return nil, false
		}
		t.out = append(t.out, tokCut)
	}
	back, err := expandTokens(t.out, len(text))
	if err != nil || !bytes.Equal(back, text) {
		return nil, false
	}
	return t.out, true
}

// lineEnds counts line feeds, and those of them after a carriage return. ok is false where the text has octets that XML
// does not allow.
func lineEnds(text []byte) (lf, crlf int, ok bool) {
	for i, c := range text {
		switch {
		case c == '\n':
			lf++
			if i > 0 && text[i-1] == '\r' {
				crlf++
			}
		case c < ' ' && c != '\t' && c != '\r':
			return 0, 0, false
		}
	}
	return lf, crlf, true
}

// document writes the rest of the text.
func (t *tokenizer) document() {
	for len(t.in) > 0 {
		t.item()
	}
}

// item writes a text, a tag, or other markup that in begins with.
func (t *tokenizer) item() {
	if t.in[0] != '<' {
		end := strings.IndexByte(t.in, '<')
		if end < 0 {
			end = len(t.in)
		}
		t.text(t.in[:end])
		t.in = t.in[end:]
	} else if !t.prolog() && !t.tag() {
		t.raw()
	}
}

// begin writes the properties of the whole document.
func (t *tokenizer) begin() {
	if i := strings.IndexByte(t.in, '='); i >= 0 && strings.HasPrefix(t.in[i+1:], "'") {
		t.style |= styleSingle
	}
	if i := strings.Index(t.in, "/>"); i > 0 && t.in[i-1] == ' ' {
		t.style |= styleSpace
	}
	t.prolog()
	if t.style != 0 {
		t.out = append(t.out, tokStyle, styleMark|t.style)
	}
	// The unit of indentation is the spaces after the first line feed that follows a tag.
	t.unit = "\t"
	if at := strings.Index(t.in, ">\n "); at >= 0 {
		rest := t.in[at+2:]
		n := len(rest) - len(strings.TrimLeft(rest, " "))
		if n <= 8 {
			t.unit = "        "[:n]
			t.out = append(t.out, byte('0'+n))
			return
		}
	}
	t.out = append(t.out, '0')
}

// rawKinds are the beginnings and ends of markup that is written unchanged. The last kind takes all other markup.
var rawKinds = [...][2]string{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}, {"<!DOCTYPE", "]>"}, {"<!", ">"}, {"<", ">"}}

// raw writes the markup at the front of in unchanged, up to its end, or to the next markup if it has none.
func (t *tokenizer) raw() {
	n := 0
	for i, k := range rawKinds {
		if !strings.HasPrefix(t.in, k[0]) || t.never[i] {
			continue
		}
		if i == 3 { // only a DOCTYPE with an internal subset
			open, end := strings.IndexByte(t.in, '['), strings.IndexByte(t.in, '>')
			if open < 0 || end < open {
				continue
			}
		}
		if at := strings.Index(t.in[len(k[0]):], k[1]); at >= 0 {
			n = len(k[0]) + at + len(k[1])
			t.bad = t.bad || i == len(rawKinds)-1
			break
		}
		t.never[i] = true
	}
	if n == 0 {
		t.bad = true
		n = strings.IndexByte(t.in[1:], '<') + 1
		if n == 0 {
			n = len(t.in)
		}
	}
	t.out = append(append(append(t.out, tokRaw), t.in[:n]...), tokEnd)
	t.in, t.value = t.in[n:], false
}

// quoted is a text with the quotes of a style.
func quoted(style byte, s string) string {
	if style&styleSingle != 0 {
		return strings.ReplaceAll(s, `"`, "'")
	}
	return s
}

// prolog writes a known opening that in begins with.
func (t *tokenizer) prolog() bool {
	if !strings.HasPrefix(t.in, "<?xml") {
		return false
	}
	for i, p := range prologs {
		before, after, named := strings.Cut(p, "%s")
		rest, ok := strings.CutPrefix(t.in, quoted(t.style, before))
		if !ok {
			continue
		}
		if named {
			end := strings.IndexByte(rest, '>')
			if end < 0 || !strings.HasPrefix(rest[end:], after) {
				continue
			}
			root := rest[:end]
			rest = rest[end+len(after):]
			if n := nameLen(root); n == 0 || n != len(root) || !strings.HasPrefix(rest, "<"+root) || nameLen(rest[1:]) != n {
				continue
			}
		}
		t.out, t.in, t.value = append(t.out, tokProlog, byte('A'+i)), rest, false
		return true
	}
	return false
}

func nameLen(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == ':' || c >= 0x80:
		case i > 0 && ('0' <= c && c <= '9' || c == '-' || c == '.'):
		default:
			return i
		}
	}
	return len(s)
}

// tag writes the tag at the front of in. It writes nothing of an unusual tag.
func (t *tokenizer) tag() bool {
	if rest, ok := strings.CutPrefix(t.in, "</"); ok {
		n := len(t.stack)
		if n == t.base {
			return false
		}
		if rest, ok = strings.CutPrefix(rest, t.stack[n-1]); !ok || !strings.HasPrefix(rest, ">") {
			return false
		}
		t.out, t.in, t.stack, t.value = append(t.out, tokClose), rest[1:], t.stack[:n-1], false
		return true
	}
	rest := t.in[1:]
	n := nameLen(rest)
	if n == 0 || len(t.stack) >= 4*maxDepth {
		return false
	}
	out, names, value := len(t.out), len(t.names), t.value
	undo := func() bool {
		t.out, t.names, t.value = t.out[:out], t.names[:names], value
		return false
	}
	name := rest[:n]
	rest = rest[n:]
	t.name(name, tokOpen, tokNewTag, knownTags[:])
	t.value = false
	for {
		space := rest[:len(rest)-len(strings.TrimLeft(rest, " \n\t\r"))]
		rest = rest[len(space):]
		usual := " "
		switch {
		case strings.HasPrefix(rest, ">"):
			usual = ""
		case strings.HasPrefix(rest, "/>") && t.style&styleSpace == 0:
			usual = ""
		case strings.HasPrefix(rest, "/>"):
		case space == "":
			return undo()
		}
		if space != usual {
			t.out = append(append(append(t.out, tokSpace), space...), tokEnd)
		}
		switch {
		case strings.HasPrefix(rest, ">"):
			t.in, t.stack, t.elements = rest[1:], append(t.stack, name), true
			return true
		case strings.HasPrefix(rest, "/>"):
			t.out, t.in, t.value, t.elements = append(t.out, tokEmpty), rest[2:], false, true
			return true
		}
		n := nameLen(rest)
		if n == 0 || len(rest) < n+3 || rest[n] != '=' || rest[n+1] != '"' && rest[n+1] != '\'' {
			return undo()
		}
		quote := rest[n+1]
		end := strings.IndexByte(rest[n+2:], quote)
		if end < 0 {
			return undo()
		}
		value := rest[n+2 : n+2+end]
		if strings.ContainsAny(value, "<") {
			return undo()
		}
		if quote == '"' == (t.style&styleSingle != 0) {
			t.out = append(t.out, tokQuote)
		}
		if i := index(knownAttrs[:], rest[:n]+`="`+value+`"`); i >= 0 {
			t.out, t.value = append(t.out, tokAttr, byte(i)), false
		} else {
			t.name(rest[:n], tokAttr, tokNewAttr, nil)
			t.out, t.value = append(t.out, value...), true
		}
		rest = rest[n+2+end+1:]
	}
}

func index(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// name writes a name by number, or spells it.
func (t *tokenizer) name(name string, mark, spelled byte, known []string) {
	if i := index(known, name); i >= 0 {
		t.out = append(t.out, mark, byte(i))
		return
	}
	if i := index(t.names, name); i >= 0 {
		t.out = append(t.out, mark, byte(localTag+i))
		return
	}
	if len(t.names) < 256-localTag {
		t.names = append(t.names, name)
	}
	t.out = append(append(append(t.out, spelled), name...), tokEnd)
}

// text writes character data.
func (t *tokenizer) text(s string) {
	if t.value && s[0] != '\n' {
		t.out = append(t.out, tokEnd)
	}
	t.value = false
	if at := strings.Index(s, "&lt;"); at >= 0 && t.inner < maxInner && len(s)-at >= minInner {
		if at > 0 {
			t.run(s[:at])
		}
		if !t.within(s[at:]) {
			t.run(s[at:])
		}
		return
	}
	t.run(s)
}

// The characters that a document within a document has escaped, besides & and <.
const (
	escapesGreater = 1 << iota
	escapesQuote
	escapesApostrophe
	escapesMark = 0x40 // in every such octet
	escapeSets  = 1<<3 - 1
)

// escapers escape a document within a document, by the set of characters; unescaper undoes all of them.
var (
	unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")
	escapers  = func() (list [escapeSets + 1]*strings.Replacer) {
		for i := range list {
			pairs := []string{"&", "&amp;", "<", "&lt;"}
			for j, p := range [][]string{{">", "&gt;"}, {`"`, "&quot;"}, {"'", "&apos;"}} {
				if i>>j&1 > 0 {
					pairs = append(pairs, p...)
				}
			}
			list[i] = strings.NewReplacer(pairs...)
		}
		return list
	}()
)

// within writes a document that is escaped in a text.
func (t *tokenizer) within(s string) bool {
	set := byte(0)
	for i, entity := range []string{"&gt;", "&quot;", "&apos;"} {
		if strings.Contains(s, entity) {
			set |= 1 << i
		}
	}
	text := unescaper.Replace(s)
	if n := nameLen(text[1:]); n == 0 && !strings.HasPrefix(text, "<?xml") || escapers[set].Replace(text) != s {
		return false
	}
	was, out := *t, len(t.out)
	t.out = append(t.out, tokInner, escapesMark|set)
	t.in, t.inner, t.base, t.elements, t.bad, t.value = text, t.inner+1, len(t.stack), false, false, false
	t.never = [len(rawKinds)]bool{}
	t.document()
	if good := t.elements && !t.bad && len(t.stack) == t.base; !good {
		*t = was
		t.out = t.out[:out]
		return false
	}
	names, ids, stack := t.names, t.ids, t.stack
	done := append(t.out, tokInnerEnd)
	*t = was
	t.out, t.names, t.ids, t.stack, t.value = done, names, ids, stack, false
	return true
}

// run writes character data without documents in it.
func (t *tokenizer) run(s string) {
	plain := 0 // octets that are known not to be base64: no octet is tried twice
	for len(s) > 0 {
		if s[0] == '\n' {
			n := 0
			for strings.HasPrefix(s[1+n*len(t.unit):], t.unit) {
				n++
			}
			if rel := n - (len(t.stack) - t.base); -16 <= rel && rel <= 16 {
				t.out = append(t.out, tokIndent, byte(indentZero+rel))
				s = s[1+n*len(t.unit):]
				plain -= 1 + n*len(t.unit)
				continue
			}
		}
		if plain <= 0 {
			n, ok := t.base64(s)
			if ok {
				s = s[n:]
				continue
			}
			plain = n
		}
		if n := t.id(s); n > 0 {
			s = s[n:]
			plain -= n
			continue
		}
		t.out = append(t.out, s[0])
		s = s[1:]
		plain--
	}
}

const urnText = "urn:jxta:"

// Shortest base64 text that becomes octets.
const minBase64 = 64
