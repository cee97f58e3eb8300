package field

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// voyage is two gateways as processes, hq and ship, with the emulator between them and two JXTA peers at each site: one
// talks, the other listens. Gateways may die at any time; the peers dial again, as real ones do.
type voyage struct {
	t        *testing.T
	game     *game
	crews    [2]*crew // as game.sites
	last     func()   // when the gateways have ended, and before their files are removed; nil: nothing
	expected []string // errors in the logs
}

// crew is the JXTA peers of one site, and the results of its talker's messages.
type crew struct {
	site     *lanSite
	far      *crew
	every    time.Duration // between two messages, all of them short; 0: fifty a second
	pipe     string        // propagate, of the far listener
	own      string        // unicast, of this site's listener
	talkerID string
	earID    string

	mu       sync.Mutex
	pressed  bool        // it goes on talking, however many messages are in custody
	swells   bool        // it sends long messages alone
	said     []utterance // by number
	taken    int         // of them, those known to be accepted
	missing  int         // of those, the ones that have not arrived
	strange  []string    // messages that no talker can have sent
	deaths   []time.Time // of this site's gateway
	deaf     []interval  // when the far pipes may have been unknown here: messages sent then are in no gateway's custody
	ears     int         // how often the listener has had a lease
	disorder []string
}

// utterance is one message of a talker.
type utterance struct {
	kind     kind
	short    bool // it surely fits a datagram: such messages come in order (docs/decisions/queues.md)
	at       time.Time
	accepted bool
	came     bool      // to the far listener's machine
	heard    []hearing // at the far listener
}

type hearing struct {
	at time.Time
	id string // MsgId of a propagate pipe
}

// kind of a message.
type kind int

const (
	propagated kind = iota
	unicast
	long // on the propagate pipe, 20 kB: it goes over NORM
	kinds
)

var kindNames = [kinds]string{"propagate", "unicast", "20 kB"}

const (
	shortOctets = 200
	longOctets  = 20_000
	// Every probeEvery messages the talker asks for its lease anew. The answer proves that its earlier messages are accepted.
	probeEvery = 5
	// A talker waits at mostUnderWay messages in custody, because gateways that die all the time carry fewer than they accept.
	mostUnderWay = 200
	// staleProbe ends before an edge peer repeats its question: two answers to one question could be taken for answers to two.
	staleProbe = 10 * time.Second
)

// fastLink is a terminal's link of 4 Mbit/s and 20 ms each way, so that hundreds of restarts fit into minutes.
const fastLink = `name = "fast"
summary = "4 Mbit/s, 20 ms each way"
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
window = 64
ack_delay_ms = 100
probe_interval_ms = 1000
gap_age_ms = 300
grtt_ms = 200
bundle_ms = 5
state_share_percent = 25
`

var gatewayBinary struct {
	once sync.Once
	path string
	err  error
}

// builtGateway is the binary under test.
func builtGateway(t *testing.T) string {
	t.Helper()
	b := &gatewayBinary
	b.once.Do(func() {
		dir, err := os.MkdirTemp("", "aldis-gateway-")
		if err != nil {
			b.err = err
			return
		}
		b.path = filepath.Join(dir, "gateway")
		if out, err := exec.Command("go", "build", "-o", b.path, "aldis/cmd/gateway").CombinedOutput(); err != nil {
			b.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// TestMain lets more tests run at once than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if gatewayBinary.path != "" {
		os.RemoveAll(filepath.Dir(gatewayBinary.path))
	}
	os.Exit(code)
}

// newVoyage starts both gateways, and their peers, which have heard of each other when it returns. prepare may change the
// sites before the gateways start. All of it ends with the test.
func newVoyage(t *testing.T, seed uint64, prepare func(*game)) *voyage {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fast.toml")
	if err := os.WriteFile(file, []byte(fastLink), 0o644); err != nil {
		t.Fatal(err)
	}
	g := &game{o: Options{Profile: file, Seed: seed, Ships: 1, Gateway: builtGateway(t)}, p: load(t, file), kind: "crew",
		voice: (&progressLog{w: io.Discard}).voice("crew")}
	p := &voyage{t: t, game: g}
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range g.sites {
				if s.gateway != nil {
					t.Logf("the end of the log of %s:\n%s", s.name, s.gateway.tail())
				}
			}
		}
		if p.last != nil {
			for _, s := range g.sites {
				if s.gateway != nil {
					s.gateway.kill()
				}
			}
			p.last()
		}
		run := &Run{}
		_, err := g.tearDown(run, nil, func() {})
		if err != nil || len(run.GatewayErrors) > 0 && p.last == nil {
			t.Errorf("at the end: %v %v", err, run.GatewayErrors)
		}
	})
	if err := g.setUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(g)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for i, s := range g.sites {
		p.crews[i] = &crew{site: s, pipe: drawn(rng, jxta.KindPipe), own: drawn(rng, jxta.KindPipe), talkerID: drawn(rng, jxta.KindPeer), earID: drawn(rng, jxta.KindPeer)}
	}
	p.crews[0].far, p.crews[1].far = p.crews[1], p.crews[0]
	for _, s := range g.sites {
		if err := s.gateway.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Peers end before the namespaces do.
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for i, c := range p.crews {
		all.Add(1)
		go func() {
			defer all.Done()
			c.listen(ctx, rand.New(rand.NewPCG(seed, uint64(10+i))))
		}()
	}
	return p
}

// drawn is a random id of the net peer group.
func drawn(rng *rand.Rand, kind byte) string {
	parts := jxta.IDParts{Kind: kind, Group: jxta.WorldUUID}
	for i := range parts.UUID {
		parts.UUID[i] = byte(rng.Uint32())
	}
	return parts.Unique()
}

// dial connects a peer of the site and waits for its lease; nil: the gateway is not there, or ctx is over.
func (c *crew) dial(ctx context.Context, id, name string, rng *rand.Rand, pipes []edgepeer.Listen, hear func(*tcp.Peer, edgepeer.Notice)) *tcp.Peer {
	ctx, cancel := context.WithTimeout(ctx, staleProbe)
	defer cancel()
	p, err := tcp.Dial(ctx, tcp.Config{
		Edge: edgepeer.Config{ID: id, Name: name, Rand: rng}, Address: c.site.gateway.lan, Pipes: pipes, Hear: hear,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := DialIn(ctx, c.site.ns, address)
			if err == nil && len(pipes) > 0 {
				conn = &tap{Conn: conn, from: c.far}
			}
			return conn, err
		},
	})
	if err != nil {
		return nil
	}
	if p.WaitLease(ctx, "") != nil {
		p.Close()
		return nil
	}
	return p
}

// listen is the life of the site's listener: it dials with its pipes open, and dials again.
func (c *crew) listen(ctx context.Context, rng *rand.Rand) {
	pipes := []edgepeer.Listen{{Pipe: c.far.pipe, Kind: jxta.PipeTypePropagate}, {Pipe: c.own, Kind: jxta.PipeTypeUnicast}}
	for ctx.Err() == nil {
		gone := make(chan struct{})
		var once sync.Once
		p := c.dial(ctx, c.earID, c.site.name+"-ear", rand.New(rand.NewPCG(rng.Uint64(), 0)), pipes, func(_ *tcp.Peer, n edgepeer.Notice) {
			if m, ok := n.(edgepeer.Message); ok {
				c.hear(m)
			}
		})
		if p == nil {
			pause(ctx, pollEvery)
			continue
		}
		c.mu.Lock()
		c.ears++
		c.mu.Unlock()
		stop := context.AfterFunc(ctx, func() { once.Do(func() { close(gone) }) })
		select {
		case <-p.Done():
		case <-gone:
			p.Close()
		}
		stop()
	}
}

// hear records the far talker's messages.
func (c *crew) hear(m edgepeer.Message) {
	now := time.Now()
	from := c.far
	_, n, k, ok := numbered(m.Elements)
	from.mu.Lock()
	defer from.mu.Unlock()
	if !ok || n >= len(from.said) || from.said[n].kind != k || !sameWords(m.Elements, words(from.site.name, n, k)) {
		from.strange = append(from.strange, fmt.Sprintf("%.200s at %s", fmt.Sprint(m.Elements), c.site.name))
		return
	}
	u := &from.said[n]
	if len(u.heard) == 0 && u.short {
		for later := n + 1; later < len(from.said); later++ {
			if l := &from.said[later]; l.kind == k && l.short && len(l.heard) > 0 {
				from.disorder = append(from.disorder, fmt.Sprintf("%d after %d at %s", n, later, c.site.name))
				break
			}
		}
	}
	if u.heard = append(u.heard, hearing{now, m.MsgID}); len(u.heard) == 1 && u.accepted {
		from.missing--
	}
}

// text is the body of message n, which cannot be compressed.
func text(n int, k kind) []byte {
	octets := shortOctets
	if k == long {
		octets = longOctets
	}
	b := make([]byte, octets)
	rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	copy(b, fmt.Sprintf("%d;%d;", n, k))
	return b
}

// talk lets the talkers of both sites talk, each by chances of its own, until hush is called or the test ends. hush returns when
// they are silent.
func (p *voyage) talk(chances func(site int) *rand.Rand) (hush func()) {
	ctx, end := context.WithCancel(p.t.Context())
	var talkers sync.WaitGroup
	for i, c := range p.crews {
		rng := chances(i)
		talkers.Go(func() { c.talk(ctx, rng) })
	}
	hush = func() {
		end()
		talkers.Wait()
	}
	p.t.Cleanup(hush)
	return hush
}

// talk is the life of the site's talker until ctx ends: fifty messages a second, of which one in ten goes to the
// unicast pipe and one in fifty is long.
func (c *crew) talk(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		c.call(ctx, rng)
		pause(ctx, pollEvery)
	}
}

// call is one connection of the talker's. On a connection a gateway handles a peer's messages in order and answers a request for a lease
// when that is durable, and with it all messages before the request: these are then in custody.
func (c *crew) call(ctx context.Context, rng *rand.Rand) {
	var mu sync.Mutex
	var asked time.Time // zero: no question is open
	var since []int     // said before the question
	stale := false
	p := c.dial(ctx, c.talkerID, c.site.name+"-talker", rand.New(rand.NewPCG(rng.Uint64(), 0)), nil, func(_ *tcp.Peer, n edgepeer.Notice) {
		if l, ok := n.(edgepeer.Leased); !ok || !l.Renewed {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if asked.IsZero() {
			return
		}
		if time.Since(asked) > staleProbe {
			stale = true
		}
		if !stale {
			c.mu.Lock()
			for _, n := range since {
				c.said[n].accepted = true
				if c.taken++; len(c.said[n].heard) == 0 {
					c.missing++
				}
			}
			c.mu.Unlock()
		}
		asked, since = time.Time{}, nil
	})
	if p == nil {
		return
	}
	defer p.Close()
	var fresh []int // said after the question
	ask := func() error {
		mu.Lock()
		if !asked.IsZero() || stale || len(fresh) == 0 {
			mu.Unlock()
			return nil
		}
		asked, since, fresh = time.Now(), fresh, nil
		mu.Unlock()
		_, err := p.Do(edgepeer.Renew{})
		return err
	}
	for ctx.Err() == nil {
		c.mu.Lock()
		swells, wait := c.swells, c.missing > mostUnderWay && !c.pressed
		c.mu.Unlock()
		if wait {
			select {
			case <-p.Done():
				return
			case <-ctx.Done():
			case <-time.After(pollEvery):
			}
			continue
		}
		k := propagated
		switch {
		case c.every == 0 && rng.IntN(50) == 0 || swells:
			k = long
		case rng.IntN(10) == 0:
			k = unicast
		}
		c.mu.Lock()
		n := len(c.said)
		list := words(c.site.name, n, k)
		c.said = append(c.said, utterance{kind: k, short: octets(list) <= surelyShort, at: time.Now()})
		c.mu.Unlock()
		ev := edgepeer.Send{Pipe: c.pipe, Kind: jxta.PipeTypePropagate, Elements: list}
		if k == unicast {
			ev.Pipe, ev.Kind, ev.To = c.far.own, jxta.PipeTypeUnicast, c.far.earID
		}
		if _, err := p.Do(ev); err != nil {
			return
		}
		if fresh = append(fresh, n); n%probeEvery == 0 {
			if ask() != nil {
				return
			}
		}
		select {
		case <-p.Done():
			return
		case <-ctx.Done():
		case <-time.After(cmp.Or(c.every, time.Duration(10+rng.IntN(21))*time.Millisecond)):
		}
	}
	// The last probe: the messages sent until now are accepted, or the connection ends.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), staleProbe)
	defer cancel()
	for len(fresh) > 0 && ask() == nil && last.Err() == nil {
		mu.Lock()
		open := !asked.IsZero()
		mu.Unlock()
		select {
		case <-p.Done():
			return
		case <-last.Done():
			return
		case <-time.After(pollEvery):
		}
		if !open && len(fresh) == 0 {
			break
		}
	}
	for last.Err() == nil {
		mu.Lock()
		open := !asked.IsZero()
		mu.Unlock()
		if !open {
			return
		}
		select {
		case <-p.Done():
			return
		case <-last.Done():
			return
		case <-time.After(pollEvery):
		}
	}
}

// tally is the results of a talker's messages.
type tally struct {
	said, accepted, arrived int
	lost                    []int      // accepted and not arrived: by custody
	unheard                 []int      // accepted, and lost between the listener's machine and the listener
	unproven                []int      // not arrived and not known to be accepted: in the socket of this site's gateway, which died
	twice                   [kinds]int // arrived more than once
	unexplained             []string   // arrived twice, although no gateway that could have forgotten it died
}

func (c *crew) tally() (y tally) {
	c.far.mu.Lock()
	deaths := append([]time.Time(nil), c.far.deaths...)
	c.far.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	y.said = len(c.said)
	for n, u := range c.said {
		if u.accepted {
			y.accepted++
		}
		switch {
		case len(u.heard) > 0:
			y.arrived++
		case u.came:
			y.unheard = append(y.unheard, n)
		case u.accepted && !slices.ContainsFunc(c.deaf, func(i interval) bool { return u.at.After(i.from) && u.at.Before(i.to) }):
			y.lost = append(y.lost, n)
		default:
			y.unproven = append(y.unproven, n)
		}
		for i := 1; i < len(u.heard); i++ {
			y.twice[u.kind]++
			// A gateway hands a message over again if it died after the first hand-over and before its commit. On a propagate pipe the
			// copy has the same MsgId, by which a peer recognises it.
			died := false
			for _, d := range deaths {
				died = died || d.After(u.heard[i-1].at.Add(-deathSeen)) && d.Before(u.heard[i].at)
			}
			if !died || u.heard[i].id != u.heard[i-1].id {
				y.unexplained = append(y.unexplained, fmt.Sprintf("%s %d: %v", kindNames[u.kind], n, u.heard))
			}
		}
	}
	return y
}

// deathSeen: a listener may still read messages for so long after the gateway has died.
const deathSeen = time.Second

// accepted is how many messages are in custody for certain, and missing how many of them have not arrived.
func (c *crew) accepted() (accepted, missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken, c.missing
}

func (c *crew) hearings() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.said {
		n += len(u.heard)
	}
	return n
}

// press lets the site's talker go on however many messages are in custody, or ends that; swell: it sends long messages alone.
func (c *crew) press(on, swell bool) {
	c.mu.Lock()
	c.pressed, c.swells = on, on && swell
	c.mu.Unlock()
}

// died notes a death of the site's gateway.
func (c *crew) died() {
	c.mu.Lock()
	c.deaths = append(c.deaths, time.Now())
	c.mu.Unlock()
}

// errorsIn are the kinds of errors and panics in a gateway's log, with how often each came.
func errorsIn(file string) map[string]int {
	found := map[string]int{}
	b, err := os.ReadFile(file)
	if err != nil {
		return map[string]int{err.Error(): 1}
	}
	for line := range strings.Lines(string(b)) {
		switch {
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"):
			found[strings.TrimSpace(line)]++
		case strings.Contains(line, `"level":"ERROR"`):
			_, msg, _ := strings.Cut(line, `"msg":"`)
			msg, _, _ = strings.Cut(msg, `"`)
			found[msg]++
		}
	}
	return found
}
