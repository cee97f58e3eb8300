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

// collector is the whole URL of a collector, named by address: a name would have to be asked for while the link is all there is.
func collector(at string) (string, error) {
	u, err := url.Parse(at)
	if err == nil {
		_, err = netip.ParseAddrPort(u.Host)
	}
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is no URL of a collector: http://ADDRESS:PORT/v1/traces, by address and not by name", at)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}
