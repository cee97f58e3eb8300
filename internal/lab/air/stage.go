package air

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Pipe is the propagate pipe of the shore site to which messages go.
const Pipe = "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04"

// Context is the part of a context.Context that a play needs: why it should end, if it should.
type Context interface{ Err() error }

// Peer names a local peer by number.
func Peer(n uint16) string {
	return fmt.Sprintf("cbid-59616261646162614A78746150325033%02X569155EBF440C2B9C89E114D3E269303", n)
}

// Track is message i of a local peer to a pipe. It has so many random octets, so that the figures hold for any text. It begins with both
// numbers, if there is room.
func Track(from uint16, pipe string, i, octets int) site.Message {
	body := bytes.Repeat([]byte{'x'}, octets)
	rng := uint32(i)*2654435761 + uint32(from)
	for k := range body {
		rng = rng*1664525 + 1013904223
		body[k] = byte(rng >> 24)
	}
	copy(body, fmt.Sprintf("%d;%d;", from, i))
	return message(from, pipe, i, body)
}

// Line is message i of a local peer as a ship would send it: readable, and similar to the one before.
func Line(from uint16, pipe string, i int) site.Message {
	return message(from, pipe, i, fmt.Appendf(nil, "TRK;ship%d;%06d;2026-11-20T12:%02d:%02dZ;N59.%04d;E005.%04d;course=%03d;speed=%02d.%d;depth=%d;status=under way using engine;source=own sensor;remark=none to report",
		from, i, i/12%60, i*5%60, 1234+7*i, 4321+11*i, (45+i)%360, 12+i%3, i%10, 80+i%17))
}

func message(from uint16, pipe string, i int, body []byte) site.Message {
	return site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipe, From: Peer(from), ID: fmt.Sprint(from, i),
		Parts: []site.Part{{Namespace: "trk", Name: "body", Data: body}}}
}

// Offered is a message that a site was given to carry.
type Offered struct {
	At      time.Time
	Message site.Message
}

// Once returns how long each offered message took, in ascending order. It is an error if one of them did not arrive, arrived twice,
// arrived changed, or arrived before an earlier one.
func Once(got []sim.Got, from uint16, sent []Offered) (took []time.Duration, err error) {
	var of []sim.Got
	for _, g := range got {
		if g.From == from {
			of = append(of, g)
		}
	}
	if len(of) != len(sent) {
		return nil, fmt.Errorf("%d of %d messages of node %d arrived", len(of), len(sent), from)
	}
	for i, g := range of {
		want := sent[i].Message
		want.ID = g.Payload.ID
		if !reflect.DeepEqual(g.Payload, want) {
			return nil, fmt.Errorf("message %d of node %d arrived as %+v", i, from, g.Payload)
		}
		took = append(took, g.At.Sub(sent[i].At))
	}
	slices.Sort(took)
	return took, nil
}

// Each is Once for messages that may overtake each other, as over P_Mul.
func Each(got []sim.Got, from uint16, sent []Offered) ([]time.Duration, error) {
	place := map[string]int{}
	for i, o := range sent {
		place[string(o.Message.Parts[0].Data)] = i
	}
	var of []sim.Got
	for _, g := range got {
		if g.From == from {
			of = append(of, g)
		}
	}
	slices.SortStableFunc(of, func(a, b sim.Got) int {
		return place[string(a.Payload.Parts[0].Data)] - place[string(b.Payload.Parts[0].Data)]
	})
	return Once(of, from, sent)
}

// stage is a shore and its ships on a link, after they have met.
type stage struct {
	*sim.World
	ctx         Context
	err         error
	link        profile.Profile
	shore, ship *sim.Node // the first ship
	due         int       // how many messages the ship will have sent
	sent        []Offered // the messages it has sent so far
}

const acquaintance = 2 * time.Minute

// newStage makes the gateways of a link, which meet; change may make another link of it.
func newStage(ctx Context, link string, nodes int, seed uint64, change ...func(*sim.Config)) (*stage, error) {
	s, err := newNet(ctx, link, nodes, seed, change...)
	if err != nil {
		return nil, err
	}
	s.shore.Site.Listen(s.World, Peer(1), Pipe)
	s.run(acquaintance)
	return s, s.err
}

// newNet is newStage before the gateways send anything.
func newNet(ctx Context, link string, nodes int, seed uint64, change ...func(*sim.Config)) (*stage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := profile.Load(link, nil)
	if err != nil {
		return nil, err
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{Nodes: nodes, Profile: p, Wire: wire, Seed: seed, Down: 3 * time.Second, Ashore: !p.Shared, Known: new(compact.Known)}
	if p.Shared {
		cfg.Group = p.Transport == profile.PMul
	}
	for _, f := range change {
		f(&cfg)
	}
	w, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	return &stage{World: w, ctx: ctx, link: cfg.Profile, shore: w.Nodes[0], ship: w.Nodes[1]}, nil
}

// run plays so much virtual time, or until the context ends.
func (s *stage) run(d time.Duration) {
	const step = 10 * time.Second
	for ; d > 0 && s.err == nil; d -= step {
		s.World.Run(min(d, step))
		s.err = s.ctx.Err()
	}
}

// until plays until done returns true, but not longer than most.
func (s *stage) until(most time.Duration, done func() bool) {
	for end := s.Now.Add(most); s.err == nil && s.Now.Before(end) && !done(); {
		s.run(10 * time.Second)
	}
}

// offer lets the ship send n messages to the shore, one every interval from a second on.
func (s *stage) offer(n int, every time.Duration, what func(i int) site.Message) {
	offerAfter(s, time.Second, n, every, what)
}

// offerAfter is offer from another time on.
func offerAfter(s *stage, start time.Duration, n int, every time.Duration, what func(i int) site.Message) {
	s.due += n
	for i := range n {
		m := what(i)
		s.At(start+time.Duration(i)*every, func() {
			s.sent = append(s.sent, Offered{s.Now, m})
			s.ship.Site.Send(s.World, m, s.shore.ID)
		})
	}
}

func tracks(octets int) func(int) site.Message {
	return func(i int) site.Message { return Track(2, Pipe, i, octets) }
}

// settle waits until all offered messages have arrived, and returns how long each took.
func (s *stage) settle(most time.Duration) ([]time.Duration, error) {
	s.until(most, func() bool { return len(s.shore.Site.Got) >= s.due })
	if s.err != nil {
		return nil, s.err
	}
	return Once(s.shore.Site.Got, s.ship.ID, s.sent)
}

// upLimit is how long the ship's leg needs for so many octets and nothing else.
func (s *stage) upLimit(octets int) time.Duration { return Limit(s.link, octets) }

// Limit is how long a terminal's leg needs upwards for so many octets and nothing else: airtime and the mean delay.
func Limit(p profile.Profile, octets int) time.Duration {
	return profile.Airtime(octets, p.Up.RateBps) + meanDelay(p.Up)
}

func meanDelay(d profile.Direction) time.Duration { return d.Delay + d.Jitter/2 }

// at is a quantile of sorted values: the least value that such a share of them does not exceed.
func at[T any](sorted []T, share float64) T {
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
