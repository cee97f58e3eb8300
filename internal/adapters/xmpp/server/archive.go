package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
)

// Namespaces of the archive (XEP-0313) and of the numbers that lines have in it (XEP-0359).
const (
	NSArchive = "urn:xmpp:mam:2"
	NSID      = "urn:xmpp:sid:0"
)

const (
	nsSet  = "http://jabber.org/protocol/rsm" // XEP-0059
	nsForm = "jabber:x:data"                  // XEP-0004
)

// Bounds of archives.
const (
	mostLines     = 500       // of one owner
	mostLineB     = 512 << 10 // octets of the lines of one owner
	mostArchived  = 16 << 20  // octets of all owners
	mostPage      = 100       // lines in one answer
	usualPage     = 50
	overheadOfOne = 200 // memory of a line besides its text, in octets, about
)

// Archive holds the latest messages for clients that ask for them (XEP-0313): for each owner, a user or a room, the newest lines.
type Archive struct {
	Spare  func(owner string) bool // says of an owner that its lines go before those of others, if all are too many; nil: of none
	key    string                  // begins the keys of its memories
	last   uint64
	lines  map[string][]Line // of each owner, the oldest first
	sizes  map[string]int
	octets int
}

// Line is a message in an archive.
type Line struct {
	At     time.Time
	With   string // bare address of the other side
	number uint64
	xml    []byte // in the form that the journal has
}

// Said returns the message.
func (l Line) Said() stanza.Element {
	if e, fault := stanza.Parse(l.xml); fault == nil && len(e.Kids) == 1 {
		return e.Kids[0]
	}
	return stanza.New(ns, "message") // Keep and Restore let no other text in
}

// NewArchive makes an archive whose memories have keys that begin with key.
func NewArchive(key string) *Archive {
	return &Archive{key: key, lines: map[string][]Line{}, sizes: map[string]int{}}
}

func hexNumber(n uint64) string { return fmt.Sprintf("%016x", n) }

// Keep adds a line and returns its number. Lines beyond the bounds are forgotten, the oldest first.
func (a *Archive) Keep(owner string, l Line, e *stanza.Element, remember func(key string, value []byte)) string {
	a.last++
	l.number = a.last
	memory := stanza.New(ns, "l", "at", strconv.FormatInt(l.At.UnixMilli(), 10), "with", l.With).With(*e)
	l.xml = memory.Append(nil, ns)
	a.add(owner, l)
	remember(a.key+owner+"\x00"+hexNumber(l.number), l.xml)
	for len(a.lines[owner]) > mostLines || a.sizes[owner] > mostLineB && len(a.lines[owner]) > 1 {
		a.drop(owner, remember)
	}
	for a.octets > mostArchived {
		a.drop(a.first(), remember)
	}
	return l.ID()
}

// first is the owner whose oldest line goes first: the one with the most octets among the spare ones, or among all if none is spare.
func (a *Archive) first() string {
	spare := func(owner string) int { return boolInt(a.Spare != nil && a.Spare(owner)) }
	return slices.MaxFunc(slices.Collect(maps.Keys(a.sizes)), func(x, y string) int {
		return cmp.Or(spare(x)-spare(y), cmp.Compare(a.sizes[x], a.sizes[y]), cmp.Compare(a.lines[y][0].number, a.lines[x][0].number))
	})
}

func (l Line) octets() int { return len(l.xml) + overheadOfOne }

func (a *Archive) add(owner string, l Line) {
	a.lines[owner] = append(a.lines[owner], l)
	a.sizes[owner] += l.octets()
	a.octets += l.octets()
}

// drop forgets the oldest line of an owner.
func (a *Archive) drop(owner string, remember func(key string, value []byte)) {
	l := a.lines[owner][0]
	a.sizes[owner] -= l.octets()
	a.octets -= l.octets()
	if a.lines[owner] = a.lines[owner][1:]; len(a.lines[owner]) == 0 {
		delete(a.lines, owner)
		delete(a.sizes, owner)
	}
	remember(a.key+owner+"\x00"+hexNumber(l.number), nil)
}

// Forget forgets all lines of an owner.
func (a *Archive) Forget(owner string, remember func(key string, value []byte)) {
	for len(a.lines[owner]) > 0 {
		a.drop(owner, remember)
	}
}

// Lines are the lines of an owner, the oldest first.
func (a *Archive) Lines(owner string) []Line { return a.lines[owner] }

// Restore takes a memory of an earlier run, in the order of their keys; key is without the beginning that NewArchive was given.
func (a *Archive) Restore(key string, value []byte) error {
	owner, number, ok := strings.Cut(key, "\x00")
	n, err := strconv.ParseUint(number, 16, 64)
	if !ok || err != nil {
		return errMemory
	}
	a.last = max(a.last, n)
	e, fault := stanza.Parse(value)
	if fault != nil {
		return fault
	} else if len(e.Kids) != 1 {
		return errMemory
	}
	at, err := strconv.ParseInt(e.Get("at"), 10, 64)
	if err != nil {
		return errMemory
	}
	a.add(owner, Line{time.UnixMilli(at), e.Get("with"), n, value})
	return nil
}

// Answer answers a question to the archive of an owner with stanzas for the client that asks; the last is the answer itself.
func (a *Archive) Answer(owner string, e *stanza.Element) (list []stanza.Element) {
	q := e.Kid(NSArchive, "query")
	reply := stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result")
	if q == nil || e.Get("type") == "get" {
		form := stanza.New(nsForm, "x", "type", "form").With(field("FORM_TYPE", "hidden", NSArchive), field("with", "jid-single", ""),
			field("start", "text-single", ""), field("end", "text-single", ""))
		return append(list, reply.With(stanza.New(NSArchive, "query").With(form)))
	}
	found, ok := a.matching(owner, q)
	page, complete, known := paged(found, q.Kid(nsSet, "set"))
	if !ok || !known {
		condition := "bad-request"
		if !known {
			condition = "item-not-found"
		}
		return append(list, stanza.Refusal(e, condition, ""))
	}
	for _, l := range page {
		forwarded := stanza.New(nsForward, "forwarded").With(stanza.New(nsDelay, "delay", "stamp", l.At.UTC().Format(stampForm)), l.Said().In(ns, stanza.Client))
		list = append(list, stanza.New(ns, "message", "from", e.Get("to"), "to", e.Get("from")).
			With(stanza.New(NSArchive, "result", "queryid", q.Get("queryid"), "id", l.ID()).With(forwarded)))
	}
	set := stanza.New(nsSet, "set")
	if len(page) > 0 {
		index := strconv.Itoa(slices.IndexFunc(found, func(l Line) bool { return l.number == page[0].number }))
		set = set.With(stanza.New(nsSet, "first", "index", index).Says(page[0].ID()), stanza.New(nsSet, "last").Says(page[len(page)-1].ID()))
	}
	set = set.With(stanza.New(nsSet, "count").Says(strconv.Itoa(len(found))))
	fin := stanza.New(NSArchive, "fin")
	if complete {
		fin = fin.Set("complete", "true")
	}
	return append(list, reply.With(fin.With(set)))
}

// ID is the number of the line in its archive.
func (l Line) ID() string { return strconv.FormatUint(l.number, 10) }

func field(name, kind, value string) stanza.Element {
	f := stanza.New(nsForm, "field", "var", name, "type", kind)
	if value != "" {
		f = f.With(stanza.New(nsForm, "value").Says(value))
	}
	return f
}

// matching are the lines that the form of a question asks for; false: it is malformed.
func (a *Archive) matching(owner string, q *stanza.Element) (found []Line, ok bool) {
	var with string
	var start, end time.Time
	if x := q.Kid(nsForm, "x"); x != nil {
		for i := range x.Kids {
			value := x.Kids[i].Kid(nsForm, "value").Inside()
			if value == "" {
				continue
			}
			var err error
			switch x.Kids[i].Get("var") {
			case "with":
				with = value
			case "start":
				start, err = time.Parse(time.RFC3339Nano, value)
			case "end":
				end, err = time.Parse(time.RFC3339Nano, value)
			}
			if err != nil {
				return nil, false
			}
		}
	}
	for _, l := range a.lines[owner] {
		if (with == "" || bareOf(with) == l.With) && (start.IsZero() || !l.At.Before(start)) && (end.IsZero() || !l.At.After(end)) {
			found = append(found, l)
		}
	}
	return found, true
}

// paged returns the page of lines that is asked for (XEP-0059), whether it is the last one in its direction, and whether the
// line at which it begins is known.
func paged(found []Line, set *stanza.Element) (page []Line, complete, known bool) {
	most := usualPage
	page = found
	if set == nil {
		set = &stanza.Element{}
	}
	if n, err := strconv.Atoi(set.Kid(nsSet, "max").Inside()); err == nil && n >= 0 {
		most = min(n, mostPage)
	}
	at := func(id string) int {
		return slices.IndexFunc(found, func(l Line) bool { return l.ID() == id })
	}
	if after := set.Kid(nsSet, "after").Inside(); after != "" {
		i := at(after)
		if i < 0 {
			return nil, false, false
		}
		page = page[i+1:]
	}
	if before := set.Kid(nsSet, "before"); before != nil {
		if id := before.Inside(); id != "" {
			i := at(id)
			if i < 0 {
				return nil, false, false
			}
			page = found[:i]
		}
		if complete = len(page) <= most; !complete {
			page = page[len(page)-most:]
		}
		return page, complete, true
	}
	if complete = len(page) <= most; !complete {
		page = page[:most]
	}
	return page, complete, true
}
