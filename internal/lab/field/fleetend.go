package field

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/fleet"
)

// deadAt says whether a message of the site's peers at that time may be in no gateway's custody.
func (c *fleetCrew) deadAt(peers string, at time.Time) bool {
	return slices.ContainsFunc(c.dead[peers], func(i *interval) bool { return at.After(i.from) && (i.to.IsZero() || at.Before(i.to)) })
}

// open counts the deliveries that have no end yet.
func open(list []fleet.Delivery) (n int) {
	for i := range list {
		if list[i].End() == fleet.Lost {
			n++
		}
	}
	return n
}

// standing is the state of the play, for people.
func (f *fleetPlay) standing() string {
	list := f.deliveries()
	text := fmt.Sprintf("%d of %d messages have an end", len(list)-open(list), len(list))
	octets := map[string]int64{}
	f.accounts(func(a fleet.Account) { octets[a.Bearer] += a.Octets - f.before[a.Bearer+" "+a.Site].Octets })
	for _, b := range f.bearers {
		text += fmt.Sprintf("; %s %.1f kB", b.Name, float64(octets[b.Name])/1000)
	}
	return text + fmt.Sprintf("; %v to go", max(0, f.script.Duration.Duration-time.Since(f.zero)).Round(time.Second))
}

// accounts calls each with the octets of each site on each bearer.
func (f *fleetPlay) accounts(each func(fleet.Account)) {
	for i, h := range f.hubs {
		st := h.Stats().Link
		for _, s := range f.sites {
			if !f.bearers[i].Has(s.name) {
				continue
			}
			up := st.Node(s.name).Up.OnAir
			each(fleet.Account{Bearer: f.bearers[i].Name, Site: s.name, Octets: up.Octets, Frames: up.Frames})
		}
	}
}

// finish waits for messages under way, and judges.
func (f *fleetPlay) finish(ctx context.Context, res *fleet.Result) error {
	f.under.Wait()
	over := time.Now().Add(f.script.Drain.Duration)
	for open(f.deliveries()) > 0 && time.Now().Before(over) {
		if err := f.until(ctx, time.Now().Add(drainTick)); err != nil {
			return err
		}
	}
	// Duplicates arrive by the time that the last receipts are there.
	var settle time.Duration
	for _, b := range f.bearers {
		settle = max(settle, b.profile.AckDelay+b.profile.RoundTripMax(b.profile.MTU))
	}
	f.logf("%s; %v for what comes twice", f.standing(), settle.Round(time.Second))
	if err := f.until(ctx, time.Now().Add(settle)); err != nil {
		return err
	}
	list := f.deliveries()
	f.mu.Lock()
	res.Destroyed = fleet.Sink(list, f.gone, f.zero)
	f.mu.Unlock()
	for i := range list {
		if err := f.told(ctx, &list[i]); err != nil {
			return err
		}
	}
	res.Judge(f.zero, list)
	for i := range res.Rows {
		f.discovered(&res.Rows[i])
	}
	f.accounts(func(a fleet.Account) {
		was := f.before[a.Bearer+" "+a.Site]
		a.Octets, a.Frames = a.Octets-was.Octets, a.Frames-was.Frames
		res.Octets = append(res.Octets, a)
	})
	f.mu.Lock()
	res.Events, res.Takeovers, res.Sessions = f.events, f.took, f.direct.all(f)
	res.Errors = append(res.Errors, f.faults...)
	f.mu.Unlock()
	for _, c := range f.crews {
		res.WrongMachine += wrongMachine(f, c)
	}
	for _, h := range f.hubs {
		res.LateMS = max(res.LateMS, round(float64(h.Stats().LateMax.Microseconds())/1000, 2))
	}
	for _, p := range f.ships {
		for _, e := range p.Events() {
			if e.Ev == "error" && len(res.Errors) < listMax {
				res.Errors = append(res.Errors, p.Name()+": "+e.Text)
			}
		}
	}
	return nil
}

// discovered notes when a site's JXTA peer had discovered another's.
func (f *fleetPlay) discovered(row *fleet.Row) {
	if row.Peers != fleet.JXTA || row.To == fleet.All {
		return
	}
	from, to := f.crew(row.From).jxta[0], f.crew(row.To).jxta[0]
	began := from.Started
	if to.Started.After(began) {
		began = to.Started
	}
	events := to.Events()
	if i := slices.IndexFunc(events, is("discovered", f.crew(row.From).pipe())); i >= 0 {
		row.Found = *seconds(events[i].At().Sub(began))
	}
}

// crew returns the crew of the site with a name.
func (f *fleetPlay) crew(name string) *fleetCrew {
	return f.crews[slices.IndexFunc(f.crews, func(c *fleetCrew) bool { return c.name == name })]
}

// told asks the sender's gateway for the fate of a message. It cannot tell apart events that TAK devices send at one time, so told asks
// only about those that did not come. The gateway knows no fate of open messages.
func (f *fleetPlay) told(ctx context.Context, d *fleet.Delivery) error {
	if d.Open || len(d.Came) > 0 && d.Peers == fleet.TAK || f.crew(d.From).sunk {
		return nil
	}
	near := nearest(f.script.Talks)
	list, err := f.messages(ctx, f.crew(d.From), url.Values{"after": {d.Sent.Add(-time.Second).UTC().Format(time.RFC3339)}, "before": {d.Sent.Add(2 * time.Second).UTC().Format(time.RFC3339)}})
	for _, m := range list {
		for _, r := range m.Recipients {
			if apart := m.Accepted.Sub(d.Sent).Abs(); r.Site == d.To && m.Adapter == d.Peers && apart < near {
				near = apart // the message itself
				d.NotTaken = false
				if d.Told = r.State; slices.Contains([]string{"delivered", "held", api.StateWaiting, api.StateUnderWay}, r.State) {
					d.Told = ""
				}
			}
		}
	}
	return err
}

// nearest is the longest time between a peer's event and custody for which both are of one message: 2 s, and less than half of the time between
// two messages.
func nearest(talks []fleet.Talk) time.Duration {
	near := 2 * time.Second
	for _, t := range talks {
		if t.Times != 1 {
			near = min(near, t.Every.Duration*4/10)
		}
	}
	return near
}

// messages returns the messages that a site's gateway lists.
func (f *fleetPlay) messages(ctx context.Context, c *fleetCrew, q url.Values) ([]api.MessageRow, error) {
	q.Set("limit", "1000")
	body, err := c.leads().get(ctx, "messages?"+q.Encode())
	var answer struct{ Messages []api.MessageRow }
	if err == nil && json.Unmarshal(body, &answer) != nil {
		err = fmt.Errorf("lab: messages of %s: %.200s", c.name, body)
	}
	return answer.Messages, err
}
