package config

import (
	"strings"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/jxta"
	"aldis/internal/rules/query"
)

// mostMeets bounds the rules: each event is compared with all of them.
const mostMeets = 64

func meetPart(c *Config) part {
	return part{name: "meet", title: "what is the same in JXTA, TAK and XMPP", keys: meetKeys(&interop.Rule{}), rules: c.TAK.Meets, most: mostMeets,
		doc: "A rule ties a JXTA pipe, or a node or room of XMPP, to TAK's units or to a chat room ([examples](tak.md#one-picture-with-jxta-one-chat-room)), " +
			"at the gateway with the JXTA peers. It needs `[tak]`."}
}

func meetKeys(m *interop.Rule) []key {
	at, fit := &m.At, &m.Fit
	place := func(to *query.Condition) slot { return parsed(to, "%v, is %q", query.Parse) }
	group := peerID(&m.Group, "group", jxta.KindGroup).usually("net")
	group.preset = func() { m.Group = jxta.NetGroup }
	as := text(&m.As).usually("a-u-G").also(func(s section, key string) {
		if m.As != "" && !cot.Below(m.As, "a") {
			s.fail(key, "must be a type of units, like \"a-f-S\", is %q", m.As)
		}
	})
	as.preset = func() { m.As = "a-u-G" }
	return []key{
		{"label", printable(&m.Label), "a name for people"},
		{"pipe", peerID(&m.Pipe, "pipe", jxta.KindPipe), "the pipe's id; this, `pipe_name`, `muc` or `node` is required"},
		{"pipe_name", printable(&m.Name), "pattern of the pipe's advertised name; the first match counts until the next start"},
		{"pipe_type", choice(&m.Unicast, "propagate", []string{"propagate", "unicast"}, false, true),
			"`propagate`, or `unicast`: then JXTA peers find the pipe at the peer \"NAME TAK\", the gateway"},
		{"group", group, "the pipe's group"},
		{"element", text(&m.Element).also(func(section, string) {
			if space, name, ok := strings.Cut(m.Element, ":"); ok {
				m.Space, m.Element = space, name
			}
		}), "name of the message element, in one namespace (`\"trk:body\"`) or in any; required with a pipe"},
		{"mime", text(&m.MIME), "the element's MIME type for JXTA peers"},
		{"direction", pick("both", []string{"both", "from_jxta", "from_xmpp", "from_tak"}, func(word string) {
			m.FromJXTA, m.FromTAK = word != "from_tak", word == "both" || word == "from_tak"
		}), "which way; `from_jxta` and `from_xmpp` are the same: from the pipe and the node"},
		{"form", choice(&m.CoT, "values", []string{"values", "cot"}, false, true),
			"`values`: the element has values at the places below; `cot`: it is a CoT event"},
		{"muc", text(&m.MUC), "address of a room of XMPP that is the same room, `\"ops@conference.ship.example\"`; then the pipe may be left out"},
		{"node", printable(&m.Node), "node of `xmpp.nodes` that has the units as items, with places as in XEP-0080, `\"units\"`; then the pipe may be left out"},
		{"room", text(&m.Room), "chat room, `\"All Chat Rooms\"`; without it the rule is for units"},
		{"write", template(&m.Write, func() []string { return writes(m) }),
			"template of the element for JXTA peers, required where they get values: `{id}`, `{time}`, `{unix}` (seconds), " +
				"for units `{callsign}`, `{type}`, `{lat}`, `{lon}`, `{stale}`, `{course}`, `{speed}`, for a room `{room}`, `{from}`, `{text}`. " +
				"Values are escaped in XML and JSON"},
		{"text_at", place(&at.Text), ""},
		{"from_at", place(&at.From),
			"where a room's text (required) and author (default: the peer) are: `\"xml:/say/@by\"`, `\"json:/chat/text\"`, `\"text:*\"`"},
		{"id_at", place(&at.ID), ""}, {"lat_at", place(&at.Lat), ""},
		{"lon_at", place(&at.Lon), "where a unit's id and degrees are; required"},
		{"callsign_at", place(&at.Callsign), ""}, {"type_at", place(&at.Type), "where callsign and type are; default: the id and `as`"},
		{"time_at", place(&at.Time), "where the time is (RFC 3339, or seconds or milliseconds since 1970); default: time of arrival"},
		{"course_at", place(&at.Course), ""},
		{"speed_at", place(&at.Speed), "where course (degrees from north) and speed are; with both a unit moves on far maps between reports"},
		{"speed_unit", choice(&m.Speed, "m/s", []string{"m/s", "km/h", "knots"}, 1, 1/3.6, 1852.0/3600), "unit of the element's speed"},
		{"unit", template(&m.Unit, func() []string { return interop.UnitWords }).usually("{id}"),
			"the unit's name in TAK, made of `{id}` and `{callsign}`"},
		{"as", as, "CoT type of a unit whose element has none"},
		{"life", duration(&m.Life, 5*time.Minute, time.Second, 24*time.Hour), "age at which a report goes stale"},
		{"every", duration(&m.Every, 5*time.Second, time.Second, time.Hour), "JXTA peers and XMPP clients are told of a unit at most this often"},
		{"type", takType(&fit.Type), ""}, {"uid", text(&fit.UID), ""}, {"callsign", text(&fit.Callsign), ""}, {"team", text(&fit.Team), ""},
		{"role", text(&fit.Role), ""}, {"affiliation", affiliation(&fit.Affiliation), ""}, {"box", parsed(&fit.Box, "must be %v, is %q", rule.ParseBox), ""},
		{"around", parsed(&fit.Around, "must %v, is %q", rule.ParseCircle).also(func(s section, key string) {
			if fit.Around != nil && fit.Around.Own != "" {
				s.fail(key, "must be a fixed place here, like \"54.3 10.1 5000\"")
			}
		}), "which events meet, both ways, as in `[[tak.rule]]`"},
	}
}

// readMeets reads the rules that join JXTA, TAK and XMPP.
func (r *reader) readMeets() (list []interop.Rule) {
	list = readRules(r, "meet", meetKeys, checkMeet)
	if len(list) == 0 {
		return nil
	}
	tables := r.tree.arrays["meet"]
	if r.tree.tables["tak"] == nil {
		r.fail(tables[0].line, "meet", "is of no use without [tak]; where no TAK device is, [tak] needs no further line")
	}
	if r.cfg.Node.ID == interop.Here {
		r.fail(tables[0].line, "meet", "needs the number %d for itself: give this gateway another node.id", interop.Here)
	}
	for _, p := range r.cfg.Link.Peers {
		if p.ID == interop.Here {
			r.fail(tables[0].line, "meet", "needs the number %d for itself: the peer %s cannot have it", interop.Here, p.Name)
		}
	}
	return list
}

// template reads a text after the keys that decide which words it may use.
func template(to *interop.Template, words func() []string) slot {
	return parsed(to, "%[1]v", func(text string) (interop.Template, error) { return interop.ParseTemplate(text, words()) })
}

// writes are the words that a rule's messages to JXTA peers may use.
func writes(m *interop.Rule) []string {
	if m.Room != "" {
		return interop.LineWords
	}
	return interop.TrackWords
}

// checkMeet reports keys of a rule that do not go together, and keys that it lacks.
func checkMeet(s section, m *interop.Rule) {
	alone := m.MUC+m.Node != "" && !s.has("pipe") && m.Name == "" // without JXTA
	if m.Node != "" && m.Room+m.MUC != "" {
		s.fail("node", "is of no use in a rule with room")
	}
	if m.MUC != "" && m.Room == "" {
		s.missing("room", "")
	}
	if !alone && !s.has("element") {
		s.missing("element", "")
	}
	if alone {
		return
	}
	if !s.has("pipe") && m.Name == "" {
		s.fail("pipe", "is missing: the id of the pipe, or pipe_name, the name of its advertisement")
	} else if s.has("pipe") && m.Name != "" {
		s.fail("pipe_name", "is of no use beside pipe")
	}
	if m.Write.Zero() && m.FromTAK && !m.CoT {
		s.fail("write", "is missing: the element that JXTA peers are given, with {%s}; or set direction = \"from_jxta\"", strings.Join(writes(m), "}, {"))
	}
	if t := m.Fit.Type; t != "" && !cot.Below(t, "a") && (!m.CoT || m.Room != "") {
		s.fail("type", "is of no use: other events than those of units meet with form = \"cot\" and without a room")
	}
	units := []string{"id_at", "lat_at", "lon_at", "callsign_at", "type_at", "course_at", "speed_at"}
	lines := []string{"text_at", "from_at"}
	needed, useless, why := units[:3], lines, "a rule without room"
	switch {
	case m.CoT:
		needed, useless, why = nil, append(units, lines...), "form = \"cot\""
	case m.Room != "":
		needed, useless, why = lines[:1], units, "a rule with room"
	}
	for _, key := range useless {
		if s.has(key) {
			s.fail(key, "is of no use in %s", why)
		}
	}
	for _, key := range needed {
		if m.FromJXTA && !s.has(key) {
			s.missing(key, "")
		}
	}
}
