package glance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/pair"
	"aldis/internal/site"
)

// Local is a peer of this gateway's LAN.
type Local struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Kind    string `json:"kind"` // how it speaks JXTA: "signed", "unsigned", "2.2"
	Waiting int    `json:"waiting"`
}

// mostLocals is how many local peers a View names.
const mostLocals = 200

// Seen is the input of ViewOf.
type Seen struct {
	Version string
	Started time.Time
	Trouble string   // what keeps the gateway from working
	Deaf    string   // why the loop does not answer; then the rest is unknown
	Missing []string // parts of its cell that the child that runs libnorm lacks
	Status  api.Status
	Locals  []Local
	Orders  bool             // HTTP takes orders
	Views   map[uint16]Views // by site
	Site    *pair.Status     // of a site of two gateways or more; nil: the site has one
}

// View is the content of the page. Times are absolute, so that it changes only when something has happened.
type View struct {
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	ID        uint16    `json:"id"`
	Name      string    `json:"name"`
	Profile   string    `json:"profile"`
	End       string    `json:"end"`
	Transport string    `json:"transport"`
	Orders    bool      `json:"orders"`

	Level  string  `json:"level"` // "good", "warn", "bad"
	Words  string  `json:"words"` // whether all is well
	Alarms []Alarm `json:"alarms"`

	Link    api.LinkStatus `json:"link"`
	Out     Use            `json:"out"` // to all sites together
	In      Use            `json:"in"`
	Bearers []Bearer       `json:"bearers,omitempty"` // where there are several: then the rates of all have no percentage
	Silence Silence        `json:"silence"`
	// Machines are the machines of this site if there are several.
	Machines []Machine           `json:"machines,omitempty"`
	Sites    []Site              `json:"sites"`
	Queue    []Queue             `json:"queue"`
	Locals   []Local             `json:"locals"`
	More     int                 `json:"more_locals,omitempty"` // local peers that are not named
	Items    int                 `json:"items"`                 // of this site
	Channels []api.ChannelStatus `json:"channels,omitempty"`    // who hears whom on shared channels, without times
	Fleet    *api.FleetStatus    `json:"fleet,omitempty"`       // what gateways say of themselves, without ages
	Minute   int64               `json:"minute"`                // of the newest column of the Air; it changes when there is another
}

// Use is the octets of a direction in the last minute, as a rate.
type Use struct {
	Bps     int `json:"bps"`
	Percent int `json:"percent"` // of the profile's rate; -1: the link has none
}

// Bearer is one of several bearers.
type Bearer struct {
	Name string `json:"name"`
	Out  Use    `json:"out"`
	In   Use    `json:"in"`
}

// Way is a site on one bearer of several.
type Way struct {
	Bearer string `json:"bearer"`
	State  string `json:"state"` // as Site.State
	Used   bool   `json:"used"`  // messages take it
	Via    string `json:"via,omitempty"`
	ShortS int    `json:"short_s"` // as in Site
	LongS  int    `json:"long_s"`
	// Direct is since when a direct session with the site spares the air of a relay, and Spared how many octets of messages in this run.
	Direct time.Time `json:"direct,omitzero"` // zero: there is none
	Spared int64     `json:"spared,omitempty"`
}

// Text is a way in words.
func (w Way) Text() string {
	text := w.Bearer
	if w.Via != "" {
		text += " via " + w.Via
	}
	if w.Used || w.State == "up" {
		text += fmt.Sprintf(", %d to %d s", w.ShortS, w.LongS)
	} else {
		text += ": " + w.State
	}
	if !w.Direct.IsZero() {
		text += fmt.Sprintf("; direct session since %s, %d octets", w.Direct.Format("2006-01-02 15:04Z"), w.Spared)
	}
	return text
}

// Silence is the radio silence (EMCON) of this gateway.
type Silence struct {
	On       bool      `json:"on"`
	Fixed    bool      `json:"fixed,omitempty"` // by the configuration: no order ends it
	Until    time.Time `json:"until,omitzero"`  // it lasts until then at the least; zero: until told otherwise
	Messages int       `json:"messages"`
	AirtimeS int       `json:"airtime_s"` // of what is owed when it ends
}

// Machine is one of this site's machines.
type Machine struct {
	At    string    `json:"at"`   // its address
	Text  string    `json:"text"` // what it is
	Since time.Time `json:"since,omitzero"`
}

// machines are the machines of a site; nil: it has one.
func machines(is *pair.Status, now time.Time) (list []Machine) {
	if is == nil {
		return nil
	}
	for _, m := range is.All() {
		text, since := m.Words(is, now)
		list = append(list, Machine{m.At, Plain(text), since})
	}
	return list
}

// Site is a sister gateway and the link to it.
type Site struct {
	ID       uint16    `json:"id"`
	Name     string    `json:"name"`
	State    string    `json:"state"` // as api.PeerStatus.Link
	Since    time.Time `json:"since,omitzero"`
	Known    time.Time `json:"known,omitzero"` // when this run came to know the site
	Heard    time.Time `json:"heard,omitzero"`
	Address  string    `json:"address,omitempty"`
	Out      Use       `json:"out"`
	In       Use       `json:"in"`
	Again    int       `json:"again"`     // messages sent again in the last ten minutes
	Came     int       `json:"came"`      // messages that the site has acknowledged in that time
	Waiting  int       `json:"waiting"`   // messages
	UnderWay int       `json:"under_way"` // messages that are sent and not acknowledged
	Octets   int       `json:"octets"`    // of both, as journalled
	Queue    []Queue   `json:"queue"`
	Accepted uint64    `json:"accepted"`
	Ended    uint64    `json:"delivered"`
	Received uint64    `json:"received"`
	DelayS   float64   `json:"delay_s"` // mean from custody to acknowledgement; 0: none has come yet
	ShortS   int       `json:"short_s"` // time that a message of 200 octets takes now, rounded
	LongS    int       `json:"long_s"`  // likewise of 20,000 octets
	Held     int       `json:"items_held"`
	Far      int       `json:"far_items"`
	Ways     []Way     `json:"ways,omitempty"` // where there are several bearers
	Views    *Views    `json:"views,omitempty"`
}

// Views say of which JXTA peers this site and another tell each other.
type Views struct {
	There   string         `json:"there"`           // the view by which the other site is told of peers here
	Wants   string         `json:"wants,omitempty"` // the view that it wants at most; "": complete
	Here    string         `json:"here"`            // the view by which it tells of its peers here
	By      map[string]int `json:"by,omitempty"`    // if it does not tell of all: how many peers are here by each part of that view
	Entries []Entry        `json:"entries,omitempty"`
	More    int            `json:"more,omitempty"` // entries that are not named
}

// Entry is a peer of a far site that is known here, with the parts of the view by which it is.
type Entry struct {
	Name string `json:"name"`
	By   string `json:"by"`
}

// MostEntries is how many entries the Views of all sites name together.
const MostEntries = 64

// Queue counts the waiting messages of one precedence.
type Queue struct {
	Precedence string    `json:"precedence"`
	Messages   int       `json:"messages"`
	Octets     int       `json:"octets"` // as journalled
	Oldest     time.Time `json:"oldest"`
	Expected   time.Time `json:"expected,omitzero"` // when the last of them will be there; zero: nobody can tell
	Unknown    int       `json:"unknown,omitempty"` // messages of which nobody can tell: Expected is that of the others
}

// ViewOf makes the View of a moment.
func ViewOf(now time.Time, h *History, s Seen) View {
	st := s.Status
	v := View{Version: s.Version, Started: s.Started.UTC(), ID: st.ID, Name: st.Name, Profile: st.Profile, End: st.End, Transport: st.Transport,
		Orders: s.Orders, Link: st.Link, Items: st.Items, Sites: []Site{}, Queue: []Queue{}, Locals: []Local{}, Alarms: []Alarm{}}
	v.Silence = Silence{On: st.Silence.On, Fixed: st.Silence.Fixed, Messages: st.Silence.Messages, AirtimeS: int(st.Silence.AirtimeS + 0.5)}
	if st.Silence.On && st.Silence.LeftS > 0 {
		v.Silence.Until = now.Add(time.Duration(st.Silence.LeftS * float64(time.Second))).UTC().Round(time.Second)
	}
	for _, c := range st.Channels {
		c.Sites = slices.Clone(c.Sites)
		for i := range c.Sites {
			c.Sites[i].GreetingAt = time.Time{}
		}
		v.Channels = append(v.Channels, c)
	}
	if st.Fleet != nil {
		f := *st.Fleet
		f.Gateways = slices.Clone(f.Gateways)
		for i := range f.Gateways {
			f.Gateways[i].AgeS = 0
		}
		v.Fleet = &f
	}
	if n := len(h.minutes); n > 0 {
		v.Minute = h.minutes[n-1].at.Unix()
	}
	is, minute, ten := sampleOf(now, st), h.before(now, window), h.before(now, longer)
	var all [2]uint64
	bps := [2]int{st.Link.SendBps, st.Link.ReceiveBps}
	if len(st.Bearers) > 1 {
		bps = [2]int{}
	}
	names := api.Names(st.Peers)
	for i, p := range st.Peers {
		row, name := siteOf(p, st.Bearers), names[i]
		for d := range all {
			octets := grown(is.sites[name][d], minute.sites[name][d])
			all[d] += octets
			use := rate(octets, now.Sub(minute.at), bps[d])
			if d == sent {
				row.Out = use
			} else {
				row.In = use
			}
		}
		if views, known := s.Views[p.ID]; known {
			row.Views = &views
		}
		row.Again = int(grown(is.peers[p.ID].repeated, ten.peers[p.ID].repeated))
		row.Came = int(grown(is.peers[p.ID].delivered, ten.peers[p.ID].delivered))
		v.Sites = append(v.Sites, row)
	}
	for name, c := range is.sites { // a channel that all hear has an account of its own
		if !slices.Contains(names, name) {
			all[sent] += grown(c[sent], minute.sites[name][sent])
		}
	}
	legs := 1
	if st.Link.Each {
		legs = max(len(st.Peers), 1)
	}
	if v.bearers(now, st, is, minute); len(v.Bearers) > 0 {
		st.Link = api.LinkStatus{} // the rate of one bearer says nothing about all
	}
	v.Out, v.In = rate(all[sent], now.Sub(minute.at), legs*st.Link.SendBps), rate(all[received], now.Sub(minute.at), legs*st.Link.ReceiveBps)
	v.Queue = sum(v.Sites)
	for i, l := range s.Locals {
		if i == mostLocals {
			v.More = len(s.Locals) - i
			break
		}
		l.Name, l.ID = Plain(l.Name), Plain(l.ID)
		v.Locals = append(v.Locals, l)
	}
	v.Machines = machines(s.Site, now)
	v.Alarms = alarms(now, &v, s, is, ten)
	v.Level, v.Words = verdict(&v, s)
	return v
}

// bearers adds the rate of each of several bearers since a sample.
func (v *View) bearers(now time.Time, st api.Status, is, since sample) {
	if len(st.Bearers) < 2 {
		return
	}
	for _, b := range st.Bearers {
		if b.Link == nil {
			continue
		}
		legs := 1
		if b.Link.Each {
			legs = max(len(st.Peers), 1)
		}
		use := func(d, bps int) Use {
			return rate(grown(is.bearers[b.Name][d], since.bearers[b.Name][d]), now.Sub(since.at), legs*bps)
		}
		v.Bearers = append(v.Bearers, Bearer{Plain(b.Name), use(sent, b.Link.SendBps), use(received, b.Link.ReceiveBps)})
	}
}

// leastTime is the shortest time for a rate: in a shorter one, one datagram would look like a full link.
const leastTime = 10 * time.Second

// rate is the rate of octets in a time. The time counts in steps: otherwise a View would keep changing while there was traffic.
func rate(octets uint64, took time.Duration, bps int) Use {
	u := Use{Bps: int(float64(octets) * 8 / max(took.Truncate(Every), leastTime).Seconds()), Percent: -1}
	if bps > 0 {
		u.Percent = min(int(100*float64(u.Bps)/float64(bps)+0.5), 100)
	}
	return u
}

// siteOf is the row of a peer; bearers are those of this gateway.
func siteOf(p api.PeerStatus, bearers []api.BearerStatus) Site {
	s := Site{
		ID:       p.ID,
		Name:     Plain(p.Name),
		State:    p.Link,
		Since:    p.LinkSince,
		Known:    p.KnownSince,
		Address:  p.Address,
		Accepted: p.Accepted,
		Ended:    p.Delivered,
		Received: p.Received,
		Held:     p.ItemsHeld,
		ShortS:   int(math.Ceil(p.ShortS)),
		LongS:    int(math.Ceil(p.LongS)),
		Far:      p.FarItems,
		Queue:    []Queue{},
	}
	s.Waiting, s.UnderWay, s.Octets = p.Messages()
	s.Heard, _ = time.Parse(time.RFC3339, p.LastHeard)
	if p.Delays.Count > 0 {
		s.DelayS = p.Delays.SumS / float64(p.Delays.Count)
	}
	for _, b := range p.Bearers {
		w := Way{Bearer: Plain(b.Bearer), State: b.Link, Used: b.Used, Via: Plain(b.NextHop), ShortS: int(math.Ceil(b.ShortS)), LongS: int(math.Ceil(b.LongS))}
		w.Direct, w.Spared = session(p.Name, b.Bearer, bearers)
		s.Ways = append(s.Ways, w)
	}
	for _, q := range p.Queue {
		row := Queue{Precedence: q.Precedence, Messages: q.Messages, Octets: q.Octets, Oldest: q.Oldest, Expected: q.Expected}
		if q.Expected.IsZero() {
			row.Unknown = q.Messages
		}
		s.Queue = append(s.Queue, row)
	}
	return s
}

// session is since when there is a direct session with a peer on a bearer, and what it has spared; zero: there is none.
func session(peer, bearer string, bearers []api.BearerStatus) (since time.Time, spared int64) {
	for _, b := range bearers {
		if b.Direct == nil || cmp.Or(b.Name, b.Profile) != bearer {
			continue
		}
		for _, s := range b.Direct.Sessions {
			if s.Peer == peer {
				return s.Since.UTC(), s.Spared
			}
		}
	}
	return since, 0
}

// sum adds the queues of all sites. A message for several sites counts for each of them.
func sum(sites []Site) []Queue {
	all := []Queue{}
	for _, name := range slices.Backward(site.Precedences) {
		total := Queue{Precedence: name}
		for _, s := range sites {
			for _, q := range s.Queue {
				if q.Precedence != name {
					continue
				}
				if total.Messages == 0 || q.Oldest.Before(total.Oldest) {
					total.Oldest = q.Oldest
				}
				total.Messages += q.Messages
				total.Octets += q.Octets
				total.Unknown += q.Unknown
				if q.Expected.After(total.Expected) {
					total.Expected = q.Expected
				}
			}
		}
		if total.Messages > 0 {
			all = append(all, total)
		}
	}
	return all
}

// Waiting counts all messages that wait or are in transmission.
func (v *View) Waiting() (messages int, oldest time.Time) {
	for _, s := range v.Sites {
		messages += s.Waiting + s.UnderWay
		for _, q := range s.Queue {
			if oldest.IsZero() || q.Oldest.Before(oldest) {
				oldest = q.Oldest
			}
		}
	}
	return messages, oldest
}
