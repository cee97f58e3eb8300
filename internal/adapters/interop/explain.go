package interop

import (
	"errors"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/site"
)

// Verdict is the result of one rule for an example.
type Verdict struct {
	Label string `json:"label,omitempty"`
	Line  int    `json:"line"`
	Gives string `json:"gives,omitempty"` // the element for JXTA peers, or the event for TAK devices
	Why   string `json:"why,omitempty"`   // why it gives nothing
}

// ExplainEvent returns, for each rule, the element that JXTA peers get for an event of TAK.
func ExplainEvent(rules []Rule, e *cot.Event) (list []Verdict) {
	for i := range rules {
		r := &rules[i]
		v := Verdict{Label: r.Label, Line: r.Line}
		misses, ok := r.judge(&rule.Subject{Event: e})
		switch {
		case r.Pipe == "" && r.Name == "":
			v.Why = "it has no pipe"
		case !r.FromTAK:
			v.Why = "it tells JXTA peers nothing (direction)"
		case met(e):
			v.Why = "a rule has made it of what a JXTA peer said"
		case !ok:
			v.Why = "its " + misses + " does not fit"
		case r.Room != "":
			v.Gives = string(r.LineElement(lineOf(e)))
		default:
			v.Gives = string(r.TrackElement(trackOf(e)))
		}
		list = append(list, v)
	}
	return list
}

// ExplainElement returns, for each rule, the event that TAK devices get for a JXTA peer's message on a propagate pipe. Only the
// first part is looked at. A message without a topic is on the pipe of each rule.
func ExplainElement(rules []Rule, now time.Time, m *site.Message) (list []Verdict) {
	for i := range rules {
		r := &rules[i]
		v := Verdict{Label: r.Label, Line: r.Line}
		e, err := r.eventOf(now, m)
		v.Why = r.passes(m)
		if v.Why == "" && err != nil {
			v.Why = err.Error()
		} else if v.Why == "" {
			v.Gives = string(e.AppendXML(nil))
		}
		list = append(list, v)
	}
	return list
}

// passes says why a rule is not for a message; "": it is.
func (r *Rule) passes(m *site.Message) string {
	part := m.Parts[0]
	switch {
	case r.Pipe == "" && r.Name == "":
		return "it has no pipe"
	case !r.FromJXTA:
		return "it tells TAK devices nothing (direction)"
	case m.Scope != r.Group:
		return "its group does not fit"
	case m.Topic != "" && r.Pipe != "" && m.Topic != r.Pipe:
		return "its pipe does not fit"
	case part.Name != r.Element || part.Namespace != "" && r.Space != "" && part.Namespace != r.Space:
		return "its element does not fit"
	}
	return ""
}

// eventOf makes an event of a message's first part.
func (r *Rule) eventOf(now time.Time, m *site.Message) (e *cot.Event, err error) {
	if r.Room != "" {
		l, err := r.Chat(now, m.ID, shortOf(m.From), m.Parts[0].Data)
		if err != nil {
			return nil, err
		}
		e = l.event()
	} else {
		t, err := r.Track(now, m.Parts[0].Data)
		if err != nil {
			return nil, err
		}
		e = t.event()
	}
	if err := readable(e); err != nil {
		return nil, err
	}
	if misses, ok := r.judge(&rule.Subject{Event: e}); !ok {
		return nil, errors.New("the event's " + misses + " does not fit")
	}
	return e, nil
}
