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
	"aldis/internal/radio"
)

// patience is how long the loop may take to come to a question.
const patience = 2 * time.Second

// Source is where the answers come from. Its functions are called from any goroutine.
type Source struct {
	Version string
	Started time.Time
	Status  func(context.Context) (gateway.Status, error)
	Trouble func() string // "" when all is well
	Radio   func() radio.Stats
}

// Report is what /status says.
type Report struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Trouble is what keeps the gateway from working now.
	Trouble string `json:"trouble,omitempty"`
	gateway.Status
	Radio radio.Stats `json:"radio"`
}

func (s Source) report(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, err := s.Status(ctx)
	return Report{Version: s.Version, Started: s.Started, Trouble: s.Trouble(), Status: status, Radio: s.Radio()}, err
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
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "aldis gateway: /status /metrics /healthz")
	})
	return mux
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
