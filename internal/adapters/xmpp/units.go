package xmpp

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Unit is the position of a unit: an item of a node that the gateway has for clients here (Config.Nodes), with a place in the
// form of XEP-0080. As an event it comes from another adapter (internal/adapters/interop), as an order it is a unit that a
// client has published, for that adapter.
type Unit struct {
	Node, ID      string
	Name          string // the name that people know
	Type          string // CoT type
	Lat, Lon      float64
	Moves         bool    // Course and Speed are known
	Course, Speed float64 // degrees from north; metres a second
	Time          time.Time
	Until         time.Time     // when it is no longer shown
	Every         time.Duration // least time between two events about it to a client
}

// AdapterEvent marks Unit as an event of this adapter.
func (Unit) AdapterEvent() {}

// Concerns names no connection: interop takes the order out.
func (Unit) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the size of the texts.
func (u Unit) Octets() int { return len(u.Node) + len(u.ID) + len(u.Name) + len(u.Type) }

const (
	nsPlace = "http://jabber.org/protocol/geoloc"
	// byXMPP begins the id of a unit that a client has published; the client's bare address follows.
	byXMPP    = "XMPP."
	mostUnits = 500 // in a node; the one that expires first makes room
	mostName  = 96  // octets of an id or a name
)

// meet makes these nodes and removes all others; true: clients may publish there.
func (p *nodes) meet(names map[string]bool) {
	for id := range p.all {
		if _, there := names[id.name]; id.home == metSite && !there {
			for to := range p.all[id].subs {
				p.remember(p.all[id].key(keyNode)+"\x00"+to, nil)
			}
			delete(p.all, id)
		}
	}
	for name, open := range names {
		if n := p.get(nodeID{home: metSite, name: name}); n != nil {
			n.known, n.open = true, open
		}
	}
}

// unit takes in the position of a unit.
func (p *nodes) unit(now time.Time, u Unit) {
	n := p.all[nodeID{home: metSite, name: u.Node}]
	if n == nil || len(u.ID) > code.MaxNode || !stanza.Printable(u.ID) || !now.Before(u.Until) {
		p.trouble.Count("met_nowhere")
		return
	}
	place := u.place()
	doc, _ := code.AppendPayload(nil, &place)
	known := func(i nodeItem) bool { return i.id == u.ID }
	if len(n.items) >= mostUnits && !slices.ContainsFunc(n.items, known) {
		first := slices.MinFunc(n.items, func(a, b nodeItem) int { return a.until.Compare(b.until) })
		p.retract(n, first.id)
	}
	i, news := n.put(u.ID, doc)
	i.until, i.every = u.Until, u.Every
	p.at = due.Earliest(p.at, i.until)
	i.late = i.late || news
	if i.late && !now.Before(i.next) {
		p.showUnit(now, n, i)
	} else if i.late {
		p.at = due.Earliest(p.at, i.next)
	}
}

func (p *nodes) showUnit(now time.Time, n *node, i *nodeItem) {
	i.late, i.next = false, now.Add(i.every)
	p.tell(n, "", stanza.New(nsEvent, "items", "node", n.name).With(i.element(nsEvent)))
}

func (p *nodes) retract(n *node, id string) {
	n.items = slices.DeleteFunc(n.items, func(i nodeItem) bool { return i.id == id })
	p.tell(n, "", stanza.New(nsEvent, "items", "node", n.name).With(stanza.New(nsEvent, "retract", "id", id)))
}

// turnUnits shows units that had to wait, and removes those that have expired.
func (p *nodes) turnUnits(now time.Time, n *node) {
	for _, i := range slices.Clone(n.items) {
		if !now.Before(i.until) {
			p.retract(n, i.id)
		}
	}
	for j := range n.items {
		i := &n.items[j]
		if i.late && !now.Before(i.next) {
			p.showUnit(now, n, i)
		} else if i.late {
			p.at = due.Earliest(p.at, i.next)
		}
		p.at = due.Earliest(p.at, i.until)
	}
}

// place is the unit in the form of XEP-0080. Its text is the CoT type.
func (u *Unit) place() stanza.Element {
	e := stanza.New(nsPlace, "geoloc")
	add := func(name, text string) {
		if text != "" {
			e = e.With(stanza.New(nsPlace, name).Says(text))
		}
	}
	add("lat", decimal(u.Lat, 6))
	add("lon", decimal(u.Lon, 6))
	if u.Moves {
		add("bearing", decimal(u.Course, 1))
		add("speed", decimal(u.Speed, 2))
	}
	add("description", u.Name)
	add("text", u.Type)
	add("timestamp", u.Time.UTC().Format("2006-01-02T15:04:05Z"))
	return e
}

func decimal(v float64, digits int) string {
	shift := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*shift)/shift, 'f', -1, 64)
}

// publish takes a client's item about its own unit.
func (p *nodes) publish(c *component, e, what *stanza.Element, n *node, from jid) {
	item := what.Kid(nsPubSub, "item")
	if item == nil {
		item = &stanza.Element{}
	}
	u, refused := Unit{}, "not-acceptable"
	if place := item.Kid(nsPlace, "geoloc"); place != nil {
		u, refused = placeIn(place)
	}
	u.Node, u.ID = n.name, byXMPP+from.bare()
	if id := item.Get("id"); id != "" && id != usualID {
		u.ID += "/" + id
	}
	u.Name = cmp.Or(u.Name, from.local)
	switch {
	case !n.open:
		refused = "forbidden"
	case refused == "" && (len(u.ID) > mostName || len(u.Name) > mostName):
		refused = "not-acceptable"
	}
	if refused != "" {
		c.write(stanza.Refusal(e, refused, ""))
		return
	}
	p.trouble.Count("units_published")
	p.out.Orders = append(p.out.Orders, u)
	done := stanza.New(nsPubSub, "publish", "node", n.name).With(stanza.New(nsPubSub, "item", "id", u.ID))
	c.write(stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result").With(stanza.New(nsPubSub, "pubsub").With(done)))
}

// placeIn reads a place; refused: why not.
func placeIn(e *stanza.Element) (u Unit, refused string) {
	number := func(name string, least, most float64) (v float64, there bool) {
		text := e.Kid(nsPlace, name).Inside()
		v, err := strconv.ParseFloat(text, 64)
		if text != "" && (err != nil || !(v >= least && v <= most)) {
			refused = "not-acceptable"
		}
		return v, text != ""
	}
	var there [4]bool
	u.Lat, there[0] = number("lat", -90, 90)
	u.Lon, there[1] = number("lon", -180, 180)
	u.Course, there[2] = number("bearing", 0, 360)
	u.Speed, there[3] = number("speed", 0, 10_000)
	u.Moves = there[2] && there[3]
	u.Name, u.Type = e.Kid(nsPlace, "description").Inside(), e.Kid(nsPlace, "text").Inside()
	if text := e.Kid(nsPlace, "timestamp").Inside(); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			refused = "not-acceptable"
		}
		u.Time = at
	}
	if !there[0] || !there[1] {
		refused = "not-acceptable"
	}
	return u, refused
}
