package field

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/report"
)

// TestXMPPGame: ejabberd ashore, Prosody aboard and slixmpp clients, through an outage of the link and a kill of the ship's gateway: all
// lines come once and in order, no client is disconnected, and the idle traffic of clients costs the link nothing.
func TestXMPPGame(t *testing.T) {
	t.Run("satellite", func(t *testing.T) {
		t.Parallel()
		r := playXMPP(t, Options{Profile: "iridium-directip", Seed: 1, Devices: 2, Duration: 40 * time.Second, Rate: 2 * time.Second, Only: "gateway",
			OutageAt: 10 * time.Second, OutageFor: 10 * time.Second, Kill: "ship", KillAt: 28 * time.Second, Idle: 5 * time.Second})
		if run := r.Runs["gateway"]; run.Room.Sent != 40 || run.Direct.Sent != 20 || run.Connections != 0 {
			t.Errorf("%+v", run)
		}
	})
	t.Run("unaided", func(t *testing.T) { // on a link that is no obstacle the servers do it themselves
		t.Parallel()
		r := playXMPP(t, Options{Profile: "wire", Seed: 1, Devices: 2, Duration: 20 * time.Second, Rate: 2 * time.Second, Unaided: true, Idle: 5 * time.Second})
		aided, alone := r.Runs["gateway"], r.Runs["unaided"]
		if alone == nil || alone.Room.Came != alone.Room.Sent || alone.Direct.Came != alone.Direct.Sent || alone.Idle.Up+alone.Idle.Down == 0 || alone.Connections == 0 {
			t.Fatalf("unaided: %+v", alone)
		}
		if aided.Bytes.Up*3 > alone.Bytes.Up || aided.Bytes.Down*3 > alone.Bytes.Down {
			t.Errorf("octets with gateways %+v, without %+v", aided.Bytes, alone.Bytes)
		}
	})
}

func playXMPP(t *testing.T, o Options) *report.XMPPResult {
	t.Helper()
	var said bytes.Buffer
	o.Peers, o.Gateway, o.Progress = KindXMPP, builtGateway(t), &said
	r, err := XMPPGame(t.Context(), o)
	if err != nil {
		t.Fatalf("%v (make xmpp-peers test installs servers and clients)\n%s", err, said.String())
	}
	run := r.Runs["gateway"]
	text, _ := json.Marshal(run)
	if faults := r.Faults(); faults != "" || run.Told > 0 || run.Idle.Up+run.Idle.Down > 0 {
		t.Errorf("%s; %s\n%s", faults, text, said.String())
	}
	var board strings.Builder
	if err := r.Board(&board); err != nil || !strings.Contains(board.String(), "statuses shown at the end") {
		t.Errorf("%v\n%s", err, board.String())
	}
	return r
}

// TestXMPPFaults: a game in which lines are lost, come twice or in another order counts as failed.
func TestXMPPFaults(t *testing.T) {
	r := &report.XMPPResult{Runs: map[string]*report.XMPPRun{"gateway": {Room: report.Crossed{Sent: 3, Came: 1}, Direct: report.Crossed{Sent: 1, Came: 1, Again: 1}, Told: 1, Swapped: 1,
		Statuses: 2, Shown: 1, Disconnects: 1}}}
	for _, want := range []string{"1 lines did not come", "1 lines came twice", "1 lines came out of order", "1 statuses", "disconnected 1 times"} {
		if !strings.Contains(r.Faults(), want) {
			t.Errorf("no %q in %q", want, r.Faults())
		}
	}
}
