package tak

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/site"
	"aldis/internal/tak/cot"
)

// Devices of the mesh say what is for one of them alone to its endpoint, IP:PORT:tcp, over a TCP connection of its own. This
// gateway has such an endpoint, which stands for all units that are not on the mesh.

// What the LAN room tells of that, and is told.
type (
	// Direct: somebody said this to our endpoint. Nothing of it is trusted.
	Direct struct {
		Remote string // address and port
		Frame  []byte
	}
	// Hand gives an event to the endpoint of a device of the mesh. The answer is Handed.
	Hand struct {
		ID  uint64
		To  string // IP and port
		XML []byte
	}
	// Handed says what came of a Hand.
	Handed struct {
		ID  uint64
		Err string // "": the device has taken it
	}
)

// FaceEvent marks it as an event of this face.
func (Direct) FaceEvent() {}

// FaceEvent marks it as an event of this face.
func (Handed) FaceEvent() {}

// Concerns names no connection: it has one of its own.
func (Hand) Concerns() (site.ConnID, bool) { return 0, false }

// Octets of the event.
func (h Hand) Octets() int { return len(h.XML) }

// unicastSide is the Face as far as it deals with devices of the mesh one by one.
type unicastSide struct{ of *Face }

// unicast is who may be reached on the mesh, and what is on its way there.
type unicast struct {
	units map[string]reach  // by uid
	hands map[uint64]string // uids of devices that something is on its way to, by attempt
	last  uint64
}

// reach is where a device of the mesh takes what is for it alone.
type reach struct {
	callsign string
	host     string
	to       string // IP and port; "": it has said none, and hears what is for it in the group
	heard    time.Time
}

const (
	mostReach = 1024
	mostHands = 256
	// handAgain is between two attempts to give a device something.
	handAgain = 30 * time.Second
	// streamed is the endpoint of a unit that is reached through the server.
	streamed = "*:-1:stcp"
	// leastPort is the lowest port of an endpoint that is believed.
	leastPort = 1024
)

// learn notes where a device of the mesh takes what is for it alone. An endpoint counts when it is on the host that it was
// heard from: nobody has the gateway call somebody else.
func (side unicastSide) learn(now time.Time, host string, e *cot.Event) {
	f := side.of
	contact := e.Find("contact")
	if !e.Is("a") || contact == nil {
		return
	}
	old, known := f.unicast.units[e.UID]
	if known && old.host != host && now.Sub(old.heard) < memberLife {
		return // two hosts with one unit: the first one has it
	}
	if !known && len(f.unicast.units) >= mostReach {
		side.forget(now)
		if len(f.unicast.units) >= mostReach {
			return
		}
	}
	r := reach{callsign: e.Callsign(), host: host, heard: now}
	if text := contact.Get("endpoint"); text != "" {
		if r.to = endpointOn(host, text); r.to == "" && strings.HasSuffix(text, ":tcp") {
			f.trouble.Count("unicast_elsewhere")
		}
	}
	f.unicast.units[e.UID] = r
	if !known || old.to != r.to {
		f.release(now)
	}
}

// endpointOn is where an endpoint is, as IP:PORT; "": not on this host, or not over TCP.
func endpointOn(host, text string) string {
	address, ok := strings.CutSuffix(text, ":tcp")
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Port() < leastPort || at.Addr().String() != host {
		return ""
	}
	return address
}

func (side unicastSide) forget(now time.Time) {
	for uid, r := range side.of.unicast.units {
		if now.Sub(r.heard) > memberLife {
			delete(side.of.unicast.units, uid)
		}
	}
}

// named is the device of the mesh with this uid or callsign that was heard of late; "": there is none.
func (side unicastSide) named(now time.Time, d cot.Dest) (uid string) {
	u := &side.of.unicast
	at := func(id string) bool {
		r, ok := u.units[id]
		return ok && now.Sub(r.heard) <= memberLife
	}
	if d.UID != "" {
		if at(d.UID) {
			return d.UID
		}
		return ""
	}
	for id, r := range u.units {
		if d.Callsign != "" && r.callsign == d.Callsign && at(id) && (uid == "" || id < uid) {
			uid = id
		}
	}
	return uid
}

// give has a device of the mesh be given an event: at its endpoint, or in the group where it has none. It answers the number
// of the attempt; 0: too many are under way, or it is given.
func (side unicastSide) give(uid string, e *cot.Event) (id uint64, given bool) {
	f := side.of
	r := f.unicast.units[uid]
	if r.to == "" {
		meshSide{f}.shout(e)
		return 0, true
	}
	if len(f.unicast.hands) >= mostHands {
		f.trouble.Count("unicast_full")
		return 0, false
	}
	f.unicast.last++
	f.unicast.hands[f.unicast.last] = uid
	f.out.Orders = append(f.out.Orders, Hand{ID: f.unicast.last, To: r.to, XML: e.AppendXML(nil)})
	f.trouble.Count("unicast_out")
	return f.unicast.last, false
}

// handed goes on when a device has taken what was for it, or could not be reached.
func (side unicastSide) handed(now time.Time, ev Handed) {
	f := side.of
	uid, ok := f.unicast.hands[ev.ID]
	if !ok {
		return
	}
	delete(f.unicast.hands, ev.ID)
	if r := f.unicast.units[uid]; ev.Err != "" {
		f.trouble.Count("unicast_failed")
		if f.trouble.May(now, "unicast "+uid) {
			f.note("warn", "a device of the mesh does not take what is for it: it is tried again", "uid", uid, "callsign", r.callsign, "remote", r.to, "error", ev.Err)
		}
	}
	for i := range f.waiting {
		w := &f.waiting[i]
		n := slices.IndexFunc(w.hands, func(h handing) bool { return h.id == ev.ID })
		if n < 0 {
			continue
		}
		if ev.Err != "" {
			w.hands[n].id, w.hands[n].next = 0, now.Add(handAgain)
			return
		}
		d := w.hands[n].dest
		w.hands = slices.Delete(w.hands, n, n+1)
		if w.dests = slices.DeleteFunc(w.dests, func(x cot.Dest) bool { return x == d }); len(w.dests) == 0 {
			w.done(f)
			f.waiting = slices.Delete(f.waiting, i, i+1)
		}
		return
	}
}

// again tries what failed a while ago.
func (side unicastSide) again(now time.Time) {
	if slices.ContainsFunc(side.of.waiting, func(w waiting) bool {
		return slices.ContainsFunc(w.hands, func(h handing) bool { return h.id == 0 && !now.Before(h.next) })
	}) {
		side.of.release(now)
	}
}

// handing is the way of an event to one device of the mesh.
type handing struct {
	dest cot.Dest
	id   uint64    // of the attempt; 0: none is under way
	next time.Time // not before
}

// hand gives an event that waits to a device of the mesh that it names; false: it is not given yet.
func (side unicastSide) hand(now time.Time, w *waiting, d cot.Dest) bool {
	uid := side.named(now, d)
	if uid == "" {
		return false
	}
	i := slices.IndexFunc(w.hands, func(h handing) bool { return h.dest == d })
	if i >= 0 && (w.hands[i].id != 0 || now.Before(w.hands[i].next)) {
		return false
	}
	id, given := side.give(uid, w.event)
	if i >= 0 {
		w.hands[i].id = id
	} else if !given {
		w.hands = append(w.hands, handing{dest: d, id: id})
	}
	return given
}

// toOne gives an event of this site to a device of the mesh, as often as it takes until the event is stale; false: there is
// no such device.
func (side unicastSide) toOne(now time.Time, e *cot.Event, d cot.Dest) bool {
	f := side.of
	if side.named(now, d) == "" {
		return false
	}
	w := waiting{event: e, dests: []cot.Dest{d}, here: true}
	w.Until = now.Add(min(max(0, e.Stale.Sub(now)), usualLife))
	switch {
	case side.hand(now, &w, d):
	case len(f.waiting) >= mostWaiting:
		f.trouble.Count("unicast_full")
	default:
		f.waiting = append(f.waiting, w)
	}
	return true
}

// direct takes what a device of the mesh said to our endpoint.
func (side unicastSide) direct(now time.Time, ev Direct) {
	f := side.of
	c := &client{host: hostOf(ev.Remote), mesh: true}
	e, _, err := cot.ParseDirect(ev.Frame)
	if err != nil {
		f.refuse(now, reasonOf(err), c, "", err)
		return
	}
	if e == nil {
		return
	}
	f.trouble.Count("unicast_in")
	if e.Local() {
		f.trouble.Count("local")
		return
	}
	if who := f.claimed(c, e.UID); who != nil {
		f.refuse(now, "claimed", c, e.UID, nil)
		return
	}
	if f.again(e) { // a group's words come once for each member
		f.trouble.Count("twice")
		return
	}
	if (wordsSide{f}).receipted(now, e) {
		return
	}
	dests := e.Dests()
	if len(dests) == 0 {
		dests = side.chatters(now, e)
	}
	if len(dests) == 0 {
		f.refuse(now, "nobody", c, e.UID, nil)
		return
	}
	addressSide{f}.direct(now, c, e.Without("marti"), dests)
}

// chatters are those whom words or their receipts are for and whom the mesh has not reached: its own devices are told by the
// sender. Of a group those count that are known; one alone may come back.
func (side unicastSide) chatters(now time.Time, e *cot.Event) (dests []cot.Dest) {
	chat := e.Find("__chat")
	if chat == nil {
		chat = e.Find("__chatreceipt")
	}
	if chat == nil || chat.Kid("chatgrp") == nil {
		return nil
	}
	for _, a := range chat.Kid("chatgrp").Attrs {
		n, ok := strings.CutPrefix(a.Name, "uid")
		d := cot.Dest{UID: a.Value}
		if i, err := strconv.Atoi(n); ok && err == nil && i >= 1 && a.Value != "" && len(dests) < mostChatters && side.named(now, d) == "" && !slices.Contains(dests, d) {
			dests = append(dests, d)
		}
	}
	if len(dests) > 1 {
		dests = slices.DeleteFunc(dests, func(d cot.Dest) bool { return !side.knows(d.UID) })
	}
	return dests
}

// mostChatters bounds the members of a group that words are given to.
const mostChatters = 64

// knows says whether a unit has a stream here, or is on a far site's map.
func (side unicastSide) knows(uid string) bool {
	f := side.of
	if len(f.streams.named(cot.Dest{UID: uid})) > 0 {
		return true
	}
	for _, far := range f.far {
		if far.Find(uid) != nil {
			return true
		}
	}
	return false
}

// hostOf is an address without its port.
func hostOf(remote string) string {
	if port := strings.LastIndexByte(remote, ':'); port >= 0 {
		return remote[:port]
	}
	return remote
}

// reached is an event with this endpoint for its unit's; one that says none stays as it is.
func reached(e *cot.Event, endpoint string) *cot.Event {
	contact := e.Find("contact")
	if endpoint == "" || contact == nil || contact.Get("endpoint") == "" || contact.Get("endpoint") == endpoint {
		return e
	}
	c := *e
	c.Detail = slices.Clone(e.Detail)
	for i := range c.Detail {
		if n := &c.Detail[i]; n.Name == "contact" {
			n.Attrs = slices.Clone(n.Attrs)
			for a := range n.Attrs {
				if n.Attrs[a].Name == "endpoint" {
					n.Attrs[a].Value = endpoint
				}
			}
		}
	}
	return &c
}
