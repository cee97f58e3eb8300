package field

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bufio"

	"aldis/internal/lab/report"
)

// KindXMPP is the kind of peers for XMPP servers and clients.
const KindXMPP = "xmpp"

const (
	statusEvery = 30 * time.Second // clients of the sites change their status in turn
	xmppReady   = 2 * time.Minute  // for all to see each other in the room; without gateways the game begins then in any case
	xmppRoom    = "ops@conference.hq.example"
)

// sentences are in no corpus.
var sentences = []string{
	"Our starboard winch jammed twice before midnight", "Send the blue crates over when the swell is less", "The cook wants forty eggs and the purser says no",
	"Visibility fell below a mile near the old shoals", "Helicopter deck is clear, we wait for your pilot", "Pump three leaks again but the bilge stays quite",
	"Please repeat the berth number, we read nineteen", "Two fishing boats without lights crossed our bow", "Tug asks for the towing line on the port quarter",
	"Doctor on board again, the patient walks already",
}

// xmppGame is one run with XMPP servers and clients. The mutex of game guards the fields after lans.
type xmppGame struct {
	*game
	lans    []xmppSite
	met     *float64 // s until the gateways knew each other
	joined  *float64 // s until every client saw all others in the room
	clients []*xmppClient
	said    []*xmppSaid
	over    bool // a client that is disconnected now was ended by the game
}

// xmppClient is an unmodified client (slixmpp) of a user, with the stanzas that it has received.
type xmppClient struct {
	site               int
	user, jid          string
	partner            *xmppClient // a user of another site, whose presence it sees
	in                 io.Writer
	show               string            // its status
	sees               string            // the partner's status
	room               map[string]string // status of each occupant
	begun, disconnects int
	last               map[xmppFlow]int // number of the newest line of each flow
	swapped            int              // lines that came after a newer one of their flow
}

// xmppFlow is a flow of lines that must come in order.
type xmppFlow struct {
	from *xmppClient
	room bool
}

// xmppSaid is a line that a client sent.
type xmppSaid struct {
	xmppFlow
	text string
	at   time.Time
	told bool // its sender got an error: the line does not arrive
	came map[*xmppClient][]time.Time
}

// XMPPGame plays the Blue Game with XMPP: ejabberd at headquarters, Prosody on ships, clients that chat in one room and in pairs. It
// returns after all measurements, when all namespaces are removed.
func XMPPGame(ctx context.Context, o Options) (*report.XMPPResult, error) {
	p, err := o.complete()
	if err != nil {
		return nil, err
	}
	res := &report.XMPPResult{Profile: p.Name, Seed: o.Seed, DurationS: o.Duration.Seconds(), RateS: o.Rate.Seconds(), Clients: o.Devices, Ships: o.Ships,
		OutageS: o.OutageFor.Seconds(), Kill: o.Kill, Runs: map[string]*report.XMPPRun{}}
	if res.Gateway, err = o.gatewayVersion(ctx); err != nil {
		return nil, err
	}
	err = playKinds(ctx, o, func(ctx context.Context, kind string, v *voice, up func()) (func(), error) {
		g := &xmppGame{game: &game{o: o, p: p, kind: kind, voice: v, up: up}}
		run, err := g.play(ctx)
		return func() { res.Runs[kind] = run }, err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (g *xmppGame) play(ctx context.Context) (run *report.XMPPRun, err error) {
	all, end := context.WithCancel(ctx)
	defer func() {
		troubles, terr := g.remove(func() {
			g.mu.Lock()
			g.over = true
			g.mu.Unlock()
			end()
		})
		if err == nil {
			err = terr
		}
		if run != nil {
			run.TroubledBy = troubles
		}
	}()
	if err := g.setUp(ctx); err != nil {
		return nil, err
	}
	if err := g.open(ctx, all); err != nil {
		return nil, err
	}
	g.up()
	if err := g.gather(ctx); err != nil {
		return nil, err
	}
	if err := g.chat(ctx); err != nil {
		return nil, err
	}
	return g.finish(ctx)
}

// open starts servers, gateways and clients.
func (g *xmppGame) open(ctx, all context.Context) error {
	for _, s := range g.sites {
		g.lans = append(g.lans, xmppSite{domain: s.name + ".example"})
	}
	for i, s := range g.sites {
		var users []string
		for n := range g.o.Devices {
			users = append(users, fmt.Sprint("user", n+1, "of", s.name))
		}
		if err := g.openXMPP(all, i, users); err != nil {
			return err
		}
		g.logf("server of %s takes connections", s.name)
		if s.gateway != nil {
			if err := s.gateway.start(ctx); err != nil {
				return err
			}
		}
		for _, user := range users {
			g.clients = append(g.clients, &xmppClient{site: i, user: user, jid: user + "@" + g.lans[i].domain, room: map[string]string{}, last: map[xmppFlow]int{}})
		}
	}
	for n, c := range g.clients {
		at := g.o.Devices * (1 + n%g.o.Ships) // headquarters' users have partners on all ships
		if c.site > 0 {
			at = 0
		}
		c.partner = g.clients[at+n%g.o.Devices]
		if err := g.login(all, c); err != nil {
			return err
		}
	}
	wait, stop := context.WithTimeout(ctx, serverReady)
	defer stop()
	if !g.everybody(wait, func(c *xmppClient) bool { return c.begun > 0 }) {
		return errors.Join(errors.New("lab: an XMPP client has no session"), wait.Err())
	}
	g.logf("%d clients at each site have their sessions", g.o.Devices)
	if g.kind == "unaided" {
		return nil
	}
	var err error
	g.met, err = g.acquaint(ctx)
	return err
}

// everybody waits until a condition holds for all clients; false: ctx is over.
func (g *xmppGame) everybody(ctx context.Context, is func(c *xmppClient) bool) bool {
	for {
		g.mu.Lock()
		missing := slices.ContainsFunc(g.clients, func(c *xmppClient) bool { return !is(c) })
		g.mu.Unlock()
		if !missing || !pause(ctx, 5*pollEvery) {
			return !missing
		}
	}
}

// login starts the client of a user, and records its output until ctx ends.
func (g *xmppGame) login(ctx context.Context, c *xmppClient) error {
	lan := g.lans[c.site]
	program := findUp("field-tests", "xmpp", ".venv", "bin", "python")
	if program == "" {
		return errors.New("lab: slixmpp is not installed: no field-tests/xmpp/.venv here or above; make xmpp-peers installs it")
	}
	cmd := exec.Command("ip", "netns", "exec", lan.ns, program, findUp("field-tests", "xmpp", "client.py"), c.jid, "secret", lan.at, strconv.Itoa(xmppClients))
	log, err := os.Create(filepath.Join(lan.dir, c.user+".log"))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if err := errors.Join(err, oerr); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if _, _, err := StartBound(cmd); err != nil {
		return fmt.Errorf("lab: slixmpp: %w", err)
	}
	context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	c.in = in
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			g.heard(time.Now(), c, lines.Text())
		}
	}()
	return nil
}

func (c *xmppClient) say(format string, args ...any) { fmt.Fprintf(c.in, format+"\n", args...) }

// join has a client enter the room, as its user does when the client has lost the room.
func (c *xmppClient) join() {
	c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", xmppRoom, c.user)
}

// heard records a line of a client's output.
func (g *xmppGame) heard(now time.Time, c *xmppClient, line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case line == "session begun":
		c.begun++
	case line == "disconnected" && !g.over:
		c.disconnects++
	}
	var e struct {
		XMLName xml.Name
		From    string    `xml:"from,attr"`
		Type    string    `xml:"type,attr"`
		ID      string    `xml:"id,attr"`
		Body    string    `xml:"body"`
		Show    string    `xml:"show"`
		Delay   *struct{} `xml:"delay"`
	}
	if !strings.HasPrefix(line, "<") || xml.Unmarshal([]byte(line), &e) != nil {
		return
	}
	bare, resource, _ := strings.Cut(e.From, "/")
	number, err := strconv.Atoi(e.ID)
	switch {
	case e.Type == "error" && err == nil && number < len(g.said) && g.said[number].from == c:
		g.said[number].told = true
		if g.said[number].room {
			delete(c.room, c.user)
		}
	case e.Type == "error" || e.XMLName.Local == "iq":
	case e.XMLName.Local == "presence" && bare == xmppRoom && e.Type == "unavailable":
		delete(c.room, resource)
	case e.XMLName.Local == "presence" && bare == xmppRoom && resource != "":
		c.room[resource] = e.Show
	case e.XMLName.Local == "presence" && e.Type == "subscribe":
		c.say("<presence to='%s' type='subscribed'/>", bare)
	case e.XMLName.Local == "presence" && bare == c.partner.jid && e.Type == "":
		c.sees = "here " + e.Show
	case e.XMLName.Local == "presence" && bare == c.partner.jid && e.Type == "unavailable":
		c.sees = ""
	case e.XMLName.Local == "message" && e.Body != "":
		g.took(now, c, e.Body, bare == xmppRoom, e.Delay != nil)
	}
}

// took records a line of chat.
func (g *xmppGame) took(now time.Time, c *xmppClient, body string, room, late bool) {
	number, err := strconv.Atoi(body[strings.LastIndex(body, " ")+1:])
	if err != nil || number >= len(g.said) || g.said[number].text != body {
		return
	}
	s := g.said[number]
	if room != s.room || late && len(s.came[c]) > 0 { // a repeat from the room's history
		return
	}
	s.came[c] = append(s.came[c], now)
	if len(s.came[c]) > 1 {
		return
	}
	if number < c.last[s.xmppFlow] {
		c.swapped++
	}
	c.last[s.xmppFlow] = number
}

// gather has all clients subscribe to their partners and enter the room, and waits until all see each other there.
func (g *xmppGame) gather(ctx context.Context) error {
	begun := time.Now()
	for _, c := range g.clients {
		c.say("<presence to='%s' type='subscribe'/>", c.partner.jid)
	}
	wait, stop := context.WithTimeout(ctx, xmppReady)
	defer stop()
	for i := range g.sites {
		for _, c := range g.clients {
			if c.site == i {
				c.join()
			}
		}
		if i == 0 && !g.everybody(wait, func(c *xmppClient) bool { _, in := c.room[c.user]; return in || c.site > 0 }) { // HQ's clients make the room
			return errors.Join(errors.New("lab: headquarters has no room"), wait.Err())
		}
	}
	if g.everybody(wait, func(c *xmppClient) bool { return len(c.room) == len(g.clients) && c.sees != "" }) {
		g.joined = seconds(time.Since(begun))
		g.logf("all see all others in the room, and their partners, after %.1f s", *g.joined)
	} else {
		g.logf("after %v not all see all others: the game goes on", xmppReady)
	}
	return ctx.Err()
}

// chat has users send lines and change their status until the game is over.
func (g *xmppGame) chat(ctx context.Context) error {
	g.stands(g.standing)
	g.zero = time.Now()
	g.logf("time counts from here")
	var plan []action
	for d := progress; d < g.o.Duration; d += progress {
		plan = append(plan, action{d, func() error { g.logf("%s", g.standing()); g.comeBack(); return nil }})
	}
	turn := func(n int, do func(c *xmppClient)) action {
		return action{what: func() error {
			for i := range g.sites {
				do(g.clients[i*g.o.Devices+n%g.o.Devices])
			}
			return nil
		}}
	}
	for n, d := 0, g.o.Rate/2; d < g.o.Duration; n, d = n+1, d+g.o.Rate { // not at the whole seconds of incidents
		a := turn(n, func(c *xmppClient) { g.utter(c, n/g.o.Devices%2 == 0) })
		plan = append(plan, action{d, a.what})
	}
	for n, d := 0, statusEvery/2+time.Second; d < g.o.Duration; n, d = n+1, d+statusEvery {
		a := turn(n, func(c *xmppClient) { g.change(c, []string{"away", "dnd", "xa"}[n/g.o.Devices%3]) })
		plan = append(plan, action{d, a.what})
	}
	return g.follow(ctx, append(plan, g.incidents(ctx)...))
}

// comeBack has clients that the room has lost enter it again.
func (g *xmppGame) comeBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		if _, in := c.room[c.user]; !in {
			c.join()
		}
	}
}

// utter has a user send a line, in the room or to the partner.
func (g *xmppGame) utter(c *xmppClient, room bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	number, to, kind := len(g.said), c.partner.jid, "chat"
	if room {
		to, kind = xmppRoom, "groupchat"
	}
	s := &xmppSaid{xmppFlow{c, room}, fmt.Sprintf("%s, %d", sentences[number%len(sentences)], number), time.Now(), false, map[*xmppClient][]time.Time{}}
	g.said = append(g.said, s)
	c.say("<message to='%s' type='%s' id='%d'><body>%s</body></message>", to, kind, number, s.text)
}

// change has a user change its status.
func (g *xmppGame) change(c *xmppClient, show string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.show = show
	for _, to := range []string{"", " to='" + xmppRoom + "/" + c.user + "'"} {
		c.say("<presence%s><show>%s</show></presence>", to, show)
	}
}

// idle has all clients do what clients do without a user: pings, questions, chat states.
func (g *xmppGame) idle() {
	for _, c := range g.clients {
		for n, to := range []string{g.lans[c.partner.site].domain, c.partner.jid, xmppRoom + "/" + c.user} {
			c.say("<iq type='get' id='ping%d' to='%s'><ping xmlns='urn:xmpp:ping'/></iq>", n, to)
			c.say("<iq type='get' id='info%d' to='%s'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>", n, to)
		}
		c.say("<message to='%s' type='chat'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>", c.partner.jid)
		c.say("<presence to='%s' type='probe'/>", c.partner.jid)
	}
}

// crossed counts the lines that have come to other sites so far: each once for each client of another site. told counts the lines whose
// sender got an error.
func (g *xmppGame) crossed(room bool) (c report.Crossed, told int) {
	var times []float64
	for _, s := range g.said {
		if s.room != room {
			continue
		}
		for _, to := range g.clients {
			if to.site == s.from.site || !room && to != s.from.partner {
				continue
			}
			c.Sent++
			came := s.came[to]
			switch {
			case len(came) > 0:
				c.Came++
				c.Again += len(came) - 1
				times = append(times, came[0].Sub(s.at).Seconds())
			case s.told:
				told++
			}
		}
	}
	c.Latency = latencyOf(times)
	return c, told
}

// standing is the state of the game, for people.
func (g *xmppGame) standing() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	up, down := g.traffic()
	r, toldRoom := g.crossed(true)
	d, told := g.crossed(false)
	return fmt.Sprintf("lines in the room %d of %d, to one %d of %d, %d refused; link %.1f kB up, %.1f kB down; %v to go", r.Came, r.Sent, d.Came, d.Sent, told+toldRoom,
		float64(up.Octets)/1000, float64(down.Octets)/1000, max(0, g.o.Duration-time.Since(g.zero)).Round(time.Second))
}

// finish waits for lines under way, then for the idle traffic of the clients, and computes the figures.
func (g *xmppGame) finish(ctx context.Context) (*report.XMPPRun, error) {
	run := &report.XMPPRun{MetS: g.met, JoinedS: g.joined}
	for deadline := time.Now().Add(g.patience()); ; {
		g.mu.Lock()
		var told int
		run.Room, run.Told = g.crossed(true)
		run.Direct, told = g.crossed(false)
		run.Told += told
		run.Shown, run.Statuses = 0, 0
		for _, c := range g.clients {
			run.Statuses += len(g.clients) - g.o.Devices + 1
			if c.partner.sees == "here "+c.show {
				run.Shown++
			}
			for _, to := range g.clients {
				if show, in := to.room[c.user]; to.site != c.site && in && show == c.show {
					run.Shown++
				}
			}
		}
		g.mu.Unlock()
		if run.Room.Came+run.Direct.Came+run.Told == run.Room.Sent+run.Direct.Sent && run.Shown == run.Statuses || !time.Now().Before(deadline) {
			break
		}
		if !pause(ctx, drainTick) {
			return nil, ctx.Err()
		}
	}
	g.logf("%d of %d lines in the room and %d of %d to one have come, %d were refused", run.Room.Came, run.Room.Sent, run.Direct.Came, run.Direct.Sent, run.Told)
	if !pause(ctx, g.p.AckDelay+g.p.RoundTripMax(g.p.MTU)) { // the last acknowledgements belong to the lines
		return nil, ctx.Err()
	}
	up, down := g.traffic()
	run.Bytes, run.Packets = UpDown{Up: up.Octets, Down: down.Octets}, UpDown{Up: up.Frames, Down: down.Frames}
	run.Dropped, run.Lost = UpDown{Up: up.Dropped, Down: down.Dropped}, UpDown{Up: up.Lost, Down: down.Lost}
	g.idle()
	if !pause(ctx, g.o.Idle) {
		return nil, ctx.Err()
	}
	st := g.hub.Stats()
	up2, down2 := g.traffic()
	run.IdleS, run.Idle = g.o.Idle.Seconds(), UpDown{Up: up2.Octets - up.Octets, Down: down2.Octets - down.Octets}
	for _, n := range slices.Collect(maps.Values(st.TCP)) {
		run.Connections += int64(n)
	}
	run.LateMaxMS = round(float64(st.LateMax.Microseconds())/1000, 2)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		run.Disconnects += c.disconnects
		run.Swapped += c.swapped
	}
	return run, nil
}
