package config

import (
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/meet"
	"aldis/internal/rules/query"
	"aldis/internal/tak/cot"
	"aldis/internal/tak/rule"
)

// mostMeets is how many rules there may be: each is looked at for each event.
const mostMeets = 64

var meetKeys = []string{"label", "group", "pipe", "pipe_name", "pipe_type", "element", "mime", "direction", "form", "write", "room", "from_at", "text_at",
	"id_at", "callsign_at", "type_at", "lat_at", "lon_at", "time_at", "course_at", "speed_at", "speed_unit", "unit", "as", "life", "every",
	"type", "uid", "callsign", "team", "role", "affiliation", "box", "around"}

// Speeds in an element are multiplied with these.
var speedUnits = map[string]float64{"m/s": 1, "km/h": 1 / 3.6, "knots": 1852.0 / 3600}

// readMeets reads what is the same in JXTA and TAK.
func (r *reader) readMeets() (list []meet.Rule) {
	tables := r.tree.arrays["meet"]
	for i, table := range tables {
		if i == mostMeets {
			r.fail(table.line, "meet", "there are more than %d rules", mostMeets)
			break
		}
		list = append(list, meetRule(section{r, table, "meet"}))
	}
	if len(list) == 0 {
		return nil
	}
	if r.tree.tables["tak"] == nil {
		r.fail(tables[0].line, "meet", "is of no use without [tak]; where no TAK device is, [tak] needs no further line")
	}
	if r.cfg.Node.ID == meet.Here {
		r.fail(tables[0].line, "meet", "needs the number %d for itself: give this gateway another node.id", meet.Here)
	}
	for _, p := range r.cfg.Link.Peers {
		if p.ID == meet.Here {
			r.fail(tables[0].line, "meet", "needs the number %d for itself: the peer %s cannot have it", meet.Here, p.Name)
		}
	}
	return list
}

func meetRule(s section) meet.Rule {
	m := meet.Rule{Line: s.t.line, Label: s.printable("label", false), Group: filterID(s, "group", "group", jxta.KindGroup),
		Pipe: filterID(s, "pipe", "pipe", jxta.KindPipe), Name: s.printable("pipe_name", false), MIME: s.text("mime", false), Room: s.text("room", false)}
	if m.Group == "" {
		m.Group = jxta.NetGroup
	}
	if _, ok := s.get("pipe"); !ok && m.Name == "" {
		s.fail("pipe", "is missing: the id of the pipe, or pipe_name, the name of its advertisement")
	} else if ok && m.Name != "" {
		s.fail("pipe_name", "is of no use beside pipe")
	}
	m.Unicast = s.choice("pipe_type", "propagate", "propagate", "unicast") == "unicast"
	m.Element = s.text("element", true)
	if space, name, ok := strings.Cut(m.Element, ":"); ok {
		m.Space, m.Element = space, name
	}
	direction := s.choice("direction", "both", "both", "from_jxta", "from_tak")
	m.FromJXTA, m.FromTAK = direction != "from_tak", direction != "from_jxta"
	m.CoT = s.choice("form", "values", "values", "cot") == "cot"
	m.Life = s.duration("life", 5*time.Minute, time.Second, 24*time.Hour)
	m.Every = s.duration("every", 5*time.Second, time.Second, time.Hour)
	words := meet.TrackWords
	if m.Room != "" {
		words = meet.LineWords
	}
	m.Write = s.template("write", words)
	m.Unit = s.template("unit", meet.UnitWords)
	if m.Write.Zero() && m.FromTAK && !m.CoT {
		s.fail("write", "is missing: the element that JXTA peers are given, with {%s}; or set direction = \"from_jxta\"", strings.Join(words, "}, {"))
	}
	if m.As = s.text("as", false); m.As == "" {
		m.As = "a-u-G"
	} else if !cot.Below(m.As, "a") {
		s.fail("as", "must be a type of units, like \"a-f-S\", is %q", m.As)
	}
	m.Speed = speedUnits[s.choice("speed_unit", "m/s", "m/s", "km/h", "knots")]
	s.meetPlaces(&m)
	m.Fit = rule.Rule{Type: s.text("type", false), UID: s.text("uid", false), Callsign: s.text("callsign", false), Team: s.text("team", false),
		Role: s.text("role", false), Affiliation: s.text("affiliation", false), Box: s.box()}
	s.checkType(m.Fit.Type, m.Fit.Affiliation)
	if text := s.text("around", false); text != "" {
		if m.Fit.Around = s.circle(text); m.Fit.Around != nil && m.Fit.Around.Own != "" {
			s.fail("around", "must be a fixed place here, like \"54.3 10.1 5000\"")
		}
	}
	if m.Fit.Type != "" && !cot.Below(m.Fit.Type, "a") && (!m.CoT || m.Room != "") {
		s.fail("type", "is of no use: other events than those of units meet with form = \"cot\" and without a room")
	}
	return m
}

// meetPlaces reads where values are in an element.
func (s section) meetPlaces(m *meet.Rule) {
	at := &m.At
	units := []place{{"id_at", &at.ID, true}, {"lat_at", &at.Lat, true}, {"lon_at", &at.Lon, true}, {"callsign_at", &at.Callsign, false}, {"type_at", &at.Type, false},
		{"course_at", &at.Course, false}, {"speed_at", &at.Speed, false}}
	lines := []place{{"text_at", &at.Text, true}, {"from_at", &at.From, false}}
	here, elsewhere, why := units, lines, "a rule without room"
	if m.Room != "" {
		here, elsewhere, why = lines, units, "a rule with room"
	}
	if m.CoT {
		here, elsewhere, why = nil, append(units, lines...), "form = \"cot\""
	}
	for _, p := range elsewhere {
		if _, ok := s.get(p.key); ok {
			s.fail(p.key, "is of no use in %s", why)
		}
	}
	for _, p := range append(here, place{"time_at", &at.Time, false}) {
		text := s.text(p.key, p.must && m.FromJXTA)
		if text == "" {
			continue
		}
		c, err := query.Parse(text)
		if err != nil {
			s.fail(p.key, "%v, is %q", err, text)
		}
		*p.to = c
	}
}

// place is a key that says where a value is.
type place struct {
	key  string
	to   *query.Condition
	must bool // where JXTA's side is read
}

func (s section) template(key string, words []string) meet.Template {
	text := s.text(key, false)
	if text == "" {
		return meet.Template{}
	}
	t, err := meet.ParseTemplate(text, words)
	if err != nil {
		s.fail(key, "%v", err)
	}
	return t
}
