package fileroom

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/files"
	"aldis/internal/edge/atrest"
	"aldis/internal/site"
)

// Config bounds the room. A zero value means the default, if there is one.
type Config struct {
	Face     string // TAK, the default, or XMPP
	Dir      string
	Key      *atrest.Key   // seals the stored files; nil: they are not sealed
	URL      string        // at which devices reach the room
	Version  string        // that devices see
	MostFile int64         // most octets of one file; default 16 MiB
	Most     int64         // most octets of all files; default 256 MiB
	Life     time.Duration // of a file; default 7 days
	Patience time.Duration // how long a device waits for a file that is on its way, and may be silent in an upload; default 8 s
}

// Faces of a room; their names begin the keys of the configuration.
const (
	TAK  = "tak"
	XMPP = "xmpp"
)

func (c Config) withDefaults() Config {
	if c.Face == "" {
		c.Face = TAK
	}
	if c.MostFile == 0 {
		c.MostFile = 16 << 20
	}
	if c.Most == 0 {
		c.Most = 256 << 20
	}
	if c.Life == 0 {
		c.Life = 7 * 24 * time.Hour
	}
	if c.Patience == 0 {
		c.Patience = 8 * time.Second
	}
	return c
}

// Room keeps the files. Its methods may be called at the same time.
type Room struct {
	cfg     Config
	store   *store
	post    func(site.Event)
	log     *slog.Logger
	refused *prometheus.CounterVec
	nudge   chan struct{} // backlog has orders
	fetches chan struct{} // one for each fetch from a device
	bodies  *places
	life    context.Context
	end     context.CancelFunc
	wait    sync.WaitGroup

	mu      sync.Mutex
	known   map[string]files.Know // offered by far sites
	slots   map[string]slot       // for files that clients are about to upload, by id
	changed chan struct{}         // closed when known has changed
	servers map[*http.Server]bool
	backlog []files.Order
	logged  time.Time
	closed  bool
}

const (
	mostFetches  = 4
	fetchTime    = 2 * time.Minute
	tidyEvery    = 10 * time.Minute
	refusedAgain = 10 * time.Second
)

// Open opens the room of a directory. Events go to post.
func Open(cfg Config, post func(site.Event), reg prometheus.Registerer, log *slog.Logger) (*Room, error) {
	cfg = cfg.withDefaults()
	s, err := openStore(cfg.Dir, cfg.Key, cfg.Most, cfg.Life)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(noCancel)
	r := &Room{cfg: cfg, store: s, post: post, log: log, life: life, end: end, nudge: make(chan struct{}, 1), fetches: make(chan struct{}, mostFetches),
		bodies: newPlaces(), known: map[string]files.Know{}, slots: map[string]slot{}, changed: make(chan struct{}), servers: map[*http.Server]bool{}}
	here := func() float64 {
		list, _ := s.list()
		return float64(len(list))
	}
	octets := func() float64 {
		_, octets := s.list()
		return float64(octets)
	}
	var gauges []prometheus.Collector
	if cfg.Face == XMPP {
		r.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_xmpp_files_refused_total", Help: "Refused requests for uploaded files."}, []string{"reason"})
		gauges = append(gauges, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aldis_xmpp_files", Help: "Uploaded files here."}, here),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aldis_xmpp_files_octets", Help: "Octets of the uploaded files here."}, octets))
	} else {
		r.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_tak_files_refused_total", Help: "Refused requests for data packages."}, []string{"reason"})
		gauges = append(gauges, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aldis_tak_files", Help: "Data packages here."}, here),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aldis_tak_files_octets", Help: "Octets of the data packages here."}, octets))
	}
	if reg != nil {
		reg.MustRegister(append(gauges, r.refused)...)
	}
	r.wait.Add(1)
	go r.work()
	return r, nil
}

var noCancel = context.Background()

// Do queues an order of the adapter; work carries the orders out in turn. The caller does not wait.
func (r *Room) Do(o files.Order) {
	if k, ok := o.(files.Know); ok {
		r.know(k)
		if !k.Gone && !k.Bring {
			return
		}
	}
	r.mu.Lock()
	r.backlog = append(r.backlog, o)
	r.mu.Unlock()
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// know records the state of a far file, and wakes the requests that wait for it.
func (r *Room) know(k files.Know) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.Gone {
		delete(r.known, k.Hash)
	} else {
		r.known[k.Hash] = k
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// work carries out the queued orders in turn.
func (r *Room) work() {
	defer r.wait.Done()
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		r.mu.Lock()
		list := r.backlog
		r.backlog = nil
		r.mu.Unlock()
		for _, o := range list {
			if r.life.Err() != nil {
				return
			}
			r.order(o)
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-r.nudge:
		case <-tick.C:
			r.store.tidy(time.Now())
		case <-r.life.Done():
			return
		}
	}
}

func (r *Room) order(o files.Order) {
	switch o := o.(type) {
	case files.Fetch:
		r.wait.Add(1)
		go func() {
			defer r.wait.Done()
			r.post(files.Fetched{Hash: o.Hash, Err: text(r.fetch(o))})
		}()
	case files.Load:
		loaded := files.Loaded{Ask: o.Ask}
		if b, _, err := r.store.get(o.Hash); err == nil {
			parts := slices.Collect(slices.Chunk(b, files.PartOctets))
			if from, to := min(o.From, len(parts)), min(o.To, len(parts)); from < to {
				loaded.Parts = parts[from:to]
			}
		}
		r.post(loaded)
	case files.Keep:
		r.post(files.Kept{Token: o.Token, Hash: o.Hash, Part: o.Part, Err: text(r.store.keep(o.Hash, o.Part, o.Data))})
	case files.Finish:
		r.post(files.Finished{Hash: o.Hash, Err: text(r.store.finish(o, time.Now()))})
	case files.Reserve:
		r.post(r.reserve(o, time.Now()))
	case files.Know:
		if o.Gone {
			r.store.forget(o.Hash)
		} else if _, here := r.store.find(o.Hash); !here {
			r.post(files.Wanted{Hash: o.Hash})
		}
	default:
		panic(fmt.Sprintf("fileroom: order %T", o))
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// fetch gets a file from its device, unless it is here. The hash identifies the file, so the device need not be trusted.
func (r *Room) fetch(o files.Fetch) error {
	if _, here := r.store.find(o.Hash); here {
		return nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || !isHash(o.Hash) {
		return fmt.Errorf("the offer does not say where its file is: %q", o.URL)
	}
	if o.Size > r.cfg.MostFile {
		return fmt.Errorf("it has %d octets, and this gateway takes %d at most (%s.max_file)", o.Size, r.cfg.MostFile, r.cfg.Face)
	}
	select {
	case r.fetches <- struct{}{}:
		defer func() { <-r.fetches }()
	case <-r.life.Done():
		return errors.New("the gateway stops")
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	client := http.Client{Timeout: fetchTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", net.JoinHostPort(o.Host, port)) // whatever host the URL names
			}}}
	req, err := http.NewRequestWithContext(r.life, http.MethodGet, o.URL, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("its device answers %s", resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, o.Size+1))
	switch {
	case err != nil:
		return err
	case int64(len(b)) != o.Size:
		return fmt.Errorf("its device gives %d octets or more, and the offer says %d", len(b), o.Size)
	case hashOf(b) != o.Hash:
		return errors.New("its device gives another file than it offers: the SHA-256 is another")
	}
	return r.store.put(b, meta{Hash: o.Hash, Name: plainName(o.Name), Creator: o.Creator, MIME: usualMIME, At: time.Now()})
}

// refuse counts a refused request, and logs one now and then.
func (r *Room) refuse(reason, remote string, err error) {
	r.refused.WithLabelValues(reason).Inc()
	r.mu.Lock()
	quiet := time.Since(r.logged) < refusedAgain
	if !quiet {
		r.logged = time.Now()
	}
	r.mu.Unlock()
	if !quiet {
		r.log.Warn("a request for a file was refused", "reason", reason, "remote", remote, "error", err)
	}
}

// Shutdown stops the servers and the work.
func (r *Room) Shutdown() {
	r.mu.Lock()
	r.closed = true
	servers := r.servers
	r.mu.Unlock()
	r.end()
	for s := range servers {
		s.Close()
	}
	r.wait.Wait()
}

// Dir is where a gateway keeps the files of a face.
func Dir(data, face string) string { return filepath.Join(data, face+"-files") }
