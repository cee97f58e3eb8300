package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/operator/control/glance"
)

// Bounds of a rehearsal.
const (
	whatIfTrace    = 1 << 20          // octets of an uploaded trace
	whatIfMessages = 2000             // the newest messages of the traffic
	whatIfPatience = 90 * time.Second // for a rehearsal; its process has bounds of its own
	whatIfLeadS    = 30               // before the first message, for the peers to find each other
	whatIfMost     = 24 * 60          // minutes of traffic
)

// Link is a link on which traffic can be rehearsed.
type Link struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// Rehearsing plays a trace on another link, beside the gateway and with lower priority.
type Rehearsing struct {
	Links []Link
	// Play returns the output of gateway rehearse --json. It ends with ctx.
	Play func(ctx context.Context, link string, deadline time.Duration, trace []byte) ([]byte, error)
}

// WhatIfOrder is the body of POST /whatif: rehearse a trace, or the traffic of the last minutes, on another link.
type WhatIfOrder struct {
	Link      string  `json:"link"`
	Minutes   int     `json:"minutes,omitempty"` // of the traffic of this site
	Trace     string  `json:"trace,omitempty"`   // a trace file, instead of traffic
	DeadlineS float64 `json:"deadline_s"`
	Stop      bool    `json:"stop,omitempty"` // the rehearsal that goes on, and nothing else
}

// String is the order in words, for the log.
func (o WhatIfOrder) String() string {
	switch {
	case o.Stop:
		return "stop"
	case o.Trace != "":
		return fmt.Sprintf("a trace of %d octets on %.40q", len(o.Trace), o.Link)
	}
	return fmt.Sprintf("%d min of traffic on %.40q", o.Minutes, o.Link)
}

// octets bounds the body: quotes and line ends of a trace take one octet more in JSON.
func (WhatIfOrder) octets() int64 { return 2*whatIfTrace + orderOctets }

// Figures are the cost of traffic, real or rehearsed.
type Figures struct {
	Messages int `json:"messages"`
	Arrived  int `json:"arrived"` // in time, when it was rehearsed
	// Times are from acceptance to the far gateway; of a rehearsal, those of the worst play. nil: no message arrived.
	MedianS *float64 `json:"median_s"`
	SlowS   *float64 `json:"slowest_s"`
	Octets  int64    `json:"octets"`
	// Only of a rehearsal.
	AirMinutes  *float64 `json:"air_minutes,omitempty"`
	Credits     *float64 `json:"credits,omitempty"`
	CallMinutes *float64 `json:"call_minutes,omitempty"`
}

// WhatIf is the answer of GET /whatif: the rehearsal in progress, or the last one.
type WhatIf struct {
	State   string    `json:"state"` // "none", "playing", "done", "failed"
	Link    string    `json:"link,omitempty"`
	Of      string    `json:"of,omitempty"` // what is rehearsed, in words
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Verdict string    `json:"verdict,omitempty"` // "GO", "LATE", "NO"
	Line    string    `json:"line,omitempty"`
	Why     []string  `json:"why,omitempty"`
	Helps   []string  `json:"helps,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
	Today   *Figures  `json:"today,omitempty"` // what the same traffic cost, when it is traffic
	Then    *Figures  `json:"then,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// whatIfs holds the one rehearsal.
type whatIfs struct {
	src     Source
	history func(since time.Time) glance.Spent

	mu   sync.Mutex
	now  WhatIf
	stop context.CancelFunc // of the rehearsal in progress; nil: there is none
}

func newWhatIfs(src Source, history func(time.Time) glance.Spent) *whatIfs {
	return &whatIfs{src: src, history: history, now: WhatIf{State: "none"}}
}

func (w *whatIfs) links(rw http.ResponseWriter, _ *http.Request) {
	links := []Link{}
	if w.src.Rehearsing != nil {
		links = w.src.Rehearsing.Links
	}
	answer(rw, links)
}

func (w *whatIfs) status(rw http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	now := w.now
	w.mu.Unlock()
	answer(rw, now)
}

// begin starts a rehearsal, one at a time, and returns at once.
func (w *whatIfs) begin(ctx context.Context, o WhatIfOrder) (any, error) {
	if o.Stop {
		return w.halt()
	}
	r := w.src.Rehearsing
	switch {
	case r == nil:
		return nil, Refusal{http.StatusNotImplemented, "this gateway rehearses nothing"}
	case !slices.ContainsFunc(r.Links, func(l Link) bool { return l.Name == o.Link }):
		return nil, Refusal{http.StatusBadRequest, fmt.Sprintf("there is no link %.40q: gateway profiles lists them", o.Link)}
	case !(o.DeadlineS >= 1 && o.DeadlineS <= 86400):
		return nil, Refusal{http.StatusBadRequest, "the deadline is not from 1 s to a day"}
	case o.Trace == "" && (o.Minutes < 1 || o.Minutes > whatIfMost):
		return nil, Refusal{http.StatusBadRequest, fmt.Sprintf("say a trace, or 1 to %d minutes of traffic", whatIfMost)}
	case len(o.Trace) > whatIfTrace:
		return nil, Refusal{http.StatusRequestEntityTooLarge, "the trace is longer than 1 MiB: use gateway rehearse"}
	}
	now := WhatIf{State: "playing", Link: o.Link, Began: time.Now().UTC(), Of: fmt.Sprintf("a trace of %d octets", len(o.Trace))}
	text := []byte(o.Trace)
	if o.Trace == "" {
		var err error
		if text, err = w.traffic(ctx, &now, o.Minutes); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		return nil, Refusal{http.StatusConflict, "a rehearsal goes on: wait for it, or stop it"}
	}
	run, stop := context.WithTimeout(context.Background(), whatIfPatience)
	w.now, w.stop = now, stop
	go func() {
		defer stop()
		out, err := r.Play(run, o.Link, time.Duration(o.DeadlineS*float64(time.Second)), text)
		if run.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("it took longer than %v: rehearse less traffic", whatIfPatience)
		} else if run.Err() != nil {
			err = errors.New("it was stopped")
		}
		w.end(out, err)
	}()
	return w.now, nil
}

func (w *whatIfs) halt() (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
	return w.now, nil
}

// rehearsed is the part of a rehearsal's output that is read.
type rehearsed struct {
	Verdict, Line  string
	Messages       int
	OnTime         worst `json:"on_time"`
	MedianS        worst `json:"median_s"`
	MaxS           worst `json:"max_s"`
	Never          worst `json:"never_arrived"`
	Reasons, Notes []string
	Problems       []string
	WaysOut        []string `json:"ways_out"`
	Cost           struct {
		Octets         worst `json:"octets"`
		Credits        worst `json:"sbd_credits"`
		AirMinutesUp   worst `json:"air_minutes_up"`
		AirMinutesDown worst `json:"air_minutes_down"`
		CallMinutes    worst `json:"call_minutes_on_demand"`
	}
}

type worst struct{ Worst float64 }

// end takes the output of a rehearsal.
func (w *whatIfs) end(out []byte, err error) {
	var r rehearsed
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop, w.now.Ended = nil, time.Now().UTC()
	if err != nil {
		w.now.State, w.now.Error = "failed", err.Error()
		return
	}
	air := r.Cost.AirMinutesUp.Worst + r.Cost.AirMinutesDown.Worst
	f := &Figures{Messages: r.Messages, Arrived: int(r.OnTime.Worst), Octets: int64(r.Cost.Octets.Worst), AirMinutes: &air,
		Credits: &r.Cost.Credits.Worst, CallMinutes: &r.Cost.CallMinutes.Worst}
	if r.Never.Worst < float64(r.Messages) {
		f.MedianS, f.SlowS = &r.MedianS.Worst, &r.MaxS.Worst
	}
	w.now.State, w.now.Verdict, w.now.Line, w.now.Why, w.now.Helps, w.now.Then = "done", r.Verdict, r.Line, r.Reasons, r.WaysOut, f
	w.now.Notes = append(w.now.Notes, append(r.Problems, r.Notes...)...)
}

// traffic is the messages of local peers in the last minutes as a trace; their cost goes into now.
func (w *whatIfs) traffic(ctx context.Context, now *WhatIf, minutes int) ([]byte, error) {
	since := now.Began.Add(-time.Duration(minutes) * time.Minute)
	if w.src.Messages == nil {
		return nil, Refusal{http.StatusNotImplemented, "this gateway keeps no messages"}
	}
	list, err := w.src.find(ctx, messageQuery{after: since, limit: whatIfMessages})
	if err != nil {
		return nil, err
	}
	snapshot, err := w.src.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(list.Messages, func(r api.MessageRow) bool { return r.Accepted.Before(since) || r.Octets < 1 })
	if len(rows) == 0 {
		return nil, Refusal{http.StatusConflict, fmt.Sprintf("no message of this site was accepted in the last %d minutes: rehearse a trace", minutes)}
	}
	slices.SortStableFunc(rows, func(a, b api.MessageRow) int { return a.Accepted.Compare(b.Accepted) })
	now.Of = fmt.Sprintf("%d messages that peers of this site said in the last %d minutes", len(rows), minutes)
	now.Notes = []string{"Only messages of this site: of those of other sites there is no list. Their content is made up, of the same size."}
	if list.More {
		now.Notes = append(now.Notes, fmt.Sprintf("Only the newest %d.", whatIfMessages))
	}
	now.Today = figuresOf(rows)
	spent := w.history(since)
	now.Today.Octets = int64(spent.Sent + spent.Received)
	now.Notes = append(now.Notes, "The octets of today are all that was on the air, both ways, state and greetings included; rehearsed are those of these messages and what they need.")
	if spent.From.After(since) {
		now.Notes = append(now.Notes, "The gateway was started since then: octets of before are not known.")
	}
	return traceOf(rows, since, snapshot.Gateway.End == "terminal"), nil
}

// figuresOf are the figures of messages: each counts once for each recipient site.
func figuresOf(rows []api.MessageRow) *Figures {
	f := &Figures{}
	var took []float64
	for _, r := range rows {
		for _, to := range r.Recipients {
			f.Messages++
			if to.State == string(history.Delivered) {
				took = append(took, max(0, to.Since.Sub(r.Accepted).Seconds()))
			}
		}
	}
	f.Arrived = len(took)
	if len(took) > 0 {
		slices.Sort(took)
		f.MedianS, f.SlowS = &took[(len(took)-1)/2], &took[len(took)-1]
	}
	return f
}

// traceOf writes messages as a trace (docs/traces.md) with sizes only: each sender has a pipe to which the far side listens. A
// message to several sites becomes one message to one far peer.
func traceOf(rows []api.MessageRow, since time.Time, terminal bool) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	last := rows[len(rows)-1].Accepted.Sub(since).Seconds() + whatIfLeadS
	line(`{"aldis_trace":1,"source":"traffic of this site","duration_s":%s,"content":"size"}`, seconds(last+1))
	line(`{"t":0,"do":"peer","peer":"far","edge":%v}`, !terminal)
	pipes := map[string]string{}
	for _, r := range rows {
		key := r.From
		if pipes[key] == "" {
			n := strconv.Itoa(len(pipes) + 1)
			pipes[key] = n
			line(`{"t":0,"do":"peer","peer":"p%s","edge":%v}`, n, terminal)
			line(`{"t":0,"do":"pipe","pipe":"q%s","kind":"propagate"}`, n)
			line(`{"t":0,"do":"open","peer":"far","pipe":"q%s","listen":true}`, n)
		}
	}
	var octets int64
	for _, r := range rows {
		n := pipes[r.From]
		at := seconds(max(0, r.Accepted.Sub(since).Seconds()) + whatIfLeadS)
		line(`{"t":%s,"do":"send","peer":"p%s","pipe":"q%s","octets":%d,"parts":[{"name":"m:m","octets":%[4]d}]}`, at, n, n, r.Octets)
		octets += int64(r.Octets)
	}
	in, out, inOctets, outOctets := len(rows), 0, octets, int64(0) // as the edge counts them
	if terminal {
		in, out, inOctets, outOctets = 0, len(rows), 0, octets
	}
	line(`{"t":%s,"do":"end","totals":{"events":%d,"messages_in":%d,"messages_out":%d,"in":%d,"out":%d}}`, seconds(last+1), len(rows)+len(pipes), in, out, inOctets, outOctets)
	return b.Bytes()
}

// seconds are written to the microsecond, as in a trace.
func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }
