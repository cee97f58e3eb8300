package tak

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/site"
)

// Files says how data packages are served. Without a URL they are not served, and offers cross like other events.
type Files struct {
	URL   string       // of the file room, for devices of this LAN, without "/" at its end; "": none
	Most  int64        // octets of a file that crosses; default 2 MiB
	Bring []rule.Bring // files of far sites that are fetched although no device has requested them
}

// packages are the data packages under way, and their offers.
type packages struct {
	*step
	*files.Desk
	devices  *devices
	offering []offering
	offers   map[string]*farOffer // of far sites, by hash
}

// farOffer is a far site's offer of a file.
type farOffer struct {
	event *cot.Event      // without address and location
	hosts map[string]bool // of devices that wait for the file
}

func newPackages(s *step, ds *devices) *packages {
	fs := &packages{step: s, devices: ds, offers: map[string]*farOffer{}}
	cfg := s.cfg.Files
	fs.Desk = files.New(files.Config{On: cfg.URL != "", Scope: scope, Most: cfg.Most, Key: "tak.max_crossing", Out: &s.out, Count: s.trouble.Count,
		May: func(now time.Time, key string) bool { return s.trouble.May(now, key) },
		Unfit: func(now time.Time, m site.FarMessage) {
			s.farTrouble(now, m.Site, code.ErrMalformed)
			s.undelivered(m, site.Unfit)
		},
		Brings:  func(f *files.File) bool { return rule.Brings(cfg.Bring, fs.offers[f.Hash].event, f.Site, f.Size) },
		Here:    fs.here,
		Dropped: fs.dropped,
	})
	return fs
}

// offering is an offer that is sent when its file is here.
type offering struct {
	from  *client
	event *cot.Event
	sites []uint16
	size  int64
	hash  string
}

const (
	mostOffering = 64
	mostHosts    = 64
	shortHash    = 8 // octets of a hash in the uid of an offer to lists
)

// shared is the file that an event offers; false: it offers none, or its offer is malformed.
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

// located is the event with this senderUrl in its offer; "": without one.
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

// offer takes an offer, which crosses when its file is here; false: the event is not one.
func (fs *packages) offer(now time.Time, c *client, e *cot.Event, sites []uint16) bool {
	if fs.cfg.Files.URL == "" || e.Type != "b-f-t-r" || e.Find("fileshare") == nil {
		return false
	}
	hash, size, ok := shared(e)
	switch share := e.Find("fileshare"); {
	case !ok:
		fs.refuse(now, "file", c, e.UID, nil)
	case fs.offers[hash] != nil && fs.offers[hash].event.UID == e.UID: // a far site's offer that has come back
		fs.trouble.Count("loops")
	case size > fs.cfg.Files.Most:
		fs.trouble.Count("file_too_large")
		fs.words(now, c, fmt.Sprintf("%s has %d octets and does not cross to the other sites: at most %d may (tak.max_crossing)", nameOf(share), size, fs.cfg.Files.Most))
	case len(fs.offering) >= mostOffering:
		fs.refuse(now, "files", c, e.UID, nil)
	default:
		fs.offering = append(fs.offering, offering{c, e, sites, size, hash})
		fs.out.Orders = append(fs.out.Orders, files.Fetch{Hash: hash, URL: share.Get("senderUrl"), Host: c.host, Name: nameOf(share), Creator: share.Get("senderUid"), Size: size})
	}
	return true
}

func nameOf(share *cot.Node) string {
	if name := share.Get("filename"); name != "" {
		return name
	}
	return share.Get("name")
}

// listOnly marks an offer that is for a far site's list of files, and not for its devices.
const listOnly = "listed"

// published is the event that offers a file to the lists of the far sites; nil: the file is not offered.
func (fs *packages) published(now time.Time, ev files.Published) *cot.Event {
	if ev.Size > fs.cfg.Files.Most {
		fs.trouble.Count("file_too_large")
		return nil
	}
	e := answer(now, "aldis."+ev.Hash[:2*shortHash], "b-f-t-r", files.OfferLife)
	e.Detail = []cot.Node{{Name: "fileshare", Attrs: []cot.Attr{{Name: "filename", Value: ev.Name}, {Name: "senderUid", Value: ev.Creator}, {Name: "sha256", Value: ev.Hash},
		{Name: "sizeInBytes", Value: strconv.FormatInt(ev.Size, 10)}}}, {Name: listOnly}}
	return e
}

// fetched takes out the offers of a file, which may go now; if the file could not be fetched, it tells their senders why.
func (fs *packages) fetched(now time.Time, ev files.Fetched) (ready []offering) {
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
		o.event.Stale = now.Add(files.OfferLife).Truncate(time.Second)
		ready = append(ready, o)
		return true
	})
	return ready
}

// words sends a text to the device that has offered a file.
func (fs *packages) words(now time.Time, c *client, text string) {
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

// offered takes an offer of a far site, and returns it as devices here can use it; nil: it is only for the list.
func (fs *packages) offered(now time.Time, from uint16, e *cot.Event) *cot.Event {
	hash, size, ok := shared(e)
	if !fs.On || e.Type != "b-f-t-r" || !ok {
		return e
	}
	o := fs.offers[hash]
	if o == nil {
		o = &farOffer{hosts: map[string]bool{}}
		fs.offers[hash] = o
	}
	o.event = located(e, "")
	fs.Offer(now, o.file(from, hash, size))
	fs.remember(keyOffer+hash, append(appendMillis([]byte{byte(from >> 8), byte(from)}, now), code.Append(nil, o.event, now, nil)...))
	if e.Find(listOnly) != nil {
		return nil
	}
	return fs.fresh(now, hash)
}

func (o *farOffer) file(from uint16, hash string, size int64) files.File {
	share := o.event.Find("fileshare")
	return files.File{Site: from, Hash: hash, Name: nameOf(share), Creator: share.Get("senderUid"), Size: size, Public: o.event.Find(listOnly) != nil}
}

// fresh is an offer in the form in which a device here gets it now.
func (fs *packages) fresh(now time.Time, hash string) *cot.Event {
	e := located(fs.offers[hash].event, fs.cfg.Files.URL+"/Marti/sync/content?hash="+hash)
	e.Time = now.UTC().Truncate(time.Millisecond)
	e.Start, e.Stale = e.Time, e.Time.Add(usualLife)
	return e
}

// wanted begins to fetch a file because a device asks for it.
func (fs *packages) wanted(now time.Time, ev files.Wanted) {
	if o := fs.offers[ev.Hash]; o != nil && ev.Host != "" && len(o.hosts) < mostHosts {
		o.hosts[ev.Host] = true
	}
	fs.Wanted(now, ev)
}

// here offers a file that has arrived once more, to the devices that have asked for it.
func (fs *packages) here(now time.Time, f *files.File) {
	o, e := fs.offers[f.Hash], fs.fresh(now, f.Hash).Without(listOnly)
	for _, c := range fs.devices.list() {
		if o.hosts[c.host] {
			fs.devices.send(c, e)
		}
	}
	o.hosts = map[string]bool{}
}

func (fs *packages) dropped(hash string) {
	delete(fs.offers, hash)
	fs.remember(keyOffer+hash, nil)
}

// keyOffer begins the key of an offer; then hash: site, time, event.
const keyOffer = "p"

func (fs *packages) restoreOffer(hash string, value []byte) bool {
	if len(hash) != 64 || len(value) < 10 {
		return false
	}
	at := millis(value[2:])
	e, err := code.Parse(value[10:], at, nil)
	if err != nil {
		return false
	}
	own, size, ok := shared(e)
	if !ok || own != hash {
		return false
	}
	o := &farOffer{event: e, hosts: map[string]bool{}}
	fs.offers[hash] = o
	f := o.file(binary.BigEndian.Uint16(value), hash, size)
	f.Heard = at
	fs.Restore(f)
	return true
}
