package tak

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/site"
)

// Devices of the mesh send an event for one device to its endpoint, IP:PORT:tcp, over a TCP connection of its own. This
// gateway has an endpoint that stands for all units that are not on the mesh.

// Events of these connections from the LAN room, and orders for them.
type (
	// Direct: a device sent this to our endpoint. Nothing in it is trusted.
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
	// Handed is the outcome of a Hand.
	Handed struct {
		ID  uint64
		Err string // "": the device has taken it
	}
)

// AdapterEvent marks it as an event of this adapter.
func (Direct) AdapterEvent() {}

// AdapterEvent marks it as an event of this adapter.
func (Handed) AdapterEvent() {}

// Concerns names no connection: a Hand has a connection of its own.
func (Hand) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the size of the event.
func (h Hand) Octets() int { return len(h.XML) }

// unicast holds the units that may be reached on the mesh, and the events on their way to them.
type unicast struct {
	units map[string]reach  // by uid
	hands map[uint64]string // uids of the devices to which an event is on its way, by attempt
	last  uint64
}

// reach is where a device of the mesh takes events for it alone.
type reach struct {
	callsign string
	host     string
	to       string // IP and port; "": it has named none, and gets its events in the group
	heard    time.Time
}

const (
	mostReach = 1024
	mostHands = 256
	// handAgain is the time between two attempts to give a device an event.
	handAgain = 30 * time.Second
	// streamed is the endpoint of a unit that is reached through the server.
	streamed = "*:-1:stcp"
	// leastPort is the lowest port that is accepted in an endpoint.
	leastPort = 1024
)

// noteReach notes where a device of the mesh takes events for it alone. An endpoint counts only if it is on the host from which it was
// heard: nobody can make the gateway call another host.
func (d *devices) noteReach(now time.Time, host string, e *cot.Event) {
	contact := e.Find("contact")
	if !e.Is("a") || contact == nil {
		return
	}
	old, known := d.unicast.units[e.UID]
	if known && old.host != host && now.Sub(old.heard) < memberLife {
		return // two hosts claim one unit: it belongs to the first
	}
	if !known && len(d.unicast.units) >= mostReach {
		d.forgetReach(now)
		if len(d.unicast.units) >= mostReach {
			return
		}
	}
	r := reach{callsign: e.Callsign(), host: host, heard: now}
	if text := contact.Get("endpoint"); text != "" {
		r.to = endpointOn(host, text)
		if r.to == "" && strings.HasSuffix(text, ":tcp") {
			d.trouble.Count("unicast_elsewhere")
		}
	}
	d.unicast.units[e.UID] = r
	if !known || old.to != r.to {
		d.release(now)
	}
}

// endpointOn is the address of an endpoint, as IP:PORT; "": it is not on this host, or not over TCP.
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

func (d *devices) forgetReach(now time.Time) {
	for uid, r := range d.unicast.units {
		if now.Sub(r.heard) > memberLife {
			delete(d.unicast.units, uid)
		}
	}
}

// reachable is the device of the mesh with this uid or callsign that was heard lately; "": there is none.
func (d *devices) reachable(now time.Time, to cot.Dest) (uid string) {
	u := &d.unicast
	at := func(id string) bool {
		r, ok := u.units[id]
		return ok && now.Sub(r.heard) <= memberLife
	}
	if to.UID != "" {
		if at(to.UID) {
			return to.UID
		}
		return ""
	}
	for id, r := range u.units {
		if to.Callsign != "" && r.callsign == to.Callsign && at(id) && (uid == "" || id < uid) {
			uid = id
		}
	}
	return uid
}

// giveTo gives an event to a device of the mesh: at its endpoint, or in the group if it has none. It returns the number
// of the attempt; 0: too many are under way, or the event is already given.
func (d *devices) giveTo(uid string, e *cot.Event) (id uint64, given bool) {
	r := d.unicast.units[uid]
	if r.to == "" {
		d.shout(e)
		return 0, true
	}
	if len(d.unicast.hands) >= mostHands {
		d.trouble.Count("unicast_full")
		return 0, false
	}
	d.unicast.last++
	d.unicast.hands[d.unicast.last] = uid
	d.out.Orders = append(d.out.Orders, Hand{ID: d.unicast.last, To: r.to, XML: e.AppendXML(nil)})
	d.trouble.Count("unicast_out")
	return d.unicast.last, false
}

// handed takes in that a device has taken its event, or could not be reached.
func (d *devices) handed(now time.Time, ev Handed) {
	uid, ok := d.unicast.hands[ev.ID]
	if !ok {
		return
	}
	delete(d.unicast.hands, ev.ID)
	if r := d.unicast.units[uid]; ev.Err != "" {
		d.trouble.Count("unicast_failed")
		if d.trouble.May(now, "unicast "+uid) {
			d.note("warn", "a mesh device does not accept its events; the gateway tries again", "uid", uid, "callsign", r.callsign, "remote", r.to, "error", ev.Err)
		}
	}
	for i := range d.waiting {
		w := &d.waiting[i]
		n := slices.IndexFunc(w.hands, func(h handing) bool { return h.id == ev.ID })
		if n < 0 {
			continue
		}
		if ev.Err != "" {
			w.hands[n].id, w.hands[n].next = 0, now.Add(handAgain)
			return
		}
		dest := w.hands[n].dest
		w.hands = slices.Delete(w.hands, n, n+1)
		before := len(w.dests)
		w.dests = slices.DeleteFunc(w.dests, func(x cot.Dest) bool { return x == dest })
		w.note(d.step, before)
		if len(w.dests) == 0 {
			w.done(d.step)
			d.waiting = slices.Delete(d.waiting, i, i+1)
		}
		return
	}
}

// tryAgain repeats attempts that failed a while ago.
func (d *devices) tryAgain(now time.Time) {
	if slices.ContainsFunc(d.waiting, func(w waiting) bool {
		return slices.ContainsFunc(w.hands, func(h handing) bool { return h.id == 0 && !now.Before(h.next) })
	}) {
		d.release(now)
	}
}

// handing is the delivery of an event to one device of the mesh.
type handing struct {
	dest cot.Dest
	id   uint64    // of the attempt; 0: none is under way
	next time.Time // earliest time of the next attempt
}

// handTo gives a waiting event to a device of the mesh that it names; false: it is not given yet.
func (d *devices) handTo(now time.Time, w *waiting, to cot.Dest) bool {
	uid := d.reachable(now, to)
	if uid == "" {
		return false
	}
	i := slices.IndexFunc(w.hands, func(h handing) bool { return h.dest == to })
	if i >= 0 && (w.hands[i].id != 0 || now.Before(w.hands[i].next)) {
		return false
	}
	id, given := d.giveTo(uid, w.event)
	if i >= 0 {
		w.hands[i].id = id
	} else if !given {
		w.hands = append(w.hands, handing{dest: to, id: id})
	}
	return given
}

// toOne gives an event of this site to a device of the mesh, as often as it takes until the event is stale; false: there is
// no such device.
func (d *devices) toOne(now time.Time, e *cot.Event, to cot.Dest) bool {
	if d.reachable(now, to) == "" {
		return false
	}
	w := waiting{event: e, dests: []cot.Dest{to}, here: true}
	w.Until = now.Add(min(max(0, e.Stale.Sub(now)), usualLife))
	switch {
	case d.handTo(now, &w, to):
	case len(d.waiting) >= mostWaiting:
		d.trouble.Count("unicast_full")
	default:
		d.waiting = append(d.waiting, w)
	}
	return true
}

// direct takes a frame that a device of the mesh sent to our endpoint.
func (f *Adapter) direct(now time.Time, ev Direct) {
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
	if who := f.devices.claimed(c, e.UID, f.cfg.Beside); who != nil {
		f.refuse(now, "claimed", c, e.UID, nil)
		return
	}
	if f.seenBefore(e) { // a chat for a group comes once for each member
		f.trouble.Count("twice")
		return
	}
	if f.words.receipted(now, e, f.sure) {
		return
	}
	dests := e.Dests()
	if len(dests) == 0 {
		dests = f.devices.chatters(now, e, f.knows)
	}
	if len(dests) == 0 {
		f.refuse(now, "nobody", c, e.UID, nil)
		return
	}
	f.address(now, c, e.Without("marti"), dests)
}

// chatters are the recipients of a chat or its receipt that the sender has not reached on the mesh: it gives the event to the
// mesh devices itself. In a group only known units count; a single recipient may be unknown, because it may come back.
func (d *devices) chatters(now time.Time, e *cot.Event, knows func(uid string) bool) (dests []cot.Dest) {
	chat := e.Find("__chat")
	if chat == nil {
		chat = e.Find("__chatreceipt")
	}
	if chat == nil || chat.Kid("chatgrp") == nil {
		return nil
	}
	for _, a := range chat.Kid("chatgrp").Attrs {
		n, ok := strings.CutPrefix(a.Name, "uid")
		to := cot.Dest{UID: a.Value}
		if i, err := strconv.Atoi(n); ok && err == nil && i >= 1 && a.Value != "" && len(dests) < mostChatters && d.reachable(now, to) == "" && !slices.Contains(dests, to) {
			dests = append(dests, to)
		}
	}
	if len(dests) > 1 {
		dests = slices.DeleteFunc(dests, func(to cot.Dest) bool { return !knows(to.UID) })
	}
	return dests
}

// mostChatters bounds the members of a group to which a chat is given.
const mostChatters = 64

// knows says whether a unit has a stream here, or is on a far site's map.
func (f *Adapter) knows(uid string) bool {
	if len(f.devices.named(cot.Dest{UID: uid})) > 0 {
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

// reached is an event with the endpoint of its unit replaced by this one; an event without an endpoint stays as it is.
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
