package field

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/fleet"
)

// deliveries are all messages so far, for each peer of each site that the sender's gateway knew as a listener.
func (f *fleetPlay) deliveries() (list []fleet.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := map[*fleetCrew][]Event{}
	for _, c := range f.crews {
		for _, e := range c.says() {
			if e.Ev == "sent" && e.Name == c.pipe() {
				said[c] = append(said[c], e)
			}
		}
	}
	for _, to := range f.crews {
		for n, p := range to.jxta {
			came := heardBy(p)
			for _, from := range f.crews {
				if met := f.met[[2]*fleetCrew{from, to}]; !met.IsZero() {
					list = append(list, fromTo(from, to, n, met, said[from], came[[2]string{from.pipe(), from.name}])...)
				}
			}
		}
		for n, device := range to.tak {
			for _, from := range f.crews {
				met := f.met[[2]*fleetCrew{from, to}]
				for i, s := range from.chats {
					if met.IsZero() || !s.at.After(met) {
						continue
					}
					d := delivery(from, to, fleet.TAK, n, s.at)
					d.Number, d.Octets = int64(i+1), from.said[s.uid]
					at, times := device.plot.came(s.uid)
					for range times {
						d.Came = append(d.Came, at)
					}
					list = append(list, d)
				}
			}
		}
	}
	fleet.Sink(list, f.gone, f.zero)
	return list
}

// says returns the events of the JXTA peer that talks for a site.
func (c *fleetCrew) says() []Event {
	if len(c.jxta) == 0 {
		return nil
	}
	return c.jxta[0].Events()
}

// heardBy returns the messages that a peer has received, by the names of pipe and sender, and by number.
func heardBy(p *Peer) map[[2]string]map[int64][]Event {
	came := map[[2]string]map[int64][]Event{}
	for _, e := range p.Events() {
		if e.Ev == "received" {
			on := [2]string{e.Name, e.From}
			if came[on] == nil {
				came[on] = map[int64][]Event{}
			}
			came[on][e.Seq] = append(came[on][e.Seq], e)
		}
	}
	return came
}

// listensTo are the pipes that a peer has opened to listen.
func (p *Peer) listensTo() map[string]bool {
	open := map[string]bool{}
	for _, e := range p.Events() {
		if e.Ev == "pipe_ready" {
			open[e.Name] = true
		}
	}
	return open
}

// pipe is the name of the pipe on which a site's JXTA peers talk: the pipe of its group, or its own.
func (s *lanSite) pipe() string {
	if g := s.group(); g != nil {
		return service(g.Name)
	}
	return service(s.name)
}

// roomPipe is the id of the pipe on which the JXTA peers of a group meet, derived from the name as in field-tests/peers.
func roomPipe(name string) string {
	id := sha256.Sum256([]byte(name))
	return fmt.Sprintf("urn:jxta:uuid-59616261646162614E50472050325033%X%02X04", id[:15], id[15]|1)
}

// group is the group to which the site's peers talk; nil: there is none.
func (s *lanSite) group() *fleet.Group { return s.play.GroupOf(s.name) }

// settles has a JXTA peer open its own pipe. In a group, all peers have a pipe by the group's name; at a site without a group, the first
// peer has its own.
func (s *lanSite) settles(p *Peer, first bool) error {
	switch {
	case s.group() != nil:
		return sendCommands(p, "publish "+s.pipe()+" room")
	case first:
		return sendCommands(p, "publish "+s.pipe()+" propagate")
	}
	return nil
}

// speaks says whether a site's messages are meant for another site: with a group, only for sites in the group, and for none without peers.
func (c *fleetCrew) speaks(to *fleetCrew) bool {
	g := c.group()
	return c != to && !c.script.Bare && !to.script.Bare && (g == nil || g.Has(to.name))
}

// hears has all JXTA peers of a site find another site's pipe and listen on it. In a group they listen already.
func hears(c, to *fleetCrew) (err error) {
	if to.group() != nil || to.script.Bare {
		return nil
	}
	for _, p := range c.jxta {
		err = errors.Join(err, sendCommands(p, "find "+to.pipe()+" 30", "listen "+to.pipe()))
	}
	return err
}

// reaches says whether the gateway of a site knows that another site listens. In a group it suffices that it knows some listener, and
// that both gateways are in the group.
func reaches(of map[*fleetCrew]api.Status, from, to *fleetCrew) bool {
	st, up := of[to]
	knows := func(p api.PeerStatus) bool { return p.Name == to.name && p.FarItems >= st.Items }
	if from.group() != nil {
		knows = func(p api.PeerStatus) bool { return p.FarItems > 0 }
		for _, s := range []api.Status{of[from], st} {
			if !slices.ContainsFunc(s.Groups, func(g api.GroupStatus) bool { return len(g.Members) > 0 }) {
				return false
			}
		}
	}
	return up && slices.ContainsFunc(of[from].Peers, knows)
}

// delivery is a delivery to the n-th peer of a site, without its result.
func delivery(from, to *fleetCrew, peers string, n int, at time.Time) fleet.Delivery {
	return fleet.Delivery{From: from.name, To: to.name, Peers: peers, At: n, Open: from.group() != nil, Sent: at, NotTaken: from.deadAt(peers, at)}
}

// fromTo are the messages of one site's JXTA peer to the n-th of another site.
func fromTo(from, to *fleetCrew, n int, met time.Time, said []Event, came map[int64][]Event) (list []fleet.Delivery) {
	for _, e := range said {
		if !e.At().After(met) {
			continue
		}
		d := delivery(from, to, fleet.JXTA, n, e.At())
		d.Number, d.Octets = e.Seq, e.Size
		for _, r := range came[e.Seq] {
			if !r.OK || r.CRC != e.CRC {
				d.Changed++
			} else {
				d.Came = append(d.Came, r.At())
			}
		}
		list = append(list, d)
	}
	return list
}

// outage takes a site off the air of a bearer, or brings it back when no accident keeps it off any more.
func (f *fleetPlay) outage(c *fleetCrew, b int, down bool) error {
	at := [2]int{c.index, b}
	switch {
	case down:
		if f.cut[at]++; f.cut[at] > 1 {
			return nil
		}
	case c.sunk:
		return nil
	default:
		if f.cut[at]--; f.cut[at] > 0 {
			return nil
		}
	}
	return f.hubs[b].Outage(c.name, down)
}

// destroy ends a site once another site has its last messages, or after the time within: its gateway, its peers, its air.
func (f *fleetPlay) destroy(ctx context.Context, c *fleetCrew, within time.Duration) error {
	for end := time.Now().Add(within); time.Now().Before(end) && !overheard(f.deliveries(), c.name); {
		if err := f.until(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
	for b, x := range f.bearers {
		if x.Has(c.name) {
			if err := f.outage(c, b, true); err != nil {
				return err
			}
		}
	}
	c.gateway.kill()
	for _, p := range c.jxta {
		p.Kill()
	}
	f.mu.Lock()
	f.gone[c.name] = time.Now()
	c.sunk, c.joined = true, false
	f.mu.Unlock()
	f.tell(fmt.Sprintf("%s is destroyed", c.name))
	return nil
}

// overheard says whether, by these deliveries, the last message of each kind of a site's peers has come to another site.
func overheard(list []fleet.Delivery, site string) bool {
	last, heard := map[string]int64{}, map[string]bool{}
	for _, d := range list {
		if d.From != site {
			continue
		}
		if d.Number > last[d.Peers] {
			last[d.Peers], heard[d.Peers] = d.Number, false
		}
		if d.Number == last[d.Peers] && len(d.Came) > 0 {
			heard[d.Peers] = true
		}
	}
	for peers := range last {
		if !heard[peers] {
			return false
		}
	}
	return true
}
