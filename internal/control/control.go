package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"aldis/internal/gateway"
	"aldis/internal/norm"
	"aldis/internal/radio"
	"aldis/internal/site"
)

// patience is how long the loop may take to come to a question.
const patience = 2 * time.Second

// Source is where the answers come from. Its functions are called from any goroutine.
type Source struct {
	Version string
	Started time.Time
	// Snapshot is taken between two turns of the loop; an error says that the loop did not come to it.
	Snapshot func(context.Context) (Snapshot, error)
	Trouble  func() string // "" when all is well
	Radio    func() radio.Stats
	NORM     func() norm.Stats
	Order    func(gateway.Event) // hands the loop an operator's order
	// AdvertKeys are those of the whole cache, AdvertRows what is to be said of some; both between two turns of the loop.
	AdvertKeys func(context.Context) ([]site.EntryKey, error)
	AdvertRows func(context.Context, []site.EntryKey) ([]gateway.AdvertRow, error)
}

// Snapshot is what the loop's state machines say of one moment.
type Snapshot struct {
	Gateway gateway.Status
	LAN     any           // the JXTA face's status: it goes into the report as it is
	Metrics []site.Metric // of all faces
}

// Report is what /status says.
type Report struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Trouble is what keeps the gateway from working now.
	Trouble string `json:"trouble,omitempty"`
	gateway.Status
	LAN   any         `json:"lan"`
	Radio radio.Stats `json:"radio"`

	metrics []site.Metric
}

func (s Source) report(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := s.Snapshot(ctx)
	return Report{Version: s.Version, Started: s.Started, Trouble: s.Trouble(), Radio: s.Radio(),
		Status: now.Gateway, LAN: now.LAN, metrics: now.Metrics}, err
}

// Handler answers for src. Its metrics join those that are in reg already.
func Handler(src Source, reg *prometheus.Registry) http.Handler {
	reg.MustRegister(collector{src})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		report, err := src.report(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.Encode(report) // an error is the client's going away
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		report, err := src.report(r.Context())
		switch {
		case report.Trouble != "": // it explains the other, if both are there
			http.Error(w, report.Trouble, http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	mux.HandleFunc("GET /adverts", func(w http.ResponseWriter, r *http.Request) { src.adverts(w, r) })
	mux.HandleFunc("POST /silence", func(w http.ResponseWriter, r *http.Request) { src.silence(w, r) })
	mux.HandleFunc("POST /peers/forget", func(w http.ResponseWriter, r *http.Request) { src.forget(w, r) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "aldis gateway: /status /adverts /metrics /healthz; gateway silence speaks to /silence, gateway peer to /peers/forget")
	})
	return mux
}

// SilenceOrder is the body of POST /silence. The answer is the gateway.SilenceStatus that came of it.
type SilenceOrder struct {
	On       bool      `json:"on"`
	Until    time.Time `json:"until,omitzero"`
	Announce bool      `json:"announce,omitempty"`
}

// silence takes the order of somebody on this machine.
func (s Source) silence(w http.ResponseWriter, r *http.Request) {
	var order SilenceOrder
	if !takeOrder(w, r, &order) {
		return
	}
	s.Order(gateway.Silence{On: order.On, Until: order.Until, Announce: order.Announce})
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for {
		now, err := s.Snapshot(ctx)
		if err != nil {
			http.Error(w, "the order was given; the gateway has not said that it was obeyed: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		if got := now.Gateway.Silence; got.On == order.On {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(got)
			return
		}
		select { // the loop takes orders and questions in no certain order
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Serve answers on ln until ctx ends.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(ln); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}
