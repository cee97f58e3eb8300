package field

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

var epoch = time.Date(2004, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a time as the peers write it.
func at(s float64) float64 { return float64(epoch.UnixMilli()) + s*1000 }

func sent(name string, seq int64, s float64) Event {
	return Event{T: at(s), Ev: "sent", Name: name, Seq: seq, Size: 200, CRC: "c"}
}

func got(name, from string, seq int64, s float64) Event {
	return Event{T: at(s), Ev: "received", Name: name, From: from, Seq: seq, Size: 200, CRC: "c", OK: true}
}

func value(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || *got < want-0.0011 || *got > want+0.0011 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// TestOrder: a message is out of order when it comes well after a younger one, however many came with it.
func TestOrder(t *testing.T) {
	hq, ship := &record{name: "hq"}, &record{name: "ship"}
	for i := range 7 {
		hq.events = append(hq.events, sent("hq-svc", int64(i), float64(i)))
	}
	for _, m := range []struct {
		seq int64
		at  float64
	}{{1, 10}, {0, 10.4}, {4, 11}, {3, 11.4}, {2, 11.6}, {6, 12}, {5, 12.1}} {
		ship.events = append(ship.events, got("hq-svc", "hq", m.seq, m.at))
	}
	run := &Run{}
	run.messages(pair{hq, ship}, 0)
	check.Equal(t, "run.OutOfOrder", run.OutOfOrder, 1)
}

func TestAssess(t *testing.T) {
	changed := got("ship-svc", "ship", 4, 41)
	changed.OK = false
	swapped := got("ship-svc", "ship", 5, 46)
	swapped.CRC = "x"
	bulk := sent("ship-svc", 6, 46.5)
	bulk.Size = 20000
	bulkIn := got("ship-svc", "ship", 6, 90)
	bulkIn.Size = 20000
	hq := &record{"hq", epoch, []Event{
		{T: at(3), Ev: "rendezvous"},
		{T: at(20), Ev: "discovered", Name: "ship-svc"},
		sent("hq-svc", 1, 5), // before the ship listens
		got("hq-svc", "hq", 1, 5.1),
		{T: at(25), Ev: "pipe_ready", Name: "ship-svc"},
		sent("hq-svc", 2, 30),
		sent("hq-svc", 3, 35),
		sent("hq-svc", 4, 40),
		got("ship-svc", "ship", 2, 33),
		got("ship-svc", "ship", 2, 34), // twice
		changed, swapped,
		got("ship-svc", "ship", 8, 52),
		got("ship-svc", "ship", 7, 53), // overtaken
		bulkIn,                         // may
		{T: at(60), Ev: "error", Text: "x"},
	}}
	ship := &record{"ship", epoch.Add(10 * time.Second), []Event{
		{T: at(12), Ev: "rendezvous"},
		{T: at(13), Ev: "discovered", Name: "hq-svc"},
		{T: at(14), Ev: "pipe_ready", Name: "ship-svc"}, // its own
		{T: at(15), Ev: "pipe_ready", Name: "hq-svc"},
		sent("ship-svc", 1, 20), // HQ does not listen yet
		sent("ship-svc", 2, 30),
		sent("ship-svc", 3, 35), // never arrives
		sent("ship-svc", 4, 40),
		sent("ship-svc", 5, 45),
		bulk,
		sent("ship-svc", 7, 47),
		sent("ship-svc", 8, 48),
		got("hq-svc", "hq", 1, 16), // sent before, arrives all the same
		got("hq-svc", "hq", 2, 32),
		got("hq-svc", "hq", 3, 38),
		{T: at(50), Ev: "rendezvous_lost"},
	}}
	run := &Run{}
	all := assess(run, hq, []*record{ship}, epoch.Add(10*time.Second), 20000)
	value(t, "rendezvous_s", run.RendezvousS, 2)
	value(t, "discovery_s", run.DiscoveryS, 3)
	value(t, "pipe_ready_s", run.PipeReadyS, 5)
	value(t, "first_data_s", run.FirstDataS, 6)
	// HQ: 2, 3, 4; ship: 2, 3, 4, 5, 6, 7, 8.
	check.Equal(t, "run.MessagesSent", run.MessagesSent, 10)
	check.Equal(t, "run.MessagesDelivered", run.MessagesDelivered, 6)
	check.Equal(t, "run.AllSent", run.AllSent, 12)
	check.Equal(t, "run.AllDelivered", run.AllDelivered, 7)
	check.Equal(t, "run.Duplicates", run.Duplicates, 1)
	check.Equal(t, "run.Corrupted", run.Corrupted, 2)
	check.Equal(t, "run.OutOfOrder", run.OutOfOrder, 1)
	check.Equal(t, "run.LocalDisconnects", run.LocalDisconnects, 1)
	if want := int64(6*200 + 20000); run.ApplicationBytes != want {
		t.Errorf("application_bytes %d, want %d", run.ApplicationBytes, want)
	}
	// 2 and 3 s from HQ; 3, 4 and 6 s from the ship; the long one does not count.
	value(t, "median", run.Latency.Median, 3)
	value(t, "max", run.Latency.Max, 6)
	if len(run.Missing) != 4 || run.Missing[0] != (Missed{"hq", "ship", 4, 30, 25}) || len(run.PeerErrors) != 1 {
		t.Errorf("missing %+v, errors %v", run.Missing, run.PeerErrors)
	}
	b := bulkFigures(all, 20000, func(string, string) time.Duration { return 30 * time.Second })
	if len(b) != 1 || b[0].From != "ship" {
		t.Fatalf("bulk %+v", b)
	}
	value(t, "bulk", b[0].Seconds, 43.5)
	value(t, "over limit", b[0].OverLimit, 1.45)
	value(t, "short ones meanwhile", b[0].ShortMedian, 5)
	value(t, "other", b[0].OtherMedian, 3)
	o := outageFigures(all, []*record{hq, ship}, epoch, epoch.Add(29*time.Second), epoch.Add(36*time.Second))
	if o.Sent != 4 || o.Delivered != 3 || o.LocalDisconnects != 1 {
		t.Errorf("outage %+v", o)
	}
	value(t, "after", o.AfterS, 2)
	value(t, "worst", o.WorstS, 3)
}

func TestRedialFigures(t *testing.T) {
	hq := &record{"hq", epoch, []Event{{T: at(1), Ev: "pipe_ready", Name: "ship-svc"}, sent("hq-svc", 1, 9), sent("hq-svc", 2, 11), got("ship-svc", "ship", 1, 17)}}
	ship := &record{"ship", epoch, []Event{{T: at(1), Ev: "pipe_ready", Name: "hq-svc"}, sent("ship-svc", 1, 12), got("hq-svc", "hq", 1, 10.5), got("hq-svc", "hq", 2, 18)}}
	all := assess(&Run{}, hq, []*record{ship}, epoch, 0)
	r := redialFigures(all, "ship", epoch, epoch.Add(10*time.Second))
	value(t, "first up", r.UpS, 7)
	value(t, "first down", r.DownS, 8) // the one sent before does not count
}

func TestNothingArrived(t *testing.T) {
	run := &Run{}
	assess(run, &record{"hq", epoch, nil}, []*record{{"ship", epoch, nil}}, epoch, 0)
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"rendezvous_s":null`, `"latency_s":{"median":null,"p95":null,"max":null}`, `"messages_sent":0`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

// TestResultShape: the names in the issue.
func TestResultShape(t *testing.T) {
	b, err := json.Marshal(Result{Runs: map[string]*Run{"gateway": {}, "unaided": {}}, Published: published})
	if err != nil {
		t.Fatal(err)
	}
	var top struct {
		Runs map[string]map[string]any
		Rest map[string]any
	}
	if err := json.Unmarshal(b, &top.Rest); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"profile", "seed", "duration_s", "runs", "published"} {
		if _, ok := top.Rest[k]; !ok {
			t.Errorf("no %s", k)
		}
	}
	for _, k := range []string{"rendezvous_s", "discovery_s", "pipe_ready_s", "first_data_s", "messages_sent", "messages_delivered", "duplicates",
		"latency_s", "link_bytes", "link_packets", "tcp_connections_on_link", "application_bytes", "payload_ratio_percent", "background_bytes_per_s"} {
		for _, run := range []string{"gateway", "unaided"} {
			if _, ok := top.Runs[run][k]; !ok {
				t.Errorf("no %s in %s", k, run)
			}
		}
	}
	{
		c, err := column2004()
		check.NoError(check.Fatal(t), err)
		check.Equal(t, `c["discovery"]`, c["discovery"], "231 s")
		check.Equal(t, `c["data"]`, c["data"], "572 s")
		check.Equal(t, `c["payload"]`, c["payload"], "9.76 %")
	}
}

func TestScoreboard(t *testing.T) {
	sec := 3.14
	res := &Result{Profile: "p", Runs: map[string]*Run{"gateway": {Start: Start{DiscoveryS: &sec}, MessagesSent: 4, MessagesDelivered: 3}}}
	var b strings.Builder
	if err := scoreboard(&b, res); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.1 s", "3 of 4 (75 %)", "231 s", "never", "gateway\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "unaided") {
		t.Errorf("a run that was not played:\n%s", b.String())
	}
}

func TestFlags(t *testing.T) {
	tests := []struct {
		args string
		code int
		say  string
	}{
		{"", 2, "blue-game"},
		{"-h", 0, "hf-net     HQ and ships"},
		{"hf-net -h", 0, "usage: gateway lab hf-net"},
		{"hf-net --silent 5", 2, "5 silent ships of 3"},
		{"blue-game --silent 1 --duration 100s --asker", 2, "outage"},
		{"blue-game -h", 0, "-profile"},
		{"red-game", 2, "blue-game"},
		{"blue-game --colour", 2, "colour"},
		{"blue-game 5", 2, `"5"`},
		{"blue-game --duration soon", 2, "soon"},
		{"blue-game --outage 60s@never", 2, "never"},
		{"blue-game --peers jxta3 --ships 99 --kill sub", 2, "jxta3"},
		{"blue-game --peers jxta3 --ships 99", 2, "99 ships"},
		{"blue-game --asker", 2, "outage"},
		{"blue-game --profile nowhere", 1, "no such profile"},
		{"fleet", 2, "--script FILE"},
		{"fleet -h", 0, "exactly one true end"},
		{"fleet --script /nowhere.toml", 2, "nowhere.toml"},
		{"fleet --script ../../../field-tests/fleet/short.toml --duration 1s", 2, "1s is not from 10s"},
		{"fleet --script ../../../field-tests/fleet/short.toml --peers jxta3", 2, "jxta3"},
	}
	for _, tt := range tests {
		var out, err strings.Builder
		code := Main(strings.Fields(tt.args), &out, &err)
		if code != tt.code || !strings.Contains(out.String()+err.String(), tt.say) {
			t.Errorf("%q: exit %d, want %d with %q\n%s%s", tt.args, code, tt.code, tt.say, out.String(), err.String())
		}
	}
	var o Options
	fs, _ := flags("blue-game", &o)
	err := fs.Parse(strings.Fields("--outage 60s@120s --bulk 20000@70s --kill ship@100s --unaided"))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "o.OutageFor", o.OutageFor, time.Minute)
	check.Equal(t, "o.OutageAt", o.OutageAt, 2*time.Minute)
	check.Equal(t, "o.Bulk", o.Bulk, 20000)
	check.Equal(t, "o.BulkAt", o.BulkAt, 70*time.Second)
	check.Equal(t, "o.Kill", o.Kill, "ship")
	check.Equal(t, "o.KillAt", o.KillAt, 100*time.Second)
	check.True(t, "o.Unaided", o.Unaided)
}

func TestFaults(t *testing.T) {
	good := Run{MessagesSent: 2, MessagesDelivered: 2}
	if f := good.faults(); f != "" {
		t.Errorf("good run: %s", f)
	}
	if f := (*Run)(nil).faults(); f != "" {
		t.Errorf("no run: %s", f)
	}
	for _, bad := range []Run{{}, {MessagesSent: 2, MessagesDelivered: 1}, {MessagesSent: 1, MessagesDelivered: 1, Duplicates: 1}} {
		if bad.faults() == "" {
			t.Errorf("no fault in %+v", bad)
		}
	}
}

// TestConfig: the configuration of a site's gateway.
func TestConfig(t *testing.T) {
	w := testWorld(t)
	dir := t.TempDir()
	o := Options{Ships: 2}
	var sites []*lanSite
	for i, name := range o.siteNames() {
		ns, err := w.add(name)
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, &lanSite{name: name, index: i, ashore: i == 0, ns: ns, http: i == 2})
	}
	for _, s := range sites {
		if err := s.outfit(without(sites, s), []bearer{{Bearer: fleet.Bearer{Profile: "iridium-dialup"}, profile: load(t, "iridium-dialup")}}, "/bin/true", dir); err != nil {
			t.Fatal(err)
		}
	}
	hq, err := os.ReadFile(filepath.Join(dir, "hq.toml"))
	if err != nil || !strings.Contains(string(hq), "end = \"shore\"") || strings.Count(string(hq), "[[link.peer]]") != 2 {
		t.Errorf("hq.toml: %v\n%s", err, hq)
	}
	ship, err := os.ReadFile(filepath.Join(dir, "ship2.toml"))
	for _, want := range []string{"id = 3\n", `name = "ship2"`, `tcp = "10.20.2.1:9701"`, `profile = "iridium-dialup"`, `address = "10.77.0.2:7142"`} {
		if err != nil || !strings.Contains(string(ship), want) {
			t.Errorf("ship2.toml: no %s: %v\n%s", want, err, ship)
		}
	}
	if strings.Contains(string(ship), "shore") {
		t.Error("a ship is the shore")
	}
	// The second ship's peers use HTTP, HQ's do not; unaided the same.
	if strings.Contains(string(hq), "10.20.0.1:9700") || !strings.Contains(string(ship), "[lan]\ntcp = \"10.20.2.1:9701\"\nhttp = \"10.20.2.1:9700\"\n") {
		t.Errorf("http in\n%s\n%s", hq, ship)
	}
	seeds := []string{sites[0].seed(), sites[2].seed(), (&lanSite{}).seed(), (&lanSite{http: true}).seed()}
	if want := []string{"tcp://10.20.0.1:9701", "http://10.20.2.1:9700", "tcp://10.77.0.1:9701", "http://10.77.0.1:9701"}; !slices.Equal(seeds, want) {
		t.Errorf("seeds %q, want %q", seeds, want)
	}
}
