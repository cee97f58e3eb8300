package config

import (
	"fmt"
	"net/netip"
	"net/url"
)

// Traces is where OpenTelemetry traces of messages go.
type Traces struct {
	OTLP string // URL of a collector; "": nowhere
}

// readTraces reads [traces]. A collector is named by address: a name would have to be asked for while the link is all there is.
func (r *reader) readTraces() {
	s := section{r, r.tree.tables["traces"], "traces"}
	if s.t == nil {
		return
	}
	at := s.text("otlp", true)
	if at == "" {
		return
	}
	url, problem := tracesOf(at)
	if problem != "" {
		s.fail("otlp", "%s", problem)
		return
	}
	r.cfg.Traces.OTLP = url
}

// tracesOf is the whole URL of a collector, or what is wrong with it.
func tracesOf(at string) (whole, problem string) {
	u, err := url.Parse(at)
	if err == nil {
		_, err = netip.ParseAddrPort(u.Host)
	}
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Sprintf("%q is no URL of a collector: http://ADDRESS:PORT/v1/traces, by address and not by name", at)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), ""
}
