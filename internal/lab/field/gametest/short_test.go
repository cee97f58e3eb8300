package gametest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/lab/fleet"
	"aldis/internal/lab/report"
)

// short is a short game: long_test.go plays most of these for five minutes.
func short(profile, peers string, seed uint64) field.Options {
	return field.Options{Profile: profile, Peers: peers, Seed: seed, Duration: 40 * time.Second, Idle: time.Second}
}

// TestSigned: JXSE 2.7 as it comes, two satellite hops. It plays alone: its peers' start is measured.
func TestSigned(t *testing.T) {
	play(t, short("iridium-directip", field.KindJXSE27, 1), directip)
}

// TestOrdinaryDay: messages of other software, packets that overtake each other, and a busy machine. It plays alone, because it slows all
// other tests.
func TestOrdinaryDay(t *testing.T) {
	o := short("iridium-directip", field.KindJXSE27, 7)
	o.Shapes, o.Rate, o.Squeeze = field.ShapesStrangers, 600*time.Millisecond, true
	play(t, o, promise{})
}

// TestGenerations: a peer of 2003 at sea and a signed one of 2013 at HQ, which cannot talk to each other on one LAN.
func TestGenerations(t *testing.T) {
	t.Parallel()
	o := short("iridium-dialup", field.KindJXSE27, 2)
	o.ShipPeer = field.KindJXTA22
	play(t, o, promise{median: dialup.median})
}

// TestOverHTTP: the peers, the transport and the link of 2004.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	o := short("iridium-directip", field.KindJXTA22, 6)
	o.HTTP = true
	atMost(t, "rendezvous over HTTP", play(t, o, promise{}).RendezvousS, 30)
}

// TestThreeShips: every message reaches every listener, and none crosses to a ship without one.
func TestThreeShips(t *testing.T) {
	t.Parallel()
	o := short("iridium-directip", field.KindJXSE27Unsigned, 3)
	o.Ships, o.Deaf, o.Duration = 4, "ship4", 80*time.Second
	r := play(t, o, promise{})
	for _, s := range r.Sites {
		if s.FirstDataS == nil {
			t.Errorf("%s has received nothing", s.Name)
		}
	}
	if d := r.Deaf; d == nil || d.Bytes.Down != 0 {
		t.Errorf("to a ship without a listener: %+v, must be 0 octets", d)
	}
}

// TestOutage: the link goes away for 20 s; a second peer of the ship asks meanwhile.
func TestOutage(t *testing.T) {
	t.Parallel()
	o := short("iridium-directip", field.KindJXSE27, 4)
	o.Duration, o.OutageAt, o.OutageFor, o.Asker = 70*time.Second, 35*time.Second, 20*time.Second, true
	checkOutage(t, play(t, o, promise{}))
}

func checkOutage(t *testing.T, r *field.Run) {
	t.Helper()
	out := r.Outage
	if out == nil || out.Sent == 0 || out.Delivered != out.Sent {
		t.Fatalf("outage: %+v", out)
	}
	if out.LocalDisconnects != 0 {
		t.Errorf("%d local disconnects", out.LocalDisconnects)
	}
	atMost(t, "answer to a second local peer, ms", out.AnswerMS, 50)
}

// TestBulk: one long message each way among the short ones, of which there is one a second: with one every 5 s so few would go during the
// long one that their median would be that of the link's jitter.
func TestBulk(t *testing.T) {
	t.Parallel()
	o := short("iridium-directip", field.KindJXSE27, 5)
	o.Duration, o.Rate, o.Bulk, o.BulkAt = 80*time.Second, time.Second, 20000, 30*time.Second
	checkBulk(t, play(t, o, promise{median: 3.5}), 0.9)
}

// checkBulk: fragment is the airtime in seconds of one fragment in the slower direction.
func checkBulk(t *testing.T, r *field.Run, fragment float64) {
	t.Helper()
	if len(r.Bulk) != 2 {
		t.Fatalf("bulk: %+v", r.Bulk)
	}
	for _, b := range r.Bulk {
		atMost(t, b.From+": long message over the limit", b.OverLimit, 1.3)
		if b.ShortMedian != nil && b.OtherMedian != nil {
			atMost(t, b.From+": short ones beside the long one", b.ShortMedian, *b.OtherMedian+fragment)
		}
	}
}

// TestRadioNet: one channel with a group's address, P_Mul, and a ship that transmits nothing for a while.
func TestRadioNet(t *testing.T) {
	t.Parallel()
	o := short("vhf-cnr-16k", field.KindJXSE27, 6)
	o.Ships, o.Silent, o.SilentAt, o.SilentFor, o.Duration = 2, 1, 30*time.Second, 20*time.Second, 65*time.Second
	checkSilence(t, play(t, o, promise{}))
}

func checkSilence(t *testing.T, r *field.Run) {
	t.Helper()
	q := r.Silence
	if q == nil || q.Sent == 0 {
		t.Fatalf("silence: %+v", q)
	}
	if q.Packets != 0 {
		t.Errorf("%v sent %d packets of %d octets while silent", q.Ships, q.Packets, q.Bytes)
	}
	if q.Live < q.Sent-1 { // one may have been lost and wait for its repetition
		t.Errorf("peers of silent ships saw %d of %d messages as they came", q.Live, q.Sent)
	}
}

// TestFleet: HQ behind a firewall and a relay, a ship that joins by a roster, its satellite cut and two gateways killed: each message has
// one true end.
func TestFleet(t *testing.T) {
	t.Parallel()
	res := fleetOf(t, "short", field.KindJXSE27, field.KindTAK)
	check.True(t, "most are delivered", res.Ends[fleet.Delivered] > 40 && res.Ends[fleet.NotTaken] < 10, res.Ends)
}

// TestFleetOfTwo: a ship of two gateways; their power, one's and both's, and the leader stopped: each message has one true end, and the
// machine that does not lead sends nothing.
func TestFleetOfTwo(t *testing.T) {
	t.Parallel()
	res := fleetOf(t, "pair", field.KindJXSE27, field.KindJXTA22, field.KindTAK)
	check.Equal(t, "accidents", len(res.Takeovers), 5)
	for _, x := range res.Takeovers {
		check.Equal(t, x.What+": somebody else leads", x.Leads > 0, !strings.Contains(x.What, "follower"))
	}
}

// TestFleetOfThree: HQ of three gateways; the power of the leader and of another member, an upgrade of all, and the leader stopped: each
// message has one true end, a machine that does not lead sends nothing, and the leader that stops in order is followed by another one.
func TestFleetOfThree(t *testing.T) {
	t.Parallel()
	res := fleetOf(t, "three", field.KindJXSE27, field.KindJXTA22, field.KindTAK)
	check.Equal(t, "accidents", len(res.Takeovers), 6)
	led := 0
	for _, x := range res.Takeovers {
		check.Equal(t, x.What+": somebody else leads", x.Leads > 0, x.Led)
		if x.Cause == fleet.Upgrade && x.Led {
			led++
		}
	}
	check.True(t, "upgrades of a leader", led > 0, led)
}

// fleetOf plays a script in 100 s.
func fleetOf(t *testing.T, name string, peers ...string) *report.Fleet {
	t.Helper()
	return fleetWith(t, name, 100*time.Second, gateway, "", peers...)
}

// fleetWith plays a script in a time, with a gateway, or package, and with the one that replaces it in upgrades.
func fleetWith(t *testing.T, name string, in time.Duration, gateway, upgrade string, peers ...string) *report.Fleet {
	t.Helper()
	file := "../../../../field-tests/fleet/" + name + ".toml"
	data, err := os.ReadFile(file)
	check.NoError(check.Fatal(t), err)
	script, err := fleet.Read(file, data)
	check.NoError(check.Fatal(t), err)
	check.NoError(check.Fatal(t), script.Scale(in))
	log := &lines{}
	res, err := field.Fleet(t.Context(), field.FleetOptions{Script: script, File: file, Peers: peers, Seed: 1,
		Gateway: gateway, Upgrade: upgrade, JarDir: jars, Keep: filepath.Join(t.TempDir(), "fleet"), Progress: log})
	check.NoError(check.Fatal(t), err)
	check.True(t, "each message has one true end", res.Faults() == "", res.Faults(), res.Wrong, log)
	for _, a := range res.Octets {
		check.True(t, a.Bearer+" of "+a.Site+" carried something", a.Octets > 0, res.Octets)
	}
	return res
}
