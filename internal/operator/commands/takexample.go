package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/node"
	"aldis/internal/site"
)

// takVerdict is the decision of [[tak.rule]] about an event on its way to a site.
type takVerdict struct {
	Site       string   `json:"site,omitempty"` // where the rules ask for it
	Action     string   `json:"action"`
	Label      string   `json:"label,omitempty"`
	Line       int      `json:"line,omitempty"` // of the rule; absent: none fits
	Precedence string   `json:"precedence"`
	Bound      float64  `json:"bound_metres,omitempty"` // of a unit's position
	Every      string   `json:"every,omitempty"`
	Passed     []passed `json:"passed"`
}

type takReport struct {
	Type     string       `json:"type"`
	UID      string       `json:"uid"`
	Callsign string       `json:"callsign,omitempty"`
	Octets   int          `json:"octets"`
	Coded    int          `json:"coded_octets"` // alone, without headers
	Verdicts []takVerdict `json:"verdicts"`
	// Meet says which messages [[meet]] makes of the event for JXTA peers.
	Meet []interop.Verdict `json:"meet,omitempty"`
}

// takExample is the event in a file; nil: there is none in it.
func takExample(name string) []byte {
	b := exampleIn(name)
	if !bytes.Contains(b[:min(len(b), 1024)], []byte("<event")) {
		return nil
	}
	return b
}

// explainEvent says which [[tak.rule]] decides about an event, and what happens to the event.
func explainEvent(cfg *config.Config, b []byte, asJSON bool, stdout, stderr io.Writer) int {
	if !cfg.TAK.On() {
		fmt.Fprintln(stderr, "gateway check: --example: the file has a CoT event, and the configuration no [tak]")
		return cli.ExitRefused
	}
	e, err := cot.ParseXML(bytes.TrimSpace(b))
	if err != nil {
		fmt.Fprintf(stderr, "gateway check: --example: a device's event like this is refused: %v\n", err)
		return cli.ExitRefused
	}
	r := takReport{Type: e.Type, UID: e.UID, Callsign: e.Callsign(), Octets: len(b), Coded: len(code.Append(nil, e, e.Time, nil))}
	unit := e.Is("a") && !node.TAKConfig(cfg).Placed(e)
	if unit {
		r.Coded = len(code.Append(nil, code.Round(e), e.Time, nil))
	}
	sites := []config.Peer{{}}
	if rule.BySite(cfg.TAK.Rules) {
		sites = cfg.Link.Peers
	}
	for _, p := range sites {
		r.Verdicts = append(r.Verdicts, judgeEvent(cfg, e, len(b), p, unit))
	}
	r.Meet = interop.ExplainEvent(cfg.TAK.Meets, e)
	if asJSON {
		j := json.NewEncoder(stdout)
		j.SetIndent("", "  ")
		j.Encode(r)
		return cli.ExitGood
	}
	fmt.Fprintf(stdout, "example: %s, uid %s, %d octets, about %d as it crosses whole\n", r.Type, r.UID, r.Octets, r.Coded)
	for _, v := range r.Verdicts {
		printEvent(stdout, e, v, unit)
	}
	printMeets(stdout, "JXTA peers", r.Meet)
	return cli.ExitGood
}

func judgeEvent(cfg *config.Config, e *cot.Event, octets int, to config.Peer, unit bool) takVerdict {
	s := &rule.Subject{Event: e, Site: to.ID, Octets: octets}
	v := takVerdict{Site: to.Name, Action: "allow", Precedence: rule.PrecedenceOf(e.Type).String(), Passed: []passed{}}
	switch {
	case unit:
		v.Bound = float64(cfg.TAK.Bound)
	case e.Is("a"): // it was placed
		v.Precedence = site.Routine.String()
	}
	for i := range cfg.TAK.Rules {
		r := &cfg.TAK.Rules[i]
		if misses := r.Misses(s); misses != "" {
			v.Passed = append(v.Passed, passed{r.Label, r.Line, misses})
			continue
		}
		v.Label, v.Line = r.Label, r.Line
		if r.Action == rule.Local {
			v.Action = "local"
		}
		if r.Precedence != nil {
			v.Precedence = r.Precedence.String()
		}
		if r.Bound > 0 && unit {
			v.Bound = r.Bound
		}
		if r.Every > 0 && unit {
			v.Every = r.Every.String()
		}
		return v
	}
	return v
}

func printEvent(out io.Writer, e *cot.Event, v takVerdict, unit bool) {
	way, by := "out", "default"
	if v.Site != "" {
		way += " to " + v.Site
	}
	if v.Line != 0 {
		by = ruleText(v.Label, v.Line)
	}
	text := "stays on this LAN"
	if v.Action == "allow" {
		text = "crosses with precedence " + v.Precedence
		if unit {
			text = fmt.Sprintf("told when its far picture would be wrong by %g m", v.Bound)
			if v.Every != "" {
				text += ", at most every " + strings.TrimSuffix(v.Every, "0s")
			}
			if v.Precedence == site.Deferred.String() {
				text += ", after the units that are not deferred"
			}
		}
	}
	fmt.Fprintf(out, "%s: %s by %s: %s\n", way, v.Action, by, text)
	for _, p := range v.Passed {
		fmt.Fprintf(out, "    not by %s: its %s does not fit\n", ruleText(p.Label, p.Line), p.Misses)
	}
	if age := time.Since(e.Stale); age > 0 && !unit {
		fmt.Fprintf(out, "    stale since %s: the example would not be sent any more\n", age.Truncate(time.Second))
	}
}
