package field

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Addresses of the server for devices, and of the group on the mesh.
const (
	takPort  = 8087
	takGroup = "239.2.3.1:6969"
)

// plot is what one LAN shows of the units of other sites, and when their events came.
type plot struct {
	mu     sync.Mutex
	events map[string]*cot.Event // the newest by uid
	first  map[string]time.Time  // when a uid came first
	times  map[string]int        // how often it came
}

func newPlot() *plot {
	return &plot{events: map[string]*cot.Event{}, first: map[string]time.Time{}, times: map[string]int{}}
}

// saw records an event.
func (p *plot) saw(e *cot.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events[e.UID] = e
	p.times[e.UID]++
	if _, has := p.first[e.UID]; !has {
		p.first[e.UID] = time.Now()
	}
}

func (p *plot) newest(uid string) *cot.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[uid]
}

// came returns when a uid came first, and how often it came; zero: never.
func (p *plot) came(uid string) (time.Time, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first[uid], p.times[uid]
}

// hearEvents passes on the events of a stream until the stream ends.
func hearEvents(c net.Conn, saw func(*cot.Event)) {
	var s cot.Splitter
	buf := make([]byte, 16<<10)
	for {
		n, err := c.Read(buf)
		fault := s.Feed(buf[:n], func(frame []byte) {
			if e, _, err := cot.ParseFrame(frame); err == nil && e != nil {
				saw(e)
			}
		})
		if err != nil || fault != nil {
			return
		}
	}
}

// takStream is a device's stream to its server. It is opened again when it ends, as ATAK does.
type takStream struct {
	dial  func(context.Context) (net.Conn, error)
	saw   func(*cot.Event)
	pings bool // it pings a server that is quiet, and hangs up if that does not answer, as ATAK does
	// beside is the same device's stream to the next server of its list; nil: there is none.
	beside *takStream

	mu   sync.Mutex
	conn net.Conn // nil: it is not open
}

// inSpace dials from inside a namespace.
func inSpace(ns, at string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, takWrite)
		defer cancel()
		return DialIn(ctx, ns, at)
	}
}

const (
	takRedial = time.Second
	takWrite  = 5 * time.Second
	// Of ATAK: takQuiet after the last octet it pings, every takPing, and takGone after the last octet it dials again.
	takQuiet = 15 * time.Second
	takPing  = 4500 * time.Millisecond
	takGone  = 25 * time.Second
)

// keep holds the stream open until ctx ends.
func (s *takStream) keep(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := s.dial(ctx)
		if err != nil {
			pause(ctx, takRedial)
			continue
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		s.set(c)
		if s.pings {
			heard := &heardConn{Conn: c}
			go s.ping(heard)
			hearEvents(heard, s.saw)
		} else {
			hearEvents(c, s.saw)
		}
		s.set(nil)
		stop()
		c.Close()
	}
}

// heardConn notes when it last received octets.
type heardConn struct {
	net.Conn
	last atomic.Int64 // ns since 1970
}

func (c *heardConn) Read(p []byte) (int, error) {
	c.last.Store(time.Now().UnixNano())
	if err := c.SetReadDeadline(time.Now().Add(takGone)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// ping pings a server that is quiet, as long as the stream is this one.
func (s *takStream) ping(c *heardConn) {
	for tick := time.NewTicker(takPing); ; <-tick.C {
		s.mu.Lock()
		same := s.conn == c.Conn
		s.mu.Unlock()
		if !same {
			tick.Stop()
			return
		}
		if last := c.last.Load(); last > 0 && time.Since(time.Unix(0, last)) > takQuiet {
			s.write(takText("ping", "t-x-c-t", "m-g", 0, 0, takPing, ""))
		}
	}
}

func (s *takStream) set(c net.Conn) {
	s.mu.Lock()
	s.conn = c
	s.mu.Unlock()
}

// open says whether there is a stream now.
func (s *takStream) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && (s.beside == nil || s.beside.open())
}

// send sends an event to each server; false: there is no stream, or it has just ended.
func (s *takStream) send(text string) bool {
	beside := s.beside != nil && s.beside.send(text)
	return s.write(text) || beside
}

// write sends an event to one server.
func (s *takStream) write(text string) bool {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil {
		return false
	}
	c.SetWriteDeadline(time.Now().Add(takWrite))
	_, err := c.Write([]byte(text))
	return err == nil
}

// mover is a unit with a device, which moves as people, boats and cars do.
type mover struct {
	uid                     string
	lat, lon, course, speed float64 // degrees, metres a second
	top                     float64
	rng                     *rand.Rand
	said                    []moved
}

// newMover is the i-th unit of a site.
func newMover(site, i int, seed uint64) *mover {
	m := &mover{uid: fmt.Sprintf("ANDROID-%016x", 0x359975090666199a+(100*site+i)*7919), lat: 54.3 + float64(i)/100, lon: 10.1 + float64(site),
		top: []float64{1.5, 1.8, 6, 12}[i%4], rng: rand.New(rand.NewPCG(uint64(site*100+i), 14+seed))}
	m.speed = m.top / 2
	return m
}

// moved is a position that a unit reported, with course and speed.
type moved struct {
	at                      time.Time
	lat, lon, course, speed float64
}

const perDegree = 111194.9 // metres

// on is where the unit is after d, if it goes straight on.
func (m *moved) on(d time.Duration) (lat, lon float64) {
	way := m.speed * d.Seconds()
	return m.lat + way*math.Cos(m.course*math.Pi/180)/perDegree, m.lon + way*math.Sin(m.course*math.Pi/180)/perDegree/math.Cos(m.lat*math.Pi/180)
}

// step moves the unit on for a second, with a turn or a change of speed now and then.
func (m *mover) step() {
	if m.rng.IntN(60) == 0 {
		m.course = math.Mod(m.course+m.rng.Float64()*120-60+360, 360)
	}
	if m.rng.IntN(90) == 0 {
		m.speed = m.rng.Float64() * m.top
		if m.rng.IntN(4) == 0 {
			m.speed = 0
		}
	}
	now := moved{lat: m.lat, lon: m.lon, course: m.course, speed: m.speed}
	m.lat, m.lon = now.on(time.Second)
}

// report makes and notes the device's present report. It is valid for as long as ATAK makes a report at this interval valid.
func (m *mover) report(every time.Duration) string {
	m.said = append(m.said, moved{time.Now(), m.lat, m.lon, m.course, m.speed})
	return takText(m.uid, "a-f-G-U-C", "m-g", m.lat, m.lon, 2*every+15*time.Second, fmt.Sprintf(
		`<takv os="29" version="4.5.1.13 (55e727de)" device="SAMSUNG SM-G970U" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><uid Droid="FALCON"/><precisionlocation altsrc="GPS" geopointsrc="GPS"/><__group role="Team Member" name="Cyan"/><status battery="88"/><track course="%v" speed="%v"/>`,
		m.callsign(), m.course, m.speed))
}

func (m *mover) callsign() string { return "FALCON " + m.uid[len(m.uid)-4:] }

// takText is an event as ATAK writes it.
func takText(uid, kind, how string, lat, lon float64, life time.Duration, detail string) string {
	now := time.Now().UTC()
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="%s"><point lat="%.7f" lon="%.7f" hae="22.958679722315807" ce="4.7" le="9999999.0"/><detail>%s</detail></event>`,
		uid, kind, now.Format(cot.TimeFormat), now.Format(cot.TimeFormat), now.Add(life).Format(cot.TimeFormat), how, lat, lon, detail)
}

// pass is the result of the comparison of reports with the far maps.
type pass struct {
	bound                     float64 // metres
	compared, beyond, missing int
	offs                      []float64 // metres
}

// compare checks the position on a map against the unit's course by its reports from a while ago on.
func (p *pass) compare(here *plot, uid string, said []moved) {
	e := here.newest(uid)
	if e == nil {
		p.missing++
		return
	}
	p.compared++
	lat, _ := e.Point.Lat.Float()
	lon, _ := e.Point.Lon.Float()
	off := math.Inf(1)
	for i := range said {
		wantLat, wantLon := said[i].on(time.Since(said[i].at))
		off = min(off, math.Hypot(lat-wantLat, (lon-wantLon)*math.Cos(lat*math.Pi/180))*perDegree)
	}
	p.offs = append(p.offs, off)
	if off > p.bound {
		p.beyond++
	}
}
