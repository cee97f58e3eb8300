package tak

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"aldis/internal/site"
	"aldis/internal/tak/code"
	"aldis/internal/tak/cot"
)

// words are the chats of this site that far devices may acknowledge, and those of far sites that devices here may.
type words struct {
	last   uint32
	ours   []ourWords // by number
	theirs []theirWords
	tokens map[uint64]uint32 // of ours under way
	unread []site.FarMessage // name a unit that is not known yet
}

// wordsSide is the Face as far as it deals with words.
type wordsSide struct{ of *Face }

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

// sureNames are the units that all of some sites know for sure.
type sureNames struct {
	f     *Face
	sites []uint16
}

func (s sureNames) Number(text string, callsign bool) (uint32, bool) {
	n, ok := s.f.near.Number(text, callsign)
	if !ok {
		return 0, false
	}
	for _, id := range s.sites {
		if !slices.ContainsFunc(s.f.audiences, func(a *audience) bool { return slices.Contains(a.sites, id) && a.Knows(n) }) {
			return 0, false
		}
	}
	return n, true
}

func (s sureNames) Text(n uint32, callsign bool) (string, bool) { return s.f.near.Text(n, callsign) }

// chat hands words to custody in their short form; false: they have another.
func (side wordsSide) chat(now time.Time, e *cot.Event, sites []uint16) bool {
	f := side.of
	c, ok := code.ChatOf(e)
	if !ok {
		return false
	}
	ids := e.Find("__chat").Get("messageId") != ""
	f.words.last++
	c.Number = f.words.last
	at := code.Quarters(now)
	var to []uint16
	m := site.Message{Published: true, Scope: scope, Topic: topicChat, Mark: site.Mark{Precedence: site.Priority, Expires: e.Stale}}
	for _, id := range sites {
		if f.ruled(now, e, id, len(e.UID), &m.Mark) {
			to = append(to, id)
		}
	}
	if len(to) == 0 {
		return true
	}
	f.memory.ourWords(f, c)
	f.words.ours = append(f.words.ours, ourWords{number: c.Number, chat: c})
	if len(f.words.ours) > mostWords {
		f.remember(keyOurs+number4(f.words.ours[0].number), nil)
		f.words.ours = f.words.ours[1:]
	}
	groups := [][]uint16{to}
	if !f.cfg.Shared {
		groups = slices.Collect(slices.Chunk(to, 1))
	}
	for _, group := range groups {
		m := m
		m.Parts = []site.Part{{Name: "b-t-f", Data: c.Append(appendTime(nil, at), at, sureNames{f, group}, ids)}}
		if !f.cfg.Shared {
			f.token++
			m.Token = f.token
			f.words.tokens[m.Token] = c.Number
		}
		f.out.Carry = append(f.out.Carry, site.Carry{Sites: group, Message: m})
		f.trouble.Count("chats")
	}
	side.tellSender(now, &f.words.ours[len(f.words.ours)-1], "b-t-f-p", "", "")
	return true
}

// ourOf is a chat of ours by its number; nil: it is known no more.
func (w *words) ourOf(number uint32) *ourWords {
	i := slices.IndexFunc(w.ours, func(o ourWords) bool { return o.number == number })
	if i < 0 {
		return nil
	}
	return &w.ours[i]
}

// fateOfWords tells the sender of words that a site will never get them.
func (side wordsSide) fateOfWords(now time.Time, ev site.Fate) {
	f := side.of
	number, ok := f.words.tokens[ev.Token]
	if !ok {
		return
	}
	delete(f.words.tokens, ev.Token)
	if o := f.words.ourOf(number); o != nil && ev.Refused {
		side.tellSender(now, o, "b-t-f-s", "", "")
	}
}

// tellSender gives the device that sent words a receipt of theirs; who says so is uid, or with "" this server.
func (side wordsSide) tellSender(now time.Time, o *ourWords, kind, uid, callsign string) {
	f := side.of
	if uid == "" {
		uid, callsign = "aldis", "aldis"
	}
	e := receipt(now, &o.chat, kind, uid, callsign)
	given := false
	for _, c := range f.streams.devices() {
		if c.uid == o.chat.Sender {
			f.send(c, e)
			given = true
		}
	}
	given = given || unicastSide{f}.toOne(now, e, cot.Dest{UID: o.chat.Sender})
	to := cot.Dest{Callsign: o.chat.Callsign} // as devices address each other: not every server looks for a uid
	if to.Callsign == "" {
		to = cot.Dest{UID: o.chat.Sender}
	}
	for _, c := range f.streams.devices() {
		if !given && c.server {
			f.send(c, withDests(e, []cot.Dest{to}))
		}
	}
}

// receipt is an event that acknowledges words.
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

// usualLife is how long events of the gateway's own are good.
const usualLife = 24 * time.Hour

// farChat takes words of a far site.
func (side wordsSide) farChat(now time.Time, m site.FarMessage, data []byte) {
	f := side.of
	if len(data) < 3 {
		f.farTrouble(now, m.Site, code.ErrMalformed)
		f.undelivered(m, site.Unfit)
		return
	}
	c, ids, err := code.ParseChat(data[3:], timeOf(data, now), f.far[m.Site])
	if errors.Is(err, code.ErrNames) && len(f.words.unread) < mostUnread {
		f.words.unread = append(f.words.unread, m)
		return
	}
	if err != nil {
		f.farTrouble(now, m.Site, err)
		f.undelivered(m, site.Unfit)
		return
	}
	f.words.theirs = append(f.words.theirs, theirWords{m.Site, c.Number, c.Message})
	f.remember(keyTheirs+c.Message, binary.BigEndian.AppendUint32([]byte{byte(m.Site >> 8), byte(m.Site)}, c.Number))
	if len(f.words.theirs) > mostWords {
		f.remember(keyTheirs+f.words.theirs[0].message, nil)
		f.words.theirs = f.words.theirs[1:]
	}
	e := c.Event(ids)
	f.handOrWait(now, waiting{FarMessage: m, event: e.Without("marti"), dests: c.To})
}

// retry reads again what named units that were not known.
func (side wordsSide) retry(now time.Time) {
	f := side.of
	list := f.words.unread
	f.words.unread = nil
	for _, m := range list {
		f.farMessage(now, m)
	}
}

// receipted sends a receipt of a device here to the site of the words that it is for; false: those are not known.
//
//	varint  number << 1 | read
//	varint  number of the unit that has them; 0: its uid and callsign follow, each ended by an octet 0
func (side wordsSide) receipted(now time.Time, e *cot.Event) bool {
	f := side.of
	r := e.Find("__chatreceipt")
	if r == nil || e.Type != "b-t-f-d" && e.Type != "b-t-f-r" {
		return false
	}
	message := r.Get("messageId")
	if message == "" {
		message = e.UID
	}
	i := slices.IndexFunc(f.words.theirs, func(t theirWords) bool { return t.message == message })
	if i < 0 {
		return false
	}
	who, callsign := "", r.Get("senderCallsign")
	if l := e.Find("link"); l != nil {
		who = l.Get("uid")
	}
	t := f.words.theirs[i]
	n := uint64(t.number) << 1
	if e.Type == "b-t-f-r" {
		n |= 1
	}
	data := binary.AppendUvarint(nil, n)
	if unit, ok := (sureNames{f, []uint16{t.from}}).Number(who, false); ok {
		data = binary.AppendUvarint(data, uint64(unit))
	} else {
		data = append(append(append(append(data, 0), who...), 0), callsign...)
	}
	f.trouble.Count("receipts")
	f.out.Carry = append(f.out.Carry, site.Carry{Sites: []uint16{t.from}, Message: site.Message{Published: true, Scope: scope, Topic: topicReceipt,
		Parts: []site.Part{{Name: "r", Data: data}}, Mark: site.Mark{Precedence: site.Priority, Expires: now.Add(usualLife)}}})
	return true
}

// farReceipt takes a receipt of a far device for words of ours.
func (side wordsSide) farReceipt(now time.Time, m site.FarMessage, data []byte) {
	f := side.of
	f.out.Done = append(f.out.Done, m.Token)
	n, size := binary.Uvarint(data)
	if size <= 0 || n>>1 > math.MaxUint32 {
		f.farTrouble(now, m.Site, code.ErrMalformed)
		return
	}
	unit, size2 := binary.Uvarint(data[size:])
	if size2 <= 0 || unit > math.MaxUint32 {
		f.farTrouble(now, m.Site, code.ErrMalformed)
		return
	}
	o := f.words.ourOf(uint32(n >> 1))
	if o == nil {
		f.trouble.Count("receipt_late")
		return
	}
	var uid, callsign string
	if unit != 0 {
		uid, _ = f.far[m.Site].Text(uint32(unit), false)
		callsign, _ = f.far[m.Site].Text(uint32(unit), true)
	} else if i := slices.Index(data[size+size2:], 0); i >= 0 {
		uid, callsign = string(data[size+size2:][:i]), string(data[size+size2:][i+1:])
	}
	kind := "b-t-f-d"
	if n&1 != 0 {
		kind = "b-t-f-r"
	}
	e := receipt(now, &o.chat, kind, uid, callsign)
	if _, err := cot.ParseXML(e.AppendXML(nil)); err != nil { // a uid that no event can have
		f.farTrouble(now, m.Site, err)
		return
	}
	side.tellSender(now, o, kind, uid, callsign)
}

// Keys of memories.
const (
	keyOurs   = "o" // number: a chat without its text
	keyTheirs = "t" // message: site, number
)

func number4(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func (memory) ourWords(f *Face, c code.Chat) {
	c.Text, c.To, c.Destinations = "", nil, ""
	f.remember(keyOurs+number4(c.Number), c.Append(appendMillis(nil, c.Time), c.Time, nil, true))
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
