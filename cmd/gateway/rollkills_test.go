package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"aldis/internal/operator/commands"
	"aldis/internal/operator/control"
)

// TestKillsInRollovers kills gateways with kill -9 at random points of rollovers, while JXTA peers send messages throughout, and
// one gateway after the other gets the next roster. One ship is slow, and off the air for whole rollovers. In the end all use the
// last roster, no accepted message is lost or comes twice, and no key has used a nonce twice.
func TestKillsInRollovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		group bool
		nodes int
		kills int
	}{
		{"star", false, 3, rollKills * 2 / 5},
		{"channel", true, 4, rollKills - rollKills*2/5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, tt.nodes, tt.group, rollSeed)
			f.gossip = startGossip(t, f.lans(), rollSeed)
			f.gossip.meet(t, rollPatience)
			begun := time.Now()
			for f.kills < tt.kills && !t.Failed() {
				f.round(t, tt.kills)
				t.Logf("%d kills and %d rollovers after %.0f s: %s", f.kills, f.newest.Serial-1, time.Since(begun).Seconds(), f.gossip.summary())
			}
			f.relay.setAway(tt.nodes-1, false)
			f.agree(t, true)
			f.gossip.settle(t, rollPatience)
			f.judge(t)
			t.Logf("%d kills of %d gateways (%v), %d rollovers in %.0f s: %s; %d datagrams looked at, %d that the kernel dropped before",
				f.kills, tt.nodes, f.killed, f.newest.Serial-1, time.Since(begun).Seconds(), f.gossip.summary(), f.nonces.looked, f.relay.lost(t))
		})
	}
}

const (
	rollSeed     = 1307
	rollPatience = 4 * time.Minute
)

// fastStar and fastChannel are links on which a rollover takes a second. The relay decides the fate of their datagrams.
const (
	fastStar = `name = "fast"
summary = "a fast star"
[link]
medium = "star"
mtu_octets = 1500
[both]
rate_bps = 4000000
delay_ms = 20
queue_octets = 262144
[gateway]
datagram_octets = 1084
segment_octets = 1024
window = 32
ack_delay_ms = 100
probe_interval_ms = 1000
gap_age_ms = 300
grtt_ms = 200
bundle_ms = 5
state_share_percent = 25
`
	fastChannel = `name = "fast"
summary = "a fast channel"
[link]
medium = "shared"
mtu_octets = 1500
tariff = "none"
turnaround_ms = 20
max_hold_ms = 1000
[both]
rate_bps = 2000000
delay_ms = 20
queue_octets = 262144
[gateway]
transport = "p_mul"
datagram_octets = 1084
segment_octets = 1024
window = 32
ack_delay_ms = 200
probe_interval_ms = 1000
gap_age_ms = 300
grtt_ms = 200
bundle_ms = 5
copy_after_ms = 300
state_share_percent = 25
`
)

// fleet is gateways with keys of their own on a relay.
type fleet struct {
	ships     []*ship
	relay     *relay
	nonces    *nonces
	gossip    *gossip
	authority *seal.SigningKey
	newest    *roster.Roster
	nodes     []roster.Node
	group     bool
	rng       *rand.Rand
	kills     int
	killed    map[string]int
	rounds    int
}

// ship is one gateway, in whichever process it runs.
type ship struct {
	*testSite
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
}

func newFleet(t *testing.T, n int, group bool, seed uint64) *fleet {
	t.Helper()
	f := &fleet{nonces: newNonces(n), group: group, rng: rand.New(rand.NewPCG(seed, 2)), killed: map[string]int{},
		authority: seal.NewSigningKey([32]byte{13, byte(seed)})}
	see := f.nonces.see
	if group {
		see = f.nonces.seeAll
	}
	f.relay = newRelay(t, n, group, seed, see)
	for i := range n {
		s := newSite(t, i+1, "")
		own := seal.NewSigningKey([32]byte{14, byte(i), byte(seed)})
		check.NoError(t, os.WriteFile(filepath.Join(s.dir, "node.key"), []byte(roster.NodeKeyText(own)), 0o600))
		s.keys = fmt.Sprintf("roster = \"net.roster\"\nnode_key = \"node.key\"\nauthority = %q", roster.AuthorityPublic(f.authority.Public()))
		if s.link = f.relay.links[i].String(); group {
			s.more = fmt.Sprintf("group = %q\ngroup_interface = \"lo\"", f.relay.groups[i].at)
		}
		f.nodes = append(f.nodes, roster.Node{ID: uint16(i + 1), Name: fmt.Sprintf("node%d", i+1), Public: own.Public()})
		f.ships = append(f.ships, &ship{testSite: s, log: filepath.Join(s.dir, "log")})
	}
	f.sign(t, time.Time{})
	for i, s := range f.ships {
		var peers []string
		for j := range n {
			if j != i {
				peers = append(peers, fmt.Sprintf("%d %s", j+1, f.relay.address(i, j)))
			}
		}
		s.write(t, filepath.Join(s.dir, "data"), peers...)
		text, err := os.ReadFile(s.file)
		check.NoError(t, err)
		link := fastStar
		if group {
			link = fastChannel
		}
		check.NoError(t, os.WriteFile(filepath.Join(s.dir, "fast.toml"), []byte(link), 0o644))
		check.NoError(t, os.WriteFile(s.file, bytes.Replace(text, []byte(`"geo-satcom-128k"`), []byte(`"fast.toml"`), 1), 0o644))
		check.NoError(t, os.WriteFile(filepath.Join(s.dir, "net.roster"), []byte(f.newest.Text()), 0o644))
		t.Cleanup(func() {
			s.kill()
			if text, _ := os.ReadFile(s.log); t.Failed() {
				t.Logf("log of node %d:\n%s", s.id, text[max(0, len(text)-6000):])
			}
		})
		s.start(t)
	}
	return f
}

func (f *fleet) lans() (list []string) {
	for _, s := range f.ships {
		list = append(list, s.lan)
	}
	return list
}

// sign makes the next roster.
func (f *fleet) sign(t *testing.T, at time.Time) {
	t.Helper()
	var chance [roster.RandomForIssue]byte
	for i := range chance {
		chance[i] = byte(f.rng.Uint32())
	}
	next, err := roster.Issue("blue", f.newest, f.nodes, time.Now(), at, chance, f.authority)
	check.NoError(check.Fatal(t), err)
	f.newest = next
}

// start runs the gateway, and returns once it is healthy.
func (s *ship) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check.NoError(check.Fatal(t), err)
	defer log.Close()
	s.cmd, s.ended = gatewayCommand("run", "-c", s.file), make(chan struct{})
	s.cmd.Stderr = log
	check.NoError(check.Fatal(t), s.cmd.Start())
	cmd, ended := s.cmd, s.ended
	go func() { cmd.Wait(); close(ended) }()
	s.until(t, "it is healthy", func() bool {
		resp, err := http.Get("http://" + s.http + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (s *ship) kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

func (s *ship) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await(t, s.id, s.ended, rollPatience, what, ok)
}

// report is a gateway's status; it may be down.
func (s *ship) report() (r control.Report, err error) {
	d, err := operator.DeskOf(s.file, "")
	if err == nil {
		_, err = d.TalkOf(&r, "GET", "/status", nil)
	}
	return r, err
}

// give gives a roster to a gateway until it uses that or a newer one, whatever happens to it meanwhile. The channel is closed
// then.
func (s *ship) give(ctx context.Context, r *roster.Roster) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body, _ := json.Marshal(control.RosterOrder{Roster: r.Append(nil)})
		for ctx.Err() == nil {
			if d, err := operator.DeskOf(s.file, ""); err == nil {
				d.TalkOf(&api.RosterStatus{}, "POST", "/roster", body)
			}
			if is, err := s.report(); err == nil && is.Roster != nil && is.Roster.Serial >= r.Serial {
				return
			}
			rest(ctx, 50*time.Millisecond)
		}
	}()
	return done
}

// round is a rollover with kills in it.
func (f *fleet) round(t *testing.T, most int) {
	t.Helper()
	f.rounds++
	lost := len(f.ships) - 1
	f.relay.setAway(lost, f.rounds%5 == 2 || f.rounds%5 == 3) // a gateway that misses more than three cannot read greetings to all (docs/limits.md)
	at := time.Time{}
	if f.rng.IntN(3) == 0 {
		at = time.Now().Add(time.Duration(f.rng.IntN(4)) * time.Second)
	}
	f.sign(t, at)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given := f.ships[f.rng.IntN(lost)].give(ctx, f.newest)
	for range min(3+f.rng.IntN(8), most-f.kills) {
		f.pass(f.rng.IntN(30))
		rest(ctx, time.Duration(f.rng.IntN(60))*time.Millisecond)
		victims := []int{f.rng.IntN(len(f.ships))}
		if other := f.rng.IntN(len(f.ships)); f.rng.IntN(4) == 0 && other != victims[0] && f.kills+1 < most {
			victims = append(victims, other)
		}
		f.die(t, victims)
	}
	select {
	case <-given:
	case <-time.After(rollPatience):
		t.Fatalf("roster %d was not taken in %v", f.newest.Serial, rollPatience)
	}
	f.agree(t, false)
}

// pass waits until so many more datagrams have been sent, or nobody has anything to send.
func (f *fleet) pass(n int) {
	end := time.After(2 * time.Second)
	for want := f.relay.count() + n; f.relay.count() < want; {
		select {
		case <-end:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// die kills gateways at one moment and starts them again.
func (f *fleet) die(t *testing.T, victims []int) {
	t.Helper()
	for _, i := range victims {
		f.ships[i].cmd.Process.Kill()
	}
	for _, i := range victims {
		<-f.ships[i].ended
		f.gossip.died(i)
		f.relay.flush(t, i)
		f.nonces.ended(i)
		f.kills++
		f.killed[fmt.Sprint("node", i+1)]++
	}
	for _, i := range victims {
		rest(t.Context(), time.Duration(f.rng.IntN(100))*time.Millisecond)
		f.ships[i].start(t)
	}
}

// agree waits until all gateways on the air use the newest roster. With all, it also waits for those that were off the air,
// until messages for all are sealed with that roster too, and all links are up.
func (f *fleet) agree(t *testing.T, all bool) {
	t.Helper()
	for i, s := range f.ships {
		if i == len(f.ships)-1 && !all && f.relay.away[i] {
			continue
		}
		s.until(t, fmt.Sprintf("it goes by roster %d (all: %v)", f.newest.Serial, all), func() bool {
			r, err := s.report()
			if err != nil || r.Roster == nil || r.Roster.Serial != f.newest.Serial {
				return false
			}
			return !all || r.Roster.Sealing == f.newest.Serial && !slices.ContainsFunc(r.Peers, func(p api.PeerStatus) bool { return p.Link != "up" })
		})
	}
}

// judge compares the result with the promise.
func (f *fleet) judge(t *testing.T) {
	t.Helper()
	_, accepted, arrived, _, faults := f.gossip.tally()
	for _, fault := range faults[:min(20, len(faults))] {
		t.Error(fault)
	}
	check.Equal(t, "faults", len(faults), 0)
	check.True(t, "messages were accepted and came", accepted > f.kills && arrived > f.kills, accepted, arrived)
	f.nonces.judge(t)
	check.Equal(t, "datagrams that nobody saw", f.relay.lost(t), 0)
	for i, s := range f.ships {
		var waiting []string
		s.until(t, "nothing waits any more", func() bool {
			r, err := s.report()
			waiting = nil
			for _, p := range r.Peers {
				if p.Waiting+p.UnderWay+p.Pending > 0 {
					waiting = append(waiting, p.Name)
				}
			}
			return err == nil && len(waiting) == 0
		})
		text, err := os.ReadFile(s.log)
		check.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				t.Errorf("log of node %d: %s", i+1, line)
			}
		}
	}
}
