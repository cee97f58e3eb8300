package field

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/baddisk"
	"aldis/internal/lab/check"
)

// A failure of a disk, and the treatment of the gateway meanwhile.
type diskFailure struct {
	name  string
	from  int64 // baddisk.Failure
	kill  bool  // kill -9 while it fails, and a start after it
	mount bool  // the file system is mounted anew before that start: otherwise it lives on
}

var diskFailures = []diskFailure{
	{name: "sectors fail, the gateway runs on", from: baddisk.DataFrom},
	{name: "sectors fail, the gateway is killed", from: baddisk.DataFrom, kill: true},
	{name: "sectors fail, the gateway is killed, mounted anew", from: baddisk.DataFrom, kill: true, mount: true},
	{name: "all fails and ends the file system, mounted anew", kill: true, mount: true},
}

// TestFailingDisk takes the disk from a gateway while peers talk: its device answers with errors of input and output for some seconds.
// The gateway reports the fault and a remedy, accepts no message that it cannot write, and goes on by itself when the device is well.
// Then it accepts messages that wait, is killed, and has its file system mounted anew, so that only the contents of the disk count. No
// message accepted at any time is lost.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	for _, seed := range failingSeeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			disk, err := baddisk.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			gone := func() {
				if err := disk.Close(); err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(gone)
			rng := rand.New(rand.NewPCG(seed, 3))
			site := rng.IntN(2)
			p := newVoyage(t, seed, func(g *game) {
				if err := disk.Mount(filepath.Join(g.dir, g.sites[site].name+"-data")); err != nil {
					t.Fatal(err)
				}
			})
			p.last = gone
			p.failingDisk(&patient{sickBay: sickBay{p, p.crews[site]}, disk: disk, rng: rng})
		})
	}
}

func (p *voyage) failingDisk(s *patient) {
	p.meet()
	order := s.rng.Perm(len(diskFailures))
	hush := p.talk(func(i int) *rand.Rand { return rand.New(rand.NewPCG(s.rng.Uint64(), uint64(20+i))) })
	begun := time.Now()
	for _, n := range order[:outages] {
		s.fail(diskFailures[n])
	}
	hush()
	p.settle()
	refused, err := s.disk.Refused()
	s.must("the device answers", err)
	p.t.Logf("the disk of %s: %d outages in %.0f s, %d requests refused; %s", s.site.name, outages, time.Since(begun).Seconds(), refused, p.summary())
	s.told()
	p.judge()
}

// patient is a sickBay with a device of ours.
type patient struct {
	sickBay
	disk    *baddisk.Disk
	rng     *rand.Rand
	refused int // starts on a disk that fails
}

// hoard takes the link away until messages wait at the site, which its journal holds.
func (s *patient) hoard() {
	s.t.Helper()
	s.must("the link goes down", s.game.hub.Outage("ship", true))
	at, _ := s.accepted()
	s.press(true, false) // as many as its peers send otherwise may be on the link, and nothing arrives now
	defer s.press(false, false)
	check.Until(s.t, recovery, "messages wait", func() bool {
		now, _ := s.accepted()
		return now >= at+20
	})
}

func (s *patient) fail(f diskFailure) {
	s.t.Helper()
	s.progress(5 + s.rng.IntN(10))
	s.hoard()
	// The file has been read at the start: a device that only refuses to read would not be noticed.
	s.must("the disk fails", s.disk.Fail(baddisk.Failure{From: f.from, Writes: true, Reads: s.rng.IntN(2) == 0, After: s.rng.IntN(20)}))
	s.healthy(http.StatusServiceUnavailable)
	s.must("the link comes back", s.game.hub.Outage("ship", false))
	s.still()
	if f.kill {
		s.site.gateway.kill()
		s.died()
		s.refuses(f.name)
	}
	s.must("the disk is well", s.disk.Heal())
	s.restart(f.kill, f.mount)
	s.healthy(http.StatusOK)
	s.progress(5 + s.rng.IntN(10))

	s.hoard()
	s.site.gateway.kill()
	s.died()
	s.restart(true, true)
	s.must("the link comes back", s.game.hub.Outage("ship", false))
	s.progress(5)
	if s.t.Failed() {
		s.t.Fatalf("after: %s", f.name)
	}
}

// refuses starts the gateway on a failing disk. It may listen for a moment before it notices the failure.
func (s *patient) refuses(name string) {
	s.t.Helper()
	g := s.site.gateway
	if g.start(s.t.Context()) == nil {
		select {
		case <-g.done:
		case <-time.After(gatewayReady):
			s.t.Errorf("%s: the gateway starts on a disk that fails", name)
			g.kill()
		}
	}
	if why := lastLine(g.tail()); !strings.Contains(why, "its disk fails") && !strings.Contains(why, "its disk has failed") {
		s.t.Errorf("%s: a start on a disk that fails does not say so: %s", name, why)
	}
	s.refused++
}

// restart mounts the file system anew, and starts the gateway.
func (s *patient) restart(start, mount bool) {
	s.t.Helper()
	if mount {
		s.must("the file system is mounted anew", s.disk.Remount())
	}
	if start {
		s.must("the gateway starts", s.site.gateway.start(s.t.Context()))
	}
}

// told compares the log with the outages: each must be reported.
func (s *patient) told() {
	s.t.Helper()
	const said, refused = "the journal cannot be written", "the gateway cannot run"
	n := 0
	for what, times := range errorsIn(s.site.gateway.logFile) {
		if what == refused && times == s.refused {
			s.expected = append(s.expected, what)
		}
		if strings.HasPrefix(what, said) {
			n += times
			s.expected = append(s.expected, what)
		}
	}
	if n < outages || n > 3*outages {
		s.t.Errorf("the gateway says %d times that %s, in %d outages", n, said, outages)
	}
}
