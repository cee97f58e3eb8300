package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// asked is a gateway in virtual time, whose messages a test can query.
type asked struct {
	server
	mu   sync.Mutex // held in place of the loop
	w    *sim.World
	ship *sim.Node
}

// ask makes a ship with an HQ that answers and another ship that was never heard, and lets a minute pass.
func ask(t testing.TB) *asked {
	p, err := profile.Load("iridium-directip", nil)
	check.NoError(t, err)
	wire, err := profile.Load("wire", nil)
	check.NoError(t, err)
	w, err := sim.New(sim.Config{Nodes: 3, Profile: p, Wire: wire, Seed: 7, Down: time.Second, Configure: func(_ *sim.Node, c *gateway.Config) {
		c.Messages = []mark.Rule{{Element: "urgent", Precedence: site.Immediate}, {Element: "track", LastValue: "track"}}
	}})
	check.NoError(t, err)
	a := &asked{w: w, ship: w.Nodes[1]}
	w.Kill(w.Nodes[2], 24*time.Hour)
	w.Run(time.Minute)
	a.Server = httptest.NewServer(New(Source{
		Authority: func() Authority { return Authority{Group: -1, Token: token, Way: "go to the bridge"} }, Log: slog.New(slog.NewTextHandler(&a.log, nil)),
		Names: func() []string { return nil }, Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Messages: func(_ context.Context, f func(time.Time, gateway.Messages)) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.err != nil {
				return a.err
			}
			f(w.Now, a.ship.GW.Messages())
			return nil
		},
		Known: func(_ context.Context, ids map[string]bool) (map[string]string, error) {
			names := map[string]string{}
			for _, id := range []string{air.Peer(2), air.Pipe} {
				if ids[id] {
					names[id] = map[string]string{air.Peer(2): "Ops \x1b[31m<script>", air.Pipe: "Tracks"}[id]
				}
			}
			return names, nil
		},
		Order: func(ev api.Event) {
			a.mu.Lock()
			defer a.mu.Unlock()
			w.Give(a.ship, ev)
		},
	}, prometheus.NewRegistry()))
	t.Cleanup(a.Close)
	return a
}

// send makes the ship send n messages.
func (a *asked) send(n int, name string, to ...uint16) {
	for i := range n {
		m := air.Track(2, air.Pipe, i, 200)
		m.Parts[0].Name = name
		a.ship.Site.Send(a.w, m, to...)
	}
	a.w.Run(100 * time.Millisecond)
}

func (a *asked) list(t *testing.T, query string) MessageList {
	t.Helper()
	code, body := a.get(t, "/messages"+query)
	check.Equal(t, "code of "+query, code, 200)
	var list MessageList
	check.NoError(t, json.Unmarshal([]byte(body), &list))
	return list
}

func (a *asked) order(t *testing.T, id, what, body string) (int, string) {
	t.Helper()
	return a.postTo(t, "/messages/"+id+"/"+what, "application/json", body, "Bearer "+token, "")
}

// Messages are found by any known detail, in pages, and the waiting ones in their order.
func TestMessages(t *testing.T) {
	a := ask(t)
	a.send(30, "body", 1)
	a.send(2, "urgent", 1)
	a.send(1, "track", 1, 3)
	all := a.list(t, "")
	check.Equal(t, "messages", len(all.Messages), 33)
	check.True(t, "there are no more", !all.More)
	check.True(t, "the newest is first", slices.IsSortedFunc(all.Messages, func(x, y api.MessageRow) int { return y.Accepted.Compare(x.Accepted) }))
	newest := all.Messages[0]
	check.Equal(t, "its state", newest.State, "waiting")
	check.Equal(t, "its recipients", len(newest.Recipients), 2)
	check.Equal(t, "why it is not at the one that was never heard", newest.Recipients[1].Detail, "the site was not heard in this run")
	check.True(t, "and when nobody can say", newest.Recipients[1].Expected.IsZero() && newest.Expected.IsZero())
	check.True(t, "but at HQ it should be there later", newest.Recipients[0].Expected.After(a.w.Now), newest.Recipients[0].Expected)
	check.True(t, "it is about a track", strings.HasPrefix(newest.Label, "2;0;"), newest.Label)

	waiting := a.list(t, "?state=waiting&to=hq")
	check.True(t, "some wait", len(waiting.Messages) > 5, len(waiting.Messages))
	check.Equal(t, "who is first", waiting.Messages[0].Precedence == "immediate" || !slices.ContainsFunc(waiting.Messages,
		func(m api.MessageRow) bool { return m.Precedence == "immediate" }), true)
	before := -1
	for _, m := range waiting.Messages {
		check.True(t, "the order of those that wait", m.Behind.Octets > before, m.Behind, before)
		before = m.Behind.Octets
	}
	for query, want := range map[string]int{
		"?precedence=immediate": 2, "?from=ops": 33, "?from=nobody": 0, "?to=ship2": 1, "?label=2%3b0": 1, "?limit=7": 7, "?from=" + air.Peer(2)[30:]: 33,
		"?after=2099-01-01T00:00:00Z": 0, "?after=010000ZJAN99": 0, "?before=2099-01-01+00:00": 33, "?before=2099-01-01T00:00:00Z": 33, "?state=ended": 0, "?to=ship2&state=waiting": 1,
	} {
		check.Equal(check.In(t, query), "messages", len(a.list(t, query).Messages), want)
	}
	check.True(t, "more than seven", a.list(t, "?limit=7").More)

	a.w.Run(3 * time.Minute)
	ended := a.list(t, "?state=ended")
	check.Equal(t, "messages that have ended", len(ended.Messages), 32)
	check.Equal(t, "how", ended.Messages[0].Recipients[0].State, "delivered")
	code, body := a.get(t, "/messages/"+strings.ToLower(ended.Messages[0].ID))
	check.Equal(t, "code", code, 200)
	check.Contains(t, "its life", body, `"what": "on the air"`)
	check.Contains(t, "its life", body, `"what": "delivered"`)
	check.Contains(t, "its sender, for JSON in a page", body, `Ops \u001b[31m\u003cscript\u003e`)
}

// An order changes waiting messages, is logged with its giver, and says in words why nothing changed.
func TestMessageOrders(t *testing.T) {
	a := ask(t)
	a.send(30, "body", 1)
	waiting := a.list(t, "?state=waiting").Messages
	id := waiting[len(waiting)-1].ID
	code, answer := a.order(t, id, "hold", "{}")
	check.Equal(t, "code", code, 200)
	check.Contains(t, "answer", answer, `"changed":true`)
	check.Contains(t, "answer", answer, `"held":true`)
	code, answer = a.order(t, id, "hold", "{}")
	check.Equal(t, "code", code, 200)
	check.Contains(t, "answer", answer, `"changed":false`)
	check.Contains(t, "answer", answer, "it was held already")
	code, answer = a.order(t, id, "precedence", `{"precedence":"flash"}`)
	check.Equal(t, "code", code, 200)
	check.Contains(t, "answer", answer, `"precedence":"flash"`)
	code, _ = a.order(t, id, "release", "{}")
	check.Equal(t, "code", code, 200)
	check.Equal(t, "the first that waits", a.list(t, "?state=waiting").Messages[0].ID, id)
	code, answer = a.order(t, id, "cancel", "{}")
	check.Equal(t, "code", code, 200)
	check.Contains(t, "answer", answer, `"state":"cancelled"`)
	code, answer = a.order(t, id, "release", "{}")
	check.Equal(t, "code", code, http.StatusConflict)
	check.Contains(t, "answer", answer, "has ended, and nothing changes that: hq: cancelled at")
	_, life := a.get(t, "/messages/"+id)
	check.Equal(t, "orders in its life", strings.Count(life, `"what": "ordered"`), 4)
	check.Contains(t, "its life", life, "with the token")
	log := a.log.String()
	check.Contains(t, "log", log, `order=message what="hold \"`+id+`\"" by="over HTTP from 127.0.0.1:`)
	under := a.list(t, "?state=under_way").Messages
	code, answer = a.order(t, under[0].ID, "cancel", "{}")
	check.Equal(t, "code", code, http.StatusConflict)
	check.Contains(t, "answer", answer, "to hq it is under way: it goes through")
}

// Whatever the requests and orders, the answer is bounded and in words, and no order is obeyed from a caller that may not give
// it.
func TestHostileMessages(t *testing.T) {
	a := ask(t)
	a.send(10, "body", 1)
	waiting := a.list(t, "?state=waiting").Messages
	id := waiting[len(waiting)-1].ID
	for path, want := range map[string]int{
		"/messages?limit=1000000": 400, "/messages?limit=-1": 400, "/messages?limit=0": 400, "/messages?limit=1e3": 400, "/messages?limit=99999999999999999999": 400,
		"/messages?state=gone": 400, "/messages?precedence=loud": 400, "/messages?after=soon": 400, "/messages?to=nowhere": 400, "/messages?colour=red": 400, "/messages?label=a;b": 400,
		"/messages?from=" + strings.Repeat("x", 10000): 200, "/messages?limit=1000": 200, "/messages/": 404, "/messages/%2e%2e": 400,
		"/messages/0000000-1": 404, "/messages/" + strings.Repeat("9", 5000): 400, "/messages/ZZZZZZZ-1": 400, "/messages/" + id[:8] + "99999999999": 400,
		"/messages/" + id[:8] + "-1": 400, "/messages/" + id[:8] + "+1": 400, "/messages/%00": 400, "/messages/" + id + "/hold": 405, "/messages/" + id + "/life": 404,
	} {
		code, body := a.get(t, path)
		in := check.In(t, path[:min(len(path), 60)])
		check.Equal(in, "code", code, want)
		check.True(in, "the answer is short", want == 200 || len(body) < 6000, len(body))
	}
	for _, tt := range []struct {
		path, kind, body, authorization string
		code                            int
	}{
		{"/messages/" + id + "/hold", "application/json", "{}", "", 403},
		{"/messages/" + id + "/cancel", "application/json", "{}", "Bearer x", 403},
		{"/messages/" + id + "/hold", "text/plain", "{}", "Bearer " + token, 415},
		{"/messages/" + id + "/hold", "application/json", `{"precedence":"flash"}`, "Bearer " + token, 400},
		{"/messages/" + id + "/hold", "application/json", `{"id":"1"}`, "Bearer " + token, 400},
		{"/messages/" + id + "/precedence", "application/json", `{"precedence":"loud"}`, "Bearer " + token, 400},
		{"/messages/" + id + "/precedence", "application/json", `{}`, "Bearer " + token, 400},
		{"/messages/" + id + "/precedence", "application/json", `{"precedence":"` + strings.Repeat("x", 1<<20) + `"}`, "Bearer " + token, 400},
		{"/messages/0000000-1/hold", "application/json", "{}", "Bearer " + token, 404},
		{"/messages/x/hold", "application/json", "{}", "Bearer " + token, 400},
		{"/messages/" + id + "/destroy", "application/json", "{}", "Bearer " + token, 404},
		{"/messages", "application/json", "{}", "Bearer " + token, 405},
	} {
		code, _ := a.postTo(t, tt.path, tt.kind, tt.body, tt.authorization, "")
		check.Equal(check.In(t, tt.path+" "+tt.body[:min(len(tt.body), 40)]), "code", code, tt.code)
	}
	_, life := a.get(t, "/messages/"+id)
	check.True(t, "nothing was obeyed", !strings.Contains(life, "ordered"), life)
	a.err = fmt.Errorf("the loop does not answer")
	code, _ := a.get(t, "/messages")
	check.Equal(t, "code without a loop", code, 503)
	code, _ = a.get(t, "/messages/"+id)
	check.Equal(t, "code without a loop", code, 503)
	var raw bytes.Buffer
	raw.WriteString(a.log.String())
	check.True(t, "the log holds no huge line", raw.Len() < 20000, raw.Len())
}
