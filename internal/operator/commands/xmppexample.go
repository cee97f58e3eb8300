package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
	"aldis/internal/site"
)

// xmppVerdict is the decision of [[xmpp.rule]] about a client's stanza.
type xmppVerdict struct {
	Kind       string   `json:"kind"`
	Octets     int      `json:"octets"` // octets that go to custody
	Action     string   `json:"action"`
	Label      string   `json:"label,omitempty"`
	Line       int      `json:"line,omitempty"` // of the rule; absent: none fits
	Precedence string   `json:"precedence"`
	Expires    string   `json:"expires"`
	Passed     []passed `json:"passed"`
}

// xmppExample is the stanza in a file; nil: there is none in it.
func xmppExample(name string) []byte {
	b := bytes.TrimSpace(exampleIn(name))
	if !bytes.HasPrefix(b, []byte("<message")) && !bytes.HasPrefix(b, []byte("<presence")) {
		return nil
	}
	return b
}

// explainStanza says which [[xmpp.rule]] decides about a client's stanza, and what happens to the stanza.
func explainStanza(cfg *config.Config, b []byte, asJSON bool, stdout, stderr io.Writer) int {
	if !cfg.XMPP.On() {
		fmt.Fprintln(stderr, "gateway check: --example: the file has an XMPP stanza, and the configuration no [xmpp]")
		return cli.ExitRefused
	}
	var e *stanza.Element
	var s stanza.Splitter
	err := s.Feed(append([]byte("<stream:stream xmlns='"+stanza.Component+"' xmlns:stream='"+stanza.Streams+"'>"), b...), func(got *stanza.Element, f *stanza.Fault) {
		if e = got; f != nil {
			e = nil
		}
	})
	if err != nil || e == nil || e.Name == "stream" {
		fmt.Fprintln(stderr, "gateway check: --example: the file is no whole stanza that the gateway reads", err)
		return cli.ExitRefused
	}
	about, ok := xmpp.SubjectOf(e)
	if !ok {
		fmt.Fprintln(stderr, "gateway check: --example: nothing of this stanza crosses, or it lacks from and to")
		return cli.ExitRefused
	}
	for _, far := range cfg.XMPP.Sites {
		if to := e.Get("to"); bytes.Contains([]byte(to), []byte("@"+far.Domain)) || far.Rooms != "" && bytes.Contains([]byte(to), []byte("@"+far.Rooms)) {
			about.Site = far.Site
		}
	}
	v := xmppVerdict{Kind: about.Kind, Octets: about.Octets, Action: "allow", Precedence: site.Routine.String(), Expires: cfg.XMPP.Life.String(), Passed: []passed{}}
	for i := range cfg.XMPP.Rules {
		r := &cfg.XMPP.Rules[i]
		if misses := r.Misses(&about); misses != "" {
			v.Passed = append(v.Passed, passed{r.Label, r.Line, misses})
		}
	}
	if r := rule.Judge(cfg.XMPP.Rules, &about); r != nil {
		v.Label, v.Line = r.Label, r.Line
		if r.Local {
			v.Action = "local"
		}
		if r.Precedence != nil {
			v.Precedence = r.Precedence.String()
		}
		if r.Expires > 0 {
			v.Expires = r.Expires.String()
		}
	}
	if asJSON {
		j := json.NewEncoder(stdout)
		j.SetIndent("", "  ")
		j.Encode(v)
		return cli.ExitGood
	}
	fmt.Fprintf(stdout, "example: %s, %d octets of XML, %d before compression\n", v.Kind, len(b), v.Octets)
	by, text := "default", "stays on this LAN"
	if v.Line != 0 {
		by = ruleText(v.Label, v.Line)
	}
	if v.Action == "allow" {
		text = fmt.Sprintf("crosses with precedence %s within %s", v.Precedence, v.Expires)
	}
	fmt.Fprintf(stdout, "out: %s by %s: %s\n", v.Action, by, text)
	for _, p := range v.Passed {
		if v.Line == 0 || p.Line < v.Line {
			fmt.Fprintf(stdout, "    not by %s: its %s does not fit\n", ruleText(p.Label, p.Line), p.Misses)
		}
	}
	return cli.ExitGood
}
