package config

import (
	"slices"
	"time"
)

// Fleet says whether this gateway reports its state to the headquarters once a period, and through which peers.
type Fleet struct {
	Period time.Duration // 0: it does not
	To     []uint16      // the headquarters, and after it peers that are nearer to it; none: this gateway is the headquarters
}

func fleetPart(c *Config) part {
	add := func(s section, key, text string) {
		if id := s.r.site(s, key, text); slices.Contains(c.Fleet.To, id) && id != 0 {
			s.fail(key, "%s is there twice", text)
		} else {
			c.Fleet.To = append(c.Fleet.To, id)
		}
	}
	return part{name: "fleet", title: "what the gateways tell the headquarters of themselves", keys: []key{
		{"period", duration(&c.Fleet.Period, 0, time.Minute, 24*time.Hour).required(), "how often, the same at all gateways"},
		{"to", list(&c.Fleet.To, add), "names or ids of peers: the headquarters, and behind it those that are nearer to it than this gateway: the first that answers passes on what this one says. Without it this gateway is the headquarters. Peers that pass on messages for the headquarters (`via`) need not be named"},
	}, doc: "Off without this section. Needs `link.roster` ([more](fleet.md#what-each-gateway-says-of-itself))."}
}

// readFleet reads whether this gateway takes part.
func (r *reader) readFleet() {
	if r.tree.tables["fleet"] == nil {
		return
	}
	s := r.fill("fleet")
	if !s.wrong() && r.cfg.Link.Trust.RosterFile == "" {
		s.fail("period", "a fleet needs link.roster: with one key for all every member could speak in another's name")
	}
}
