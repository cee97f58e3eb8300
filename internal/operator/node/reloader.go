package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/edge/audit"
	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/site"
)

// Reloaded is the answer to POST /reload.
type Reloaded struct {
	Changes []config.Change `json:"changes"` // empty: the file says what is in force
	DryRun  bool            `json:"dry_run,omitempty"`
}

// InLines writes a line for each change.
func InLines(changes []config.Change) string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = c.String()
		if c.Restart {
			lines[i] += " (needs a restart)"
		}
	}
	return strings.Join(lines, "\n")
}

// reloader holds the configuration in force.
type reloader struct {
	mu     sync.Mutex // one reload at a time
	force  atomic.Pointer[config.Config]
	level  *slog.LevelVar
	log    *slog.Logger
	order  func(api.Event)
	status func(context.Context) (control.Snapshot, error)
	keep   func(audit.Entry)
	unsure bool           // orders were given and not confirmed: the next reload gives all again, whatever is different
	hups   chan os.Signal // SIGHUP; a signal during the start waits here
}

// reload reads the file again and applies it completely or not at all. In the latter case the error is a control.Refusal. With another
// error a part is in force, or perhaps all.
func (r *reloader) reload(ctx context.Context, dryRun bool) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.force.Load()
	next, err := config.Load(now.File)
	if err != nil {
		return nil, control.Refusal{Code: http.StatusUnprocessableEntity, Text: err.Error() + "\nnothing was changed"}
	}
	answer := Reloaded{Changes: now.Changes(next), DryRun: dryRun}
	if err := r.peers(ctx, now, next, answer.Changes); err != nil {
		return nil, err
	}
	late := slices.DeleteFunc(slices.Clone(answer.Changes), func(c config.Change) bool { return !c.Restart })
	switch {
	case dryRun || len(answer.Changes) == 0 && !r.unsure:
		return answer, nil
	case len(late) > 0:
		return nil, control.Refusal{Code: http.StatusConflict, Text: InLines(late) + "\nnothing was changed: restart the gateway, or take that back"}
	}
	ofLink := func(c config.Change) bool {
		return strings.HasPrefix(c.Key, "[[link.") || strings.HasPrefix(c.Key, "link.") || c.Key == "[[silence]]"
	}
	rules := func(c config.Change) bool { return strings.HasPrefix(c.Key, "[[") && !ofLink(c) }
	all := r.unsure
	r.unsure = true // until the loop has confirmed every order
	part := all     // of the new configuration is in force, or may be
	for _, apply := range []struct {
		needed bool
		do     func() error
	}{
		{slices.ContainsFunc(answer.Changes, ofLink), func() error { return r.link(ctx, next) }},
		{slices.ContainsFunc(answer.Changes, rules), func() error { return r.rules(ctx, next) }},
		{next.LAN.View != now.LAN.View || !slices.Equal(next.ViewRules(), now.ViewRules()), func() error {
			return r.view(ctx, jxtabridge.Viewed{View: jxtabridge.View(next.LAN.View), Rules: next.ViewRules()})
		}},
	} {
		if !all && !apply.needed {
			continue
		}
		if err := apply.do(); err != nil {
			return nil, halted(err, part)
		}
		part = true
	}
	r.unsure = false
	for _, w := range next.Warnings() {
		r.log.Warn("odd setting: " + w)
	}
	r.level.Set(next.Log.Level)
	r.force.Store(next)
	hold(next) // as at the start, which reported whether that is possible
	changes := cmp.Or(strings.ReplaceAll(InLines(answer.Changes), "\n", "; "), "none, but all orders were given again")
	r.log.Info("the configuration was reloaded", "changes", changes)
	r.keep(audit.Entry{Kind: audit.Changed, What: changes})
	return answer, nil
}

// halted is the error of a reload that goes no further; part: some of the new configuration is in force.
func halted(err error, part bool) error {
	var no control.Refusal
	switch {
	case part:
		return fmt.Errorf("a part of the new configuration is in force already, reload again: %v", err) // it wraps no Refusal
	case errors.As(err, &no):
		no.Text += "\nnothing was changed"
		return no
	}
	return err
}

// peers marks new peers of which the journal already has records as needing a restart, because only a start reads these. For peers that
// are removed it says what is lost with them.
func (r *reloader) peers(ctx context.Context, now, next *config.Config, changes []config.Change) error {
	for _, p := range slices.Concat(now.Link.Peers, next.Link.Peers) {
		at := slices.IndexFunc(changes, func(c config.Change) bool { return c.Key == config.PeerKey(p.ID) && (c.From == "" || c.To == "") })
		if at < 0 {
			continue
		}
		s, err := r.status(ctx)
		if err != nil {
			return control.Refusal{Code: http.StatusServiceUnavailable, Text: err.Error() + "\nnothing was changed"}
		}
		c := &changes[at]
		if c.From == "" {
			c.Restart = c.Restart || slices.Contains(s.Gateway.LeftPeers, p.ID)
		} else if !c.Restart {
			c.Effect = ends(s.Gateway.Peers, p.ID)
		}
	}
	return nil
}

// ends says what is lost when the section of a peer is removed.
func ends(peers []api.PeerStatus, id uint16) string {
	messages := 0
	for _, p := range peers {
		if p.ID == id && p.Enrolled {
			return "the roster names it, so it stays a peer"
		}
		if p.ID == id {
			waiting, underWay, _ := p.Messages()
			messages = waiting + underWay
		}
	}
	return fmt.Sprintf("%d messages that wait for it or are under way are cancelled", messages)
}

// link passes peers, keepalive and tariff to the loop, and waits until they are in force.
func (r *reloader) link(ctx context.Context, next *config.Config) error {
	before, err := r.status(ctx)
	if err != nil {
		return control.Refusal{Code: http.StatusServiceUnavailable, Text: err.Error()}
	}
	r.order(gateway.NewLink{Peers: peersOf(next), More: reachedOf(next), Keepalive: next.Link.Keepalive, Tariff: next.Link.Profile.Tariff, Windows: next.Silences})
	return control.Obeyed(ctx, func() (bool, error) {
		s, err := r.status(ctx)
		return s.Gateway.Relinked > before.Gateway.Relinked, err
	})
}

// view passes to the bridge how much other sites learn of its peers, and waits until that is in force.
func (r *reloader) view(ctx context.Context, next jxtabridge.Viewed) error {
	r.order(api.LAN{Adapter: site.JXTA, Event: next})
	return control.Obeyed(ctx, func() (bool, error) {
		s, err := r.status(ctx)
		lan, _ := s.LAN.(jxtabridge.Status)
		return lan.View == next.View && slices.Equal(lan.Views[lan.Ordered:], next.Rules), err
	})
}

// peersOf are the peers of a configuration in the form of package gateway.
func peersOf(c *config.Config) []gateway.PeerConfig {
	peers := make([]gateway.PeerConfig, len(c.Link.Peers))
	for i, p := range c.Link.Peers {
		peers[i] = gateway.PeerConfig{ID: p.ID, Name: p.Name, Addr: p.Address, Shore: p.Shore, Via: c.Link.Hops(p)}
	}
	return peers
}

// reachedOf lists the peers that the bearers behind the first reach.
func reachedOf(c *config.Config) (list []map[uint16]netip.AddrPort) {
	for _, b := range moreOf(c) {
		list = append(list, b.Peers)
	}
	return list
}

// groupsOf are the groups of the configuration.
func groupsOf(c *config.Config) (list []gateway.GroupConfig) {
	for _, g := range c.Groups {
		list = append(list, gateway.GroupConfig{Name: g.Name, Life: g.Life, Hops: g.Hops, Key: g.Key})
	}
	return list
}

// fleetOf is the roll-up of the configuration.
func fleetOf(c *config.Config) gateway.FleetConfig {
	f := gateway.FleetConfig{Period: c.Fleet.Period, To: c.Fleet.To}
	for i, part := range strings.SplitN(cli.Version, ".", 3)[:2] {
		n, _ := strconv.ParseUint(part, 10, 8)
		f.Version |= uint16(n) << (8 - 8*i)
	}
	return f
}

// moreOf are the bearers behind the first.
func moreOf(c *config.Config) (list []gateway.BearerConfig) {
	for _, l := range c.More {
		b := gateway.BearerConfig{Name: l.Name, Profile: l.Profile, Shore: l.Shore, Keepalive: l.Keepalive, Group: l.Group, Price: l.Price, PerDay: l.Octets, Lines: l.TLS, Direct: l.Direct,
			Peers: map[uint16]netip.AddrPort{}}
		for _, p := range l.Peers {
			b.Peers[p.ID] = p.Address
		}
		list = append(list, b)
	}
	return list
}

// rules passes the rules to the loop, and waits until they are in force.
func (r *reloader) rules(ctx context.Context, next *config.Config) error {
	before, err := r.status(ctx)
	if err != nil {
		return control.Refusal{Code: http.StatusServiceUnavailable, Text: err.Error()}
	}
	r.order(gateway.NewRules{Filter: next.Filters, Messages: next.Messages, Routes: next.Routes, Compact: next.Rules})
	return control.Obeyed(ctx, func() (bool, error) {
		s, err := r.status(ctx)
		return s.Gateway.Reloads > before.Gateway.Reloads, err
	})
}

// listen reloads at each SIGHUP until ctx ends.
func (r *reloader) listen(ctx context.Context) {
	defer signal.Stop(r.hups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hups:
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		answer, err := r.reload(limited, false)
		cancel()
		var no control.Refusal
		switch {
		case errors.As(err, &no):
			r.log.Error("the reload failed; the gateway keeps its configuration", "error", strings.ReplaceAll(no.Text, "\n", "; "))
		case err != nil:
			r.log.Error("reload not confirmed: the loop is busy", "error", err)
		case len(answer.(Reloaded).Changes) == 0:
			r.log.Info("the configuration was reloaded; nothing has changed")
		}
	}
}
