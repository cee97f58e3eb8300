//go:build long

package field

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	sockets "aldis/internal/edge/lan"
)

var (
	takHour = flag.Duration("tak-hour", time.Hour, "how long the day of TestTAKForAnHour is")
	takSeed = flag.Uint64("tak-seed", 1, "of its link's losses and its units' ways")
)

// caller is a device's connection to a TAK server. It comes back whenever it has ended.
type caller struct {
	ns, at string
	hello  func() string // its first message; nil: none
	got    *plot
	mu     sync.Mutex
	c      net.Conn       // nil: there is none
	kinds  map[string]int // how often a uid came with a type, "type uid"
}

// saw records an event.
func (s *caller) saw(e *cot.Event) {
	s.got.saw(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil {
		s.kinds = map[string]int{}
	}
	s.kinds[e.Type+" "+e.UID]++
}

// often is how often a uid came with a type.
func (s *caller) often(uid, kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[kind+" "+uid]
}

// keep dials until the test ends.
func (s *caller) keep(ctx context.Context) *caller {
	go func() {
		for ctx.Err() == nil {
			c, err := DialIn(ctx, s.ns, s.at)
			if err != nil {
				pause(ctx, time.Second)
				continue
			}
			stop := context.AfterFunc(ctx, func() { c.Close() })
			s.mu.Lock()
			if s.c = c; s.hello != nil {
				io.WriteString(c, s.hello())
			}
			s.mu.Unlock()
			hearEvents(c, s.saw)
			s.mu.Lock()
			s.c = nil
			s.mu.Unlock()
			stop()
			c.Close()
		}
	}()
	return s
}

// say sends a text on the present connection, or on the next one.
func (s *caller) say(ctx context.Context, text string) {
	for {
		s.mu.Lock()
		c := s.c
		if c != nil {
			_, err := io.WriteString(c, text)
			if err == nil {
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
		if !pause(ctx, 100*time.Millisecond) {
			return
		}
	}
}

// trouble is a time in which the link is down or a gateway dead.
type trouble struct {
	what string
	at   time.Duration // from the beginning
	long time.Duration
	do   func(on bool)
	dead *lanSite      // the site whose gateway is dead; nil: the link is down
	over chan struct{} // closed once do(false) is done
}

// hushes says whether the speaker at a site has to wait for the end of a trouble: the site's own gateway is dead, or will be in less than
// before. TAK has no acknowledgement of chats between a device and its server. A chat that reaches a gateway just as it dies, or taky
// while no gateway is its client, is in no gateway's custody, and no gateway can repair that (docs/limits.md). A hearer's gateway may be
// dead, and the link down: once the speaker's gateway has a chat, it must not be lost.
func (x *trouble) hushes(s *lanSite, since time.Duration) bool {
	const before = 3 * time.Second // more than a chat takes from a device to the gateway's journal
	if x.dead != s || since < x.at-before {
		return false
	}
	select {
	case <-x.over:
		return false
	default:
		return true
	}
}

// recovers is how long after a trouble a map may still show units that have left.
const recovers = 30 * time.Second

// person is a device that sends chats and gets receipts.
type person struct {
	*caller
	uid, callsign string
	lon           float64
}

func (p *person) position() string {
	return takText(p.uid, "a-f-G-U-C", "m-g", 54.4, p.lon, 10*time.Minute, fmt.Sprintf(
		`<takv os="29" version="4.5.1.13 (55e727de)" device="SAMSUNG SM-G970U" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><__group role="Team Member" name="Cyan"/><track course="0" speed="0"/>`, p.callsign))
}

// words are a chat to all in ATAK's form.
func (p *person) words(message, text string) (uid, xml string) {
	const room = "All Chat Rooms"
	uid = fmt.Sprintf("GeoChat.%s.%s.%s", p.uid, room, message)
	return uid, takText(uid, "b-t-f", "h-g-i-g-o", 54.4, p.lon, 24*time.Hour, fmt.Sprintf(
		`<__chat parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="%s"/></__chat><link uid="%s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%s" to="%s" time="%s">%s</remarks>`,
		message, room, room, p.callsign, p.uid, room, room, p.uid, p.uid, room, time.Now().UTC().Format(cot.TimeFormat), text))
}

// receipt is a receipt in ATAK's form.
func (p *person) receipt(kind, message string) string {
	const room = "All Chat Rooms"
	return takText(message, kind, "h-g-i-g-o", 0, 0, 24*time.Hour, fmt.Sprintf(
		`<__chatreceipt parent="RootContactGroup" groupOwner="false" messageId="%s" chatroom="%s" id="%s" senderCallsign="%s"><chatgrp uid0="%s" uid1="x" id="%s"/></__chatreceipt><link uid="%s" type="a-f-G-U-C" relation="p-p"/>`,
		message, room, room, p.callsign, p.uid, room, p.uid))
}

// TestTAKForAnHour is the acceptance of the adapter with real processes: headquarters with taky, a ship whose ten units are a mesh, ten
// units ashore, an alert of the ship each 20 s, chats both ways with receipts, a data package of 200 kB, an outage, and kill -9 of both
// gateways. In parallel the same reports and alerts go without gateways through one TCP connection with the same outage.
func TestTAKForAnHour(t *testing.T) {
	const link = "iridium-dialup"
	length := *takHour
	p := load(t, link)
	g, ctx := stand(t, "tak", p, *takSeed)
	hq, ship := g.sites[0], g.sites[1]
	ashore := space(t, g, hq, "taky", 11)
	mesh := space(t, g, ship, "mesh", 11)
	taky := fmt.Sprintf("%s:8087", lanAddr(0, 11).Addr())
	aboard := fmt.Sprintf("%s:8087", lanAddr(1, 1).Addr())
	if err := startTaky(ctx, takProgram(t, "taky"), ashore, lanAddr(0, 11).Addr().String(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	files := [2]string{fmt.Sprintf("%s:8080", lanAddr(0, 1).Addr()), fmt.Sprintf("%s:8080", lanAddr(1, 1).Addr())}
	for s, text := range map[*lanSite]string{
		hq:   fmt.Sprintf("[tak]\nserver = %q\nfiles = %q\n", taky, files[0]),
		ship: fmt.Sprintf("[tak]\nlisten = %q\nmesh = %q\nfiles = %q\n", aboard, lanAddr(1, 1).Addr(), files[1]),
	} {
		err := s.gateway.configure(text)
		if err == nil {
			err = s.gateway.start(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bare, other, hub := bareLink(t, g, p)
	march := newParade(bare, other, length)
	began := time.Now()
	var over sync.WaitGroup

	// The troubles, and their times; a run that is shorter than ten minutes has none.
	kill := func(s *lanSite) func(bool) {
		return func(on bool) {
			if on {
				s.gateway.kill()
				return
			}
			err := s.gateway.start(ctx)
			if err == nil {
				err = joined(ctx, s)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	out := func(on bool) {
		if err := g.hub.Outage(ship.name, on); err != nil {
			t.Error(err)
		}
		if err := hub.Outage("bare1", on); err != nil {
			t.Error(err)
		}
	}
	plan := []trouble{
		{"outage", length / 4, 2 * time.Minute, out, nil, make(chan struct{})},
		{"kill -9 of the ship's gateway", length * 9 / 20, 5 * time.Second, kill(ship), ship, make(chan struct{})},
		{"kill -9 of headquarters' gateway", length * 11 / 20, 5 * time.Second, kill(hq), hq, make(chan struct{})},
	}
	if length < 10*time.Minute {
		plan = nil
	}
	march.troubles = func(at time.Time) bool {
		for _, x := range plan {
			if since := at.Sub(began) - x.at; since > -5*time.Second && since < x.long+recovers {
				return true
			}
		}
		return false
	}
	over.Go(func() {
		for _, x := range plan {
			pause(ctx, time.Until(began.Add(x.at)))
			x.do(true)
			pause(ctx, x.long)
			x.do(false)
			close(x.over)
		}
	})

	// Units, and the devices that watch them.
	group := netip.MustParseAddrPort("239.2.3.1:6969")
	var air *net.UDPConn
	if err := InNetns(mesh, func() (err error) {
		air, err = sockets.ListenMulticast(group, lanAddr(1, 11).Addr())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { air.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := air.Read(buf)
			if err != nil {
				return
			}
			if e, _, err := cot.ParseDatagram(bytes.Clone(buf[:n])); err == nil && e != nil {
				march.shown[1].saw(e)
			}
		}
	}()
	(&caller{ns: ashore, at: taky, got: march.shown[0]}).keep(ctx)
	before, beforeBare := octetsOf(g.hub), octetsOf(hub)
	for i := range 10 {
		unit := (&caller{ns: ashore, at: taky, got: newPlot()}).keep(ctx)
		march.join(ctx, 0, i, func(text string) { unit.say(ctx, text) })
		march.join(ctx, 1, i, func(text string) { air.WriteToUDPAddrPort([]byte(text), group) })
	}

	// Chats with receipts, both ways.
	people := [2]*person{{uid: "ANDROID-00000000000000a1", callsign: "ALPHA", lon: 10.2}, {uid: "ANDROID-00000000000000b1", callsign: "BRAVO", lon: 11.2}}
	for i, who := range people {
		who.caller = &caller{ns: [2]string{ashore, mesh}[i], at: [2]string{taky, aboard}[i], hello: who.position, got: newPlot()}
		who.keep(ctx)
		over.Go(func() { // ATAK reports its position every three minutes
			for pause(ctx, 3*time.Minute) && time.Now().Before(march.over) {
				who.say(ctx, who.position())
			}
		})
	}
	spoken := func(s *lanSite) bool { // waits until the speaker there is heard; false: the test ends
		for slices.ContainsFunc(plan, func(x trouble) bool { return x.hushes(s, time.Since(began)) }) {
			if !pause(ctx, time.Second) {
				return false
			}
		}
		return true
	}
	type said struct {
		message, uid string
		by           int
	}
	var words []said
	over.Go(func() {
		for n := 0; time.Until(march.over) > 2*time.Minute; n++ {
			if !pause(ctx, 45*time.Second) {
				return
			}
			message := fmt.Sprintf("5b7a1d3e-0f2c-4d8e-9a51-%012d", n)
			from, to := people[n%2], people[1-n%2]
			if !spoken(g.sites[n%2]) {
				return
			}
			uid, xml := from.words(message, fmt.Sprint("at buoy ", n))
			words = append(words, said{message, uid, n % 2})
			from.say(ctx, xml)
			over.Go(func() {
				for to.often(uid, "b-t-f") == 0 && pause(ctx, time.Second) && time.Now().Before(march.over.Add(time.Minute)) {
				}
				for _, kind := range []string{"b-t-f-d", "b-t-f-r"} {
					if !spoken(g.sites[1-n%2]) {
						return
					}
					to.say(ctx, to.receipt(kind, message))
					pause(ctx, 3*time.Second)
				}
			})
		}
	})

	// A data package.
	size := 200_000
	if length < 40*time.Minute {
		size = 20_000
	}
	var crossing [2][2]int64 // octets and reports when it was offered, and when it was whole
	var came time.Duration
	over.Go(func() {
		pause(ctx, length/6)
		mark := func() [2]int64 {
			march.mu.Lock()
			defer march.mu.Unlock()
			return [2]int64{octetsOf(g.hub) - before, int64(march.reports)}
		}
		crossing[0] = mark()
		at := time.Now()
		err := carryPackage(ctx, size, people[1], people[0], files, func() bool { return time.Now().Before(march.over) })
		if err != nil {
			t.Error(err)
		}
		came = time.Since(at)
		crossing[1] = mark()
	})

	for n := 0; time.Until(march.over) > 90*time.Second; n++ {
		pause(ctx, 20*time.Second)
		march.raise(n, func(text string) { over.Go(func() { people[1].say(ctx, text) }) })
	}
	march.crew.Wait()
	used, usedBare, reports := octetsOf(g.hub)-before, octetsOf(hub)-beforeBare, march.reports
	pause(ctx, 60*time.Second) // time for events on their way
	over.Wait()
	march.settle()

	t.Logf("%s, %v, %d reports of 20 units; the link's worst delay by this machine %v", link, length, reports, g.hub.Stats().LateMax)
	aside := float64(used-(crossing[1][0]-crossing[0][0])) / float64(int64(reports)-(crossing[1][1]-crossing[0][1]))
	t.Logf("with gateways: %.1f octets a report with all that was said, %.1f while no package crossed; %v", float64(used)/float64(reports), aside, &march.aided)
	t.Logf("in outage, kills and %v after each: %v", recovers, &march.troubled)
	t.Logf("unaided TCP:   %.1f octets a report; %v; %d events still wait to be sent", float64(usedBare)/float64(reports), &march.unaided, march.waiting())
	t.Logf("a package of %d octets was whole after %v", size, came.Round(time.Second))
	if aside > 40 {
		t.Errorf("a report costs %.1f octets", aside)
	}
	a := &march.aided
	if a.lost+march.troubled.lost > 0 {
		t.Errorf("%d alerts did not come", a.lost+march.troubled.lost)
	}
	if n := len(a.alerts); n == 0 || a.alerts[min(n-1, n*95/100)] > 5*time.Second {
		t.Errorf("the 95th percentile of %d alerts is more than 5 s", n)
	}
	if a.missing > 0 || a.beyond > a.compared/1000 {
		t.Errorf("of %d positions %d are not shown and %d more than 50 m off", a.compared, a.missing, a.beyond)
	}
	once, proved := 0, 0
	for _, x := range words {
		if n := people[1-x.by].often(x.uid, "b-t-f"); n == 1 {
			once++
		} else {
			t.Errorf("words %s came %d times", x.uid, n)
		}
		if people[x.by].often(x.message, "b-t-f-d") > 0 && people[x.by].often(x.message, "b-t-f-r") > 0 {
			proved++
		} else {
			t.Errorf("words %s have no receipts", x.uid)
		}
	}
	t.Logf("%d words: %d came once, %d have both receipts", len(words), once, proved)
}

// joined waits until a device, or the LAN's own server, has a stream with a site's gateway.
func joined(ctx context.Context, s *lanSite) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayReady)
	defer cancel()
	for {
		code, text, err := webIn(ctx, s.gateway.netns, "GET", "http://"+gatewayHTTP+"/metrics", "", nil)
		if err == nil && code == 200 && strings.Contains(text, "\naldis_tak_connections ") && !strings.Contains(text, "\naldis_tak_connections 0\n") {
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("nobody has a TAK stream with the gateway of %s: %w", s.name, ctx.Err())
		}
	}
}

// space is a namespace with devices on the LAN of a site, with one address.
func space(t *testing.T, g *game, s *lanSite, name string, host int) string {
	t.Helper()
	ns, err := g.w.add(name)
	if err == nil {
		err = plug(s.ns, ns, "p1", lanAddr(s.index, host))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// carryPackage has a device upload a package and offer it, and another one fetch it from its own gateway until it is whole.
func carryPackage(ctx context.Context, size int, from, to *person, files [2]string, patient func() bool) error {
	data := make([]byte, size)
	rand.Read(data)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	w, err := m.CreateFormFile("assetfile", "DP-A.zip")
	if err != nil {
		return err
	}
	w.Write(data)
	m.Close()
	url := fmt.Sprintf("http://%s/Marti/sync/missionupload?hash=%s&filename=DP-A.zip&creatorUid=%s", files[1], hash, from.uid)
	code, answer, err := webIn(ctx, from.ns, "POST", url, m.FormDataContentType(), form.Bytes())
	if err != nil || code != 200 {
		return fmt.Errorf("the package was answered %d %s: %w", code, answer, err)
	}
	from.say(ctx, takText("dp-1", "b-f-t-r", "h-e", 54.4, from.lon, 10*time.Second, fmt.Sprintf(
		`<fileshare filename="DP-A.zip" name="DP-A" senderUrl=%q senderUid=%q senderCallsign=%q sha256="%s" sizeInBytes="%d"/>`, answer, from.uid, from.callsign, hash, size)))
	for patient() {
		if !pause(ctx, 2*time.Second) {
			break
		}
		e := to.got.newest("dp-1")
		if e == nil || e.Find("fileshare") == nil {
			continue
		}
		code, text, err := webIn(ctx, to.ns, "GET", e.Find("fileshare").Get("senderUrl"), "", nil)
		if err == nil && code == 200 { // while its gateway is dead, no answer comes
			if sha256.Sum256([]byte(text)) != sum {
				return fmt.Errorf("the package came as %d other octets", len(text))
			}
			return nil
		}
		pause(ctx, 10*time.Second)
	}
	return errors.New("the package has not come")
}

// webIn requests a page from inside a namespace.
func webIn(ctx context.Context, ns, method, url, kind string, body []byte) (code int, text string, err error) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return DialIn(ctx, ns, addr) }}}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// parade is ten moving units on each LAN, their view from the other LAN with gateways and unaided, and alerts of the ship.
type parade struct {
	shown, plain [2]*plot       // by site, with gateways and unaided
	pipes        [2]chan string // events of each site for the unaided connection
	over         time.Time
	crew         sync.WaitGroup

	mu             sync.Mutex
	aided, unaided outcome
	troubled       outcome              // with gateways, while troubles says so
	troubles       func(time.Time) bool // the link is down or a gateway dead at that time, or was a moment ago; nil: never
	reports        int
	alerts         []raised
}

// raised is an alert.
type raised struct {
	uid string
	at  time.Time
}

// newParade makes a parade that marches for a while, from now; ship and hq are the ends of the unaided connection.
func newParade(ship, hq net.Conn, length time.Duration) *parade {
	m := &parade{shown: [2]*plot{newPlot(), newPlot()}, plain: [2]*plot{newPlot(), newPlot()},
		pipes: [2]chan string{make(chan string, 100_000), make(chan string, 100_000)}, over: time.Now().Add(length)}
	m.aided.bound, m.unaided.bound, m.troubled.bound = 50, 50, 50
	for i, c := range [2]net.Conn{hq, ship} {
		go hearEvents(c, m.plain[i].saw)
		go func() {
			for text := range m.pipes[i] {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
			}
		}()
	}
	return m
}

// waiting is how many events the unaided connection has not taken yet.
func (p *parade) waiting() int { return len(p.pipes[0]) + len(p.pipes[1]) }

// join has the i-th unit of a site march and report, and its view compared.
func (p *parade) join(ctx context.Context, side, i int, say func(text string)) {
	m := newMover(side, i, *takSeed)
	p.crew.Go(func() {
		began, due := time.Now(), 0
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for second := 0; time.Now().Before(p.over); second++ {
			<-tick.C
			m.step()
			if second < due {
				continue
			}
			due = second + every(m)
			p.mu.Lock()
			text := m.report(time.Duration(every(m)) * time.Second)
			p.reports++
			mine := len(m.said) - 1
			p.mu.Unlock()
			say(text)
			select {
			case p.pipes[side] <- text:
			default:
			}
			if time.Since(began) > time.Minute {
				p.crew.Go(func() {
					if pause(ctx, 5*time.Second) {
						p.compare(side, m, mine)
					}
				})
			}
		}
	})
}

// compare compares the other site's view of a unit with the unit's reports since one of them.
func (p *parade) compare(side int, m *mover, from int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := slices.Clone(m.said[from:])
	of := &p.aided
	if p.troubles != nil && p.troubles(time.Now()) {
		of = &p.troubled
	}
	of.compare(p.shown[1-side], m.uid, said)
	p.unaided.compare(p.plain[1-side], m.uid, said)
}

// raise has the ship raise an alert.
func (p *parade) raise(n int, say func(text string)) {
	a := raised{fmt.Sprintf("alert-%d", n), time.Now()}
	text := takText(a.uid, "b-a-o-tbl", "h-e", 54.3, 10.1, time.Hour, `<emergency type="911 Alert">SHIP</emergency>`)
	p.pipes[1] <- text
	p.alerts = append(p.alerts, a)
	say(text)
}

// settle counts the alerts.
func (p *parade) settle() {
	for _, a := range p.alerts {
		aided := &p.aided
		if p.troubles != nil && p.troubles(a.at) {
			aided = &p.troubled
		}
		for _, x := range []struct {
			p *outcome
			l *plot
		}{{aided, p.shown[0]}, {&p.unaided, p.plain[0]}} {
			if at, came := x.l.came(a.uid); came > 0 {
				x.p.alerts = append(x.p.alerts, at.Sub(a.at))
			} else {
				x.p.lost++
			}
		}
	}
}
