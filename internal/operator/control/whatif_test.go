package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/browser"
	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/control/glance"
)

// printed is the part of the output of gateway rehearse --json that is read here.
const printed = `{"verdict":"GO","line":"GO. All 3 messages arrive within 60 s on hf-2400; the slowest takes 36 s.","messages":3,"on_time":{"typical":3,"worst":3},
"never_arrived":{"worst":0},"median_s":{"worst":2.5},"max_s":{"worst":36},"cost":{"octets":{"worst":18676},"sbd_credits":{"worst":369},"air_minutes_up":{"worst":0.5},
"air_minutes_down":{"worst":0.25},"call_minutes_on_demand":{"worst":3}},"notes":["pipes are made up"],"ways_out":["send <b>less</b>"]}`

// ask sends a request with the token, and returns the answer.
func (b *bridgeOf) ask(t *testing.T, method, path, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (b *bridgeOf) whatIf(t *testing.T) (w WhatIf) {
	t.Helper()
	_, text := b.ask(t, "GET", "/whatif", "", "")
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// There is one rehearsal at a time, started only by an order, and each of its possible ends is reported.
func TestWhatIfOrders(t *testing.T) {
	b := newBridge(t, 2, 0)
	r := b.desk.what.src.Rehearsing
	goOn := make(chan error)
	var got []byte
	r.Play = func(ctx context.Context, link string, deadline time.Duration, trace []byte) ([]byte, error) {
		got = append([]byte(link+" "+deadline.String()+" "), trace...)
		select {
		case err := <-goOn:
			return []byte(printed), err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	const order = `{"link":"hf-2400","deadline_s":60,"trace":"{\"aldis_trace\":1}\n"}`
	check.Equal(t, "before any", b.whatIf(t).State, "none")
	for _, bad := range []struct {
		body, token, says string
		code              int
	}{
		{order, "", "orders are not taken here", http.StatusForbidden},
		{order, "wrong", "not the token", http.StatusForbidden},
		{`{"link":"../../etc/passwd","deadline_s":60,"minutes":5}`, pageToken, "there is no link", http.StatusBadRequest},
		{`{"link":"hf-2400","deadline_s":0,"minutes":5}`, pageToken, "the deadline", http.StatusBadRequest},
		{`{"link":"hf-2400","deadline_s":60}`, pageToken, "say a trace", http.StatusBadRequest},
		{`{"link":"hf-2400","deadline_s":60,"trace":"` + strings.Repeat("x", whatIfTrace+1) + `"}`, pageToken, "longer than 1 MiB", http.StatusRequestEntityTooLarge},
		{`{"link":"hf-2400","deadline_s":60,"trace":"` + strings.Repeat("x", 3*whatIfTrace) + `"}`, pageToken, "too large", http.StatusBadRequest},
		{`{"link":"hf-2400","deadline_s":60,"minutes":5}`, pageToken, "keeps no messages", http.StatusNotImplemented},
	} {
		code, text := b.ask(t, "POST", "/whatif", bad.body, bad.token)
		check.Equal(t, "the code of "+bad.says, code, bad.code)
		check.Contains(t, "the answer", text, bad.says)
	}
	code, _ := b.ask(t, "POST", "/whatif", order, pageToken)
	check.Equal(t, "an order", code, 200)
	code, text := b.ask(t, "POST", "/whatif", order, pageToken)
	check.Equal(t, "a second one: "+text, code, http.StatusConflict)
	check.Equal(t, "the state", b.whatIf(t).State, "playing")
	goOn <- nil
	check.Until(t, time.Minute, "it is done", func() bool { return b.whatIf(t).State == "done" })
	w := b.whatIf(t)
	check.Equal(t, "what was played", string(got), "hf-2400 1m0s {\"aldis_trace\":1}\n")
	check.Equal(t, "octets", w.Then.Octets, int64(18676))
	check.Equal(t, "minutes", *w.Then.AirMinutes, 0.75)
	check.Equal(t, "slowest", *w.Then.SlowS, 36.0)
	check.Equal(t, "credits", *w.Then.Credits, 369.0)

	b.ask(t, "POST", "/whatif", order, pageToken)
	goOn <- errors.New("the trace is <b>torn</b>")
	check.Until(t, time.Minute, "it has failed", func() bool { return b.whatIf(t).State == "failed" })
	check.Equal(t, "why", b.whatIf(t).Error, "the trace is <b>torn</b>")

	b.ask(t, "POST", "/whatif", order, pageToken)
	b.ask(t, "POST", "/whatif", `{"link":"","deadline_s":1,"stop":true}`, pageToken)
	check.Until(t, time.Minute, "it was stopped", func() bool { return b.whatIf(t).Error == "it was stopped" })
}

// Traffic becomes a trace that the reader of traces accepts, with all messages in their order, and with its figures.
func TestWhatIfTraffic(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	row := func(from string, ago, took time.Duration, octets int, states ...string) api.MessageRow {
		r := api.MessageRow{From: from, Accepted: now.Add(-ago), Octets: octets}
		for _, s := range states {
			r.Recipients = append(r.Recipients, api.RecipientRow{State: s, Since: r.Accepted.Add(took)})
		}
		return r
	}
	rows := []api.MessageRow{row("a", 50*time.Minute, 2*time.Second, 200, "delivered"), row("b\"", 40*time.Minute, 8*time.Second, 300, "delivered", "delivered"),
		row("a", time.Minute, 0, 250, "waiting")}
	for _, terminal := range []bool{true, false} {
		f, err := trace.ReadFile(strings.NewReader(string(traceOf(rows, now.Add(-time.Hour), terminal))))
		if err != nil {
			t.Fatal(err)
		}
		totals := trace.TotalsOf{Events: 5, MessagesIn: 3, In: 750}
		if terminal {
			totals = trace.TotalsOf{Events: 5, MessagesOut: 3, Out: 750}
		}
		check.Equal(t, "totals", f.Totals, totals)
		p, err := profile.Load("iridium-dialup", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := replay.Run(t.Context(), f, replay.Options{Profile: p, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		check.Equal(t, "messages that a play expects", res.Messages.Expected, 3)
		check.Equal(t, "messages that arrive in it", res.Messages.Delivered, 3)
		check.Equal(t, "the last message", f.Lines[len(f.Lines)-1].T, 59*60.0+whatIfLeadS)
	}
	f := figuresOf(rows)
	check.Equal(t, "messages", f.Messages, 4)
	check.Equal(t, "arrived", f.Arrived, 3)
	check.Equal(t, "median", *f.MedianS, 8.0)
	check.Equal(t, "slowest", *f.SlowS, 8.0)
}

// Traffic since a time is counted by minutes, and from the start at the earliest.
func TestSince(t *testing.T) {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	h := glance.NewHistory(began)
	say := func(minute int, sent, received uint64) {
		h.Note(began.Add(time.Duration(minute)*time.Minute), api.Status{Ledger: []api.LedgerRow{
			{Direction: "sent", Peer: "hq", Kind: "payload", Octets: sent}, {Direction: "received", Peer: "hq", Kind: "ack", Octets: received}}})
	}
	say(1, 100, 10)
	say(30, 150, 30)
	say(59, 400, 30)
	check.Equal(t, "all", h.Since(began.Add(-time.Hour)), glance.Spent{From: began, Sent: 400, Received: 30})
	check.Equal(t, "half", h.Since(began.Add(20*time.Minute)), glance.Spent{From: began.Add(20 * time.Minute), Sent: 300, Received: 20})
}

// TestWhatIfOnThePage: the view works with the keyboard, asks for the token, and shows the result.
func TestWhatIfOnThePage(t *testing.T) {
	g := newBridge(t, 2, 0)
	g.desk.what.src.Rehearsing.Play = func(context.Context, string, time.Duration, []byte) ([]byte, error) { return []byte(printed), nil }
	g.desk.what.mu.Lock()
	g.desk.what.now = WhatIf{State: "playing", Link: "hf-2400", Of: "9 messages", Began: time.Now()}
	g.desk.what.mu.Unlock()
	b := browser.Start(t)
	b.Open(g.URL+"/#whatif", 1280, "screen", "light")
	b.Until("document.querySelector('[data-do=stop]')!==null")
	view(t, b, "whatif-playing")
	median := 1.5
	g.desk.what.mu.Lock()
	g.desk.what.now.Today = &Figures{Messages: 9, Arrived: 8, MedianS: &median, SlowS: &median, Octets: 12998}
	g.desk.what.mu.Unlock()
	g.desk.what.end([]byte(printed), nil)
	b.Until("document.querySelectorAll('table.beside tbody tr').length===8")
	s := view(t, b, "whatif-done")
	for _, want := range []string{"GO. All 3 messages arrive", "19 kB", "13 kB", "8", "today, here", "on hf-2400", "send <b>less</b>", "36 s"} {
		check.Contains(t, "the view", s.Text, want)
	}
	for _, scheme := range []string{"dark", "light"} {
		for _, width := range []int{375, 768} {
			b.Open(g.URL+"/?"+scheme+time.Duration(width).String()+"#whatif", width, "screen", scheme)
			b.Until("document.querySelectorAll('table.beside tbody tr').length===8")
			view(t, b, "whatif-done-"+scheme+"-"+time.Duration(width).String())
		}
	}
	// An order: the last hour, which this gateway cannot give; then it says so.
	b.Ask("(()=>{document.querySelector('form select[name=of]').focus();return 1})()", new(int))
	for range 3 {
		b.Press("Tab")
	}
	b.Until("document.activeElement.textContent==='Rehearse'")
	b.Press("Enter")
	b.Until("document.querySelector('#dialog').open")
	b.Type(pageToken)
	b.Press("Enter")
	b.Until("document.querySelector('#dialog').innerText.includes('keeps no messages')")
}
