package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"aldis/internal/config"
	"aldis/internal/gateway"
	"aldis/internal/jxta"
	"aldis/internal/meet"
	"aldis/internal/site"
)

// meeting is where the faces of a running gateway meet; empty where no rule says that they do.
type meeting struct{ made *meet.Meeting }

// maker is what gateway.Config wants; self is the gateway's own JXTA peer.
func (m *meeting) maker(c *config.Config, self string) func([]site.Memory) (gateway.Meeting, error) {
	if len(c.TAK.Meets) == 0 {
		return nil
	}
	return func(memories []site.Memory) (gateway.Meeting, error) {
		made, err := meet.New(meet.Config{Rules: c.TAK.Meets, Peer: takPeer(self), Name: c.Node.Name + " TAK"}, memories)
		m.made = made
		return made, err
	}
}

// takPeer is the JXTA peer that says what TAK's devices say: the same at each start.
func takPeer(self string) string {
	sum := sha256.Sum256([]byte("meet " + self))
	return jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte(sum[:16])}.Unique()
}

func (m *meeting) metrics() []site.Metric {
	if m.made == nil {
		return nil
	}
	return m.made.Metrics()
}

// meetSummary says what check tells of [[meet]].
func meetSummary(c *config.Config) (lines []string) {
	for i := range c.TAK.Meets {
		r := &c.TAK.Meets[i]
		what, way := "units", "both ways"
		if r.Room != "" {
			what = fmt.Sprintf("the room %q", r.Room)
		}
		switch {
		case !r.FromTAK:
			way = "from JXTA to TAK"
		case !r.FromJXTA:
			way = "from TAK to JXTA"
		}
		pipe := r.Pipe
		if pipe == "" {
			pipe = fmt.Sprintf("that is named %q", r.Name)
		}
		lines = append(lines, fmt.Sprintf("rule %s: %s and element %s of the pipe %s, %s", r, what, r.Element, pipe, way))
	}
	return lines
}

// meetsOf is what the rules of [[meet]] make of an example message, of which the content is known.
func meetsOf(c *config.Config, s site.Subject, e jxta.Element) []meet.Verdict {
	if len(e.Data) == 0 {
		return nil
	}
	if space, name, ok := strings.Cut(e.Name, ":"); ok {
		e.Namespace, e.Name = space, name
	}
	m := site.Message{Published: true, Scope: s.Scope, Topic: s.Topic, From: cmp.Or(s.Owner, takPeer("")), ID: "example", Parts: []site.Part{e}}
	return meet.ExplainElement(c.TAK.Meets, time.Now(), &m)
}

// printMeets says what comes of an example where faces meet; those are the other face's clients.
func printMeets(out io.Writer, those string, list []meet.Verdict) {
	for _, v := range list {
		if v.Gives == "" {
			fmt.Fprintf(out, "meet: nothing to %s by %s: %s\n", those, ruleText(v.Label, v.Line), v.Why)
			continue
		}
		fmt.Fprintf(out, "meet: to %s by %s:\n    %s\n", those, ruleText(v.Label, v.Line), v.Gives)
	}
}
