package tak

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// words holds the chats of this site that far devices may acknowledge, and the chats of far sites that devices here may acknowledge.
type words struct {
	*step
	devices *devices
	near    *track.Near
	last    uint32
	ours    []ourWords // by number
	theirs  []theirWords
	tokens  map[uint64]uint32 // numbers of our chats under way
	unread  []site.FarMessage // chats that name a unit that is not known yet
}

// ourWords is a chat of this site.
type ourWords struct {
	number uint32
	chat   code.Chat // without its text
}

// theirWords is a chat of a far site.
type theirWords struct {
	from    uint16
	number  uint32
	message string
}

const (
	mostWords    = 500 // of each
	mostUnread   = 200
	topicChat    = "chat"
	topicReceipt = "receipt"
)

// sureNames are the units that all sites of a message surely know.
type sureNames struct {
	near  *track.Near
	sure  func(number uint32, id uint16) bool
	sites []uint16
}

func (s sureNames) Number(text string, callsign bool) (uint32, bool) {
	n, ok := s.near.Number(text, callsign)
	if !ok {
		return 0, false
	}
	for _, id := range s.sites {
		if !s.sure(n, id) {
			return 0, false
		}
	}
	return n, true
}

func (s sureNames) Text(n uint32, callsign bool) (string, bool) { return s.near.Text(n, callsign) }

// sure says whether a site surely knows a unit of this one.
func (f *Adapter) sure(number uint32, id uint16) bool {
	return slices.ContainsFunc(f.audiences, func(a *audience) bool { return slices.Contains(a.sites, id) && a.Knows(number) })
}

// chat hands a chat to custody in its short form.
func (w *words) chat(now time.Time, c code.Chat, e *cot.Event, to []marked, sure func(uint32, uint16) bool) {
	w.last++
	if len(to) == 0 {
		return
	}
	c.Number = w.last
	at, ids := code.Quarters(now), e.Find("__chat").Get("messageId") != ""
	w.rememberOurs(c)
	w.ours = append(w.ours, ourWords{number: c.Number, chat: c})
	if len(w.ours) > mostWords {
		w.remember(keyOurs+number4(w.ours[0].number), nil)
		w.ours = w.ours[1:]
	}
	for _, g := range to {
		groups, sure := [][]uint16{g.sites}, sure
		open := w.cfg.Open && len(g.sites) > 1
		if open { // a member of a group may know no unit by its number
			sure = func(uint32, uint16) bool { return false }
		}
		if !w.cfg.Shared && !open {
			groups = slices.Collect(slices.Chunk(g.sites, 1))
		}
		for _, group := range groups {
			m := site.Message{Published: true, Scope: scope, Topic: topicChat, Mark: g.mark}
			m.Parts = []site.Part{{Name: "b-t-f", Data: c.Append(appendTime(nil, at), at, sureNames{w.near, sure, group}, ids)}}
			if !w.cfg.Shared && !open {
				w.token++
				m.Token = w.token
				w.tokens[m.Token] = c.Number
			}
			w.out.Carry = append(w.out.Carry, site.Carry{Sites: group, Message: m})
			w.trouble.Count("chats")
		}
	}
	w.tellSender(now, &w.ours[len(w.ours)-1], "b-t-f-p", "", "")
}

// ourOf is a chat of this site by its number; nil: it was forgotten.
func (w *words) ourOf(number uint32) *ourWords {
	i := slices.IndexFunc(w.ours, func(o ourWords) bool { return o.number == number })
	if i < 0 {
		return nil
	}
	return &w.ours[i]
}

// fate tells the sender of a chat that a site will never get it.
func (w *words) fate(now time.Time, ev site.Fate) {
	number, ok := w.tokens[ev.Token]
	if !ok {
		return
	}
	delete(w.tokens, ev.Token)
	if o := w.ourOf(number); o != nil && ev.Failed() {
		w.tellSender(now, o, "b-t-f-s", "", "")
	}
}

// tellSender gives the device that sent a chat its receipt. uid names the unit that acknowledges the chat; "": this server.
func (w *words) tellSender(now time.Time, o *ourWords, kind, uid, callsign string) {
	if uid == "" {
		uid, callsign = "aldis", "aldis"
	}
	e := receipt(now, &o.chat, kind, uid, callsign)
	given := false
	for _, c := range w.devices.list() {
		if c.uid == o.chat.Sender {
			w.devices.send(c, e)
			given = true
		}
	}
	given = given || w.devices.toOne(now, e, cot.Dest{UID: o.chat.Sender})
	to := cot.Dest{Callsign: o.chat.Callsign} // devices address each other by callsign: not every server looks for a uid
	if to.Callsign == "" {
		to = cot.Dest{UID: o.chat.Sender}
	}
	for _, c := range w.devices.list() {
		if !given && c.server {
			w.devices.send(c, withDests(e, []cot.Dest{to}))
		}
	}
}

// receipt is an event that acknowledges a chat.
func receipt(now time.Time, c *code.Chat, kind, uid, callsign string) *cot.Event {
	e := answer(now, c.Message, kind, usualLife)
	e.Detail = []cot.Node{
		{Name: "__chatreceipt", Attrs: []cot.Attr{{Name: "parent", Value: c.Parent}, {Name: "groupOwner", Value: c.Owner}, {Name: "messageId", Value: c.Message},
			{Name: "chatroom", Value: c.Room}, {Name: "id", Value: c.ID}, {Name: "senderCallsign", Value: callsign}},
			Kids: []cot.Node{{Name: "chatgrp", Attrs: []cot.Attr{{Name: "uid0", Value: uid}, {Name: "uid1", Value: c.Sender}, {Name: "id", Value: c.ID}}}}},
		{Name: "link", Attrs: []cot.Attr{{Name: "uid", Value: uid}, {Name: "type", Value: "a-f-G-U-C"}, {Name: "relation", Value: "p-p"}}},
	}
	return e
}

// usualLife is the life of the events that this server makes itself.
const usualLife = 24 * time.Hour

// farChat takes a chat of a far site.
func (w *words) farChat(now time.Time, m site.FarMessage, data []byte, far *track.Far) {
	if len(data) < 3 {
		w.farTrouble(now, m.Site, code.ErrMalformed)
		w.undelivered(m, site.Unfit)
		return
	}
	c, ids, err := code.ParseChat(data[3:], timeOf(data, now), far)
	if errors.Is(err, code.ErrNames) && len(w.unread) < mostUnread {
		w.unread = append(w.unread, m)
		return
	}
	if err != nil {
		w.farTrouble(now, m.Site, err)
		w.undelivered(m, site.Unfit)
		return
	}
	w.theirs = append(w.theirs, theirWords{m.Site, c.Number, c.Message})
	w.remember(keyTheirs+c.Message, binary.BigEndian.AppendUint32([]byte{byte(m.Site >> 8), byte(m.Site)}, c.Number))
	if len(w.theirs) > mostWords {
		w.remember(keyTheirs+w.theirs[0].message, nil)
		w.theirs = w.theirs[1:]
	}
	e := c.Event(ids)
	w.devices.handOrWait(now, waiting{FarMessage: m, event: e.Without("marti"), dests: c.To})
}

// again returns the messages that named unknown units, so that they are read again.
func (w *words) again() []site.FarMessage {
	list := w.unread
	w.unread = nil
	return list
}

// giveUp drops chats that have waited long enough for the units that they name.
func (w *words) giveUp(now time.Time) {
	w.unread = slices.DeleteFunc(w.unread, func(m site.FarMessage) bool {
		if over(now, m) {
			w.undelivered(m, site.LifeOver)
		}
		return over(now, m)
	})
}

// lost drops the unread chats of a site.
func (w *words) lost(id uint16) {
	w.unread = slices.DeleteFunc(w.unread, func(m site.FarMessage) bool { return m.Site == id })
}

// receipted sends a receipt of a device here to the site of the chat that it acknowledges; false: the chat is not known.
//
//	varint  number << 1 | read
//	varint  number of the unit that has the chat; 0: its uid and callsign follow, each ended by an octet 0
func (w *words) receipted(now time.Time, e *cot.Event, sure func(uint32, uint16) bool) bool {
	r := e.Find("__chatreceipt")
	if r == nil || e.Type != "b-t-f-d" && e.Type != "b-t-f-r" {
		return false
	}
	message := r.Get("messageId")
	if message == "" {
		message = e.UID
	}
	i := slices.IndexFunc(w.theirs, func(t theirWords) bool { return t.message == message })
	if i < 0 {
		return false
	}
	who, callsign := "", r.Get("senderCallsign")
	if l := e.Find("link"); l != nil {
		who = l.Get("uid")
	}
	t := w.theirs[i]
	n := uint64(t.number) << 1
	if e.Type == "b-t-f-r" {
		n |= 1
	}
	data := binary.AppendUvarint(nil, n)
	if unit, ok := (sureNames{w.near, sure, []uint16{t.from}}).Number(who, false); ok {
		data = binary.AppendUvarint(data, uint64(unit))
	} else {
		data = append(append(append(append(data, 0), who...), 0), callsign...)
	}
	w.trouble.Count("receipts")
	w.out.Carry = append(w.out.Carry, site.Carry{Sites: []uint16{t.from}, Message: site.Message{Published: true, Scope: scope, Topic: topicReceipt,
		Parts: []site.Part{{Name: "r", Data: data}}, Mark: site.Mark{Precedence: site.Priority, Expires: now.Add(usualLife)}}})
	return true
}

// farReceipt takes a receipt of a far device for a chat of this site.
func (w *words) farReceipt(now time.Time, m site.FarMessage, data []byte, far *track.Far) {
	w.out.Done = append(w.out.Done, m.Token)
	n, size := binary.Uvarint(data)
	if size <= 0 || n>>1 > math.MaxUint32 {
		w.farTrouble(now, m.Site, code.ErrMalformed)
		return
	}
	unit, size2 := binary.Uvarint(data[size:])
	if size2 <= 0 || unit > math.MaxUint32 {
		w.farTrouble(now, m.Site, code.ErrMalformed)
		return
	}
	o := w.ourOf(uint32(n >> 1))
	if o == nil {
		w.trouble.Count("receipt_late")
		return
	}
	var uid, callsign string
	if unit != 0 {
		uid, _ = far.Text(uint32(unit), false)
		callsign, _ = far.Text(uint32(unit), true)
	} else if i := slices.Index(data[size+size2:], 0); i >= 0 {
		uid, callsign = string(data[size+size2:][:i]), string(data[size+size2:][i+1:])
	}
	kind := "b-t-f-d"
	if n&1 != 0 {
		kind = "b-t-f-r"
	}
	e := receipt(now, &o.chat, kind, uid, callsign)
	if _, err := cot.ParseXML(e.AppendXML(nil)); err != nil { // the receipt has a uid that no event can have
		w.farTrouble(now, m.Site, err)
		return
	}
	w.tellSender(now, o, kind, uid, callsign)
}

// Keys of memories.
const (
	keyOurs   = "o" // number: a chat without its text
	keyTheirs = "t" // message: site, number
)

func number4(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func (w *words) rememberOurs(c code.Chat) {
	c.Text, c.To, c.Destinations = "", nil, ""
	w.remember(keyOurs+number4(c.Number), c.Append(appendMillis(nil, c.Time), c.Time, nil, true))
}

func (w *words) restoreOurs(value []byte) bool {
	if len(value) < 8 {
		return false
	}
	c, _, err := code.ParseChat(value[8:], millis(value), nil)
	if err != nil {
		return false
	}
	w.ours, w.last = append(w.ours, ourWords{number: c.Number, chat: c}), max(w.last, c.Number)
	return true
}

func (w *words) restoreTheirs(key string, value []byte) bool {
	if len(value) != 6 {
		return false
	}
	w.theirs = append(w.theirs, theirWords{binary.BigEndian.Uint16(value), binary.BigEndian.Uint32(value[2:]), key})
	return true
}
