package tak

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// files are what is under way of data packages: here those of this site, which it offers and gives.
type files struct {
	*step
	devices  *devices
	offering []offering
	giving   map[uint64]giving // by the number of its Load
	asks     uint64
	pulls    map[string]*pull // by hash
}

// offering is an offer that goes when its file is here.
type offering struct {
	from  *client
	event *cot.Event
	sites []uint16
	size  int64
	hash  string
}

// giving is an ask of a far site, while its parts are read.
type giving struct {
	site  uint16
	token uint64
	hash  string
	from  int
}

const (
	topicWant    = "want"
	topicPart    = "part"
	mostOffering = 64
	mostGiving   = 16 // asks of which the file is read now
	mostWindow   = 64 // parts that one ask may name
	// offerLife is how long an offer waits to be sent, and is good at the far site.
	offerLife = 7 * 24 * time.Hour
	shortHash = 8 // octets of a hash that name a file in a part
)

// shared is what an event offers; false: it offers no file, or says so wrongly.
func shared(e *cot.Event) (hash string, size int64, ok bool) {
	n := e.Find("fileshare")
	if n == nil {
		return "", 0, false
	}
	hash = n.Get("sha256")
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != 32 {
		return "", 0, false
	}
	size, err = strconv.ParseInt(n.Get("sizeInBytes"), 10, 64)
	return hex.EncodeToString(raw), size, err == nil && size > 0
}

// located is the event with this senderUrl in its offer; "": with none.
func located(e *cot.Event, url string) *cot.Event {
	c := *e
	c.Detail = slices.Clone(e.Detail)
	for i := range c.Detail {
		n := &c.Detail[i]
		if n.Name != "fileshare" {
			continue
		}
		n.Attrs = slices.DeleteFunc(slices.Clone(n.Attrs), func(a cot.Attr) bool { return a.Name == "senderUrl" })
		if url != "" {
			n.Attrs = append(n.Attrs, cot.Attr{Name: "senderUrl", Value: url})
		}
	}
	return &c
}

// offer sees to it that an offer crosses when its file is here; false: it is none.
func (fs *files) offer(now time.Time, c *client, e *cot.Event, sites []uint16) bool {
	if fs.cfg.Files.URL == "" || e.Type != "b-f-t-r" || e.Find("fileshare") == nil {
		return false
	}
	hash, size, ok := shared(e)
	switch share := e.Find("fileshare"); {
	case !ok:
		fs.refuse(now, "file", c, e.UID, nil)
	case fs.pulls[hash] != nil && fs.pulls[hash].event.UID == e.UID: // a far site's, by a way round
		fs.trouble.Count("loops")
	case size > fs.cfg.Files.Most:
		fs.trouble.Count("file_too_large")
		fs.words(now, c, fmt.Sprintf("%s has %d octets and does not cross to the other sites: at most %d may (tak.max_crossing)", nameOf(share), size, fs.cfg.Files.Most))
	case len(fs.offering) >= mostOffering:
		fs.refuse(now, "files", c, e.UID, nil)
	default:
		fs.offering = append(fs.offering, offering{c, e, sites, size, hash})
		fs.out.Orders = append(fs.out.Orders, Fetch{Hash: hash, URL: share.Get("senderUrl"), Host: c.host, Name: nameOf(share), Creator: share.Get("senderUid"), Size: size})
	}
	return true
}

func nameOf(share *cot.Node) string {
	if name := share.Get("filename"); name != "" {
		return name
	}
	return share.Get("name")
}

// listOnly is the element of an offer that is for a far site's list, and not for its devices.
const listOnly = "listed"

// published is the event that offers a file to the lists of the far sites; nil: none does.
func (fs *files) published(now time.Time, ev Published) *cot.Event {
	if ev.Size > fs.cfg.Files.Most {
		fs.trouble.Count("file_too_large")
		return nil
	}
	e := answer(now, "aldis."+ev.Hash[:2*shortHash], "b-f-t-r", offerLife)
	e.Detail = []cot.Node{{Name: "fileshare", Attrs: []cot.Attr{{Name: "filename", Value: ev.Name}, {Name: "senderUid", Value: ev.Creator}, {Name: "sha256", Value: ev.Hash},
		{Name: "sizeInBytes", Value: strconv.FormatInt(ev.Size, 10)}}}, {Name: listOnly}}
	return e
}

// fetched takes out the offers of a file, which may go now, or tells their senders why not.
func (fs *files) fetched(now time.Time, ev Fetched) (ready []offering) {
	fs.offering = slices.DeleteFunc(fs.offering, func(o offering) bool {
		if o.hash != ev.Hash {
			return false
		}
		if ev.Err != "" {
			fs.trouble.Count("file_not_taken")
			if fs.trouble.May(now, "file "+o.hash) {
				fs.note("warn", "the gateway could not fetch an offered file from its device; the offer is not sent", "uid", o.event.UID, "remote", o.from.host, "error", ev.Err)
			}
			fs.words(now, o.from, nameOf(o.event.Find("fileshare"))+" could not be taken and does not cross to the other sites: "+ev.Err)
			return true
		}
		o.event = located(o.event, "")
		o.event.Stale = now.Add(offerLife).Truncate(time.Second)
		ready = append(ready, o)
		return true
	})
	return ready
}

// words says something to the device that has offered a file.
func (fs *files) words(now time.Time, c *client, text string) {
	if fs.devices.clients[c.conn] != c || c.server || c.uid == "" {
		return
	}
	e := answer(now, "GeoChat.aldis."+c.uid+"."+strconv.FormatInt(now.UnixMilli(), 36), "b-t-f", usualLife)
	e.Detail = []cot.Node{
		{Name: "__chat", Attrs: []cot.Attr{{Name: "parent", Value: "RootContactGroup"}, {Name: "groupOwner", Value: "false"}, {Name: "chatroom", Value: c.callsign}, {Name: "id", Value: c.uid},
			{Name: "senderCallsign", Value: "aldis"}}, Kids: []cot.Node{{Name: "chatgrp", Attrs: []cot.Attr{{Name: "uid0", Value: "aldis"}, {Name: "uid1", Value: c.uid}, {Name: "id", Value: c.uid}}}}},
		{Name: "link", Attrs: []cot.Attr{{Name: "uid", Value: "aldis"}, {Name: "type", Value: "a-f-G-I"}, {Name: "relation", Value: "p-p"}}},
		{Name: "remarks", Attrs: []cot.Attr{{Name: "source", Value: "aldis"}, {Name: "to", Value: c.uid}, {Name: "time", Value: now.UTC().Format(cot.TimeFormat)}}, Kids: []cot.Node{{Text: text}}},
	}
	fs.devices.send(c, e)
}

// want is what a far site asks for:
//
//	32 octets  hash
//	varint     the first part
//	varint     how many
func (fs *files) want(now time.Time, m site.FarMessage, data []byte) {
	bad := func() {
		fs.farTrouble(now, m.Site, code.ErrMalformed)
		fs.undelivered(m, site.Unfit)
	}
	if len(data) < 34 {
		bad()
		return
	}
	from, n := binary.Uvarint(data[32:])
	if n <= 0 || from > 1<<24 {
		bad()
		return
	}
	count, n2 := binary.Uvarint(data[32+n:])
	switch {
	case n2 <= 0 || count == 0 || count > mostWindow:
		bad()
		return
	case fs.cfg.Files.URL == "":
		fs.undelivered(m, site.Nobody)
		return
	case len(fs.giving) >= mostGiving:
		fs.undelivered(m, site.NoRoom)
		return
	}
	fs.asks++
	hash := hex.EncodeToString(data[:32])
	fs.giving[fs.asks] = giving{m.Site, m.Token, hash, int(from)}
	fs.trouble.Count("files_asked")
	fs.out.Orders = append(fs.out.Orders, Load{Ask: fs.asks, Hash: hash, From: int(from), To: int(from + count)})
}

// loaded gives a site the parts that it has asked for: all in the step in which the ask is done, so that a crash repeats none.
//
//	1 octet   0; or 1: the file is here no more
//	8 octets  of the hash, the first
//	varint    part
//	octets
func (fs *files) loaded(now time.Time, ev Loaded) {
	g, ok := fs.giving[ev.Ask]
	if !ok {
		return
	}
	delete(fs.giving, ev.Ask)
	fs.out.Done = append(fs.out.Done, g.token)
	short, _ := hex.DecodeString(g.hash[:2*shortHash])
	send := func(kind byte, part int, data []byte) {
		b := binary.AppendUvarint(append([]byte{kind}, short...), uint64(part))
		fs.out.Carry = append(fs.out.Carry, site.Carry{Sites: []uint16{g.site}, Message: site.Message{Published: true, Scope: scope, Topic: topicPart,
			Parts: []site.Part{{Name: topicPart, Data: append(b, data...)}}, Mark: site.Mark{Precedence: site.Deferred, Expires: now.Add(offerLife)}}})
	}
	if len(ev.Parts) == 0 {
		fs.trouble.Count("files_gone")
		send(1, g.from, nil)
	}
	for i, p := range ev.Parts {
		fs.trouble.Count("file_parts_out")
		send(0, g.from+i, p)
	}
}
