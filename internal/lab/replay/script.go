package replay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/trace"
)

// Peer is one of a trace's peers.
type Peer struct {
	Label string
	Name  string
	ID    string // unique value
	Edge  bool   // on the ship
}

// Pipe is one of a trace's pipes.
type Pipe struct {
	Label   string
	ID      string // unique value
	Unicast bool
}

// Actions of a peer.
const (
	Publish = trace.EventPublish
	Query   = trace.EventQuery
	Open    = trace.EventOpen
	Send    = trace.EventSend
)

// Action is an action of a peer at a time.
type Action struct {
	At       time.Duration // from the trace's beginning
	Do       string
	Peer     int    // index of Script.Peers
	Pipe     int    // index of Script.Pipes; -1: none
	Listen   bool   // Open: an input pipe
	Attr     string // Query
	Name     string // Query: value, may have * at its ends; Publish: of the service
	Doc      []byte // Publish: the advertisement
	Elements []jxta.Element
	Octets   int // Send: of the elements' content
	Message  int // Send: index of Script.Messages
}

// Message is one message of a trace and the peers that should get it.
type Message struct {
	At     time.Duration
	Peer   int
	Pipe   int
	Octets int
	To     []int // peers of the other side that listen at that time
	key    string
}

// Script is the actions of a trace's peers.
type Script struct {
	Header   trace.Header
	Totals   trace.TotalsOf
	Peers    []Peer
	Pipes    []Pipe
	Actions  []Action // in order of time
	Messages []Message
	Duration time.Duration
	Notes    []string // gaps of the trace that were filled in
}

// Reasons why a trace cannot be played.
var (
	ErrNoPeers = errors.New("replay: the trace has no peers")
	ErrNothing = errors.New("replay: nothing in the trace would cross the link: no peer of one side sends to a listener of the other")
)

// NewScript reads a trace and fills in its gaps: ids in anonymised traces, content of the given kind (trace.ContentXML and so on) if
// there are only sizes, the listeners of messages to pipes that no peer is seen to open. All of this follows from the seed.
func NewScript(f *trace.File, content string, seed uint64) (*Script, error) {
	b := &scriptBuilder{
		s: &Script{Header: f.Header, Totals: f.Totals}, peers: map[string]int{}, pipes: map[string]int{}, owner: map[int]int{},
		random: rand.New(rand.NewPCG(seed, 0x7ace)), ids: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 1}),
		content: content, tracks: map[int]*trace.Tracks{}, tak: map[string]bool{},
	}
	if content == "" {
		b.content = trace.ContentXML
	}
	for i := range f.Lines {
		if err := b.line(&f.Lines[i]); err != nil {
			return nil, err
		}
	}
	if len(b.s.Peers) == 0 {
		return nil, ErrNoPeers
	}
	b.listeners()
	if b.events > 0 {
		b.note("%d events of TAK devices are not played with JXTA: a trace of them alone is", b.events)
	}
	s := b.s
	s.Duration = time.Duration(f.Header.Duration * float64(time.Second))
	if n := len(s.Actions); n > 0 {
		s.Duration = max(s.Duration, s.Actions[n-1].At)
	}
	for _, m := range s.Messages {
		if len(m.To) > 0 {
			return s, nil
		}
	}
	return nil, ErrNothing
}

type scriptBuilder struct {
	s       *Script
	peers   map[string]int
	pipes   map[string]int
	owner   map[int]int // pipe -> peer that published it
	random  *rand.Rand
	ids     io.Reader
	content string
	tracks  map[int]*trace.Tracks // by peer
	tak     map[string]bool       // labels of pipes of TAK, which RunTAK plays
	events  int                   // events sent to these pipes
	made    bool                  // content was made up
}

func (b *scriptBuilder) line(l *trace.Line) error {
	at := time.Duration(l.T * float64(time.Second)).Round(time.Microsecond)
	switch l.Do {
	case "peer":
		p := Peer{Label: l.Peer, Name: l.Name, ID: b.id(l.ID, jxta.KindPeer), Edge: l.Edge}
		if p.Name == "" {
			p.Name = l.Peer
		}
		b.peers[l.Peer] = len(b.s.Peers)
		b.s.Peers = append(b.s.Peers, p)
		return nil
	case "pipe":
		if l.Kind == trace.PipeTAK {
			b.tak[l.Pipe] = true
			return nil
		}
		b.pipes[l.Pipe] = len(b.s.Pipes)
		b.s.Pipes = append(b.s.Pipes, Pipe{Label: l.Pipe, ID: b.id(l.ID, jxta.KindPipe), Unicast: l.Kind == "unicast"})
		return nil
	}
	if b.tak[l.Pipe] {
		b.events++
		return nil
	}
	a := Action{At: at, Do: l.Do, Peer: b.peers[l.Peer], Pipe: -1, Listen: l.Listen, Attr: l.Attr, Name: l.Name}
	if i, ok := b.pipes[l.Pipe]; ok {
		a.Pipe = i
	}
	switch l.Do {
	case Publish:
		if a.Name == "" {
			a.Name = b.s.Peers[a.Peer].Name + "-svc"
		}
		if _, ok := b.owner[a.Pipe]; !ok {
			b.owner[a.Pipe] = a.Peer
		}
		a.Doc = b.advertisement(l, &a)
	case Query:
		if a.Attr == "" {
			a.Attr = "Name"
		}
	case Send:
		a.Elements, a.Octets, a.Message = b.elements(l, a.Peer), l.Octets, len(b.s.Messages)
		key := contentKey(b.s.Pipes[a.Pipe].ID, a.Elements)
		b.s.Messages = append(b.s.Messages, Message{At: at, Peer: a.Peer, Pipe: a.Pipe, Octets: l.Octets, key: key})
	}
	b.s.Actions = append(b.s.Actions, a)
	return nil
}

// id is a unique value in normal form, or a new one if the trace has none that can be read.
func (b *scriptBuilder) id(unique string, kind byte) string {
	if n, err := jxta.Normalize(unique); err == nil && jxta.IDKind(n) == kind {
		return n
	}
	n, err := jxta.NewID(kind, jxta.NetUUID, b.ids)
	if err != nil {
		panic("replay: " + err.Error()) // ChaCha8 always reads
	}
	return n
}

// advertisement is a module specification advertisement with the pipe in it, as long as the trace says; words in its description fill it
// up.
func (b *scriptBuilder) advertisement(l *trace.Line, a *Action) []byte {
	make := func(words string) []byte {
		pipe := b.s.Pipes[a.Pipe]
		kind := "JxtaPropagate"
		if pipe.Unicast {
			kind = "JxtaUnicast"
		}
		root := jxta.El("jxta:MSA",
			jxta.Leaf("MSID", jxta.URN(b.id(l.ID, jxta.KindSpec))), jxta.Leaf("Name", a.Name), jxta.Leaf("Crtr", "aldis"),
			jxta.Leaf("SURI", "http://jxta.org"), jxta.Leaf("Vers", "1.0"))
		if words != "" {
			root.Kids = append(root.Kids, jxta.Leaf("Desc", words))
		}
		adv := jxta.El("jxta:PipeAdvertisement", jxta.Leaf("Id", jxta.URN(pipe.ID)), jxta.Leaf("Type", kind), jxta.Leaf("Name", a.Name))
		root.Attr = []jxta.Attr{{Name: "xmlns:jxta", Value: "http://jxta.org"}}
		root.Kids = append(root.Kids, adv)
		return jxta.AppendDocument(nil, root)
	}
	if jxta.IDKind(l.ID) != jxta.KindSpec { // one id, so that both drafts have it
		l = &trace.Line{ID: b.id("", jxta.KindSpec), Octets: l.Octets}
	}
	doc := make("")
	if over := l.Octets - len(doc) - len("<Desc>\n</Desc>\n"); over > 0 {
		doc = make(strings.TrimSpace(string(trace.AppendWords(nil, over, b.random))))
	}
	return doc
}

// elements are the elements of a message, with made-up content if the trace has only sizes.
func (b *scriptBuilder) elements(l *trace.Line, peer int) []jxta.Element {
	parts := l.Parts
	if len(parts) == 0 {
		parts = []trace.PartOf{{Name: "track:body", Octets: l.Octets}}
	}
	list := make([]jxta.Element, len(parts))
	for i := range parts {
		p := &parts[i]
		ns, name, ok := strings.Cut(p.Name, ":")
		if !ok {
			ns, name = "", p.Name
		}
		data := p.Content()
		if data == nil && p.Octets > 0 {
			if b.tracks[peer] == nil {
				b.tracks[peer] = trace.NewTracks(b.s.Peers[peer].Name, b.random)
			}
			data = b.tracks[peer].Body(l.T, p.Octets, b.content, b.random)
			if !b.made {
				b.made = true
				b.note("messages have only sizes: their content is made up (%s)", b.content)
			}
		}
		list[i] = jxta.Element{Namespace: ns, Name: name, Type: p.Type, Data: data}
	}
	return list
}

func (b *scriptBuilder) note(format string, args ...any) {
	b.s.Notes = append(b.s.Notes, fmt.Sprintf(format, args...))
}

// listeners finds the recipients of each message, and adds a listener where a capture of one side could not show one.
func (b *scriptBuilder) listeners() {
	s := b.s
	opened := map[int]map[int]time.Duration{} // pipe -> peer -> when
	for _, a := range s.Actions {
		if a.Do == Open && a.Listen {
			if opened[a.Pipe] == nil {
				opened[a.Pipe] = map[int]time.Duration{}
			}
			if _, ok := opened[a.Pipe][a.Peer]; !ok {
				opened[a.Pipe][a.Peer] = a.At
			}
		}
	}
	var implied []Action
	for i := range s.Messages {
		m := &s.Messages[i]
		far := !s.Peers[m.Peer].Edge
		listening := false
		for p, at := range opened[m.Pipe] {
			listening = listening || s.Peers[p].Edge == far && at <= m.At
		}
		if !listening && (!s.Pipes[m.Pipe].Unicast || len(opened[m.Pipe]) == 0) {
			p := b.listener(m.Pipe, far)
			if opened[m.Pipe] == nil {
				opened[m.Pipe] = map[int]time.Duration{}
			}
			b.note("nobody of the other side is seen to open %s by %.0f s, when %s sends to it: %s listens from the beginning",
				s.Pipes[m.Pipe].Label, m.At.Seconds(), s.Peers[m.Peer].Name, s.Peers[p].Name)
			opened[m.Pipe][p] = 0
			implied = append(implied, Action{Do: Open, Peer: p, Pipe: m.Pipe, Listen: true})
		}
	}
	s.Actions = append(implied, s.Actions...)
	for i := range s.Messages {
		m := &s.Messages[i]
		for p := range s.Peers { // in order
			if at, ok := opened[m.Pipe][p]; ok && at <= m.At && s.Peers[p].Edge != s.Peers[m.Peer].Edge {
				m.To = append(m.To, p)
			}
		}
		if s.Pipes[m.Pipe].Unicast && len(m.To) > 1 {
			m.To = m.To[:1]
		}
	}
}

// listener is the peer that would listen on a pipe at that side: the one that published it, or the first peer of the side.
func (b *scriptBuilder) listener(pipe int, edge bool) int {
	if p, ok := b.owner[pipe]; ok && b.s.Peers[p].Edge == edge {
		return p
	}
	for i, p := range b.s.Peers {
		if p.Edge == edge {
			return i
		}
	}
	name := "ashore"
	if edge {
		name = "ship"
	}
	b.s.Peers = append(b.s.Peers, Peer{Label: name, Name: name, ID: b.id("", jxta.KindPeer), Edge: edge})
	return len(b.s.Peers) - 1
}
