package tak

import (
	"errors"
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// devices are the devices of this LAN that are here, and the events for them.
type devices struct {
	*step
	near    *track.Near
	clients map[site.ConnID]*client
	behind  map[string]bool // uids of units that the LAN's own server has reported
	mesh    mesh
	unicast unicast
	ears    []string // chat rooms that clients of another adapter read
	waiting []waiting
	giving  map[uint64]*giving    // by token
	rest    map[uint64]rest       // by token, of an earlier run
	lately  []lately              // the oldest first
	onMap   func(uid string) bool // whether devices that come are given an event of this uid
}

func newDevices(s *step, near *track.Near) *devices {
	return &devices{step: s, near: near, clients: map[site.ConnID]*client{}, behind: map[string]bool{}, rest: map[uint64]rest{}, giving: map[uint64]*giving{}, mesh: mesh{members: map[string]member{}},
		unicast: unicast{units: map[string]reach{}, hands: map[uint64]string{}}}
}

// client is a device, or the LAN's own server.
type client struct {
	conn     site.ConnID
	host     string
	server   bool
	proto    bool   // reads version 1
	mesh     bool   // not a connection: a member of the mesh
	met      bool   // not a connection: a client of another adapter of this gateway
	uid      string // from its report of itself; "": it has sent none
	callsign string
}

// list is all clients that can be given events, in the order of their connections.
func (d *devices) list() (list []*client) {
	for _, c := range d.clients {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *client) int { return int(a.conn) - int(b.conn) })
	return list
}

// protos says whether a device reads version 1.
func (d *devices) protos() bool {
	for _, c := range d.clients {
		if c.proto {
			return true
		}
	}
	return false
}

// named are the devices with this uid or callsign.
func (d *devices) named(to cot.Dest) (list []*client) {
	for _, c := range d.list() {
		if c.uid != "" && (c.uid == to.UID || to.UID == "" && c.callsign != "" && c.callsign == to.Callsign) {
			list = append(list, c)
		}
	}
	return list
}

// streams are the streams of a device: at a site with two machines it may have one to each.
func (d *devices) streams(of *client) (conns []site.ConnID) {
	for _, c := range d.list() {
		if c == of || c.uid != "" && c.uid == of.uid {
			conns = append(conns, c.conn)
		}
	}
	return conns
}

func (f *Adapter) opened(now time.Time, ev Opened) {
	f.greet(now, f.devices.opened(now, ev))
	f.devices.release(now)
}

func (d *devices) opened(now time.Time, ev Opened) *client {
	c := &client{conn: ev.Conn, host: hostOf(ev.Remote), server: ev.Server}
	d.clients[ev.Conn] = c
	if !c.server {
		d.send(c, offer(now))
	}
	return c
}

func (d *devices) closed(ev Closed) {
	d.broke(d.clients[ev.Conn])
	delete(d.clients, ev.Conn)
}

// greet gives a new device the objects on the map.
func (f *Adapter) greet(now time.Time, c *client) {
	for _, u := range f.near.All() {
		f.devices.send(c, u.Event)
	}
	for _, id := range f.cfg.Sites {
		far := f.far[id]
		for _, u := range far.Units() {
			if !u.Away && f.near.Get(u.Event.UID) == nil {
				f.devices.send(c, reached(far.Event(now, u), streamed))
			}
		}
	}
	for _, e := range f.kept.events(now) {
		f.devices.send(c, e)
	}
}

// onMap says whether greet gives an event of this uid.
func onMap(f *Adapter, uid string) bool {
	for _, far := range f.far {
		if u := far.Find(uid); u != nil && !u.Away {
			return true
		}
	}
	return f.kept.of[uid] != nil || f.near.Get(uid) != nil
}

func (d *devices) send(c *client, e *cot.Event) {
	o := Send{Conn: c.conn}
	if c.proto {
		o.Proto = e.AppendFrame(nil)
	} else {
		o.XML = e.AppendXML(nil)
	}
	d.out.Orders = append(d.out.Orders, o)
	d.trouble.Count("events_out")
}

// spread gives an event to all devices but one, and to the mesh.
func (d *devices) spread(e *cot.Event, except ...site.ConnID) {
	d.shout(e)
	d.give(e, except...)
}

// give gives an event to all devices but one.
func (d *devices) give(e *cot.Event, except ...site.ConnID) {
	o := Spread{Except: except, XML: e.AppendXML(nil)}
	if d.protos() {
		o.Proto = e.AppendFrame(nil)
	}
	d.out.Orders = append(d.out.Orders, o)
	d.trouble.Count("events_out")
}

// broken counts a stream that could not be read.
func (d *devices) broken(now time.Time, ev Broken) {
	if c := d.clients[ev.Conn]; c != nil {
		d.refuse(now, reasonOf(ev.Err), c, "", ev.Err)
	}
}

func reasonOf(err error) string {
	var fault *cot.Fault
	if errors.As(err, &fault) {
		return string(fault.Reason)
	}
	return "stream"
}

// heard takes a frame that a device sent.
func (f *Adapter) heard(now time.Time, ev Heard) {
	c := f.devices.clients[ev.Conn]
	if c == nil {
		return
	}
	e, _, err := cot.ParseFrame(ev.Frame)
	if err != nil {
		f.refuse(now, reasonOf(err), c, "", err)
		return
	}
	if e == nil { // only the versions that it reads, or its name and password, which are not needed
		return
	}
	f.trouble.Count("events_in")
	switch {
	case e.Type == "t-x-c-t":
		f.devices.send(c, pong(now))
	case e.Type == "t-x-takp-q":
		f.devices.negotiate(now, c, e)
	case e.Local():
		f.trouble.Count("local")
	default:
		f.event(now, c, e)
	}
}

// pong answers a ping, as TAK servers do.
func pong(now time.Time) *cot.Event { return answer(now, "takPong", "t-x-c-t-r", 20*time.Second) }

// offer announces that version 1 is read here. A server does so once, before everything else.
func offer(now time.Time) *cot.Event {
	e := answer(now, "protouid", "t-x-takp-v", time.Minute)
	e.How = "m-g"
	e.Detail = []cot.Node{{Name: "TakControl", Kids: []cot.Node{{Name: "TakProtocolSupport", Attrs: []cot.Attr{{Name: "version", Value: "1"}}}}}}
	return e
}

// answer is an event of this server itself.
func answer(now time.Time, uid, kind string, life time.Duration) *cot.Event {
	now = now.UTC().Truncate(time.Millisecond)
	return &cot.Event{Version: "2.0", UID: uid, Type: kind, How: "h-g-i-g-o", Time: now, Start: now, Stale: now.Add(life),
		Point: cot.Point{Lat: "0", Lon: "0", HAE: "0", CE: cot.Unknown, LE: cot.Unknown}}
}

// negotiate answers a device that wants version 1. After the answer it gets version 1.
func (d *devices) negotiate(now time.Time, c *client, e *cot.Event) {
	want := false
	if control := e.Find("TakControl"); control != nil {
		if r := control.Kid("TakRequest"); r != nil {
			want = r.Get("version") == "1"
		}
	}
	status := "false"
	if want {
		status = "true"
	}
	r := answer(now, "protouid", "t-x-takp-r", time.Minute)
	r.Detail = []cot.Node{{Name: "TakControl", Kids: []cot.Node{{Name: "TakResponse", Attrs: []cot.Attr{{Name: "status", Value: status}}}}}}
	d.send(c, r)
	if want {
		d.out.Orders = append(d.out.Orders, Speak{c.conn})
		c.proto = true
	}
}
