package control

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/edge/audit"
	"aldis/internal/gateway/api"
	"aldis/internal/ground/when"
)

// Authority says who may give orders, besides root and the gateway's own user on its unix socket.
type Authority struct {
	// Group is the group whose members may; -1: there is none.
	Group int
	// Token is what an order over TCP must bring; "": TCP takes no orders.
	Token string
	// Way says in a sentence how an order can be given, for a caller that gave one in another way.
	Way string
}

// Giver is the caller that gave an order.
type Giver struct {
	UID, PID int
	Groups   []int
	From     string // the address of a caller over TCP; "": the order came over the unix socket
}

// String names the giver for the log.
func (g Giver) String() string {
	if g.From != "" {
		return "over HTTP from " + g.From
	}
	name := "unknown"
	if u, err := user.LookupId(strconv.Itoa(g.UID)); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("uid %d (%s), pid %d", g.UID, name, g.PID)
}

// giverKey is the key of the Giver in the context of a connection over the unix socket.
type giverKey struct{}

// orderedByKey is the key of the giver's name in the context of an order.
type orderedByKey struct{}

// who identifies the sender of a request, and says whether it may give orders.
func (a Authority) who(r *http.Request) (g Giver, err error) {
	g, local := r.Context().Value(giverKey{}).(Giver)
	switch {
	case !local:
		g.From = r.RemoteAddr
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok || a.Token == "":
			return g, errors.New("orders are not taken here: " + a.Way)
		case subtle.ConstantTimeCompare([]byte(token), []byte(a.Token)) != 1:
			return g, errors.New("this is not the token of http.token_file: " + a.Way)
		}
		g.From += ", with the token"
		return g, nil
	case g.UID == 0, g.UID == os.Geteuid(), a.Group >= 0 && slices.Contains(g.Groups, a.Group):
		return g, nil
	}
	return g, fmt.Errorf("%v may not give orders: %s", g, a.Way)
}

// sameOrigin refuses requests of a page of another origin, whatever they carry: browsers name the origin.
func sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if from, err := url.Parse(origin); origin != "" && (err != nil || from.Host != r.Host) {
		return fmt.Errorf("a page of %.100q may not give orders here", origin)
	}
	if where := r.Header.Get("Sec-Fetch-Site"); where != "" && where != "same-origin" && where != "none" {
		return errors.New("a page of another site may not give orders here")
	}
	return nil
}

// Refusal is the refusal of an order, with the status of the answer.
type Refusal struct {
	Code int
	Text string
}

// Error is the reason in a sentence for the caller.
func (r Refusal) Error() string { return r.Text }

// order answers POST requests that carry a T as JSON, from callers that may give orders. Each order is logged under its name with
// its giver. The answer of apply is returned as JSON; an error is a Refusal, or means that it is unknown whether the order was
// obeyed.
//
// A page in a browser on this machine cannot give an order: it has no token, and it may not send JSON to another origin.
func order[T any](s Source, name string, apply func(context.Context, T) (answer any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		by, err := s.Authority().who(r)
		if err == nil {
			err = sameOrigin(r)
		}
		if err != nil {
			s.refuse(w, name, by, err)
			return
		}
		if r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "an order is application/json", http.StatusUnsupportedMediaType)
			return
		}
		var what T
		if of, ok := any(&what).(interface{ fromPath(*http.Request) }); ok {
			of.fromPath(r)
		}
		most := int64(orderOctets)
		if of, ok := any(&what).(interface{ octets() int64 }); ok {
			most = of.octets()
		}
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
		d.DisallowUnknownFields()
		if err := d.Decode(&what); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.given(name, fmt.Sprintf("%+v", what), by)
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), orderedByKey{}, by.String()), patience)
		defer cancel()
		answer, err := apply(ctx, what)
		var no Refusal
		switch {
		case errors.As(err, &no):
			s.Log.Warn("an order was not carried out", "order", name, "error", no.Text)
			s.keep(audit.Entry{Kind: audit.OrderFailed, Name: name, What: no.Text, By: by.String()})
			http.Error(w, no.Text, no.Code)
		case err != nil:
			s.keep(audit.Entry{Kind: audit.OrderFailed, Name: name, What: "nobody knows whether it was obeyed: " + err.Error(), By: by.String()})
			http.Error(w, "the order was given; the gateway has not confirmed that it was carried out: "+err.Error(), http.StatusServiceUnavailable)
		default:
			s.settle(r.Context(), name)
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(answer)
		}
	}
}

// settling is how long an answer waits for the journal. A journal that cannot write must not hide that an order was obeyed.
const settling = 2 * time.Second

// settle waits until an order that was obeyed is durable, so that a ship that was ordered to be silent is still silent after a
// kill.
func (s Source) settle(ctx context.Context, name string) {
	if s.Durable == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	if err := s.Durable(ctx); err != nil {
		s.Log.Warn("an order is in force but not yet in the journal; a restart now would forget it", "order", name, "error", err)
	}
}

// orderOctets is the most octets of an order, unless its type says otherwise.
const orderOctets = 4096

// refuse answers a caller that may not give an order.
func (s Source) refuse(w http.ResponseWriter, name string, by Giver, why error) {
	s.Log.Warn("an order was refused", "order", name, "by", by.String())
	s.keep(audit.Entry{Kind: audit.OrderRefused, Name: name, What: why.Error(), By: by.String()})
	http.Error(w, why.Error(), http.StatusForbidden)
}

// given records that an order is about to be obeyed.
func (s Source) given(name, what string, by Giver) {
	s.Log.Info("an order was given", "order", name, "what", what, "by", by.String())
	s.keep(audit.Entry{Kind: audit.Order, Name: name, What: what, By: by.String()})
}

// keep enters e in the audit record.
func (s Source) keep(e audit.Entry) {
	if s.Audit != nil {
		s.Audit(e)
	}
}

// SilenceOrder is the body of POST /silence. The answer is the api.SilenceStatus afterwards.
type SilenceOrder struct {
	On       bool   `json:"on"`
	Until    End    `json:"until,omitzero"`
	Announce bool   `json:"announce,omitempty"`
	Link     string `json:"link,omitempty"` // the one bearer that becomes silent; "": all
}

// End is a future time, as a person writes it.
type End struct{ time.Time }

// UnmarshalJSON reads the forms that when.Ahead reads.
func (e *End) UnmarshalJSON(b []byte) (err error) {
	var text string
	if err = json.Unmarshal(b, &text); err == nil {
		e.Time, err = when.Ahead(text, time.Now())
	}
	return err
}

// String is the order in words, for the log.
func (o SilenceOrder) String() string {
	text := "off"
	switch {
	case o.On && o.Until.IsZero():
		text = fmt.Sprintf("on, announced: %v", o.Announce)
	case o.On:
		text = fmt.Sprintf("on until %s, announced: %v", o.Until.UTC().Format(time.RFC3339), o.Announce)
	}
	if o.Link != "" {
		text += ", on " + o.Link
	}
	return text
}

// SilenceOf is the silence of a bearer, or of the gateway; false: there is no bearer of this name.
func SilenceOf(s api.Status, link string) (api.SilenceStatus, bool) {
	if link == "" {
		return s.Silence, true
	}
	for _, b := range s.Bearers {
		if b.Name == link {
			return b.Silence, true
		}
	}
	return api.SilenceStatus{}, false
}

// silence gives the gateway the order, and waits until its status shows it.
func (s Source) silence(ctx context.Context, order SilenceOrder) (any, error) {
	now, err := s.Snapshot(ctx)
	switch {
	case err != nil:
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	case !known(now.Gateway, order.Link):
		return nil, Refusal{http.StatusNotFound, fmt.Sprintf("this gateway has no [[link]] of several with the name %q", order.Link)}
	case !order.On && now.Gateway.Silence.Fixed:
		return nil, Refusal{http.StatusConflict,
			"the configuration says node.silent = true, and no order ends that: take the key out and restart the gateway"}
	}
	s.Order(api.Silence{On: order.On, Until: order.Until.Time, Announce: order.Announce, Bearer: order.Link})
	until := "" // as the status has it: a silence may be on already, with another end
	if !order.Until.IsZero() {
		until = order.Until.UTC().Format(time.RFC3339)
	}
	var got api.SilenceStatus
	err = Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got, _ = SilenceOf(now.Gateway, order.Link)
		return got.On == order.On && (!got.On || got.Fixed || got.Until == until), err
	})
	return got, err
}

func known(s api.Status, link string) bool {
	_, ok := SilenceOf(s, link)
	return ok
}

// Obeyed calls done repeatedly until it says that an order was obeyed: the loop handles orders and requests in no fixed order.
// The requests of done must end with ctx.
func Obeyed(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
