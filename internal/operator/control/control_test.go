package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/norm"
	"aldis/internal/edge/radio"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
)

func sample() api.Status {
	return api.Status{
		ID: 2, Name: "ship", Profile: "iridium-directip", End: "terminal", IncarnationNumber: 1_700_000_000,
		NORM: api.NormStatus{Up: true, Failures: 3}, Items: 7,
		Peers: []api.PeerStatus{
			{ID: 1, Name: "hq", Address: "10.77.0.1:7142", Link: "up", LastHeard: "2026-11-20T12:00:00Z", Waiting: 4, UnderWay: 5, WaitingOctets: 1234,
				ItemsHeld: 6, FarItems: 8, PeerCounts: api.PeerCounts{Accepted: 100, Delivered: 90, DatagramsSent: 42, Pending: 1}},
			{ID: 3, Name: "buoy", Link: "unknown"},
		},
		Ledger:   []api.LedgerRow{{Direction: "sent", Peer: "hq", Kind: "payload", Octets: 20_000}, {Direction: "received", Peer: "hq", Kind: "ack", Octets: 31}},
		Adapters: []api.AdapterRow{{Adapter: "tak", Direction: "sent", Kind: "payload", Octets: 700}, {Adapter: "unread", Direction: "received", Kind: "payload", Octets: 5}},
		Dropped:  map[string]uint64{"not_authentic": 9},
		Filters: []filter.Status{{Label: "charts", Line: 30, Action: "local", Counts: filter.Counts{Fits: 3}}, {Line: 35, Action: "allow", Rate: "1/s", Counts: filter.Counts{Fits: 9, Waited: 2, Dropped: 1}},
			{Label: "charts", Line: 40, Action: "deny"}, {Label: "line 35", Line: 45, Action: "deny"}},
	}
}

func sampleLAN() jxtabridge.Status {
	return jxtabridge.Status{Gateway: "uuid-03", Adverts: 9, Questions: 1, Groups: []string{"jxta-NetGroup"}, Streams: []jxtabridge.StreamStatus{{Kind: "bidi"}}, Far: map[uint16]jxtabridge.SiteStatus{1: {Peers: 1}},
		Peers: []jxtabridge.PeerStatus{{Peer: "cbid-03", Name: "bridge console", Generation: "signed", Waiting: 2}, {Peer: "uuid-03", Generation: "2.2", Waiting: 1}}}
}

// server answers from status, err and trouble as they are at the request.
type server struct {
	status  api.Status
	err     error
	trouble string
	ordered []api.Event
	durable func(context.Context) error // nil: the journal stores everything at once
	log     bytes.Buffer                // read it once the answer has come
	*httptest.Server
}

func start(t *testing.T) *server {
	s := &server{status: sample()}
	s.Server = httptest.NewServer(New(Source{
		Authority: func() Authority { return Authority{Group: -1, Token: token, Way: "go to the bridge"} }, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Names: func() []string { return []string{"ship.example"} },
		Version: "v1", Started: time.Unix(1_700_000_000, 0).UTC(),
		Snapshot: func(context.Context) (Snapshot, error) {
			if s.err != nil {
				return Snapshot{}, s.err
			}
			return Snapshot{Gateway: s.status, LAN: sampleLAN(), Metrics: jxtabridge.Metrics(sampleLAN(), jxtabridge.Stats{Received: 21, BadMessages: 2, Refused: map[string]uint64{"no_room": 4}, Queries: 5,
				LateAnswers: 6, Carried: 8, Streams: 31, StreamsEnded: map[string]uint64{"closed_here": 30}, Stream: jxtabridge.Traffic{OctetsOut: 32, OctetsIn: 33,
					Acks: 34, Repeats: 35}, MulticastCopies: 36, Calls: 37})}, nil
		},
		NORM: func() norm.Stats {
			return norm.Stats{Starts: 2, StrangePacket: 1, Cell: &norm.Cell{Missing: []string{"own network namespace"}}}
		},
		Durable: func(ctx context.Context) error {
			if s.durable == nil {
				return nil
			}
			return s.durable(ctx)
		},
		Trouble: func() string { return s.trouble },
		Order: func(ev api.Event) {
			s.ordered = append(s.ordered, ev)
			switch ev := ev.(type) {
			case api.Silence:
				s.status.Silence = api.SilenceStatus{On: ev.On}
				if !ev.Until.IsZero() {
					s.status.Silence.Until = ev.Until.UTC().Format(time.RFC3339)
				}
			case api.Forget:
				s.status.Peers[1].Forgotten++
			}
		},
		Radio: func() radio.Stats { return radio.Stats{SentDatagrams: 11, SentOctets: 2200, DroppedDatagrams: 1} },
	}, prometheus.NewRegistry()))
	t.Cleanup(s.Close)
	return s
}

func (s *server) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestStatus(t *testing.T) {
	s := start(t)
	code, body := s.get(t, "/status")
	var got struct {
		Report
		LAN jxtabridge.Status `json:"lan"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	check.Same(t, "got.Status", got.Status, s.status)
	check.Equal(t, "got.Version", got.Version, "v1")
	check.Same(t, "got.LAN", got.LAN, sampleLAN())
	check.Equal(t, "got.Radio.SentOctets", got.Radio.SentOctets, 2200)
	check.Equal(t, "got.Trouble", got.Trouble, "")
	check.Same(t, "got.Cell", got.Cell, &norm.Cell{Missing: []string{"own network namespace"}})
	s.err = errors.New("the loop does not answer")
	if code, body := s.get(t, "/status"); code != 503 || !strings.Contains(body, "does not answer") {
		t.Errorf("%d: %s", code, body)
	}
}

func TestHealthz(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		trouble string
		err     error
		code    int
		body    string
	}{
		{"", nil, 200, "ok\n"},
		{"no space left on device", nil, 503, "no space left on device\n"},
		{"", errors.New("the loop does not answer"), 503, "the loop does not answer\n"},
		{"no space left on device", errors.New("the loop does not answer"), 503, "no space left on device\n"},
	} {
		s.trouble, s.err = tt.trouble, tt.err
		if code, body := s.get(t, "/healthz"); code != tt.code || body != tt.body {
			t.Errorf("%q, %v: %d %q, want %d %q", tt.trouble, tt.err, code, body, tt.code, tt.body)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := start(t)
	_, body := s.get(t, "/metrics")
	for _, want := range []string{
		`aldis_info{end="terminal",id="2",name="ship",profile="iridium-directip",version="v1"} 1`,
		`aldis_link_bytes_total{direction="sent",kind="payload",peer="hq"} 20000`,
		`aldis_link_bytes_total{direction="received",kind="ack",peer="hq"} 31`,
		`aldis_adapter_bytes_total{adapter="tak",direction="sent",kind="payload"} 700`,
		`aldis_link_datagrams_total{direction="sent",peer="hq"} 42`,
		`aldis_link_dropped_total{reason="not_authentic"} 9`,
		`aldis_link_up{peer="hq"} 1`,
		`aldis_link_up{peer="buoy"} 0`,
		`aldis_link_last_heard_timestamp_seconds{peer="hq"} 1.795176e+09`,
		`aldis_messages_total{event="accepted",peer="hq"} 100`,
		`aldis_messages_total{event="delivered",peer="hq"} 90`,
		`aldis_custody_messages{peer="hq",state="waiting"} 4`,
		`aldis_custody_messages{peer="hq",state="pending"} 1`,
		`aldis_custody_bytes{peer="hq"} 1234`,
		`aldis_replica_items 7`,
		`aldis_replica_peer_items{peer="hq",state="far"} 8`,
		`aldis_norm_up 1`,
		`aldis_filter_total{action="local",event="fits",rule="charts"} 3`,
		`aldis_filter_total{action="allow",event="waited",rule="line 35"} 2`,
		`aldis_filter_total{action="deny",event="fits",rule="charts, line 40"} 0`,
		`aldis_filter_total{action="deny",event="fits",rule="line 35, line 45"} 0`,
		`aldis_filter_total{action="allow",event="dropped",rule="line 35"} 1`,
		`aldis_norm_starts_total 2`,
		`aldis_norm_cell 0`,
		`aldis_norm_strange_packets_total 1`,
		`aldis_jxta_peers{generation="signed"} 1`,
		`aldis_jxta_peers{generation="2.2"} 1`,
		`aldis_jxta_peers{generation="unsigned"} 0`,
		`aldis_jxta_waiting_messages 3`,
		`aldis_jxta_adverts 9`,
		`aldis_jxta_open_questions 1`,
		`aldis_jxta_messages_total{direction="received"} 21`,
		`aldis_jxta_refused_total{reason="unreadable"} 2`,
		`aldis_jxta_refused_total{reason="no_room"} 4`,
		`aldis_jxta_queries_total{kind="discovery"} 5`,
		`aldis_jxta_answers_total{when="late"} 6`,
		`aldis_jxta_payloads_total{fate="carried"} 8`,
		`aldis_jxta_streams{kind="bidi"} 1`,
		`aldis_jxta_streams{kind="socket"} 0`,
		`aldis_jxta_streams_opened_total 31`,
		`aldis_jxta_streams_ended_total{reason="closed_here"} 30`,
		`aldis_jxta_stream_bytes_total{direction="out"} 32`,
		`aldis_jxta_stream_bytes_total{direction="in"} 33`,
		`aldis_jxta_stream_local_total{event="acknowledgement"} 34`,
		`aldis_jxta_stream_local_total{event="repeat"} 35`,
		`aldis_jxta_multicast_total{event="copy"} 36`,
		`aldis_jxta_calls_total 37`,
		`aldis_norm_failures_total 3`,
		`aldis_incarnation 1.7e+09`,
		`aldis_loop_answers 1`,
		`aldis_radio_bytes_total{direction="sent"} 2200`,
		`aldis_radio_dropped_total{direction="received"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, `last_heard_timestamp_seconds{peer="buoy"}`) {
		t.Error("a time for a peer that was never heard")
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "aldis_") {
			t.Errorf("a metric of another name: %s", line)
		}
	}
	s.err = errors.New("the loop does not answer")
	code, body := s.get(t, "/metrics")
	check.Equal(t, "code", code, 200)
	check.Contains(t, "body", body, "aldis_loop_answers 0\n")
	check.Lacks(t, "body", body, "aldis_link_bytes_total")
	check.Contains(t, "body", body, `aldis_radio_bytes_total{direction="sent"} 2200`)
}

func TestOtherPaths(t *testing.T) {
	s := start(t)
	if code, body := s.get(t, "/"); code != 200 || !strings.Contains(body, "/status") {
		t.Errorf("/: %d %s", code, body)
	}
	if code, _ := s.get(t, "/debug/pprof"); code != 404 {
		t.Errorf("/debug/pprof: %d", code)
	}
	r, err := s.Client().Post(s.URL+"/status", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}

func TestServeEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	d := New(Source{Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil }}, prometheus.NewRegistry())
	go func() { ended <- d.Serve(ctx, ln) }()
	r, err := http.Get("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Orders are accepted as JSON from callers that may give them, and the answer is the result.
func TestSilenceOrder(t *testing.T) {
	s := start(t)
	tests := []struct {
		name, kind, body string
		code             int
	}{
		{"on", "application/json", `{"on":true,"until":"2027-01-01T00:00:00Z"}`, 200},
		{"a form, as a page in a browser could send", "application/x-www-form-urlencoded", `{"on":true}`, 415},
		{"no JSON", "application/json", "on", 400},
		{"unknown member", "application/json", `{"on":true,"for":"ever"}`, 400},
	}
	for _, tt := range tests {
		code, _ := s.post(t, tt.kind, tt.body, "Bearer "+token, "")
		if code != tt.code {
			t.Errorf("%s: %d, want %d", tt.name, code, tt.code)
		}
	}
	if want := []api.Event{api.Silence{On: true, Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}; !reflect.DeepEqual(s.ordered, want) {
		t.Errorf("orders %v, want %v", s.ordered, want)
	}
}

func TestForgetOrder(t *testing.T) {
	s := start(t)
	s.status.Peers[0].Forgotten = gateway.ForgetMost
	tests := []struct {
		name, kind, body string
		code             int
	}{
		{"a peer", "application/json", `{"peer":3,"any_start":true}`, 200},
		{"no peer", "application/json", `{"peer":4}`, 404},
		{"too often", "application/json", `{"peer":1}`, 409},
		{"a form, as a page in a browser could send", "application/x-www-form-urlencoded", `{"peer":3}`, 415},
		{"unknown member", "application/json", `{"peer":3,"ever":true}`, 400},
	}
	for _, tt := range tests {
		code, _ := s.postTo(t, "/peers/forget", tt.kind, tt.body, "Bearer "+token, "")
		check.Equal(t, tt.name, code, tt.code)
	}
	check.Same(t, "orders", s.ordered, []api.Event{api.Forget{Peer: 3, AnyStart: true}})
}
