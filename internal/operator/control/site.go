package control

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"aldis/internal/gateway/pair"
)

// Site is the machines of a site of two or more, as this machine sees them.
type Site interface {
	Status() pair.Status
	Lead()
	// Retire hands over to the machine at an address, or, if the address is not valid, to the machine that can lead soonest;
	// false: it cannot.
	Retire(to netip.AddrPort) bool
}

// LeadOrder is the body of POST /site/lead: this machine shall lead. Lose gives up messages that the other machine may have confirmed
// alone. The answer is the pair.Status afterwards.
type LeadOrder struct {
	Lose bool `json:"lose,omitempty"`
}

// RetireOrder is the body of POST /site/retire: another machine shall lead, either the one at an address in cluster.members or
// site.other, or the one that can lead soonest.
type RetireOrder struct {
	To netip.AddrPort `json:"to,omitzero"`
}

// siteHandlers adds the handlers of a machine of a site of two or more.
func (s Source) siteHandlers(mux *http.ServeMux) {
	mux.HandleFunc("GET /site", func(w http.ResponseWriter, _ *http.Request) {
		if s.Site == nil {
			http.Error(w, "this site has one gateway: [site] or [cluster] of its configuration would name others", http.StatusNotFound)
			return
		}
		answer(w, s.Site.Status())
	})
	mux.HandleFunc("POST /site/lead", order(s, "site lead", s.lead))
	mux.HandleFunc("POST /site/retire", order(s, "site retire", s.retire))
}

var oneGateway = Refusal{http.StatusConflict, "this site has one gateway: [site] or [cluster] of its configuration would name others"}

func (s Source) lead(_ context.Context, o LeadOrder) (any, error) {
	if s.Site == nil {
		return nil, oneGateway
	}
	switch is := s.Site.Status(); {
	case len(is.Members) > 0 && is.Role != pair.Leading.String() && (is.Role != pair.Following.String() || !is.Whole):
		return nil, Refusal{http.StatusConflict, "a majority of the members has to be there, and this one must have the leader's journal: gateway site status"}
	case is.Role == pair.Following.String() && !is.Whole:
		return nil, Refusal{http.StatusConflict, "the other machine leads, and this one has not everything of its journal yet"}
	case is.Role == pair.Waiting.String() && !is.Whole && !o.Lose:
		return nil, Refusal{http.StatusConflict, "this machine's journal may lack messages that the other machine has confirmed. Bring the other machine back, or give them up: gateway site lead --lose"}
	}
	s.Site.Lead()
	return s.Site.Status(), nil
}

func (s Source) retire(_ context.Context, o RetireOrder) (any, error) {
	if s.Site == nil {
		return nil, oneGateway
	}
	is := s.Site.Status()
	switch {
	case is.Role != pair.Leading.String():
		return nil, Refusal{http.StatusConflict, "this machine does not lead"}
	case o.To.IsValid() && !slices.Contains(is.Others(), o.To.String()):
		return nil, Refusal{http.StatusConflict, fmt.Sprintf("%v is no other machine of this site; those are %s", o.To, strings.Join(is.Others(), ", "))}
	case !s.Site.Retire(o.To):
		who := "the other machine"
		if o.To.IsValid() {
			who = o.To.String()
		}
		return nil, Refusal{http.StatusConflict, who + " cannot lead: it is away, or has not everything of this one's journal yet"}
	}
	return s.Site.Status(), nil
}

// Following makes the desk of a machine that does not lead: it has no gateway to report on.
func Following(src Source, reg *prometheus.Registry) *Desk {
	closed := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "aldis_http_connections_closed_total", Help: "Connections of http.listen and control.socket closed because too many were open."})
	reg.MustRegister(closed)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	src.siteHandlers(mux)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if is := src.Site.Status(); is.Role != pair.Following.String() || !is.Whole {
			http.Error(w, "this machine of the site is "+is.Role+" and could not take over now: gateway site status", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("following\n"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		is := src.Site.Status()
		where := "Ask the other machine, " + is.Other + ","
		if len(is.Members) > 0 {
			where = "Ask the leader, " + is.Other + ","
		}
		if is.Other == "" {
			where = "Nobody leads: look there"
		}
		http.Error(w, "this machine of the site does not lead (it is "+is.Role+"). "+where+" or run gateway site status", http.StatusServiceUnavailable)
	})
	return &Desk{Handler: sameHost(src.Names, mux), closed: closed}
}
