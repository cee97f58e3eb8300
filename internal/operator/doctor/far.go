package doctor

import (
	"fmt"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
)

const (
	fewest   = 20 // messages: with fewer, nothing is reported about the link
	patience = 10 // of the longest round trips after a start, before a far gateway counts as missing
)

// far reports what the running gateway knows of far gateways: whether they are heard, whether they have the same key, and
// whether the link is as in its profile.
func (f *findings) far(c *config.Config, run *Running, now time.Time) {
	if t := &c.Link.Trust; t.On() {
		f.ok("key.check", "", "this node's key has the fingerprint %s; roster %d of the authority %s: that must be the same at every gateway, and may be said aloud",
			t.Own.Public().Fingerprint(), t.Roster.Serial, t.Authority.Fingerprint())
	} else {
		f.ok("key.check", "", "the network's key has the fingerprint %s: it must be the same at every gateway, and may be said aloud", c.Link.Key.Fingerprint())
	}
	if run == nil || run.Report == nil {
		return
	}
	r := run.Report
	if r.Radio.UnsentDatagrams > 0 {
		f.warn("link.unsent", "", "ip route, ip -s link, and the firewall's rules for output (nft list ruleset) say why",
			"the kernel refused %d of %d datagrams", r.Radio.UnsentDatagrams, r.Radio.UnsentDatagrams+r.Radio.SentDatagrams)
	}
	if r.Transport == profile.NORM && !r.NORM.Up && now.Sub(r.Started) > time.Minute {
		f.fault("norm", "", "the log says why it ends; systemctl restart aldis-gateway", "the NORM process is down (it failed %d times): long messages wait", r.NORM.Failures)
	}
	for _, p := range r.Peers {
		f.heard(c, run, p, now)
		f.profile(c.Link.Profile, p)
	}
}

// heard reports whether a far gateway is heard, and whether it has the same key.
func (f *findings) heard(c *config.Config, run *Running, p api.PeerStatus, now time.Time) {
	const check = "far.heard"
	r := run.Report
	young := now.Sub(p.KnownSince) < max(time.Minute, patience*c.Link.Profile.RoundTripMax(c.Link.Profile.DatagramOctets+profile.IPUDPOctets))
	switch {
	case p.Link == "up":
		f.ok(check, p.Name, "%s is heard, %s", p.Name, heardText(p, now))
		f.ok("far.key", p.Name, "%s has the same key: %d of its datagrams opened", p.Name, p.DatagramsReceived)
		return
	case p.Link == "listening":
		f.ok(check, p.Name, "%s keeps silent by order, and receives", p.Name)
		return
	case p.Link == "unmet":
		f.ok(check, p.Name, "%s was never asked: neither site has had anything for the other", p.Name)
		return
	case p.Link == "gone":
		f.warn(check, p.Name, "take "+p.Name+" out of [[link.peer]], unless the authority names it again (gateway keys rollover)", "the roster does not name %s any more: it is not heard", p.Name)
		return
	case p.Unopened > 0:
		f.fault("far.key", p.Name, "compare the fingerprints that gateway doctor says there and here, and bring the right file to the wrong one; gateway peer list says where "+p.Name+" is believed to be",
			"%d datagrams came that seem to be from %s and do not open: it has another key, or its address belongs to another network", p.Unopened, p.Name)
		return
	case r.Silence.On:
		f.warn(check, p.Name, "gateway silence status", "%s was not heard, and this gateway keeps silent: it cannot ask", p.Name)
		return
	case p.Address == "":
		f.warn(check, p.Name, "start "+p.Name+", and give it this gateway's address in its [[link.peer]]; or set address here",
			"%s was never heard, and has no address: nothing can be sent to it before it calls", p.Name)
		return
	case young && p.Link == "unknown":
		f.warn(check, p.Name, "run gateway doctor again in some minutes", "%s was not heard yet; this gateway has only just come to know it", p.Name)
		return
	}
	out := "look whether it runs, whether " + p.Address + " is its address on the link, whether a firewall lets UDP through both ways, and whether the modem has a link; " +
		fmt.Sprintf("tcpdump -ni any udp port %d shows what comes", c.Link.Listen.Port())
	if c.Link.TLS {
		out = "look whether it runs, whether one of both ends has the other's address, and whether a firewall or the proxy lets TCP through to there; the log says why a call failed or was refused"
	}
	if r.Radio.ReceivedDatagrams > 0 && r.Dropped["unknown_peer"] > 0 {
		out += ". Datagrams of nodes came that no [[link.peer]] names: has it another id?"
	}
	f.fault(check, p.Name, out, "%s is not heard, %s: %d datagrams went there, and none of its came that counts", p.Name, heardText(p, now), p.DatagramsSent)
}

func heardText(p api.PeerStatus, now time.Time) string {
	at, err := time.Parse(time.RFC3339, p.LastHeard)
	if err != nil {
		return "never since the start"
	}
	return "last " + max(now.Sub(at), 0).Round(time.Second).String() + " ago"
}

// profile reports how the link differs from its profile, as the gateway has measured it (docs/faults.md).
func (f *findings) profile(p profile.Profile, s api.PeerStatus) {
	const check, out = "link.profile", "gateway tune --fit with captures of both ends makes a profile of what the link does; use it at both ends"
	m := s.Measured
	for _, what := range m.Differs {
		switch what {
		case api.DiffersRate:
			f.warn(check, s.Name, out, "the link to %s carries %d bit/s, not what profile %s says; datagrams go at %d", s.Name, m.RateBps, p.Name, m.PaceBps)
		case api.DiffersDelay:
			f.warn(check, s.Name, out, "a round trip to %s takes %.1f s, and profile %s expects %.1f s to %.1f s", s.Name, m.RoundTripS, p.Name,
				(p.Up.Delay + p.Down.Delay).Seconds(), p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets).Seconds())
		case api.DiffersLoss:
			f.warn(check, s.Name, out, "%.0f %% of the messages for %s went again, more than the losses of profile %s ask for", m.LossPct, s.Name, p.Name)
		}
	}
	switch {
	case len(m.Differs) > 0:
	case s.Delays.Count >= fewest:
		f.ok(check, s.Name, "the link to %s does what profile %s says: of %d messages half were confirmed within %v", s.Name, p.Name, s.Delays.Count, upper(s.Delays))
	case s.Link == "up":
		f.ok(check, s.Name, "too few messages have gone to %s to say what the link does (%d)", s.Name, s.Delays.Count)
	}
}

// upper is a time within which half of the messages were confirmed.
func upper(d api.Delays) time.Duration {
	sum := uint64(0)
	for i, n := range d.Counts {
		sum += n
		if 2*sum >= d.Count {
			return time.Duration(api.DelayBounds[i] * float64(time.Second))
		}
	}
	return time.Duration(api.DelayBounds[len(api.DelayBounds)-1] * float64(time.Second))
}
