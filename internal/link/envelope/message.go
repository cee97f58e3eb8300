package envelope

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

var (
	ErrMalformed   = errors.New("envelope: malformed")
	ErrLimit       = errors.New("envelope: beyond a limit")
	ErrUnknownFlow = errors.New("envelope: flow number not known here")
)

// Hash names one version of an item: the first octets of a SHA-256 over it (package replica).
type Hash [4]byte

// Message is one message in custody. It has Payload, or any of the other fields.
type Message struct {
	Payload *site.Message // MsgID does not travel
	Items   []site.Item
	Asks    bool      // Have is given, even when empty
	Have    []Hash    // items held from the receiver's site
	Void    []Hash    // items that the sender's site does not have
	Again   []uint32  // P_Mul messages of the receiver that the sender has and cannot read
	Renew   []Renewal // items that the receiver holds and that now live longer
	Roster  []byte    // of the network, as package roster appends it
	Lost    []Lost    // messages of the receiver that were received and could not be handed over
	Moved   []Moved   // numbers that the message had before, on other bearers
	Rest    *Rest     // instead of all fields but Moved: the rest of Payload as it was coded there
	Direct  *Direct   // of a direct session, alone but for Moved
}

// Flow is the canonical encoding of the properties that all messages of one flow share. Equal flows have equal octets.
type Flow string

// FlowOf returns the flow that p belongs to.
func FlowOf(p *site.Message) Flow { return Flow(marshal(nil, flowDef(p))) }

func flowDef(p *site.Message) *FlowDef {
	f := &FlowDef{
		Face:  uint32(p.Adapter),
		Group: compact.AppendID(nil, p.Scope),
		Src:   compact.AppendID(nil, p.From),
	}
	if p.Published {
		f.Pipe = compact.AppendID(nil, p.Topic)
	} else {
		f.Dst = compact.AppendID(nil, p.To)
		f.Service = p.Service
		if id, ok := strings.CutPrefix(p.Param, urn); ok {
			f.ParamPipe = compact.AppendID(nil, id)
		} else {
			f.Param = p.Param
		}
	}
	f.Precedence, f.Keyed, f.Fleeting = uint32(p.Precedence), p.Key != 0, p.Fleeting
	for _, e := range flat(p.Parts) {
		f.Shape = append(f.Shape, &Shape{Namespace: e.Namespace, Name: e.Name, Type: e.Type, Encoding: e.Encoding,
			Signed: e.Signature != nil})
	}
	return f
}

// flat lists elements, each followed by its signature element if it has one.
func flat(elements []site.Part) (list []*site.Part) {
	for i := range elements {
		for e := &elements[i]; e != nil; e = e.Signature {
			list = append(list, e)
		}
	}
	return list
}

const urn = "urn:jxta:"

const (
	maxKey        = 1<<24 - 1
	maxPrecedence = 5
)

var deterministic = proto.MarshalOptions{Deterministic: true}

func marshal(dst []byte, m proto.Message) []byte {
	out, err := deterministic.MarshalAppend(dst, m)
	if err != nil { // only for text that is not UTF-8, which Append refuses
		panic("envelope: " + err.Error())
	}
	return out
}

// Texts codes the data of elements and the documents of items, which are most of the octets. A nil Texts leaves data as it
// is, and expands only codes that need no earlier messages.
type Texts struct {
	Coder *compact.Coder
	Rules []compact.Rule // effort by MIME type, name and size of an element; nil: full effort for all
	// Encode codes element number i of a payload, Decode expands it; flow is the number of the payload's flow, 0 where it
	// has none. Nil: the Coder does it, without earlier messages.
	Encode func(i int, data []byte) ([]byte, compact.Codec)
	// Ahead codes element number i in advance (Prepare), as Encode will. Nil: the Coder does it.
	Ahead func(i int, data []byte, octets int) (done bool)
	// Alike says whether the far end can tell by itself which codec Encode returned; nil: it cannot.
	Alike  func(i int, codec compact.Codec, code []byte) bool
	Decode func(flow uint32, i int, codec compact.Codec, code []byte, limit int) ([]byte, error)
	// Whole says that the message is coded or read in one turn of the loop: the model takes MostWhole octets of it at the most.
	Whole bool
	// Sparing says that no element is compressed: the air is cheaper than the work.
	Sparing bool
	// Seen, if set, is called with each element and document before it is expanded; octets include the codec's.
	Seen func(document bool, codec compact.Codec, octets int)
}

func (t *Texts) encode(i int, e *site.Part, left *room) ([]byte, compact.Codec) {
	effort := compact.EffortFor(t.Rules, e.Type, e.Name, len(e.Data))
	if effort == compact.Full && len(e.Data) > left.modelled {
		effort = compact.Light
	}
	if t.Sparing {
		effort = compact.None
	}
	if t.Encode != nil && effort == compact.Full {
		return t.Encode(i, e.Data)
	}
	return t.Coder.AppendElement(nil, e.Data, effort)
}

func (t *Texts) decode(flow uint32, i int, coded []byte, left *room) ([]byte, error) {
	if len(coded) == 0 {
		return nil, fmt.Errorf("%w: an element without codec", ErrMalformed)
	}
	codec, code := compact.Codec(coded[0]), coded[1:]
	limit := left.limit(codec, maxExpanded)
	if t != nil && t.Seen != nil {
		t.Seen(false, codec, len(coded))
	}
	switch {
	case t == nil:
		return compact.Expand(codec, code, limit)
	case t.Decode != nil:
		return t.Decode(flow, i, codec, code, limit)
	}
	return t.Coder.Expand(codec, code, limit)
}

// Append is AppendCoded with nothing coded, as a journal keeps it.
func Append(dst []byte, m Message, number uint32, define bool) ([]byte, error) {
	return AppendCoded(dst, m, number, define, nil)
}

// Parse is ParseCoded without earlier messages.
func Parse(b []byte, lookup func(number uint32) (Flow, bool)) (m Message, number uint32, defined Flow, err error) {
	return ParseCoded(b, lookup, nil)
}

// AppendCoded appends m in wire form (brief.go). number is the number of m.Payload's flow; with define, the flow's
// definition goes along.
// The error is ErrMalformed for texts that are not UTF-8.
func AppendCoded(dst []byte, m Message, number uint32, define bool, texts *Texts) ([]byte, error) {
	e := &Envelope{Moved: joinMoved(m.Moved), Rest: m.Rest.join()}
	if e.Rest != nil {
		e.Key = leading
		return marshal(dst, e), nil
	}
	if m.Direct != nil {
		e.Key, e.Direct = leading, m.Direct.join()
		return marshal(dst, e), nil
	}
	left := texts.room(maxExpanded)
	if p := m.Payload; p != nil {
		if !valid(p) {
			return dst, fmt.Errorf("%w: a name is not UTF-8", ErrMalformed)
		}
		e.Flow, e.Key = number, p.Key&maxKey
		if texts == nil && !p.Expires.IsZero() {
			e.Expires = uint32(p.Expires.Unix())
		}
		if texts == nil && p.Lasting {
			e.Token = p.Token
		}
		elements := flat(p.Parts)
		for _, el := range elements {
			e.Data = append(e.Data, el.Data)
		}
		if texts != nil {
			e.code(texts, elements, left)
		}
		if define {
			e.Define = definition(p, texts != nil)
		}
	}
	var coder *compact.Coder
	if texts != nil {
		coder = texts.Coder
	}
	items := m.Items
	if coder != nil {
		e.Short, items = appendPeers(e.Short, coder, items, left)
	}
	for _, it := range items {
		if err := Fits(&it); err != nil {
			return dst, err
		}
		if coder != nil && it.Adapter != site.JXTA {
			e.Short = append(e.Short, appendShort(nil, coder, it, left))
			continue
		}
		e.Items = append(e.Items, itemOut(coder, it, left))
	}
	if m.Asks {
		e.Have, e.HaveNone = joinHashes(m.Have), len(m.Have) == 0
	}
	e.Void, e.Again, e.Renew = joinHashes(m.Void), m.Again, joinRenewals(m.Renew)
	e.Lost, e.Roster = joinLost(m.Lost), m.Roster
	if texts != nil {
		if brief, ok := appendBrief(dst, e, texts.Alike); ok {
			return brief, nil
		}
	}
	return marshal(dst, e), nil
}

// leading precedes a rest and a Direct, whose own field would look like a brief envelope (brief.go). Its value is ignored.
const leading = 1

// code replaces Data by Coded where that is shorter.
func (e *Envelope) code(texts *Texts, elements []*site.Part, left *room) {
	saved := -len(elements)
	coded := make([][]byte, len(elements))
	for i, el := range elements {
		code, codec := texts.encode(i, el, left)
		left.charge(codec, len(el.Data))
		coded[i] = append([]byte{byte(codec)}, code...)
		saved += len(el.Data) - len(code)
	}
	if saved > 0 {
		e.Data, e.Coded = nil, coded
	}
}

// ParseCoded is the inverse of AppendCoded, followed by Pack or not. lookup gives the flow of a number when the message
// does not define it. Returned slices alias b, except documents. The error is ErrLimit where b holds more, or expands to
// more, than one message may.
func ParseCoded(b []byte, lookup func(number uint32) (Flow, bool), texts *Texts) (m Message, number uint32, defined Flow, err error) {
	if lookup == nil {
		lookup = func(uint32) (Flow, bool) { return "", false }
	}
	left := texts.room(MostExpanded(len(b)))
	if b, err = unpack(b, left.octets); err != nil {
		return m, 0, "", err
	}
	e := &Envelope{}
	if len(b) > 0 && b[0]&formBrief != 0 {
		if e, err = parseBrief(b, lookup); err != nil {
			return m, 0, "", err
		}
	} else if err := count(b); err != nil {
		return m, 0, "", err
	} else if err := proto.Unmarshal(b, e); err != nil {
		return m, 0, "", fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if len(e.Coded) > 0 {
		if e.Data, err = expandAll(e.Flow, e.Coded, texts, left); err != nil {
			return m, e.Flow, "", err
		}
	}
	if e.Flow != 0 || e.Define != nil {
		flow := e.Define
		if flow != nil {
			if err := flow.spellOut(); err != nil {
				return m, e.Flow, "", err
			}
		} else {
			known, ok := lookup(e.Flow)
			if !ok {
				return m, e.Flow, "", fmt.Errorf("%w: %d", ErrUnknownFlow, e.Flow)
			}
			flow = &FlowDef{}
			if err := proto.Unmarshal([]byte(known), flow); err != nil {
				return m, e.Flow, "", fmt.Errorf("%w: flow %d: %v", ErrMalformed, e.Flow, err)
			}
		}
		if m.Payload, err = payloadIn(flow, e.Data); err != nil {
			return Message{}, e.Flow, "", err
		}
		m.Payload.Key = e.Key & maxKey
		if e.Expires != 0 {
			m.Payload.Expires = time.Unix(int64(e.Expires), 0).UTC()
		}
		m.Payload.Token, m.Payload.Lasting = e.Token, e.Token != 0
		number = e.Flow
		if e.Define != nil {
			defined = Flow(marshal(nil, e.Define))
		}
	}
	for _, it := range e.Items {
		item, err := itemIn(it, texts, left)
		if err == nil {
			err = named(&item)
		}
		if err != nil {
			return Message{}, 0, "", err
		}
		m.Items = append(m.Items, item)
	}
	for _, b := range e.Short {
		if len(b) > 0 && b[0] == 0 {
			peers, err := parsePeers(b, texts, left, MaxItems-len(m.Items))
			if err != nil {
				return Message{}, 0, "", err
			}
			m.Items = append(m.Items, peers...)
			continue
		}
		item, err := parseShort(b, texts, left)
		if err == nil {
			err = named(&item)
		}
		if err != nil {
			return Message{}, 0, "", err
		}
		m.Items = append(m.Items, item)
	}
	if m.Have, err = splitHashes(e.Have); err != nil {
		return Message{}, 0, "", err
	}
	if m.Void, err = splitHashes(e.Void); err != nil {
		return Message{}, 0, "", err
	}
	if m.Renew, err = splitRenewals(e.Renew); err != nil {
		return Message{}, 0, "", err
	}
	if m.Lost, err = splitLost(e.Lost); err != nil {
		return Message{}, 0, "", err
	}
	if m.Moved, err = splitMoved(e.Moved); err != nil {
		return Message{}, 0, "", err
	}
	if m.Rest, err = splitRest(e.Rest); err != nil {
		return Message{}, 0, "", err
	}
	if m.Direct, err = splitDirect(e.Direct); err != nil {
		return Message{}, 0, "", err
	}
	m.Roster = e.Roster
	m.Asks, m.Again = e.HaveNone || len(m.Have) > 0, e.Again
	return m, number, defined, nil
}

// valid says whether every text of p can travel as a Protocol Buffers string.
func valid(p *site.Message) bool {
	ok := utf8.ValidString(p.Service) && utf8.ValidString(p.Param)
	for _, e := range flat(p.Parts) {
		for _, s := range [...]string{e.Namespace, e.Name, e.Type, e.Encoding} {
			ok = ok && utf8.ValidString(s)
		}
	}
	return ok
}

func payloadIn(f *FlowDef, data [][]byte) (*site.Message, error) {
	if len(data) != len(f.Shape) {
		return nil, fmt.Errorf("%w: %d elements for a flow of %d", ErrMalformed, len(data), len(f.Shape))
	}
	if f.Precedence > maxPrecedence {
		return nil, fmt.Errorf("%w: precedence %d", ErrMalformed, f.Precedence)
	}
	if f.Face > uint32(site.MaxAdapter) {
		return nil, fmt.Errorf("%w: adapter %d", ErrMalformed, f.Face)
	}
	p := &site.Message{Adapter: site.Adapter(f.Face), Published: len(f.Pipe) > 0, Mark: site.Mark{Precedence: site.Precedence(f.Precedence), Fleeting: f.Fleeting}}
	if p.Published { // a published message does not use the other names
		f.Dst, f.Service, f.Param, f.ParamPipe = nil, "", "", nil
	}
	p.Service, p.Param = f.Service, f.Param
	ids := []struct {
		to   *string
		from []byte
	}{{&p.Scope, f.Group}, {&p.From, f.Src}, {&p.Topic, f.Pipe}, {&p.To, f.Dst}, {&p.Param, f.ParamPipe}}
	for _, id := range ids {
		if len(id.from) == 0 {
			continue
		}
		text, err := compact.ParseID(id.from)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		*id.to = text
	}
	if len(f.ParamPipe) > 0 {
		p.Param = urn + p.Param
	}
	var signed *site.Part // its signature is the next element
	for i, s := range f.Shape {
		e := &site.Part{Namespace: s.Namespace, Name: s.Name, Type: s.Type, Encoding: s.Encoding, Data: data[i]}
		if signed != nil {
			signed.Signature = e
		} else {
			p.Parts = append(p.Parts, *e)
			e = &p.Parts[len(p.Parts)-1]
		}
		signed = nil
		if s.Signed {
			signed = e
		}
	}
	if signed != nil {
		return nil, fmt.Errorf("%w: an element's signature is missing", ErrMalformed)
	}
	return p, nil
}

func itemOut(coder *compact.Coder, it site.Item, left *room) *ItemDef {
	out := &ItemDef{
		Face: uint32(it.Adapter),
		Kind: uint32(it.Kind), Sub: uint32(it.Sub), Signed: it.Variant, Gone: it.Gone,
		Group: compact.AppendID(nil, it.Scope),
		Peer:  compact.AppendID(nil, it.Owner),
	}
	if it.ID != "" {
		out.Id = compact.AppendID(nil, it.ID)
	}
	if len(it.Doc) > 0 && coder == nil {
		out.Doc = append([]byte{byte(compact.Stored)}, it.Doc...)
	} else if len(it.Doc) > 0 {
		effort := compact.Full
		if len(it.Doc) > left.modelled {
			effort = compact.Light
		}
		doc, codec := coder.AppendElement([]byte{0}, it.Doc, effort)
		left.charge(codec, len(it.Doc))
		doc[0] = byte(codec)
		out.Doc = doc
	}
	if !it.Expires.IsZero() {
		out.Expires = uint32(it.Expires.Unix())
	}
	return out
}

func itemIn(in *ItemDef, texts *Texts, left *room) (it site.Item, err error) {
	it = site.Item{Adapter: site.Adapter(in.Face), Kind: site.Kind(in.Kind), Sub: uint8(in.Sub), Variant: in.Signed, Gone: in.Gone}
	if in.Kind == 0 || in.Kind > uint32(site.Question) || in.Sub > 255 {
		return it, fmt.Errorf("%w: item kind %d, %d", ErrMalformed, in.Kind, in.Sub)
	}
	if in.Face > uint32(site.MaxAdapter) {
		return it, fmt.Errorf("%w: adapter %d", ErrMalformed, in.Face)
	}
	if it.Scope, err = compact.ParseID(in.Group); err != nil {
		return it, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if it.Owner, err = compact.ParseID(in.Peer); err != nil {
		return it, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if len(in.Id) > 0 {
		if it.ID, err = compact.ParseID(in.Id); err != nil {
			return it, fmt.Errorf("%w: %v", ErrMalformed, err)
		}
	}
	if len(in.Doc) > 0 {
		if it.Doc, err = expandDoc(in.Doc, texts, left); err != nil {
			return it, err
		}
	}
	if in.Expires != 0 {
		it.Expires = time.Unix(int64(in.Expires), 0).UTC()
	}
	return it, nil
}

// expandDoc expands the document of an item: codec and code.
func expandDoc(coded []byte, texts *Texts, left *room) ([]byte, error) {
	if len(coded) == 0 {
		return nil, fmt.Errorf("%w: a document without codec", ErrMalformed)
	}
	expand, codec := compact.Expand, compact.Codec(coded[0])
	if texts != nil {
		expand = texts.Coder.Expand // with its tables already made
		if texts.Seen != nil {
			texts.Seen(true, codec, len(coded))
		}
	}
	doc, err := expand(codec, coded[1:], left.limit(codec, MaxDoc))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, beyond(err))
	}
	left.charge(codec, len(doc))
	return doc, nil
}

// expandAll expands the elements of a payload, all together into the room that is left.
func expandAll(flow uint32, coded [][]byte, texts *Texts, left *room) ([][]byte, error) {
	data := make([][]byte, len(coded))
	for i, c := range coded {
		d, err := texts.decode(flow, i, c, left)
		if err != nil {
			return nil, fmt.Errorf("envelope: element %d: %w", i, beyond(err))
		}
		data[i] = d
		left.charge(compact.Codec(c[0]), len(d))
	}
	return data, nil
}

func joinHashes(hashes []Hash) []byte {
	var b []byte
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b
}

func splitHashes(b []byte) ([]Hash, error) {
	if len(b)%len(Hash{}) != 0 {
		return nil, fmt.Errorf("%w: %d octets of hashes", ErrMalformed, len(b))
	}
	var hashes []Hash
	for ; len(b) > 0; b = b[len(Hash{}):] {
		hashes = append(hashes, Hash(b[:len(Hash{})]))
	}
	return hashes, nil
}

// Fits says whether a message can hold an item: its document has at most MaxDoc octets, and its names MaxNames. ErrLimit: it cannot.
func Fits(it *site.Item) error {
	if len(it.Doc) > MaxDoc {
		return fmt.Errorf("%w: document of %d octets", ErrLimit, len(it.Doc))
	}
	return named(it)
}

// named says whether an item's names are short enough for the key of a journal.
func named(it *site.Item) error {
	if n := len(it.Scope) + len(it.Owner) + len(it.ID); n > MaxNames {
		return fmt.Errorf("%w: names of an item of %d octets", ErrLimit, n)
	}
	return nil
}
