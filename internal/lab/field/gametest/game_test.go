package gametest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/field"
)

// gateway is the binary under test, and jars the directory of the peers.
var gateway, jars string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	fail := func(err error, out []byte) int {
		fmt.Fprintf(os.Stderr, "gametest: %v\n%s", err, out)
		return 1
	}
	dir, err := os.MkdirTemp("", "aldis-game-")
	if err != nil {
		return fail(err, nil)
	}
	defer os.RemoveAll(dir)
	if jars, err = filepath.Abs("../../../../field-tests/peers"); err != nil {
		return fail(err, nil)
	}
	if out, err := exec.Command("make", "-s", "-C", jars).CombinedOutput(); err != nil {
		return fail(err, out)
	}
	// Games mostly wait: more of them than processors fit at once.
	if err := flag.Set("test.parallel", "5"); err != nil {
		return fail(err, nil)
	}
	gateway = filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", gateway, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		return fail(err, out)
	}
	return m.Run()
}

// promise is what a game must show; zero fields promise nothing.
type promise struct {
	discovery, firstData, median float64 // seconds at most
	payload                      float64 // percent at least
}

// The promises for 200 octets each way every 5 s.
var (
	directip = promise{discovery: 12, firstData: 15, median: 3.5, payload: 60}
	dialup   = promise{discovery: 15, firstData: 20, median: 5, payload: 60}
)

// play plays a game and checks the rules for every game: all counted messages arrive, once, unchanged, in order, and no TCP crosses the
// link.
func play(t *testing.T, o field.Options, p promise) *field.Run {
	t.Helper()
	o.Gateway, o.JarDir, o.Only = gateway, jars, "gateway"
	o.Keep = filepath.Join(t.TempDir(), "game")
	ctx, cancel := context.WithTimeout(t.Context(), o.Duration+o.Idle+10*time.Minute)
	defer cancel()
	log := &lines{}
	o.Progress = log
	res, err := field.BlueGame(ctx, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	r := res.Runs["gateway"]
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the game:\n%s\nerrors: %v %v\nmissing: %+v", log, r.GatewayErrors, r.PeerErrors, r.Missing)
		}
	})
	if r.MessagesSent == 0 || r.MessagesDelivered != r.MessagesSent {
		t.Errorf("%d of %d messages arrived", r.MessagesDelivered, r.MessagesSent)
	}
	if r.Duplicates != 0 || r.Corrupted != 0 || r.OutOfOrder != 0 {
		t.Errorf("%d messages came twice, %d changed, %d out of order", r.Duplicates, r.Corrupted, r.OutOfOrder)
	}
	if r.TCPConnections != 0 {
		t.Errorf("%d TCP connections on the link", r.TCPConnections)
	}
	if len(r.GatewayErrors) != 0 {
		t.Errorf("%v", r.GatewayErrors)
	}
	atMost(t, "discovery_s", r.DiscoveryS, p.discovery)
	atMost(t, "first_data_s", r.FirstDataS, p.firstData)
	atMost(t, "median latency", r.Latency.Median, p.median)
	if p.payload > 0 && r.PayloadRatio < p.payload {
		t.Errorf("payload ratio %.1f %%, must be %v", r.PayloadRatio, p.payload)
	}
	return r
}

func atMost(t *testing.T, what string, got *float64, most float64) {
	t.Helper()
	switch {
	case most == 0:
	case got == nil:
		t.Errorf("%s: never, must be at most %v", what, most)
	case *got > most:
		t.Errorf("%s = %v, must be at most %v", what, *got, most)
	}
}

// lines keeps the progress, to show it if the test fails.
type lines []byte

func (l *lines) Write(b []byte) (int, error) { *l = append(*l, b...); return len(b), nil }
func (l *lines) String() string              { return string(*l) }
