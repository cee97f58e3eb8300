package gateway

import (
	"net/netip"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/roster"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/rules/route"
)

type (
	// NewRules is the operator's order to replace the rules: which items and messages cross, how messages are marked, and
	// how hard the gateway tries to make elements smaller (before compact.DefaultRules).
	NewRules struct {
		Filter   []filter.Rule
		Messages []mark.Rule
		Routes   []route.Rule
		Compact  []compact.Rule
	}
	// NewRoster is the operator's order to use a newer roster and to send it to all peers.
	NewRoster struct{ Roster *roster.Roster }
	// NewLink is the operator's order to take names and addresses of peers from the changed configuration, to add peers that are
	// new, to drop those that are no longer named, and to take keepalive, tariff and windows of silence.
	NewLink struct {
		Peers     []PeerConfig
		More      []map[uint16]netip.AddrPort // of each bearer after the first: the peers that it reaches, and where; invalid: learned
		Keepalive time.Duration
		Tariff    string // as profile.Profile has it
		Windows   calendar.Windows
	}
)

// GatewayEvent marks NewRoster as an event of the gateway.
func (NewRoster) GatewayEvent() {}

// GatewayEvent marks NewRules as an event of the gateway.
func (NewRules) GatewayEvent() {}

// GatewayEvent marks NewLink as an event of the gateway.
func (NewLink) GatewayEvent() {}
