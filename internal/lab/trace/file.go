package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fileVersion is the version of the trace files that this package reads and writes. docs/traces.md describes it.
const fileVersion = 1

const (
	maxLineLen = 32 << 20 // octets of a line of a trace: a message of 16 MiB in base64, and names
	maxLabels  = 1 << 16  // peers, and pipes
	maxEvents  = 1 << 22
)

// Kinds of lines of a trace, besides the names of events.
const (
	linePeer = "peer"
	linePipe = "pipe"
	lineEnd  = "end"
)

// Header is the first line of a trace.
type Header struct {
	Version    int     `json:"aldis_trace"`
	Source     string  `json:"source,omitempty"`     // its origin
	Start      string  `json:"start,omitempty"`      // RFC 3339, when t is 0; not in anonymised traces
	Duration   float64 `json:"duration_s"`           // of the capture, 0 if it is not known beforehand
	Content    string  `json:"content"`              // "data" or "size"
	Anonymised bool    `json:"anonymised,omitempty"` // names, addresses and content are left out
	Seed       uint64  `json:"seed,omitempty"`       // of a synthetic trace
	Jam        Jam     `json:"jam,omitzero"`         // of the link of the capture; zero: it was not jammed, or that is unknown
}

// Line is any other line. Do decides which members it has: docs/traces.md.
type Line struct {
	T       float64   `json:"t"` // s from the beginning, microseconds
	Do      string    `json:"do"`
	Peer    string    `json:"peer,omitempty"` // label
	Pipe    string    `json:"pipe,omitempty"` // label
	Name    string    `json:"name,omitempty"`
	Attr    string    `json:"attr,omitempty"`
	ID      string    `json:"id,omitempty"`
	Address string    `json:"address,omitempty"`
	Edge    bool      `json:"edge,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	Listen  bool      `json:"listen,omitempty"`
	Octets  int       `json:"octets,omitempty"`
	Parts   []PartOf  `json:"parts,omitempty"`
	Totals  *TotalsOf `json:"totals,omitempty"`
}

// PartOf is one element of a message. Without Text and Data only its size is known.
type PartOf struct {
	Name   string  `json:"name"`
	Type   string  `json:"type,omitempty"`
	Octets int     `json:"octets"`
	Text   *string `json:"text,omitempty"` // content that is UTF-8
	Data   []byte  `json:"data,omitempty"` // content that is not
}

// Content is the content of the element, nil when only its size is known.
func (p *PartOf) Content() []byte {
	if p.Text != nil {
		return []byte(*p.Text)
	}
	return p.Data
}

// TotalsOf is the sums in the last line. In and out are from the view of the edge: out is what the edge sent.
type TotalsOf struct {
	Events      int64 `json:"events"` // publish, query, open and send
	MessagesIn  int64 `json:"messages_in"`
	MessagesOut int64 `json:"messages_out"`
	In          int64 `json:"in"`
	Out         int64 `json:"out"`
	Partial     bool  `json:"partial,omitempty"` // its source was incomplete
}

// FileError says where a trace is wrong, and why.
type FileError struct {
	Line   int
	Detail string
	Err    error
}

// Error is the place and the reason.
func (e *FileError) Error() string {
	s := fmt.Sprintf("trace: line %d: %v", e.Line, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap is the reason.
func (e *FileError) Unwrap() error { return e.Err }

// Reasons why a trace is not read.
var (
	errNoTrace   = errors.New("not a trace file")
	errNewer     = errors.New("a trace of a newer version")
	errLine      = errors.New("not a line of a trace")
	errNoEnd     = errors.New("the trace has no end: it is cut off")
	errTooLarge  = errors.New("the trace exceeds a limit")
	errTotals    = errors.New("the totals at the end are not those of the events")
	errUndefined = errors.New("a label that no line before defines")
)

// File is a whole trace in memory.
type File struct {
	Header Header
	Lines  []Line // in order, those of peers and pipes too, without the last
	Totals TotalsOf
}

// ReadFile reads a trace. With ErrNoEnd and ErrTotals it returns the lines read as well, with totals of its own.
func ReadFile(r io.Reader) (*File, error) {
	b := bufio.NewReader(r)
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 64<<10), maxLineLen)
	f := &File{}
	n := 0
	fail := func(err error, detail string) (*File, error) { return nil, &FileError{n, detail, err} }
	if head, err := b.Peek(4); err == nil && capturedIn(head) {
		n = 1
		return fail(errNoTrace, "it is a capture: gateway record CAPTURE -o TRACE makes a trace of it")
	}
	edges, known := map[string]bool{}, map[string]bool{}
	var sum TotalsOf
	last, ended := 0.0, false
	for s.Scan() {
		n++
		if n == 1 {
			if err := json.Unmarshal(s.Bytes(), &f.Header); err != nil || f.Header.Version < 1 {
				return fail(errNoTrace, `it does not begin with {"aldis_trace":`)
			}
			if f.Header.Version > fileVersion {
				return fail(errNewer, fmt.Sprintf("%d; this gateway reads %d", f.Header.Version, fileVersion))
			}
			continue
		}
		if ended {
			return fail(errLine, "something follows the end")
		}
		var l Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return fail(errLine, err.Error())
		}
		if math.IsNaN(l.T) || l.T < last || l.T > 1e9 {
			return fail(errLine, fmt.Sprintf("time %v after %v", l.T, last))
		}
		last = l.T
		if err := l.check(known); err != nil {
			return fail(err, fmt.Sprintf("%q of peer %q, pipe %q", l.Do, l.Peer, l.Pipe))
		}
		switch l.Do {
		case lineEnd:
			ended, f.Totals = true, *l.Totals
			continue
		case linePeer:
			edges[l.Peer] = l.Edge
		case linePipe:
		case EventSend:
			sum.Add(edges[l.Peer], l.Octets)
			sum.Events++
		default:
			sum.Events++
		}
		if len(known) > 2*maxLabels || len(f.Lines) >= maxEvents {
			return fail(errTooLarge, "")
		}
		f.Lines = append(f.Lines, l)
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		n++
		return fail(errTooLarge, fmt.Sprintf("more than %d octets", maxLineLen))
	case err != nil:
		return nil, err
	case n == 0:
		return fail(errNoTrace, "it is empty")
	}
	told := f.Totals
	sum.Partial = told.Partial
	f.Totals = sum
	switch {
	case !ended:
		return f, &FileError{n, "", errNoEnd}
	case sum != told:
		return f, &FileError{n, fmt.Sprintf("%+v, the events make %+v", told, sum), errTotals}
	}
	return f, nil
}

// Add counts a message; out: an edge peer sent it.
func (t *TotalsOf) Add(out bool, octets int) {
	if out {
		t.MessagesOut++
		t.Out += int64(octets)
	} else {
		t.MessagesIn++
		t.In += int64(octets)
	}
}

// check says whether a line has the members that its kind needs. known are the labels that are defined.
func (l *Line) check(known map[string]bool) error {
	needs := func(labels ...string) error {
		for _, s := range labels {
			if !known[s] {
				return errUndefined
			}
		}
		return nil
	}
	switch l.Do {
	case linePeer:
		if l.Peer == "" || known["peer "+l.Peer] {
			return errLine
		}
		known["peer "+l.Peer] = true
		return nil
	case linePipe:
		if l.Pipe == "" || known["pipe "+l.Pipe] {
			return errLine
		}
		known["pipe "+l.Pipe] = true
		return nil
	case EventPublish, EventOpen:
		return needs("peer "+l.Peer, "pipe "+l.Pipe)
	case EventQuery:
		return needs("peer " + l.Peer)
	case EventSend:
		sum := 0
		for i := range l.Parts {
			p := &l.Parts[i]
			if c := p.Content(); p.Octets < 0 || c != nil && len(c) != p.Octets || p.Text != nil && p.Data != nil {
				return errLine
			}
			sum += p.Octets
		}
		if l.Octets < 0 || len(l.Parts) > 0 && sum != l.Octets {
			return errLine
		}
		return needs("peer "+l.Peer, "pipe "+l.Pipe)
	case lineEnd:
		if l.Totals == nil {
			return errLine
		}
		return nil
	}
	return errLine
}

// FileWriter writes a trace line by line. The first error stays and comes out of End.
type FileWriter struct {
	w      *bufio.Writer
	header Header
	peers  map[string]string // label by id
	pipes  map[string]string
	edges  map[string]bool // by label
	names  map[string]string
	totals TotalsOf
	last   float64
	err    error
}

// NewFileWriter writes the first line.
func NewFileWriter(w io.Writer, h Header) *FileWriter {
	h.Version = fileVersion
	if h.Anonymised {
		h.Content, h.Start, h.Source = "size", "", ""
	}
	f := &FileWriter{
		w: bufio.NewWriter(w), header: h, peers: map[string]string{}, pipes: map[string]string{}, edges: map[string]bool{},
		names: map[string]string{},
	}
	f.json(h)
	return f
}

func (f *FileWriter) json(v any) {
	if f.err != nil {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	f.err = enc.Encode(v)
	if f.err == nil {
		_, f.err = f.w.Write(b.Bytes())
	}
}

// round cuts a time to microseconds, and keeps times from running backwards.
func (f *FileWriter) round(t float64) float64 {
	f.last = max(f.last, math.Round(t*1e6)/1e6)
	return f.last
}

// label returns the label of a key, and whether it is new.
func label(m map[string]string, letter, key string) (string, bool) {
	if s, ok := m[key]; ok {
		return s, false
	}
	if len(m) >= maxLabels {
		return "", false
	}
	s := letter + strconv.Itoa(len(m)+1)
	m[key] = s
	return s, true
}

// Peer returns the label of a peer and writes its line when it is new. id is any text that identifies the peer.
func (f *FileWriter) Peer(t float64, id, address, name string, edge bool) string {
	s, fresh := label(f.peers, "p", id)
	if !fresh {
		return s
	}
	l := Line{T: f.round(t), Do: linePeer, Peer: s, ID: id, Address: address, Name: name, Edge: edge}
	if f.header.Anonymised {
		l.ID, l.Address, l.Name = "", "", ""
	}
	f.edges[s] = edge
	f.json(l)
	return s
}

// Pipe returns the label of a pipe and writes its line when it is new.
func (f *FileWriter) Pipe(t float64, id, kind string) string {
	s, fresh := label(f.pipes, "q", id)
	if !fresh {
		return s
	}
	l := Line{T: f.round(t), Do: linePipe, Pipe: s, ID: id, Kind: kind}
	if f.header.Anonymised {
		l.ID = ""
	}
	f.json(l)
	return s
}

// Write writes an event. Peer and Pipe are labels.
func (f *FileWriter) Write(l Line) {
	l.T = f.round(l.T)
	if f.header.Anonymised {
		l.Name, l.ID = f.alias(l.Name), ""
	}
	for i := range l.Parts {
		p := &l.Parts[i]
		if f.header.Anonymised {
			p.Name, p.Type = f.alias(p.Name), ""
		}
		if f.header.Content == "size" {
			p.Text, p.Data = nil, nil
		}
	}
	f.totals.Events++
	if l.Do == EventSend {
		f.totals.Add(f.edges[l.Peer], l.Octets)
	}
	f.json(l)
}

// alias replaces a name. A pattern stays a pattern.
func (f *FileWriter) alias(name string) string {
	if name == "" || strings.Trim(name, "*") == "" {
		return name
	}
	s, _ := label(f.names, "n", strings.Trim(name, "*"))
	if strings.HasPrefix(name, "*") {
		s = "*" + s
	}
	if strings.HasSuffix(name, "*") {
		s += "*"
	}
	return s
}

// PartWith is an element with content.
func PartWith(name, mime string, content []byte) PartOf {
	p := PartOf{Name: name, Type: mime, Octets: len(content)}
	if utf8.Valid(content) {
		s := string(content)
		p.Text = &s
	} else {
		p.Data = content
	}
	return p
}

// End writes the last line at time t and returns the first error.
func (f *FileWriter) End(t float64, partial bool) (TotalsOf, error) {
	f.totals.Partial = partial
	f.json(Line{T: f.round(t), Do: lineEnd, Totals: &f.totals})
	if err := f.w.Flush(); f.err == nil {
		f.err = err
	}
	return f.totals, f.err
}
