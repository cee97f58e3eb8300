package control

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

// TestLinkMetrics: an ordered silence looks different from a link that is down, and waiting messages are counted by precedence.
func TestLinkMetrics(t *testing.T) {
	s := start(t)
	s.status.Silence = api.SilenceStatus{On: true, Until: "2026-11-20T13:00:00Z"}
	s.status.Link = api.LinkStatus{SendBps: 2400, ReceiveBps: 4800}
	hq := &s.status.Peers[0]
	hq.Link, hq.LinkSince = "listening", time.Unix(1_795_176_000, 0)
	hq.Queue = []api.QueueRow{{Precedence: "flash", Messages: 2, Octets: 300, Oldest: time.Unix(1_795_176_100, 0)}}
	hq.Delays = api.Delays{Count: 4, SumS: 12.5}
	hq.Delays.Counts[0], hq.Delays.Counts[3] = 1, 2
	hq.Late.Messages = 3
	hq.Measured = api.LinkMeasured{RateBps: 1200, PaceBps: 1280, Differs: []string{api.DiffersRate}}
	_, body := s.get(t, "/metrics")
	for _, want := range []string{
		`aldis_silence 1`,
		`aldis_silence_end_timestamp_seconds 1.7951796e+09`,
		`aldis_link_up{peer="hq"} 0`,
		`aldis_link_state{peer="hq",state="listening"} 1`,
		`aldis_link_state{peer="hq",state="silent"} 0`,
		`aldis_link_state{peer="buoy",state="unknown"} 1`,
		`aldis_link_state_since_timestamp_seconds{peer="hq"} 1.795176e+09`,
		`aldis_link_rate_bytes_per_second{direction="sent"} 300`,
		`aldis_link_rate_bytes_per_second{direction="received"} 600`,
		`aldis_queue_late_messages{peer="hq"} 3`,
		`aldis_link_differs{peer="hq",what="rate"} 1`,
		`aldis_link_differs{peer="hq",what="loss"} 0`,
		`aldis_link_pace_bytes_per_second{peer="hq"} 160`,
		`aldis_queue_messages{peer="hq",precedence="flash"} 2`,
		`aldis_queue_bytes{peer="hq",precedence="flash"} 300`,
		`aldis_queue_oldest_timestamp_seconds{peer="hq",precedence="flash"} 1.7951761e+09`,
		`aldis_delivery_seconds_bucket{peer="hq",le="0.5"} 1`,
		`aldis_delivery_seconds_bucket{peer="hq",le="5"} 3`,
		`aldis_delivery_seconds_bucket{peer="hq",le="14400"} 3`,
		`aldis_delivery_seconds_bucket{peer="hq",le="+Inf"} 4`,
		`aldis_delivery_seconds_sum{peer="hq"} 12.5`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	check.Lacks(t, "body", body, `link_state_since_timestamp_seconds{peer="buoy"}`)
	s.status.Silence = api.SilenceStatus{}
	_, body = s.get(t, "/metrics")
	check.Contains(t, "body", body, "aldis_silence 0\n")
	check.Lacks(t, "body", body, "aldis_silence_end")
}

// TestMetricsOfTwoSitesWithOneName: while a site has gone and its successor of the same name has come, there are metrics of both.
func TestMetricsOfTwoSitesWithOneName(t *testing.T) {
	s := start(t)
	s.status.Peers = append(s.status.Peers, api.PeerStatus{ID: 17, Name: "hq", Link: "up", Bearers: []api.PeerBearer{{Bearer: "sat"}}})
	s.status.Peers[0].Link, s.status.Peers[0].Bearers = "gone", []api.PeerBearer{{Bearer: "sat"}}
	s.status.Bearers = []api.BearerStatus{{Name: "sat", Direct: &api.DirectStatus{Sessions: []api.DirectSession{{Spared: 3}, {Spared: 4}}, Greylist: []api.DirectGrey{{}}}}, {Name: "hf"}}
	s.status.Ledger = []api.LedgerRow{{Bearer: "sat", Direction: "sent", Peer: "hq", Kind: "payload", Octets: 5}, {Bearer: "sat", Direction: "sent", Peer: "hq", Kind: "payload", Octets: 7}}
	s.status.Month = &api.BillMonth{Sites: []api.BillSite{{Site: "hq", BillRow: api.BillRow{SentOctets: 1}}, {Site: "hq", BillRow: api.BillRow{SentOctets: 2}}}}
	code, body := s.get(t, "/metrics")
	check.Equal(t, "code", code, 200)
	for _, want := range []string{
		`aldis_link_up{peer="hq"} 0`,
		`aldis_link_up{peer="hq (17)"} 1`,
		`aldis_bearer_up{bearer="sat",peer="hq (17)"} 0`,
		`aldis_link_bytes_total{direction="sent",kind="payload",peer="hq"} 12`,
		`aldis_bearer_bytes_total{bearer="sat",direction="sent",kind="payload",peer="hq"} 12`,
		`aldis_month_link_bytes{direction="sent",peer="hq"} 3`,
		`aldis_direct_sessions{bearer="sat",state="open"} 2`,
		`aldis_direct_sessions{bearer="sat",state="opening"} 0`,
		`aldis_direct_sessions{bearer="sat",state="greylisted"} 1`,
		`aldis_direct_spared_bytes{bearer="sat"} 7`,
	} {
		check.Contains(t, "body", body, want+"\n")
	}
}
