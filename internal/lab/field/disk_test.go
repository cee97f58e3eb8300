package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// smallDisk is a tmpfs that becomes full.
type smallDisk struct{ dir string }

func (d *smallDisk) mount(dir string) error {
	d.dir = dir
	return unix.Mount("aldis-field", dir, "tmpfs", 0, "size=16m")
}

func (d *smallDisk) filler() string { return filepath.Join(d.dir, "filler") }

func (d *smallDisk) fail() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); errors.Is(err, unix.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (d *smallDisk) heal() error    { return os.Remove(d.filler()) }
func (d *smallDisk) unmount() error { return unix.Unmount(d.dir, unix.MNT_DETACH) }

// TestDisk takes the disk from a gateway while peers talk: it becomes full. The gateway reports that once, keeps serving its LAN, and
// sends nothing that is not durable. When the disk recovers, all messages in custody arrive, in order and once, even if the gateway was
// killed meanwhile and restarted from its durable state.
func TestDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range diskCases {
		t.Run(tt.name, func(t *testing.T) {
			disk := &smallDisk{}
			p := newVoyage(t, killSeed, func(g *game) {
				dir := filepath.Join(g.dir, g.sites[tt.site].name+"-data")
				if err := disk.mount(dir); err != nil {
					t.Fatalf("%v (this test needs root)", err)
				}
			})
			// The gateways end before this; the run's directory is removed after it.
			p.last = func() {
				if err := disk.unmount(); err != nil {
					t.Error(err)
				}
			}
			p.loseDisk(disk, p.crews[tt.site])
		})
	}
}

func (p *voyage) loseDisk(disk *smallDisk, c *crew) {
	t := p.t
	p.meet()
	s := sickBay{p, c}
	hush := p.talk(func(i int) *rand.Rand { return rand.New(rand.NewPCG(killSeed, uint64(20+i))) })
	p.progress(20)
	s.must("the link goes down", p.game.hub.Outage("ship", true)) // messages that cannot go wait, and the journal grows
	s.must("the disk fails", disk.fail())
	s.healthy(http.StatusServiceUnavailable)
	s.must("the link comes back", p.game.hub.Outage("ship", false))
	s.still()
	dial, cancel := context.WithTimeout(t.Context(), staleProbe)
	peer, err := tcp.Dial(dial, tcp.Config{Edge: edgepeer.Config{Name: "newcomer", Rand: rand.New(rand.NewPCG(1, 1))}, Address: c.site.gateway.lan,
		Dial: func(ctx context.Context, address string) (net.Conn, error) { return DialIn(ctx, c.site.ns, address) }})
	cancel()
	s.must("a newcomer on the LAN gets its welcome", err)
	peer.Close()
	s.must("the disk recovers", disk.heal())
	s.healthy(http.StatusOK)
	p.progress(20)

	s.must("the link goes down", p.game.hub.Outage("ship", true))
	s.must("the disk fails again", disk.fail())
	c.press(true, true) // delivered messages left free pages in the journal: a full disk is no failure until they are used
	s.healthy(http.StatusServiceUnavailable)
	c.press(false, false)
	c.site.gateway.kill()
	c.died()
	s.must("the disk recovers", disk.heal())
	s.must("the link comes back", p.game.hub.Outage("ship", false))
	s.must("the gateway starts", c.site.gateway.start(t.Context()))
	p.progress(20)
	hush()
	p.settle()
	t.Log(p.summary())
	const said = "the journal cannot be written"
	n := 0
	for what, times := range errorsIn(c.site.gateway.logFile) {
		if strings.HasPrefix(what, said) {
			n += times
			p.expected = append(p.expected, what)
		}
	}
	if n != 2 {
		t.Errorf("the gateway says %d times that %s, want once for each of two failures", n, said)
	}
	p.judge()
}

// sickBay is a site whose disk fails.
type sickBay struct {
	*voyage
	*crew
}

func (s sickBay) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func (s sickBay) healthy(want int) {
	s.t.Helper()
	check.Until(s.t, recovery, fmt.Sprintf("healthz of %s answers %d", s.site.name, want), func() bool { return s.health(s.t.Context()) == want })
}

// still checks that a gateway whose disk fails sends nothing and accepts nothing.
func (s sickBay) still() {
	s.t.Helper()
	heard := func() uint64 {
		st, err := s.far.site.gateway.status(s.t.Context())
		s.must("status", err)
		return st.Peers[0].DatagramsReceived
	}
	check.Still(s.t, 300*time.Millisecond, recovery, "what was in the air has landed", func() int { return int(heard()) })
	before := heard()
	taken, _ := s.accepted()
	check.Never(s.t, 2*time.Second, func() string {
		if n := heard(); n != before {
			return fmt.Sprintf("%d datagrams left a gateway whose disk fails", n-before)
		}
		if n, _ := s.accepted(); n != taken {
			return fmt.Sprintf("%d messages were accepted by a gateway whose disk fails", n-taken)
		}
		return ""
	})
}

// health is the status that healthz of the site's gateway returns; 0: no answer.
func (c *crew) health(ctx context.Context) int {
	client := http.Client{Timeout: gatewayStop, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return DialIn(ctx, c.site.ns, addr) }}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+gatewayHTTP+"/healthz", nil)
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
