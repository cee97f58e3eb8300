package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
)

const (
	xmppClients  = 100                                                // aboard
	xmppSentence = "Two fishing boats without lights crossed our bow" // 48 octets
)

// xmppLoads are the loads of the clients aboard: they enter rooms of headquarters, as many in each, and send lines.
var xmppLoads = []struct{ rooms, each, rate int }{{20, 5, 100}, {20, 5, 1000}, {200, 50, 100}}

// xmppServer replaces the XMPP server of a LAN: it accepts every component, answers their pings, and notes lines. It has no clients: the
// benchmark sends their lines.
type xmppServer struct {
	listen net.Listener
	mu     sync.Mutex
	conns  map[string]net.Conn // by domain
	said   map[string]time.Time
	took   []float64 // ms until another client of the LAN has a line
	copies int
	ghosts int             // presences of far users in rooms
	told   map[string]int  // refused lines, by reason
	came   map[string]bool // lines of far sites, by body
}

func newXMPPServer() (*xmppServer, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &xmppServer{listen: ln, conns: map[string]net.Conn{}, said: map[string]time.Time{}, came: map[string]bool{}, told: map[string]int{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s, nil
}

func (s *xmppServer) serve(c net.Conn) {
	defer c.Close()
	var split stanza.Splitter
	domain, buf := "", make([]byte, 256<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if split.Feed(buf[:n], func(e *stanza.Element, _ *stanza.Fault) {
			switch {
			case e == nil:
			case e.Name == "stream":
				domain = e.Get("to")
				fmt.Fprintf(c, "<?xml version='1.0'?><stream:stream xmlns='%s' xmlns:stream='%s' id='1' from='%s'>", stanza.Component, stanza.Streams, domain)
			case e.Name == "handshake":
				fmt.Fprint(c, "<handshake/>")
				s.mu.Lock()
				s.conns[domain] = c
				s.mu.Unlock()
			case e.Name == "iq" && e.Get("type") == "get":
				fmt.Fprintf(c, "<iq type='result' id='%s' from='%s' to='%s'/>", e.Get("id"), e.Get("to"), e.Get("from"))
			case e.Name == "message":
				s.heard(e)
			case e.Name == "presence" && strings.Contains(e.Get("to"), "/"):
				s.mu.Lock()
				s.ghosts++
				s.mu.Unlock()
			}
		}) != nil {
			return
		}
	}
}

// heard notes a line: of this LAN with its id, of another with its text.
func (s *xmppServer) heard(e *stanza.Element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := e.Get("id")
	if bad := e.Kid(stanza.Component, "error"); bad != nil {
		s.told[bad.Kids[0].Name]++
		return
	}
	if at, ours := s.said[id]; ours {
		s.copies++
		if sender, _, _ := strings.Cut(id, "-"); !strings.HasPrefix(e.Get("to"), sender+"@") && !at.IsZero() {
			s.took = append(s.took, time.Since(at).Seconds()*1e3)
			s.said[id] = time.Time{}
		}
		return
	}
	if b := e.Kid(stanza.Component, "body").Inside(); b != "" {
		s.came[b] = true
	}
}

func (s *xmppServer) refused() (n int) {
	for _, count := range s.told {
		n += count
	}
	return n
}

func (s *xmppServer) say(domain, format string, args ...any) {
	s.mu.Lock()
	c := s.conns[domain]
	s.mu.Unlock()
	if c != nil {
		fmt.Fprintf(c, format, args...)
	}
}

// xmppSite is the XMPP part of a gateway's configuration.
func (r *run) xmppSite(s *xmppServer, here, far string, id int) (string, error) {
	file := filepath.Join(r.dir, "xmpp.secret")
	err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600)
	return fmt.Sprintf("\n[xmpp]\nserver = %q\nsecret_file = %q\ndomain = %q\nrooms = \"conference.%[3]s\"\n[[xmpp.site]]\nsite = \"%d\"\ndomain = %[5]q\nrooms = \"conference.%[5]s\"\n",
		s.listen.Addr(), file, here, id, far), err
}

// xmppLines has a hundred clients aboard send lines in rooms of headquarters.
func (s *session) xmppLines(ctx context.Context) (err error) {
	ship, err := newXMPPServer()
	if err != nil {
		return err
	}
	defer ship.listen.Close()
	shore, err := newXMPPServer()
	if err != nil {
		return err
	}
	defer shore.listen.Close()
	ports, err := freePorts("udp", 2)
	if err != nil {
		return err
	}
	var gateways [2]*server
	for i, at := range []*xmppServer{shore, ship} {
		domains := []string{"hq.example", "ship.example"}
		text, err := s.xmppSite(at, domains[i], domains[1-i], 2-i)
		if err != nil {
			return err
		}
		g, err := s.gateway(ctx, site{id: i + 1, profile: "wire", radio: ports[i], peers: map[int]string{2 - i: fmt.Sprintf("127.0.0.1:%d", ports[1-i])}, more: text})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.stop()) }()
		gateways[i] = g
	}
	taken := func(s *xmppServer) bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 2 }
	if err := until(ctx, serverReady, func() bool { return taken(ship) && taken(shore) }); err != nil {
		return fmt.Errorf("the gateways are not connected: %w", err)
	}
	const rooms = "conference.hq.example"
	number, toldBefore, entered := 0, 0, 0
	for n, load := range xmppLoads {
		// Client u is in room u mod n, and in each further room at the same distance.
		roomsOf := load.rooms * load.each / xmppClients
		roomOf := func(user, i int) int { return (user + i*load.rooms/roomsOf) % load.rooms }
		ship.mu.Lock()
		ship.took, ship.copies = nil, 0
		ship.mu.Unlock()
		for user := range xmppClients {
			for i := range roomsOf {
				if n == 0 || load.rooms != xmppLoads[n-1].rooms {
					entered++
					ship.say(rooms, "<presence from='u%[1]d@ship.example/x' to='r%[3]d-%[2]d@%[4]s/u%[1]d'/>", user, roomOf(user, i), load.rooms, rooms)
				}
			}
			if err := until(ctx, 2*time.Minute, func() bool { shore.mu.Lock(); defer shore.mu.Unlock(); return shore.ghosts >= entered }); err != nil {
				return fmt.Errorf("of %d far occupants %d are at headquarters: %w", entered, shore.ghosts, err)
			}
		}
		rate, seconds := load.rate, s.quick(10, 1)
		s.progressf("%d lines a second in %d rooms of %d for %d s", rate, load.rooms, load.each, seconds)
		before, began := gateways[1].cost(), time.Now()
		of := rate * seconds
		for i := range of {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
			number++
			user := i % xmppClients
			id := fmt.Sprintf("u%d-%d", user, number)
			ship.mu.Lock()
			ship.said[id] = time.Now()
			ship.mu.Unlock()
			ship.say(rooms, "<message from='u%d@ship.example/x' to='r%d-%d@%s' type='groupchat' id='%s'><body>%s, %d</body></message>",
				user, load.rooms, roomOf(user, i/xmppClients%roomsOf), rooms, id, xmppSentence, number)
		}
		wait := until(ctx, time.Minute, func() bool {
			ship.mu.Lock()
			defer ship.mu.Unlock()
			shore.mu.Lock()
			defer shore.mu.Unlock()
			return len(shore.came)+ship.refused() >= number
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ship.mu.Lock()
		shore.mu.Lock()
		slices.Sort(ship.took)
		lost, refused := number-len(shore.came)-ship.refused(), ship.refused()-toldBefore
		toldBefore += refused
		figures := []float64{0, 0}
		if n := len(ship.took); n > 0 {
			figures = []float64{ship.took[n/2], ship.took[n*95/100]}
		}
		number = len(shore.came) + ship.refused() // a lost line counts once
		ship.mu.Unlock()
		shore.mu.Unlock()
		if wait != nil {
			s.progressf("%d of %d lines did not come", lost, of)
		}
		each := (gateways[1].cost().cpu - before.cpu).Seconds() / float64(of)
		what := fmt.Sprintf("%d rooms with %d of %d clients each: ", load.rooms, load.each, xmppClients)
		for _, f := range []struct {
			what, unit  string
			value, must float64
		}{{"until another client has a line, median", "ms", figures[0], 2}, {"the same, 95 of 100", "ms", figures[1], 0}, {"of a core, for a hundred lines a second", "%", 100 * 100 * each, 2}} {
			row := Row{What: what + f.what, Number: rate, Of: "lines a second", Unit: f.unit, N: of, Must: f.must, Less: true}
			if f.unit == "%" {
				row.Lost, row.Note = lost, fmt.Sprintf("%d of %d lines were refused, and their senders told: %v", refused, of, ship.told)
			}
			s.put(row.of(f.value))
		}
	}
	return nil
}

// until waits until a condition holds, and checks it often.
func until(ctx context.Context, most time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
	return nil
}
