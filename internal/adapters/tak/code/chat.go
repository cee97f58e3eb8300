package code

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Chat is a GeoChat message in the form that ATAK gives it.
type Chat struct {
	Number       uint32 // of the sender's site, for receipts
	Sender       string // uid
	Callsign     string
	Kind         string // type of the sender
	Room, ID     string // the room's name and id; in a chat with one device, that device's callsign and uid
	Parent       string
	Owner        string
	Message      string // id
	How          string
	Time         time.Time
	Life         time.Duration
	Point        cot.Point
	Destinations string // "": none
	To           []cot.Dest
	Text         string
}

const (
	ataks     = "BAO.F.ATAK."
	rootGroup = "RootContactGroup"
	allRooms  = "All Chat Rooms"
	usualHow  = "h-g-i-g-o"
	usualLife = 24 * time.Hour
)

// Flags of a chat.
const (
	chatOtherRoom = 1 << iota // another room than the room for all
	chatPlace                 // a point that is not 0, 0, in millionths of a degree
	chatHeight                // height, in metres, and errors are known
	chatUnusual               // how, life, parent, owner or the sender's type are unusual
	chatDest                  // destinations
	chatTo                    // marti
	chatNoID                  // no message id
	chatPoint                 // the point as in an event, because the short form would change it
)

// ChatOf finds the chat in an event; false: the event has another form.
func ChatOf(e *cot.Event) (c Chat, ok bool) {
	chat, link, remarks := e.Find("__chat"), e.Find("link"), e.Find("remarks")
	if e.Type != "b-t-f" || chat == nil || link == nil || remarks == nil {
		return c, false
	}
	c = Chat{Sender: link.Get("uid"), Callsign: chat.Get("senderCallsign"), Kind: link.Get("type"), Room: chat.Get("chatroom"), ID: chat.Get("id"),
		Parent: chat.Get("parent"), Owner: chat.Get("groupOwner"), Message: chat.Get("messageId"), How: e.How, Time: e.Time, Life: e.Stale.Sub(e.Start),
		Point: e.Point, To: e.Dests(), Text: remarks.Inside()}
	if d := e.Find("__serverdestination"); d != nil {
		c.Destinations = d.Get("destinations")
	}
	if c.Message == "" {
		at := strings.LastIndexByte(e.UID, '.')
		c.Message = e.UID[at+1:]
	}
	return c, len(e.Point.Other) == 0 && c.Event(chat.Get("messageId") != "").Canonical() == e.Canonical()
}

// NewChat makes the chat with which a sender of this name writes to a room, in the form that ATAK gives it.
func NewChat(sender, callsign, room, message, text string, at time.Time) Chat {
	return Chat{Sender: sender, Callsign: callsign, Kind: "a-f-G-U-C", Room: room, ID: room, Parent: rootGroup, Owner: "false", Message: message, How: usualHow,
		Time: at, Life: usualLife, Point: unknownPlace, Text: text}
}

// unknownPlace is the point that devices send if they do not know where they are.
var unknownPlace = cot.Point{Lat: "0", Lon: "0", HAE: cot.Unknown, CE: cot.Unknown, LE: cot.Unknown}

// Event is the chat in ATAK's form; ids: with the message's id in it, too.
func (c *Chat) Event(ids bool) *cot.Event {
	e := &cot.Event{Version: "2.0", UID: strings.Join([]string{"GeoChat", c.Sender, c.ID, c.Message}, "."), Type: "b-t-f", How: c.How,
		Time: c.Time, Start: c.Time, Stale: c.Time.Add(c.Life), Point: c.Point}
	chat := cot.Node{Name: "__chat", Attrs: []cot.Attr{{Name: "parent", Value: c.Parent}, {Name: "groupOwner", Value: c.Owner}}}
	if ids {
		chat.Attrs = append(chat.Attrs, cot.Attr{Name: "messageId", Value: c.Message})
	}
	chat.Attrs = append(chat.Attrs, cot.Attr{Name: "chatroom", Value: c.Room}, cot.Attr{Name: "id", Value: c.ID},
		cot.Attr{Name: "senderCallsign", Value: c.Callsign})
	chat.Kids = []cot.Node{{Name: "chatgrp", Attrs: []cot.Attr{{Name: "uid0", Value: c.Sender}, {Name: "uid1", Value: c.ID}, {Name: "id", Value: c.ID}}}}
	e.Detail = []cot.Node{chat, {Name: "link", Attrs: []cot.Attr{{Name: "uid", Value: c.Sender}, {Name: "type", Value: c.Kind}, {Name: "relation", Value: "p-p"}}}}
	if c.Destinations != "" {
		e.Detail = append(e.Detail, cot.Node{Name: "__serverdestination", Attrs: []cot.Attr{{Name: "destinations", Value: c.Destinations}}})
	}
	remarks := cot.Node{Name: "remarks", Attrs: []cot.Attr{{Name: "source", Value: ataks + c.Sender}, {Name: "to", Value: c.ID},
		{Name: "time", Value: c.Time.Format(cot.TimeFormat)}}}
	if c.Text != "" {
		remarks.Kids = []cot.Node{{Text: c.Text}}
	}
	e.Detail = append(e.Detail, remarks)
	if len(c.To) > 0 {
		e.Detail = append(e.Detail, Marti(c.To))
	}
	return e
}

// Marti is the element that names the recipients of an event.
func Marti(dests []cot.Dest) cot.Node {
	marti := cot.Node{Name: "marti"}
	for _, d := range dests {
		n := cot.Node{Name: "dest"}
		for _, a := range []cot.Attr{{Name: "callsign", Value: d.Callsign}, {Name: "uid", Value: d.UID}, {Name: "group", Value: d.Group}} {
			if a.Value != "" {
				n.Attrs = append(n.Attrs, a)
			}
		}
		marti.Kids = append(marti.Kids, n)
	}
	return marti
}

// Append appends the chat; ids is as in Event, base and names are as in the Append of an event.
func (c *Chat) Append(dst []byte, base time.Time, names Names, ids bool) []byte {
	k := &coder{names: names, base: base.Truncate(time.Millisecond)}
	flags := byte(0)
	set := func(bit byte, when bool) {
		if when {
			flags |= bit
		}
	}
	set(chatOtherRoom, c.Room != allRooms || c.ID != allRooms)
	f := FixOf(&cot.Event{Point: c.Point})
	short := f.Apply(&cot.Event{Point: c.Point}).Point
	set(chatPoint, short.Lat != c.Point.Lat || short.Lon != c.Point.Lon || short.HAE != c.Point.HAE)
	set(chatPlace, flags&chatPoint == 0 && (f.Lat != 0 || f.Lon != 0))
	set(chatHeight, flags&chatPoint == 0 && (f.HAE != noHeight || c.Point.CE != cot.Unknown || c.Point.LE != cot.Unknown))
	set(chatUnusual, c.How != usualHow || c.Life != usualLife || c.Parent != rootGroup || c.Owner != "false" || c.Kind != "a-f-G-U-C")
	set(chatDest, c.Destinations != "")
	set(chatTo, len(c.To) > 0)
	set(chatNoID, !ids)
	dst = binary.AppendUvarint(append(dst, flags), uint64(c.Number))
	dst = k.value(dst, c.Sender, 0)
	known := ""
	if names != nil {
		if n, ok := names.Number(c.Sender, false); ok {
			known, _ = names.Text(n, true)
		}
	}
	k.uid, k.callsign = c.Sender, known
	dst = k.value(dst, c.Callsign, 0)
	dst = k.value(dst, c.Message, 0)
	dst = binary.AppendVarint(dst, int64(c.Time.Sub(k.base)/time.Millisecond))
	if flags&chatOtherRoom != 0 {
		dst = k.value(dst, c.ID, 0)
		dst = k.value(dst, c.Room, 0)
	}
	if flags&chatPlace != 0 {
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, uint32(f.Lat)), uint32(f.Lon))
	}
	if flags&chatPoint != 0 {
		dst = k.point(dst, &c.Point)
	}
	if flags&chatHeight != 0 {
		dst = binary.AppendVarint(dst, int64(f.HAE))
		dst = k.value(k.value(dst, string(c.Point.CE), 1), string(c.Point.LE), 1)
	}
	if flags&chatUnusual != 0 {
		dst = k.value(k.value(k.value(k.value(dst, c.How, 0), c.Parent, 0), c.Owner, 0), c.Kind, 0)
		dst = binary.AppendUvarint(dst, uint64(max(0, c.Life)/time.Millisecond))
	}
	if flags&chatDest != 0 {
		dst = k.value(dst, c.Destinations, 0)
	}
	if flags&chatTo != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(c.To)))
		for _, d := range c.To {
			dst = k.value(k.value(k.value(dst, d.Callsign, 0), d.UID, 0), d.Group, 0)
		}
	}
	return append(dst, c.Text...)
}

// ParseChat reads a chat that Append appended, and says whether the event has the message's id.
func ParseChat(b []byte, base time.Time, names Names) (c Chat, ids bool, err error) {
	k := &coder{names: names, base: base.Truncate(time.Millisecond)}
	r := &reader{b: b}
	flags := r.octet()
	n := r.uvarint()
	if n > math.MaxUint32 {
		r.fail("number")
	}
	c = Chat{Number: uint32(n), Sender: k.read(r, 0), Room: allRooms, ID: allRooms, Parent: rootGroup, Owner: "false", How: usualHow, Life: usualLife,
		Kind: "a-f-G-U-C", Point: unknownPlace}
	if names != nil {
		if n, ok := k.number(c.Sender, b); ok {
			k.callsign, _ = names.Text(n, true)
		}
	}
	k.uid = c.Sender
	c.Callsign, c.Message = k.read(r, 0), k.read(r, 0)
	c.Time = k.after(r, time.Millisecond)
	if flags&chatOtherRoom != 0 {
		c.ID, c.Room = k.read(r, 0), k.read(r, 0)
	}
	if flags&chatPlace != 0 {
		if p := r.next(8); r.err == nil {
			f := Fix{Lat: int32(binary.BigEndian.Uint32(p)), Lon: int32(binary.BigEndian.Uint32(p[4:])), HAE: noHeight}
			c.Point = f.Apply(&cot.Event{Point: c.Point}).Point
		}
	}
	if flags&chatPoint != 0 {
		c.Point = k.readPoint(r)
	}
	if flags&chatHeight != 0 {
		h := r.varint()
		if h != noHeight && (h > 1e6 || h < -1e6) {
			r.fail("height")
		}
		if h != noHeight {
			c.Point.HAE = cot.Rounded(float64(h), 0)
		}
		c.Point.CE, c.Point.LE = cot.Number(k.read(r, 1)), cot.Number(k.read(r, 1))
	}
	if flags&chatUnusual != 0 {
		c.How, c.Parent, c.Owner, c.Kind = k.read(r, 0), k.read(r, 0), k.read(r, 0), k.read(r, 0)
		life := r.uvarint()
		if life > uint64(250*365*24*time.Hour/time.Millisecond) {
			r.fail("life")
			life = 0
		}
		c.Life = time.Duration(life) * time.Millisecond
	}
	if flags&chatDest != 0 {
		c.Destinations = k.read(r, 0)
	}
	if flags&chatTo != 0 {
		for count := r.uvarint(); count > 0 && r.err == nil; count-- {
			if len(c.To) > mostParts {
				r.fail("too many addresses")
			}
			c.To = append(c.To, cot.Dest{Callsign: k.read(r, 0), UID: k.read(r, 0), Group: k.read(r, 0)})
		}
	}
	c.Text = string(r.b)
	if r.err != nil {
		return c, false, r.err
	}
	for _, v := range []string{c.Sender, c.Callsign, c.Message, c.ID, c.Room, c.How, c.Parent, c.Owner, c.Kind, c.Destinations, c.Text} {
		k.clean(r, v)
	}
	for _, d := range c.To {
		k.clean(r, d.Callsign+d.UID+d.Group)
	}
	ids = flags&chatNoID == 0
	if r.err == nil {
		if err := c.Event(ids).Check(); err != nil {
			return c, ids, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	return c, ids, r.err
}

// number is the number of the unit that is the sender; false: the sender was not named by a number.
func (c *coder) number(_ string, b []byte) (uint32, bool) {
	r := &reader{b: b}
	r.octet()
	r.uvarint()
	if r.octet() != unitUID {
		return 0, false
	}
	n := r.uvarint()
	return uint32(n), r.err == nil && n <= math.MaxUint32
}
