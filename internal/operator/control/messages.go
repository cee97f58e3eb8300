package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/ground/when"
	"aldis/internal/site"
)

// A request for messages holds up the loop for one look at all numbers, for one batch of rows at a time, and for one look at
// each queue concerned. The rows are filtered, sorted and written outside the loop.
const (
	messageBatch = 200
	messageUsual = 100
	messageMost  = 1000
)

// MessageList is the answer of GET /messages.
type MessageList struct {
	Messages []api.MessageRow `json:"messages"`
	More     bool             `json:"more"` // further messages fit
	// Holds are the orders to hold a precedence.
	Holds []api.HoldStatus `json:"holds,omitempty"`
}

// messageQuery holds the conditions of a request; an empty field matches all messages.
type messageQuery struct {
	to, from, label, state, precedence string
	after, before                      time.Time
	limit                              int
}

func parseMessageQuery(v url.Values) (q messageQuery, err error) {
	q = messageQuery{to: v.Get("to"), from: strings.ToLower(v.Get("from")), label: strings.ToLower(v.Get("label")), state: v.Get("state"),
		precedence: v.Get("precedence"), limit: messageUsual}
	for key := range v {
		if !slices.Contains([]string{"to", "from", "label", "state", "precedence", "after", "before", "limit"}, key) {
			return q, fmt.Errorf("there is no %q: to, from, label, state, precedence, after, before or limit", key)
		}
	}
	if text := v.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > messageMost {
			return q, fmt.Errorf("limit must be a number from 1 to %d", messageMost)
		}
	}
	for key, at := range map[string]*time.Time{"after": &q.after, "before": &q.before} {
		if text := v.Get(key); text != "" {
			if *at, err = when.Past(text, time.Now()); err != nil {
				return q, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if q.state != "" && !slices.Contains([]string{api.StateWaiting, api.StateUnderWay, api.StateEnded}, q.state) {
		return q, fmt.Errorf("state must be waiting, under_way or ended")
	}
	if _, ok := site.ParsePrecedence(q.precedence); q.precedence != "" && !ok {
		return q, fmt.Errorf("precedence must be one of %s", strings.Join(site.Precedences, ", "))
	}
	return q, nil
}

// fits says whether a message matches the query. If the time of a message is unknown, the time does not decide.
func (q messageQuery) fits(r *api.MessageRow) bool {
	has := func(part string, texts ...string) bool {
		return part == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
	}
	return (q.state == "" || q.state == r.State) && (q.precedence == "" || q.precedence == r.Precedence) &&
		(q.after.IsZero() || r.Accepted.IsZero() || r.Accepted.After(q.after)) &&
		(q.before.IsZero() || r.Accepted.IsZero() || r.Accepted.Before(q.before)) &&
		has(q.from, r.From, r.FromName) && has(q.label, r.Label) &&
		(q.to == "" || slices.ContainsFunc(r.Recipients, func(t api.RecipientRow) bool { return q.to == t.Site }))
}

// betweenTurns runs f between two turns of the loop.
func (s Source) betweenTurns(ctx context.Context, f func(now time.Time, m gateway.Messages)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Messages(ctx, f)
}

// messages answers GET /messages: the newest first, or the waiting messages in the order in which they will go.
func (s Source) messages(w http.ResponseWriter, r *http.Request) {
	var q messageQuery
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		q, err = parseMessageQuery(v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	list, err := s.find(r.Context(), q)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, list)
}

func failed(w http.ResponseWriter, err error) {
	if no, ok := err.(Refusal); ok {
		http.Error(w, no.Text, no.Code)
		return
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(what) // an error means that the client has gone
}

// find returns the messages that match a query.
func (s Source) find(ctx context.Context, q messageQuery) (list MessageList, err error) {
	var ids []uint64
	var sites map[string]uint16
	if err := s.betweenTurns(ctx, func(_ time.Time, m gateway.Messages) { ids, sites, list.Holds = m.IDs(), m.Sites(), m.Holds() }); err != nil {
		return list, err
	}
	if _, ok := sites[q.to]; q.to != "" && !ok {
		return list, Refusal{http.StatusBadRequest, fmt.Sprintf("no [[link.peer]] has the name %q", q.to)}
	}
	queues := newQueues(s)
	if q.state == api.StateWaiting {
		if ids, err = queues.order(ctx, ids, sites, q.to); err != nil {
			return list, err
		}
	} else {
		slices.Sort(ids)
		slices.Reverse(ids)
	}
	list.Messages = []api.MessageRow{}
	known := names{}
	for batch := range slices.Chunk(ids, messageBatch) {
		var rows []api.MessageRow
		if err := s.betweenTurns(ctx, func(_ time.Time, m gateway.Messages) { rows = m.Rows(batch) }); err != nil {
			return list, err
		}
		if err := known.put(ctx, s, rows); err != nil {
			return list, err
		}
		for _, row := range rows {
			if !q.fits(&row) {
				continue
			}
			if len(list.Messages) == q.limit {
				list.More = true
				return list, queues.expect(ctx, list.Messages)
			}
			list.Messages = append(list.Messages, row)
		}
	}
	return list, queues.expect(ctx, list.Messages)
}

// names are the names of the ids in one answer; "": an id has none.
type names map[string]string

// put adds the known names to the ids in rows.
func (known names) put(ctx context.Context, s Source, rows []api.MessageRow) error {
	if s.Known == nil {
		return nil
	}
	ask := map[string]bool{}
	for _, r := range rows {
		for _, id := range []string{r.From, r.ToPipe} {
			if _, asked := known[id]; !asked {
				ask[id], known[id] = true, ""
			}
		}
	}
	var err error
	if len(ask) > 0 {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var found map[string]string
		found, err = s.Known(ctx, ask)
		maps.Copy(known, found)
	}
	for i := range rows {
		rows[i].FromName, rows[i].PipeName = known[rows[i].From], known[rows[i].ToPipe]
	}
	return err
}

// queues are the queues that one answer has read.
type queues struct {
	from   Source
	looked map[uint16]*queue
}

type queue struct {
	forecast.Queue
	behind map[uint64]api.Behind
}

func newQueues(s Source) *queues { return &queues{s, map[uint16]*queue{}} }

func (q *queues) of(ctx context.Context, peer uint16) (*queue, error) {
	if one := q.looked[peer]; one != nil {
		return one, nil
	}
	one := &queue{}
	if err := q.from.betweenTurns(ctx, func(now time.Time, m gateway.Messages) { one.Queue = m.Queue(now, peer) }); err != nil {
		return nil, err
	}
	one.behind = one.Sort()
	q.looked[peer] = one
	return one, nil
}

// order sorts ids: the waiting messages in the order in which they will go, to one site or to any; held messages come last.
func (q *queues) order(ctx context.Context, ids []uint64, sites map[string]uint16, to string) ([]uint64, error) {
	type place struct {
		id    uint64
		rank  int
		ahead int
	}
	first := map[uint64]place{}
	for name, id := range sites {
		if to != "" && to != name {
			continue
		}
		one, err := q.of(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, p := range one.Places {
			at := place{p.ID, p.Rank, one.behind[p.ID].Octets}
			if before, ok := first[p.ID]; !ok || at.rank > before.rank || at.rank == before.rank && at.ahead < before.ahead {
				first[p.ID] = at
			}
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int {
		x, waits := first[a]
		y, others := first[b]
		switch {
		case waits != others && waits:
			return -1
		case waits != others:
			return 1
		case x.rank != y.rank:
			return y.rank - x.rank
		case x.ahead != y.ahead:
			return x.ahead - y.ahead
		case a < b:
			return -1
		}
		return 1
	})
	return ids, nil
}

// expect fills in, for messages that have not ended, the messages before them and their expected time of arrival.
func (q *queues) expect(ctx context.Context, rows []api.MessageRow) error {
	for i := range rows {
		row := &rows[i]
		last, known := time.Time{}, row.State != api.StateEnded
		for j := range row.Recipients {
			r := &row.Recipients[j]
			state := history.State(r.State)
			if state.Final() {
				continue
			}
			one, err := q.of(ctx, r.ID)
			if err != nil {
				return err
			}
			switch state {
			case history.Waiting:
				b := one.behind[row.Number]
				if b.Octets >= row.Behind.Octets {
					row.Behind = b
				}
				r.Expected = one.Expected(b.Octets, row.Octets)
			case history.UnderWay:
				r.Expected = one.ExpectedUnderWay(*r, row.Octets)
			}
			known = known && !r.Expected.IsZero()
			if r.Expected.After(last) {
				last = r.Expected
			}
		}
		if known {
			row.Expected = last
		}
	}
	return nil
}

// message answers GET /messages/{id}.
func (s Source) message(w http.ResponseWriter, r *http.Request) {
	row, err := s.one(r.Context(), r.PathValue("id"))
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, row)
}

// one is a message with its history.
func (s Source) one(ctx context.Context, name string) (api.MessageRow, error) {
	id, err := history.ParseName(name)
	if err != nil {
		return api.MessageRow{}, Refusal{http.StatusBadRequest, err.Error()}
	}
	rows := make([]api.MessageRow, 1)
	found := false
	if err := s.betweenTurns(ctx, func(_ time.Time, m gateway.Messages) { rows[0], found = m.Row(id) }); err != nil {
		return rows[0], err
	}
	if !found {
		return rows[0], Refusal{http.StatusNotFound, fmt.Sprintf("no message %s is known here: it ended before this start, or long ago, or never was", history.Name(id))}
	}
	if err := (names{}).put(ctx, s, rows); err != nil {
		return rows[0], err
	}
	return rows[0], newQueues(s).expect(ctx, rows)
}

// MessageOrder is the body of POST /messages/{id}/hold, release, cancel and precedence; only that of precedence has content.
type MessageOrder struct {
	Precedence string `json:"precedence,omitempty"`

	id string
	do gateway.MessageDo
}

// String is the order in words, for the log.
func (o MessageOrder) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %q %s", o.do, o.id, o.Precedence))
}

// fromPath takes the order and the id from the path of a request.
func (o *MessageOrder) fromPath(r *http.Request) {
	o.id = r.PathValue("id")
	o.do = gateway.MessageDo(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
}

// MessageAnswer is the result of an order about a message.
type MessageAnswer struct {
	Changed bool           `json:"changed"` // false: it was so already
	Text    string         `json:"text"`
	Message api.MessageRow `json:"message"`
}

// orderMessage gives the gateway an order about a message, and waits for its answer.
func (s Source) orderMessage(ctx context.Context, o MessageOrder) (any, error) {
	id, err := history.ParseName(o.id)
	if err != nil {
		return nil, Refusal{http.StatusBadRequest, err.Error()}
	}
	p, ok := site.ParsePrecedence(o.Precedence)
	switch {
	case o.do == gateway.DoPrecede && !ok:
		return nil, Refusal{http.StatusBadRequest, "precedence must be one of " + strings.Join(site.Precedences, ", ")}
	case o.do != gateway.DoPrecede && o.Precedence != "":
		return nil, Refusal{http.StatusBadRequest, fmt.Sprintf("%s takes no precedence", o.do)}
	}
	by, _ := ctx.Value(orderedByKey{}).(string)
	ref := rand.Uint64()
	s.Order(gateway.MessageOrder{Ref: ref, Message: id, Do: o.do, Precedence: p, By: by})
	rows := make([]api.MessageRow, 1)
	a, err := s.answerTo(ctx, ref, func(m gateway.Messages) { rows[0], _ = m.Row(id) })
	switch {
	case err != nil:
		return nil, err
	case !a.Known:
		return nil, Refusal{http.StatusNotFound, a.Text}
	case !a.Obeyed:
		return nil, Refusal{http.StatusConflict, a.Text}
	}
	if err := newQueues(s).expect(ctx, rows); err != nil {
		return nil, err
	}
	if err := (names{}).put(ctx, s, rows); err != nil {
		return nil, err
	}
	return MessageAnswer{a.Changed, a.Text, rows[0]}, nil
}

// answerTo waits for the answer to an order about messages, and then calls look.
func (s Source) answerTo(ctx context.Context, ref uint64, look func(gateway.Messages)) (a gateway.MessageAnswer, err error) {
	return a, Obeyed(ctx, func() (done bool, err error) {
		err = s.betweenTurns(ctx, func(_ time.Time, m gateway.Messages) {
			a, done = m.Answer(ref)
			if done {
				look(m)
			}
		})
		return done, err
	})
}

// ClassOrder is the body of POST /messages/hold and /messages/release: all messages of a precedence, also later ones.
type ClassOrder struct {
	Precedence string `json:"precedence"`

	do gateway.MessageDo
}

// String is the order in words, for the log.
func (o ClassOrder) String() string { return fmt.Sprintf("%s all %s", o.do, o.Precedence) }

func (o *ClassOrder) fromPath(r *http.Request) {
	o.do = gateway.MessageDo(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
}

// ClassAnswer is the result of an order about a precedence.
type ClassAnswer struct {
	Text  string           `json:"text"`
	Holds []api.HoldStatus `json:"holds"`
}

// orderClass gives the gateway an order about a precedence, and waits for its answer.
func (s Source) orderClass(ctx context.Context, o ClassOrder) (any, error) {
	p, ok := site.ParsePrecedence(o.Precedence)
	if !ok {
		return nil, Refusal{http.StatusBadRequest, "precedence must be one of " + strings.Join(site.Precedences, ", ")}
	}
	by, _ := ctx.Value(orderedByKey{}).(string)
	ref := rand.Uint64()
	s.Order(gateway.ClassOrder{Ref: ref, Precedence: p, Do: o.do, By: by})
	answer := ClassAnswer{Holds: []api.HoldStatus{}}
	a, err := s.answerTo(ctx, ref, func(m gateway.Messages) { answer.Holds = append(answer.Holds, m.Holds()...) })
	answer.Text = a.Text
	return answer, err
}
