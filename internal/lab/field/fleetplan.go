package field

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"aldis/internal/lab/fleet"
)

// plan is the events of the script, in any order.
func (f *fleetPlay) plan(ctx, all context.Context) (list []action) {
	for _, c := range f.crews {
		if at := f.script.Sites[c.index].Joins.Duration; at > 0 {
			list = append(list, action{at, func() error { return f.joins(ctx, all, c) }})
		}
	}
	for n, t := range f.script.Talks {
		talkers := slices.DeleteFunc(slices.Clone(f.crews), func(c *fleetCrew) bool { return c.script.Bare || len(t.From) > 0 && !slices.Contains(t.From, c.name) })
		for i, c := range talkers { // not at the same moment
			list = append(list, f.talk(n, t, c, time.Duration(i)*t.Every.Duration/time.Duration(len(talkers)))...)
		}
	}
	for _, a := range f.script.Happens(f.o.Seed) {
		list = append(list, f.accident(ctx, all, a)...)
	}
	return list
}

// tell notes an event.
func (f *fleetPlay) tell(text string) {
	f.logf("%s", text)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fleet.Event{AtS: *seconds(time.Since(f.zero).Round(time.Millisecond)), What: text})
}

// joins has a site join while the others talk.
func (f *fleetPlay) joins(ctx, all context.Context, c *fleetCrew) error {
	f.tell(c.name + " joins")
	if err := f.join(ctx, all, c); err != nil {
		return err
	}
	go func() {
		if f.meet(all, []*fleetCrew{c}) == nil {
			f.tell(c.name + " and all others know each other")
		}
	}()
	return nil
}

// talk is the actions of a site in a talk.
func (f *fleetPlay) talk(n int, t fleet.Talk, c *fleetCrew, later time.Duration) (list []action) {
	begins := max(t.At.Duration, f.script.Sites[c.index].Joins.Duration) + later
	if len(f.kinds) > 0 && t.Peers != fleet.TAK {
		list = append(list, action{begins, func() error {
			if c.sunk {
				return nil
			}
			return sendCommands(c.jxta[0], fmt.Sprintf("send %s %d %d %g", c.pipe(), t.Octets, t.Times, t.Every.Seconds()))
		}})
	}
	if f.tak && t.Peers != fleet.JXTA {
		for i := 0; t.Times == 0 || i < t.Times; i++ {
			at := begins + time.Duration(i)*t.Every.Duration
			if at >= f.script.Duration.Duration {
				break
			}
			list = append(list, action{at, func() error { f.chat(c, 1000*n+i, t.Octets); return nil }})
		}
	}
	return list
}

// chat has a device of a site report its position, and send a chat to all.
func (f *fleetPlay) chat(c *fleetCrew, n, octets int) {
	if c.sunk {
		return
	}
	c.unit.step()
	words := fmt.Sprintf("all well at %s, number %d. ", c.name, n)
	uid, text := c.unit.says(n, words+strings.Repeat("Nothing to report. ", octets/19+1)[:max(0, octets-len(words))])
	at := time.Now()
	c.tak[0].talk.send(c.unit.report(time.Minute))
	if !c.tak[0].talk.send(text) {
		return // its gateway is gone, so the chat is lost
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.chats = append(c.chats, takSent{from: c.index, uid: uid, chat: true, at: at})
	c.said[uid] = octets
}

// accident is the actions of an accident, and of its end.
func (f *fleetPlay) accident(ctx, all context.Context, a fleet.Accident) []action {
	begins, ends := a.At.Duration, a.At.Duration+a.For.Duration
	each := func(do func(c *fleetCrew, b int) error) (err error) {
		for _, c := range f.crews {
			for b, x := range f.bearers {
				if c.joined && (a.Site == "" && !slices.Contains(a.Except, c.name) || a.Site == c.name) && (a.Bearer == "" || a.Bearer == x.Name) && x.Has(c.name) {
					err = errors.Join(err, do(c, b))
				}
			}
		}
		return err
	}
	air := func(down bool) error {
		return each(func(c *fleetCrew, b int) error { return f.outage(c, b, down) })
	}
	switch a.What {
	case fleet.Cut:
		return []action{{begins, func() error { f.tell(a.Said()); return air(true) }},
			{ends, func() error {
				f.tell(strings.Replace(a.Said(), "off the air for", "back on the air after", 1))
				return air(false)
			}}}
	case fleet.Redial:
		return []action{{begins, func() error {
			f.tell(a.Said())
			return each(func(c *fleetCrew, b int) error { return redial(f, c, b) })
		}}}
	case fleet.Silence:
		return []action{{begins, func() error {
			f.tell(a.Said())
			until := f.zero.Add(ends).UTC().Format(time.RFC3339)
			return each(func(c *fleetCrew, b int) error {
				return c.leads().order(ctx, "silence", "on", "--announce", "--until", until, "--link", f.bearers[b].Name)
			})
		}}}
	}
	c := f.crew(a.Site)
	if a.What == fleet.Destroy {
		return []action{{begins, func() error { return f.destroy(ctx, c, a.For.Duration) }}}
	}
	if c.several != nil {
		return []action{{begins, func() error {
			f.under.Add(1)
			go (&mishap{f: f, c: c, a: a}).play(all)
			return nil
		}}}
	}
	var killed time.Time
	var unheard map[string]*interval
	return []action{{begins, func() error {
		if c.sunk {
			return nil
		}
		killed = time.Now()
		f.tell(a.Said())
		unheard = f.unheard(c, killed)
		c.gateway.kill()
		return nil
	}}, {ends, func() error {
		if c.sunk {
			return nil
		}
		if err := c.gateway.start(ctx); err != nil {
			return err
		}
		f.tell(fmt.Sprintf("gateway of %s is up again", c.name))
		for peers := range f.plays() {
			go f.served(all, c, peers, unheard[peers], time.Now())
		}
		return nil
	}}}
}

// unheard notes, for each kind of peers, that messages of a site's peers from a kill on may be in no gateway's custody.
func (f *fleetPlay) unheard(c *fleetCrew, killed time.Time) map[string]*interval {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := map[string]*interval{}
	for peers := range f.plays() {
		since[peers] = &interval{from: killed.Add(-beforeKill)}
		c.dead[peers] = append(c.dead[peers], since[peers])
	}
	return since
}

// served finds the first message of a site's peers in custody after a kill, and notes that later ones are in custody again. It returns
// when that message was accepted; zero: none was.
func (f *fleetPlay) served(ctx context.Context, c *fleetCrew, peers string, unheard *interval, up time.Time) (first time.Time) {
	to := up.Add(servedWithin)
	for time.Now().Before(to) && pause(ctx, meetEvery) {
		list, err := f.messages(ctx, c, url.Values{"after": {up.UTC().Format(time.RFC3339)}})
		for _, m := range list {
			if err == nil && m.Adapter == peers && m.Accepted.After(up) && m.Accepted.Before(to) {
				first = m.Accepted
				to = m.Accepted.Add(-min(time.Second, nearest(f.script.Talks)))
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	unheard.to = to
	return first
}
