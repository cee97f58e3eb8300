// Package toyface is a second kind of LAN software besides JXTA, made up for tests: a bulletin board. It shows what an adapter needs and
// proves that the core can carry an adapter of which it knows nothing.
//
// Users enter and leave (items of kind Endpoint). They pin notices (items of kind Document). They post to a board: a
// message, published to a topic, for every far site. The adapter keeps the posts of far sites and shows each once.
//
// The package imports package site alone.
package toyface

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/site"
)

// Number is the adapter's number on the link.
const Number site.Adapter = 7

// Actions of users. The LAN room of a real adapter would read them from connections.
type (
	// Enter says that a user is here.
	Enter struct{ User string }
	// Leave says that a user has gone.
	Leave struct{ User string }
	// Pin puts up a notice in place of an older one of that name; an empty Text takes the notice down.
	Pin struct {
		Notice, Text string
		Until        time.Time // zero: until it is taken down
	}
	// Post posts a text on a board. ID comes back in Told.
	Post struct {
		ID                uint64
		Board, User, Text string
	}
)

// AdapterEvent marks Enter as an event of a protocol adapter.
func (Enter) AdapterEvent() {}

// AdapterEvent marks Leave as an event of a protocol adapter.
func (Leave) AdapterEvent() {}

// AdapterEvent marks Pin as an event of a protocol adapter.
func (Pin) AdapterEvent() {}

// AdapterEvent marks Post as an event of a protocol adapter.
func (Post) AdapterEvent() {}

// Orders of the adapter for its LAN room.
type (
	// Show shows a post of a far site to the users here.
	Show struct{ Line Line }
	// Told reports the fate of a post at one site.
	Told struct {
		ID      uint64
		Site    uint16
		Refused bool
	}
)

// Concerns names no connection: the board has none. A Show confirms nothing.
func (Show) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the length of the line's texts.
func (s Show) Octets() int { return len(s.Line.Board) + len(s.Line.User) + len(s.Line.Text) }

// Concerns names no connection. A Told confirms: its user may forget the post.
func (Told) Concerns() (site.ConnID, bool) { return 0, true }

// Octets is the size of the fields.
func (Told) Octets() int { return 16 }

// Line is one post on a board, with the site that it came from.
type Line struct {
	Site              uint16
	Board, User, Text string
}

// Config of a Bulletin.
type Config struct {
	Scope string   // of all its names
	Sites []uint16 // far sites, which get every post
	Sub   uint8    // of its items; the adapter does not use it
}

// Bulletin is the adapter. It is not for concurrent use.
type Bulletin struct {
	cfg     Config
	users   map[string]bool
	notices map[string]Pin
	far     map[uint16]map[string]site.Item
	board   []Line
	posts   map[uint64]Told // posts whose fate is awaited, by token
	token   uint64
	stale   []string // users of an earlier run
	started bool
	out     site.Output
}

// ErrMemory says that a memory is of another format.
var ErrMemory = errors.New("toyface: memory of another format")

// The keys of memories begin with their kind.
const (
	ofUser   = "user "
	ofNotice = "notice "
	ofLine   = "line "
)

// New restores a bulletin from its memories.
func New(cfg Config, memories []site.Memory) (*Bulletin, error) {
	b := &Bulletin{cfg: cfg, users: map[string]bool{}, notices: map[string]Pin{}, far: map[uint16]map[string]site.Item{},
		posts: map[uint64]Told{}}
	for _, m := range memories {
		switch {
		case strings.HasPrefix(m.Key, ofUser): // its connection ended with the earlier run
			b.stale = append(b.stale, m.Key[len(ofUser):])
		case strings.HasPrefix(m.Key, ofNotice) && len(m.Value) > 8:
			p := Pin{Notice: m.Key[len(ofNotice):], Text: string(m.Value[8:])}
			if until := binary.BigEndian.Uint64(m.Value); until != 0 {
				p.Until = time.UnixMilli(int64(until)).UTC()
			}
			b.notices[p.Notice] = p
		case strings.HasPrefix(m.Key, ofLine):
			fields := strings.SplitN(string(m.Value), "\x00", 4)
			number, err := strconv.ParseUint(fields[0], 10, 16)
			if err != nil || len(fields) != 4 {
				return nil, fmt.Errorf("%w: %q", ErrMemory, m.Key)
			}
			b.board = append(b.board, Line{uint16(number), fields[1], fields[2], fields[3]})
		default:
			return nil, fmt.Errorf("%w: %q", ErrMemory, m.Key)
		}
	}
	return b, nil
}

// Board is all posts of far sites, oldest first.
func (b *Bulletin) Board() []Line { return slices.Clone(b.board) }

// Notices are the names and texts that a far site has pinned.
func (b *Bulletin) Notices(from uint16) map[string]string {
	texts := map[string]string{}
	for _, it := range b.far[from] {
		if it.Kind == site.Document {
			texts[it.ID] = string(it.Doc)
		}
	}
	return texts
}

// Users are the users at a far site.
func (b *Bulletin) Users(from uint16) (users []string) {
	for _, it := range b.far[from] {
		if it.Kind == site.Endpoint {
			users = append(users, it.Owner)
		}
	}
	slices.Sort(users)
	return users
}

// Step brings the adapter to now and applies ev.
func (b *Bulletin) Step(now time.Time, ev site.Event) site.Output {
	b.out = site.Output{}
	if !b.started {
		b.start()
	}
	switch ev := ev.(type) {
	case Enter:
		b.users[ev.User] = true
		b.remember(ofUser+ev.User, []byte{1})
		b.out.Items = append(b.out.Items, b.user(ev.User))
	case Leave:
		delete(b.users, ev.User)
		b.remember(ofUser+ev.User, nil)
		b.out.Items = append(b.out.Items, b.user(ev.User).Withdrawal())
	case Pin:
		b.pin(ev)
	case Post:
		b.post(ev)
	case site.FarMessage:
		b.show(ev)
	case site.FarItem:
		b.farItem(ev)
	case site.SiteLost:
		delete(b.far, ev.Site)
	case site.Fate:
		if p, ok := b.posts[ev.Token]; ok {
			delete(b.posts, ev.Token)
			p.Refused = ev.Failed()
			b.out.Orders = append(b.out.Orders, p)
		}
	}
	return b.out
}

// start announces this site's items: users of the earlier run are gone, its notices are still up.
func (b *Bulletin) start() {
	b.started = true
	for _, name := range b.stale {
		b.remember(ofUser+name, nil)
		b.out.Items = append(b.out.Items, b.user(name).Withdrawal())
	}
	b.stale = nil
	for _, name := range slices.Sorted(maps.Keys(b.notices)) {
		b.out.Items = append(b.out.Items, b.notice(b.notices[name]))
	}
}

func (b *Bulletin) user(name string) site.Item {
	return site.Item{Kind: site.Endpoint, Sub: b.cfg.Sub, Scope: b.cfg.Scope, Owner: name}
}

func (b *Bulletin) notice(p Pin) site.Item {
	return site.Item{Kind: site.Document, Sub: b.cfg.Sub, Scope: b.cfg.Scope, ID: p.Notice, Doc: []byte(p.Text), Expires: p.Until}
}

func (b *Bulletin) pin(p Pin) {
	if p.Text == "" {
		delete(b.notices, p.Notice)
		b.remember(ofNotice+p.Notice, nil)
		b.out.Items = append(b.out.Items, b.notice(p).Withdrawal())
		return
	}
	b.notices[p.Notice] = p
	until := uint64(0)
	if !p.Until.IsZero() {
		until = uint64(p.Until.UnixMilli())
	}
	b.remember(ofNotice+p.Notice, append(binary.BigEndian.AppendUint64(nil, until), p.Text...))
	b.out.Items = append(b.out.Items, b.notice(p))
}

// post carries a post to each site by itself, because each site has a fate of its own.
func (b *Bulletin) post(p Post) {
	for _, far := range b.cfg.Sites {
		b.token++
		b.posts[b.token] = Told{ID: p.ID, Site: far}
		b.out.Carry = append(b.out.Carry, site.Carry{Sites: []uint16{far}, Message: site.Message{Published: true, Scope: b.cfg.Scope,
			Topic: p.Board, From: p.User, Parts: []site.Part{{Name: "text", Data: []byte(p.Text)}}, Token: b.token}})
	}
}

// show keeps a post of a far site and is done with it in the same Step: neither happens without the other.
func (b *Bulletin) show(m site.FarMessage) {
	b.out.Done = append(b.out.Done, m.Token)
	l := Line{Site: m.Site, Board: m.Message.Topic, User: m.Message.From}
	if len(m.Message.Parts) > 0 {
		l.Text = string(m.Message.Parts[0].Data)
	}
	b.remember(fmt.Sprintf("%s%08d", ofLine, len(b.board)), fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s", l.Site, l.Board, l.User, l.Text))
	b.board = append(b.board, l)
	b.out.Orders = append(b.out.Orders, Show{l})
}

func (b *Bulletin) farItem(ev site.FarItem) {
	if b.far[ev.Site] == nil {
		b.far[ev.Site] = map[string]site.Item{}
	}
	if ev.Item.Gone {
		delete(b.far[ev.Site], ev.Item.Key())
	} else {
		b.far[ev.Site][ev.Item.Key()] = ev.Item
	}
}

func (b *Bulletin) remember(key string, value []byte) {
	b.out.Remember = append(b.out.Remember, site.Memory{Key: key, Value: value})
}

// DescribeItem describes an item for the rules: a user counts as a peer, a notice as another document.
func (b *Bulletin) DescribeItem(it site.Item) site.Subject {
	s := site.Subject{Type: "other", Scope: it.Scope, Owner: it.Owner, Name: it.ID, Octets: len(it.Doc)}
	if it.Kind == site.Endpoint {
		s.Type = "peer"
	}
	return s
}

// DescribeMessage describes a message for the rules.
func (b *Bulletin) DescribeMessage(m *site.Message) site.Subject {
	s := site.Subject{Type: "message", Scope: m.Scope, Owner: m.From, Topic: m.Topic}
	for _, p := range m.Parts {
		s.Octets += len(p.Data)
	}
	return s
}
