package control

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/operator/control/glance"
)

// Bounds of viewers.
const (
	mostLookers = 32               // a connection each, besides other connections: maxConnections
	viewEvery   = time.Second / 2  // least time between two Views; a View is sent if it has changed
	lookerWait  = 10 * time.Second // a viewer that has not taken a frame in this time is disconnected
	heartbeat   = 15 * time.Second // at least so often something is sent, so that both ends notice a dead connection
)

// live sends Views to viewers. One View is made for all of them, and none while nobody watches.
type live struct {
	src   Source
	every time.Duration // least time between two Views
	wait  time.Duration // how long a viewer may take to read a frame

	mu      sync.Mutex
	history *glance.History
	lookers map[*looker]bool
	telling bool  // tell runs
	last    frame // nil parts: none has been made since somebody watches
	turned  prometheus.Counter
	dropped prometheus.Counter
	views   prometheus.Counter
}

// frame is a View in the form that is sent to viewers: plain, and deflated. A deflated frame refers to no earlier one, so one
// frame serves all viewers; successive frames are one gzip stream without an end.
type frame struct{ plain, deflated []byte }

// gzipHead begins such a stream.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// looker is a viewer. It has room only for the newest frame.
type looker struct{ next chan frame }

func newLive(src Source, reg prometheus.Registerer) *live {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "aldis_page_" + name, Help: help})
		reg.MustRegister(c)
		return c
	}
	l := &live{src: src, every: viewEvery, wait: lookerWait, history: glance.NewHistory(time.Now()), lookers: map[*looker]bool{},
		turned:  counter("lookers_refused_total", "Requests for /events refused because of too many viewers."),
		dropped: counter("lookers_dropped_total", "Connections of /events closed because the viewer read nothing."),
		views:   counter("views_total", "Views made for the page and gateway top.")}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aldis_page_lookers", Help: "Viewers of the page and of gateway top."},
		func() float64 { l.mu.Lock(); defer l.mu.Unlock(); return float64(len(l.lookers)) }))
	return l
}

// spent is the traffic since a time.
func (l *live) spent(since time.Time) glance.Spent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Since(since)
}

// Watch keeps the history of the airtime until ctx ends.
func (d *Desk) Watch(ctx context.Context) {
	t := time.NewTicker(glance.Every)
	defer t.Stop()
	for {
		if r, err := d.live.src.report(ctx); err == nil {
			d.live.mu.Lock()
			d.live.history.Note(time.Now(), r.Status)
			d.live.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// view makes a View of this moment. The loop is asked without holding the lock.
func (l *live) view(ctx context.Context) glance.View {
	r, err := l.src.report(ctx)
	seen := glance.Seen{Version: r.Version, Started: r.Started, Trouble: r.Trouble, Status: r.Status, Locals: r.locals, Views: viewsOf(r.LAN), Site: r.Site,
		Orders: l.src.Authority().Token != ""}
	if err != nil {
		seen.Deaf = err.Error()
	}
	if r.Cell != nil && !r.Cell.Whole {
		seen.Missing = r.Cell.Missing
	}
	l.views.Inc()
	l.mu.Lock()
	defer l.mu.Unlock()
	return glance.ViewOf(time.Now(), l.history, seen)
}

// frameOf is a View as an event.
func frameOf(v glance.View) (f frame, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return f, err
	}
	f.plain = append(append([]byte("data: "), text...), "\n\n"...)
	f.deflated, err = deflate(f.plain)
	return f, err
}

func deflate(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Flush()
	}
	return b.Bytes(), err
}

// publish makes Views as long as somebody watches.
func (l *live) publish() {
	t := time.NewTicker(l.every)
	defer t.Stop()
	for {
		f, err := frameOf(l.view(context.Background()))
		l.mu.Lock()
		if len(l.lookers) == 0 {
			l.last, l.telling = frame{}, false
			l.mu.Unlock()
			return
		}
		if err == nil && !bytes.Equal(f.plain, l.last.plain) {
			l.last = f
			for who := range l.lookers {
				who.offer(f)
			}
		}
		l.mu.Unlock()
		<-t.C
	}
}

// offer replaces a frame that the looker has not taken yet.
func (who *looker) offer(f frame) {
	select {
	case <-who.next:
	default:
	}
	who.next <- f
}

// come adds a viewer; nil: there are too many already.
func (l *live) come() *looker {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lookers) >= mostLookers {
		l.turned.Inc()
		return nil
	}
	who := &looker{make(chan frame, 1)}
	l.lookers[who] = true
	if l.last.plain != nil {
		who.offer(l.last)
	}
	if !l.telling {
		l.telling = true
		go l.publish()
	}
	return who
}

func (l *live) leave(who *looker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lookers, who)
}

// events answers GET /events: a View at once, and another whenever something has changed.
func (l *live) events(w http.ResponseWriter, r *http.Request) {
	who := l.come()
	if who == nil {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d look at this gateway already: close a page, or try again later", mostLookers), http.StatusServiceUnavailable)
		return
	}
	defer l.leave(who)
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the viewer sends nothing more; if the deadline cannot be set, the old one stays
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	short := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	send := func(f frame) bool {
		control.SetWriteDeadline(time.Now().Add(l.wait))
		text := f.plain
		if short {
			text = f.deflated
		}
		_, err := w.Write(text)
		if err == nil {
			err = control.Flush()
		}
		if err != nil && r.Context().Err() == nil {
			l.dropped.Inc()
		}
		return err == nil
	}
	if short {
		h.Set("Content-Encoding", "gzip")
		if _, err := w.Write(gzipHead); err != nil {
			return
		}
	}
	beat := frame{plain: []byte(": still here\n\n")}
	beat.deflated, _ = deflate(beat.plain)
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		var f frame
		select {
		case <-r.Context().Done():
			return
		case f = <-who.next:
		case <-t.C:
			f = beat
		}
		if !send(f) {
			return
		}
	}
}

// air answers GET /air?hours=N: the ledger of the last hours in columns.
func (l *live) air(w http.ResponseWriter, r *http.Request) {
	hours := 6
	if text := r.URL.Query().Get("hours"); text != "" {
		var err error
		if hours, err = strconv.Atoi(text); err != nil || hours < 1 || hours > 48 {
			http.Error(w, "hours must be a number from 1 to 48", http.StatusBadRequest)
			return
		}
	}
	l.mu.Lock()
	a := l.history.Air(time.Now(), hours)
	l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	json.NewEncoder(w).Encode(a) // an error means that the client has gone
}
