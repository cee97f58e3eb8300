package control

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/edge/audit"
	"aldis/internal/edge/norm"
	"aldis/internal/edge/radio"
	"aldis/internal/edge/rights"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/pair"
	"aldis/internal/operator/control/glance"
	"aldis/internal/operator/control/page"
	"aldis/internal/site"
)

// patience is how long the loop may take to answer a request.
const patience = 2 * time.Second

// Source provides the data for the answers. Its functions are called from any goroutine.
type Source struct {
	Version string
	Started time.Time
	// Snapshot is taken between two turns of the loop; an error says that the loop did not get to it.
	Snapshot func(context.Context) (Snapshot, error)
	Trouble  func() string // "" when all is well
	Radio    func() radio.Stats
	NORM     func() norm.Stats
	Order    func(api.Event) // passes an operator's order to the loop
	// Durable waits until the journal has stored the orders so far; nil: answers do not wait for it.
	Durable func(context.Context) error
	// Authority says which callers may give an order now; Log logs which caller gave it.
	Authority func() Authority
	Log       *slog.Logger
	// Audit adds an entry to the audit record; nil: there is no record.
	Audit func(audit.Entry)
	// Names are the host names that requests over TCP may use for this gateway now, besides localhost and addresses; nil: none.
	Names func() []string
	// Reload has the configuration read again, and returns the differences; an error is a Refusal, or says that the outcome is
	// unknown.
	Reload func(ctx context.Context, dryRun bool) (any, error)
	// Backup returns a copy of the journal after the last commit, in a file without a name.
	Backup func(context.Context) (*os.File, error)
	// AdvertKeys are the keys of the whole cache, AdvertRows the rows of some of them; both are read between two turns of the
	// loop.
	AdvertKeys func(context.Context) ([]site.EntryKey, error)
	AdvertRows func(context.Context, []site.EntryKey) ([]api.AdvertRow, error)
	// CorpusFile is the file of a corpus that another site has sent; false: there is none of this name.
	CorpusFile func(ctx context.Context, name string) ([]byte, bool, error)
	// Messages runs a function on the messages of this site between two turns of the loop. Known returns the names of the peers
	// and pipes among these ids that have one; nil: there are no names.
	Messages func(context.Context, func(time.Time, gateway.Messages)) error
	Known    func(context.Context, map[string]bool) (map[string]string, error)
	// Protections are this process's restrictions.
	Protections []rights.Protection
	// Site is the machines of a site of two or more; nil: the site has one.
	Site Site
	// Rehearsing plays traffic on other links; nil: it is not possible.
	Rehearsing *Rehearsing
}

// Snapshot is the status of the loop's state machines at one moment.
type Snapshot struct {
	Gateway api.Status
	LAN     any // the JXTA adapter's status: it goes into the report unchanged
	Locals  []glance.Local
	Metrics []site.Metric // of all adapters
	Corpora corpusexchange.Status
}

// Report is the answer of /status.
type Report struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Trouble says what keeps the gateway from working now.
	Trouble string `json:"trouble,omitempty"`
	api.Status
	LAN any `json:"lan"`
	// Corpora are the corpora that other sites have made and sent here.
	Corpora corpusexchange.Status `json:"corpora"`
	Radio   radio.Stats           `json:"radio"`
	// Cell says which parts of its cell the child that runs libnorm has; nil before the first child.
	Cell *norm.Cell `json:"norm_cell,omitempty"`
	// Protections are this process's restrictions, and those that the machine does not offer.
	Protections []rights.Protection `json:"protections"`
	// Site is this machine's state at a site of two or more; nil: the site has one machine.
	Site *pair.Status `json:"site,omitempty"`

	metrics []site.Metric
	locals  []glance.Local
}

func (s Source) report(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := s.Snapshot(ctx)
	var of *pair.Status
	if s.Site != nil {
		is := s.Site.Status()
		of = &is
	}
	return Report{Site: of, Version: s.Version, Started: s.Started, Trouble: s.Trouble(), Radio: s.Radio(), Cell: s.NORM().Cell, Protections: s.Protections,
		Status: now.Gateway, LAN: now.LAN, Corpora: now.Corpora, metrics: now.Metrics, locals: now.Locals}, err
}

// Desk answers requests from a Source.
type Desk struct {
	http.Handler
	closed prometheus.Counter
	live   *live
	what   *whatIfs
}

// New makes a desk. Its metrics join those that are in reg already.
func New(src Source, reg *prometheus.Registry) *Desk {
	closed := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "aldis_http_connections_closed_total", Help: "Connections of http.listen and control.socket closed because too many were open."})
	reg.MustRegister(collector{src}, closed)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		report, err := src.report(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		answer(w, report)
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
	mux.HandleFunc("POST /silence", order(src, "silence", src.silence))
	mux.HandleFunc("POST /groups", order(src, "group", src.group))
	mux.HandleFunc("POST /views", order(src, "view", src.view))
	mux.HandleFunc("POST /probe", order(src, "probe", src.linkProbe))
	mux.HandleFunc("GET /probe", src.lastLinkProbe)
	mux.HandleFunc("POST /roster", order(src, "roster", src.roster))
	mux.HandleFunc("POST /corpora/send", order(src, "corpus send", src.sendCorpus))
	mux.HandleFunc("POST /corpora/accept", order(src, "corpus accept", src.acceptCorpus))
	mux.HandleFunc("POST /corpora/forget", order(src, "corpus forget", src.forgetCorpus))
	mux.HandleFunc("GET /corpora/{name}", src.corpusFile)
	mux.HandleFunc("POST /peers/forget", order(src, "forget", src.forget))
	mux.HandleFunc("GET /messages", src.messages)
	mux.HandleFunc("GET /bill", src.bill)
	mux.HandleFunc("GET /distance", src.distance)
	mux.HandleFunc("GET /messages/{id}", src.message)
	for _, do := range []gateway.MessageDo{gateway.DoHold, gateway.DoRelease, gateway.DoCancel, gateway.DoPrecede} {
		mux.HandleFunc("POST /messages/{id}/"+string(do), order(src, "message", src.orderMessage))
	}
	for _, do := range []gateway.MessageDo{gateway.DoHold, gateway.DoRelease} {
		mux.HandleFunc("POST /messages/"+string(do), order(src, "message", src.orderClass))
	}
	mux.HandleFunc("POST /reload", order(src, "reload", src.reload))
	src.siteHandlers(mux)
	mux.HandleFunc("POST /drain", order(src, "drain", src.drain))
	mux.HandleFunc("POST /backup", src.backup)
	live := newLive(src, reg)
	mux.HandleFunc("GET /events", live.events)
	mux.HandleFunc("GET /air", live.air)
	what := newWhatIfs(src, live.spent)
	mux.HandleFunc("GET /links", what.links)
	mux.HandleFunc("GET /whatif", what.status)
	mux.HandleFunc("POST /whatif", order(src, "whatif", what.begin))
	page.Serve(mux)
	return &Desk{sameHost(src.Names, mux), closed, live, what}
}

// sameHost passes on only those requests over TCP that name this gateway as their host. A page in a browser, whose owner has
// pointed its own name to this address, sends requests with that name. Addresses cannot be pointed elsewhere, so they are
// allowed.
func sameHost(names func() []string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		_, local := r.Context().Value(giverKey{}).(Giver)
		_, notAddress := netip.ParseAddr(strings.Trim(host, "[]"))
		known := strings.EqualFold(host, "localhost") || names != nil && slices.ContainsFunc(names(), func(n string) bool { return strings.EqualFold(n, host) })
		if !local && notAddress != nil && !known && host != "" {
			http.Error(w, fmt.Sprintf("%q is no name of this gateway: ask by address, or add the name to http.names", host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Serve answers on ln until ctx ends. Over a unix socket the kernel names the user of the caller.
func (d *Desk) Serve(ctx context.Context, ln net.Listener) error {
	c := &crowd{closed: d.closed, all: map[net.Conn]*list.Element{}}
	s := &http.Server{Handler: c.serving(d), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: c.state,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if local, ok := conn.(*net.UnixConn); ok {
				by, err := giverOf(local)
				if err != nil {
					by = Giver{UID: -1} // nobody
				}
				ctx = context.WithValue(ctx, giverKey{}, by)
			}
			return c.come(ctx, conn)
		}}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(ln); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}
