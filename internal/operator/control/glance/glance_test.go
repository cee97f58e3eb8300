package glance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ledger(octets uint64) api.Status {
	return api.Status{Peers: []api.PeerStatus{{ID: 1, Name: "hq", Link: "up"}}, Ledger: []api.LedgerRow{
		{Direction: "sent", Peer: "hq", Kind: "payload", Octets: octets}, {Direction: "received", Peer: "hq", Kind: "ack", Octets: octets / 10}}}
}

// TestHistory: every octet of the ledger is in one minute, in one month, and in no column twice; minutes older than two days
// are gone.
func TestHistory(t *testing.T) {
	h := NewHistory(start)
	octets := uint64(0)
	for m := range 60 * 60 { // sixty hours
		octets += 60
		s := ledger(octets)
		s.Month = &api.BillMonth{Month: "2026-12", Since: start.AddDate(0, 0, 2), Total: api.BillRow{SentOctets: octets, Minutes: uint64(m)}}
		h.Note(start.Add(time.Duration(m)*time.Minute), s)
	}
	end := start.Add(60*time.Hour - time.Minute)
	check.Equal(t, "minutes kept", len(h.minutes), 48*60)
	for _, tt := range []struct{ hours, columns, stepS int }{{1, 60, 60}, {6, 180, 120}, {24, 180, 480}, {48, 180, 960}} {
		a := h.Air(end, tt.hours)
		in := check.In(t, tt.hours)
		check.Equal(in, "columns", a.N, tt.columns)
		check.Equal(in, "seconds of a column", a.StepS, tt.stepS)
		sum := uint64(0)
		for _, v := range a.Kinds["sent payload"] {
			sum += v
		}
		check.Equal(in, "octets", sum, uint64(tt.hours)*3600)
		check.Same(in, "by site and by kind", a.Sites["sent hq"], a.Kinds["sent payload"])
		_, idle := a.Kinds["sent key"]
		check.True(in, "what was not on the air is absent", !idle)
	}
	a := h.Air(end, 1)
	check.Equal(t, "the month, as the bill has it", a.Month, Month{start.AddDate(0, 0, 2), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 3600 * 60, 0, 60*60 - 1})
	h.Note(end.AddDate(0, 1, 0), ledger(octets))
	check.Equal(t, "octets of a month of which nothing is known", h.month.Sent, 0)
	check.True(t, "samples are bounded", len(h.recent) <= 2*int(longer/Every), len(h.recent))
}

// TestHistoryOfManySites: whatever names the ledger has, a minute has room for a bounded number of sites.
func TestHistoryOfManySites(t *testing.T) {
	h := NewHistory(start)
	var s api.Status
	for i := range 1000 {
		s.Ledger = append(s.Ledger, api.LedgerRow{Direction: "sent", Peer: fmt.Sprint(i), Kind: "payload", Octets: 5})
	}
	s.Ledger = append(s.Ledger, api.LedgerRow{Direction: "sideways", Peer: "1", Kind: "payload", Octets: 9}, api.LedgerRow{Direction: "sent", Peer: "1", Kind: "new", Octets: 9})
	h.Note(start, s)
	a := h.Air(start, 1)
	check.Equal(t, "sites", len(a.Sites), mostSites)
	sum := uint64(0)
	for _, v := range a.Sites {
		for _, n := range v {
			sum += n
		}
	}
	check.Equal(t, "octets", sum, 5000)
}

// TestRates: the last minute is shown as a rate, next to the profile's; a start does not look like a full link.
func TestRates(t *testing.T) {
	h := NewHistory(start)
	s := ledger(100)
	s.Link = api.LinkStatus{SendBps: 800, ReceiveBps: 800}
	v := ViewOf(start.Add(time.Second), h, Seen{Started: start, Status: s})
	check.Equal(t, "bit/s after a second", v.Out.Bps, 80)
	octets := uint64(0)
	var now time.Time
	for i := range 60 {
		now = start.Add(time.Duration(i) * Every)
		octets += 500 // 400 bit/s
		h.Note(now, ledger(octets))
	}
	s = ledger(octets)
	s.Link = api.LinkStatus{SendBps: 800, ReceiveBps: 0}
	v = ViewOf(now, h, Seen{Started: start, Status: s})
	check.Equal(t, "sent", v.Sites[0].Out, Use{400, 50})
	check.Equal(t, "received, without a rate", v.Sites[0].In, Use{40, -1})
	check.Equal(t, "in all", v.Out, Use{400, 50})
}

// If there are several bearers, each has its rate, its share of the profile's rate, and its alarm; a site has a line for each.
func TestRatesOfBearers(t *testing.T) {
	at := func(sat, hf uint64) api.Status {
		s := api.Status{Transport: "norm", NORM: api.NormStatus{Up: true}, Link: api.LinkStatus{SendBps: 100}}
		for _, b := range []string{"sat", "hf"} {
			s.Bearers = append(s.Bearers, api.BearerStatus{Name: b, Link: &api.LinkStatus{SendBps: map[string]int{"sat": 100_000, "hf": 800}[b]}})
		}
		s.Bearers = append(s.Bearers, api.BearerStatus{Name: "relay"})
		s.Peers = []api.PeerStatus{{ID: 1, Name: "hq", Link: "up", LastHeard: start.Format(time.RFC3339), Bearers: []api.PeerBearer{
			{Bearer: "sat", Link: "silent", Quality: api.Quality{ShortS: 1, LongS: 9}},
			{Bearer: "relay", Link: "up", Used: true, Quality: api.Quality{ShortS: 2.2, LongS: 30, Hops: 2, NextHop: "ship2"}}}}}
		for b, octets := range map[string]uint64{"sat": sat, "hf": hf} {
			s.Ledger = append(s.Ledger, api.LedgerRow{Bearer: b, Direction: "sent", Peer: "hq", Kind: "payload", Octets: octets})
		}
		return s
	}
	h := NewHistory(start)
	h.Note(start, at(0, 0))
	now := start.Add(time.Minute)
	v := ViewOf(now, h, Seen{Started: start, Status: at(7500, 6000)})
	check.Same(t, "bearers", v.Bearers, []Bearer{{"sat", Use{1000, 1}, Use{0, -1}}, {"hf", Use{800, 100}, Use{0, -1}}})
	check.Equal(t, "in all", v.Out, Use{1800, -1})
	both := at(7500, 6000)
	for i := range 2 {
		both.Bearers[i].Month = &api.BillMonth{Month: start.Format("2006-01"), Since: start, Total: api.BillRow{SentOctets: uint64(100 * (i + 1)), Minutes: uint64(3 - i)}}
	}
	h.Note(now, both)
	check.Equal(t, "the month on both", [2]int{int(h.month.Sent), h.month.Minutes}, [2]int{300, 3})
	check.Same(t, "the air on both", h.Air(now, 1).Kinds["sent payload"][59:], []uint64{13_500})
	check.True(t, "one bearer is full", len(v.Alarms) == 2 && strings.HasPrefix(v.Alarms[1].Text, "hf is full"), v.Alarms)
	check.Equal(t, "a bearer that is down", v.Sites[0].Ways[0].Text(), "sat: silent")
	check.Equal(t, "the next hop", v.Sites[0].Ways[1].Text(), "relay via ship2, 3 to 30 s")
	both.Bearers[0].Direct = &api.DirectStatus{Limit: 4, Sessions: []api.DirectSession{{Peer: "ship9", Since: start, Spared: 9}, {Peer: "hq", Since: start.Add(-time.Hour), Spared: 12345}}}
	both.Peers[0].Bearers[0].Link = "up"
	v = ViewOf(now, h, Seen{Started: start, Status: both})
	check.Equal(t, "a direct session", v.Sites[0].Ways[0].Text(), "sat, 1 to 9 s; direct session since "+start.Add(-time.Hour).UTC().Format("2006-01-02 15:04Z")+", 12345 octets")
	check.True(t, "none over the relay", v.Sites[0].Ways[1].Direct.IsZero(), v.Sites[0].Ways[1])
}

// TestTwoSitesWithOneName: a site has gone and its successor of the same name has come. Each has its own counts, the traffic of the name
// counts once, and no total that is less than it was looks like a great one.
func TestTwoSitesWithOneName(t *testing.T) {
	h := NewHistory(start)
	old := api.PeerStatus{ID: 5, Name: "tug", Link: "gone", PeerCounts: api.PeerCounts{Expired: 4, Refused: 3, Repeated: 2, Delivered: 9}}
	young := api.PeerStatus{ID: 17, Name: "tug", Link: "up"}
	ledger := []api.LedgerRow{{Direction: "sent", Peer: "tug", Kind: "payload", Octets: 600}, {Direction: "sent", Peer: "tug", Kind: "payload", Octets: 150}}
	h.Note(start, api.Status{Peers: []api.PeerStatus{old}, Ledger: ledger[:1]})
	now := start.Add(time.Minute)
	v := ViewOf(now, h, Seen{Started: start, Status: api.Status{Peers: []api.PeerStatus{old, young}, Ledger: ledger}})
	check.Equal(t, "bit/s, in all", v.Out.Bps, 20)
	check.Equal(t, "bit/s, of both sites", [2]int{v.Sites[0].Out.Bps, v.Sites[1].Out.Bps}, [2]int{20, 0})
	v = ViewOf(now, h, Seen{Started: start, Status: api.Status{Transport: "p_mul", Peers: []api.PeerStatus{young}, Ledger: ledger[1:]}})
	check.Equal(t, "bit/s, when the old one is away", v.Sites[0].Out.Bps, 0)
	check.Equal(t, "messages sent again, and come", [2]int{v.Sites[0].Again, v.Sites[0].Came}, [2]int{0, 0})
	for _, a := range v.Alarms {
		check.Lacks(t, "alarm", a.Text, "in the last ten minutes")
	}
}

// TestWords: the sentence about every state of a gateway.
func TestWords(t *testing.T) {
	now := start.Add(time.Hour)
	site := func(state string, more ...func(*api.PeerStatus)) api.Status {
		p := api.PeerStatus{ID: 1, Name: "hq", Link: state, LinkSince: start}
		if state != "unknown" && state != "unmet" {
			p.LastHeard = start.Format(time.RFC3339)
		}
		for _, f := range more {
			f(&p)
		}
		return api.Status{Transport: "norm", NORM: api.NormStatus{Up: true}, Peers: []api.PeerStatus{p}}
	}
	waits := func(n int, age time.Duration) func(*api.PeerStatus) {
		return func(p *api.PeerStatus) {
			p.Waiting = n
			p.Queue = []api.QueueRow{{Precedence: "routine", Messages: n, Oldest: now.Add(-age)}}
		}
	}
	fresh := func(p *api.PeerStatus) { // a reload added it a minute ago, and it has only news to send
		p.KnownSince, p.LastHeard = now.Add(-time.Minute), ""
		p.Waiting, p.NewsWaiting = 1, 1
	}
	older := func(p *api.PeerStatus) { p.KnownSince = now.Add(-3 * time.Minute) }
	foreseen := func(p *api.PeerStatus) {
		noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		p.Late = api.Foreseen{Messages: 1, Expires: noon, Expected: noon.Add(time.Hour)}
	}
	slow := func(p *api.PeerStatus) {
		p.Measured = api.LinkMeasured{RateBps: 1200, PaceBps: 1260, Differs: []string{api.DiffersRate}}
	}
	fast := site("up", func(p *api.PeerStatus) {
		p.Measured = api.LinkMeasured{RateBps: 4800, PaceBps: 4800, Differs: []string{api.DiffersRate}}
	})
	fast.Link.SendBps = 2400
	onHF := site("up", slow)
	onHF.Link.SendBps = 128_000
	onHF.Bearers = []api.BearerStatus{{Name: "sat", Link: &api.LinkStatus{SendBps: 128_000}}, {Name: "hf", Link: &api.LinkStatus{SendBps: 2400}}}
	onHF.Peers[0].Bearers = []api.PeerBearer{{Bearer: "sat", Link: "up"}, {Bearer: "hf", Link: "up", Up: true, Used: true}}
	several := func(link string, quiet bool) api.Status {
		st := site("up")
		st.Bearers = []api.BearerStatus{{Name: "sat"}, {Name: "hf", Silence: api.SilenceStatus{On: quiet}}}
		st.Peers[0].Bearers = []api.PeerBearer{{Bearer: "sat", Link: link, Waiting: 2}, {Bearer: "hf", Link: "up", Up: true}}
		return st
	}
	for _, tt := range []struct {
		name         string
		seen         Seen
		level, words string
		alarms       []string
	}{
		{"well", Seen{Status: site("up")}, "good", "All is well: 1 site answers, nothing waits", nil},
		{"busy", Seen{Status: site("up", waits(1, time.Second))}, "good", "All is well: 1 site answers, 1 message is on its way", nil},
		{"late", Seen{Status: site("up", waits(2, time.Hour))}, "warn", "Worth a look: 1 site answers, 2 messages are on their way", []string{"A routine message for hq still waits though the link is up"}},
		{"too late", Seen{Status: site("up", waits(2, time.Second), foreseen)}, "warn", "Worth a look: 1 site answers, 2 messages are on their way", []string{"1 message for hq will expire too soon: the first at 12:00:00Z, and it would be there at 13:00:00Z"}},
		{"slow", Seen{Status: site("up", slow)}, "warn", "Worth a look: 1 site answers, nothing waits", []string{"The link to hq is slower than its profile: 1200 bit/s instead of 0. What goes is paced at 1260"}},
		{"fast", Seen{Status: fast}, "warn", "Worth a look: 1 site answers, nothing waits", []string{"The link to hq is faster than its profile: 4800 bit/s instead of 2400. What goes is paced at 4800"}},
		{"slower than the profile of the bearer in use", Seen{Status: onHF}, "warn", "Worth a look: 1 site answers, nothing waits", []string{"The link to hq is slower than its profile: 1200 bit/s instead of 2400. What goes is paced at 1260"}},
		{"down", Seen{Status: site("silent", waits(2, time.Hour))}, "bad", "Not all is well: 0 of 1 sites answer, 2 messages are on their way", []string{"hq does not answer; 2 messages wait for it"}},
		{"a bearer down", Seen{Status: several("silent", false)}, "warn", "Worth a look: 1 site answers, nothing waits", []string{"hq does not answer on sat; 2 messages wait there"}},
		{"a bearer silent", Seen{Status: several("up", true)}, "good", "All is well: 1 site answers, nothing waits", []string{"This gateway keeps silent on hf"}},
		{"quiet by order", Seen{Status: site("listening")}, "good", "All is well: 1 site answers, nothing waits", []string{"hq keeps silent by order: it receives and does not answer"}},
		{"never heard", Seen{Status: site("unknown")}, "bad", "Not all is well: 0 of 1 sites answer, nothing waits", []string{"hq was not heard since the start of this gateway: is it on, is its address right, has it the same key?"}},
		{"never asked, beside one that is up", Seen{Status: api.Status{Transport: "norm", NORM: api.NormStatus{Up: true}, Peers: slices.Concat(site("unmet").Peers, site("up").Peers)}}, "good", "All is well: 1 site answers, nothing waits", nil},
		{"just started", Seen{Started: now.Add(-time.Minute), Status: site("unknown")}, "warn", "Starting: 0 of 1 sites answer so far, nothing waits", []string{"hq was not heard yet"}},
		{"a new peer", Seen{Status: site("unknown", fresh)}, "warn", "Starting: 0 of 1 sites answer so far, nothing waits", []string{"hq was not heard yet"}},
		{"a new peer that does not answer", Seen{Status: site("silent", fresh)}, "warn", "Starting: 0 of 1 sites answer so far, nothing waits", []string{"hq was not heard yet"}},
		{"a new peer for three minutes", Seen{Status: site("unknown", fresh, older)}, "bad", "Not all is well: 0 of 1 sites answer, nothing waits",
			[]string{"hq was not heard since it was configured: is it on, is its address right, has it the same key?"}},
		{"trouble", Seen{Trouble: "no space left", Status: site("up")}, "bad", "The gateway cannot work: no space left", []string{"The gateway cannot work: no space left"}},
		{"deaf", Seen{Deaf: "the loop does not answer"}, "bad", "The gateway does not answer: the loop does not answer", []string{"The gateway does not answer: the loop does not answer"}},
	} {
		if tt.seen.Started.IsZero() {
			tt.seen.Started = start.Add(-time.Hour)
		}
		v := ViewOf(now, NewHistory(start), tt.seen)
		in := check.In(t, tt.name)
		check.Equal(in, "level", v.Level, tt.level)
		check.Equal(in, "words", v.Words, tt.words)
		var alarms []string
		for _, a := range v.Alarms {
			alarms = append(alarms, a.Text)
		}
		check.Same(in, "alarms", alarms, tt.alarms)
	}
	drained := site("up")
	drained.Drain = &api.DrainStatus{Since: start, Messages: 2}
	v0 := ViewOf(now, NewHistory(start), Seen{Started: start, Status: drained})
	check.Equal(t, "alarm of a drain", v0.Alarms[0], Alarm{"warn", "This gateway is drained: it takes no messages of local peers; 2 messages have to go out yet", start})
	kept := site("up")
	kept.Holds = []api.HoldStatus{{Precedence: "deferred", Since: start, Messages: 3}}
	v1 := ViewOf(now, NewHistory(start), Seen{Started: start, Status: kept})
	check.Equal(t, "note of a standing order", v1.Alarms[0], Alarm{"note", "Messages of precedence deferred are held by an order; 3 are held now", start})
	s := site("up", waits(3, time.Minute))
	s.Silence = api.SilenceStatus{On: true, LeftS: 90, Messages: 3}
	v := ViewOf(now, NewHistory(start), Seen{Started: start, Status: s})
	check.Equal(t, "words of a silence", v.Words, "Radio silence: nothing is transmitted, 3 messages are on their way")
	check.Equal(t, "its end", v.Silence.Until, now.Add(90*time.Second))
}

// TestOnlyWhatHappens: a View stays equal while nothing happens, so that nothing is sent.
func TestOnlyWhatHappens(t *testing.T) {
	h := NewHistory(start)
	s := ledger(500)
	s.Transport, s.NORM.Up = "norm", true
	s.Peers[0].LinkSince, s.Peers[0].LastHeard = start, start.Format(time.RFC3339)
	s.Peers[0].Queue = []api.QueueRow{{Precedence: "routine", Messages: 1, Oldest: start}}
	h.Note(start, s)
	text := func(at time.Duration) string {
		b, err := json.Marshal(ViewOf(start.Add(at), h, Seen{Started: start.Add(-time.Hour), Status: s}))
		check.NoError(t, err)
		return string(b)
	}
	check.Equal(t, "five minutes later", text(6*time.Minute), text(time.Minute))
}

// TestPlain: a name brings in no control characters, no change of direction and no excessive length.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"Ostwind": "Ostwind", "Süd 🚢": "Süd 🚢", "<b>": "<b>", "a\x1b[2Jb": "a\uFFFD[2Jb", "a\u202eb": "a\uFFFDb", "a\nb\tc": "a\uFFFDb\uFFFDc", "\x9b1m": "\uFFFD1m", "\u2066x": "\uFFFDx",
		"\u200b": "\uFFFD", "\u3164\u2800": "\uFFFD\uFFFD",
	} {
		check.Equal(t, fmt.Sprintf("%q", in), Plain(in), want)
	}
	check.Equal(t, "length", len([]rune(Plain(strings.Repeat("x", 1e6)))), mostRunes+1)
}

// TestAirByAdapter: octets count by adapter and kind in the minute in which they were sent, or read; what is unread counts nowhere.
func TestAirByAdapter(t *testing.T) {
	h := NewHistory(start)
	for m, unread := range []uint64{500, 0} {
		h.Note(start.Add(time.Duration(m)*time.Minute), api.Status{Adapters: []api.AdapterRow{{Adapter: "tak", Direction: "sent", Kind: "payload", Octets: 100},
			{Adapter: "jxta", Direction: "received", Kind: "payload", Octets: 500 - unread}, {Adapter: api.Unread, Direction: "received", Kind: "payload", Octets: unread}}})
	}
	a := h.Air(start.Add(time.Minute), 1)
	check.Equal(t, "series", len(a.Adapters), 2)
	check.Same(t, "TAK", a.Adapters["sent tak payload"][58:], []uint64{100, 0})
	check.Same(t, "JXTA", a.Adapters["received jxta payload"][58:], []uint64{0, 500})
}
