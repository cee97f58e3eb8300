package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// plays are plays of one trace in virtual time, a seed each.
type plays struct {
	*session
	profile profile.Profile
}

// link measures the effects of a link: two whole gateways in virtual time.
func (s *session) link(ctx context.Context) error {
	p, err := profile.Load(s.Profile, nil)
	if err != nil {
		return err
	}
	on := plays{s, p}
	for _, part := range []func(plays, context.Context) error{plays.services, plays.messages, plays.elements, plays.losses, plays.documents} {
		if err := part(on, ctx); err != nil && ctx.Err() == nil {
			s.failed(ctx, Row{What: s.doing}, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// play plays a trace with every seed. An overloaded link is no error: it makes messages late.
func (p plays) play(ctx context.Context, f *trace.File) (all []*replay.Result, err error) {
	f.Header.Duration = f.Lines[len(f.Lines)-1].T + 60
	for seed := range p.series() {
		res, err := replay.Run(ctx, f, replay.Options{Profile: p.profile, Seed: uint64(seed + 1), Bin: time.Second, Drain: 12 * time.Hour})
		var overload *replay.OverloadError
		if err != nil && !errors.As(err, &overload) {
			return nil, err
		}
		all = append(all, res)
	}
	return all, nil
}

// figures files a row with a figure of each play.
func (p plays) figures(row Row, all []*replay.Result, of func(*replay.Result) (float64, bool)) {
	var series []float64
	for _, res := range all {
		if v, ok := of(res); ok {
			series = append(series, v)
		}
	}
	if row.Note != "" {
		row.Note += "; "
	}
	row.Note += fmt.Sprintf("%s, seeds 1 to %d", p.profile.Name, len(all))
	if len(series) == 0 {
		row.Failed = "it never happened in any of the plays"
	}
	p.put(row.of(series...))
}

// script is a trace in the making: one peer ashore and one at sea, each with a pipe that it listens to.
type script struct{ trace.File }

// The labels of both peers, and of their pipes.
const (
	ashore, atSea         = "p1", "p2"
	ashorePipe, atSeaPipe = "q1", "q2"
)

func newScript(kind string) *script {
	s := &script{}
	s.Header = trace.Header{Version: 1, Content: "data", Source: "gateway bench"}
	s.add(trace.Line{Do: "peer", Peer: ashore, Name: "ashore"}, trace.Line{Do: "peer", Peer: atSea, Name: "atsea", Edge: true},
		trace.Line{Do: "pipe", Pipe: ashorePipe, Kind: kind}, trace.Line{Do: "pipe", Pipe: atSeaPipe, Kind: kind})
	return s
}

func (s *script) add(lines ...trace.Line) { s.Lines = append(s.Lines, lines...) }

// listen has both open their pipes at time t.
func (s *script) listen(t float64) {
	s.add(trace.Line{T: t, Do: trace.EventOpen, Peer: ashore, Pipe: ashorePipe, Listen: true}, trace.Line{T: t, Do: trace.EventOpen, Peer: atSea, Pipe: atSeaPipe, Listen: true})
}

// message adds a message of the peer at sea, or of the one ashore.
func (s *script) message(t float64, up bool, parts ...trace.PartOf) {
	l := trace.Line{T: t, Do: trace.EventSend, Peer: atSea, Pipe: ashorePipe, Parts: parts}
	if !up {
		l.Peer, l.Pipe = ashore, atSeaPipe
	}
	for _, p := range parts {
		l.Octets += p.Octets
	}
	s.add(l)
}

// part is an element.
func part(name, kind string, data []byte) trace.PartOf {
	return trace.PartOf{Name: name, Type: kind, Octets: len(data), Data: data}
}

// noise is a payload that no compaction shortens.
func noise(n int, r *rand.Rand) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// services measures the time, and the octets, until a service is found among so many.
func (p plays) services(ctx context.Context) error {
	for _, n := range []int{1, 10, 100, 1000} {
		if p.Quick && n > 100 {
			break
		}
		if err := p.servicesOf(ctx, n, 0); err != nil {
			return err
		}
	}
	return p.servicesOf(ctx, 1, 2000) // as in the Blue Game
}

func (p plays) servicesOf(ctx context.Context, n, octets int) error {
	p.progressf("%d services, one is wanted", n)
	const asked, over = 300, 1800
	s := newScript("propagate")
	for i := range n {
		pipe := fmt.Sprintf("q%d", 10+i)
		s.add(trace.Line{Do: "pipe", Pipe: pipe, Kind: "propagate"},
			trace.Line{T: 1, Do: trace.EventPublish, Peer: ashore, Pipe: pipe, Name: fmt.Sprintf("service-%04d", i), Octets: octets})
	}
	s.add(trace.Line{T: asked, Do: trace.EventQuery, Peer: atSea, Attr: "Name", Name: fmt.Sprintf("service-%04d", n/2)})
	s.listen(over) // a play wants one message; the figures are from before it
	s.message(over+60, true, part("trk:body", "", []byte("over")))
	all, err := p.play(ctx, &s.File)
	if err != nil {
		return err
	}
	row := Row{Number: n, Of: "services there", Less: true, N: len(all), What: whatFind + ", time", Unit: "s"}
	p.figures(row, all, func(r *replay.Result) (float64, bool) { return value(r.FindWaitS) })
	row.What, row.Unit, row.Note = whatFind+", octets", "octets", "beyond the greeting, both directions, acknowledgements included"
	if octets > 0 {
		row.What += fmt.Sprintf(", its advertisement %s octets long", number(float64(octets)))
	} else if goal, ok := map[int]float64{1: 400, 100: 400, 1000: 500}[n]; ok && p.profile.Name == "iridium-dialup" {
		row.Must, row.Aim = goal, 250
	}
	p.figures(row, all, func(r *replay.Result) (float64, bool) {
		_, ok := value(r.FindWaitS)
		sum := int64(0)
		for _, b := range r.Bins {
			if b.T >= asked && b.T < over {
				for _, ways := range []map[string]int64{b.Octets.Up, b.Octets.Down} {
					for _, octets := range ways {
						sum += octets
					}
				}
			}
		}
		return float64(sum), ok
	})
	return nil
}

func value(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

// airtime is the time of so many octets at the slower of the profile's rates.
func (p plays) airtime(octets int) float64 {
	rate := 0
	for _, r := range []int{p.profile.Up.RateBps, p.profile.Down.RateBps} {
		if r > 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	if rate == 0 {
		return 0
	}
	return float64(octets) * 8 / float64(rate)
}

// messages measures a message and its acknowledgement of 20 octets, by size, and the opening of a pipe.
func (p plays) messages(ctx context.Context) error {
	for _, kind := range []string{"unicast", "propagate"} {
		for _, size := range p.sizes(10_000, 20, 1000, 10_000, 100_000) {
			p.progressf("%s pipe: messages of %s", kind, octetsText(size))
			const many = 10
			s, r := newScript(kind), rand.New(rand.NewPCG(seed, uint64(size)))
			s.listen(1)
			if kind == "unicast" {
				s.add(trace.Line{T: 60, Do: trace.EventOpen, Peer: atSea, Pipe: ashorePipe}, trace.Line{T: 60, Do: trace.EventOpen, Peer: ashore, Pipe: atSeaPipe})
			}
			every := 120 + 3*p.airtime(size)
			for i := range many {
				s.message(300+float64(i)*every, true, part("trk:body", "", noise(size, r)))
				s.message(300+(float64(i)+0.5)*every, false, part("trk:ack", "", fmt.Appendf(nil, "acknowledged %07d", i)))
			}
			all, err := p.play(ctx, &s.File)
			if err != nil {
				return err
			}
			row := Row{What: kind + " pipe: " + whatRoundTrip, Size: size, Unit: "s", Less: true, N: many * len(all), Lost: lost(all), Note: "random octets; medians of both ways"}
			p.figures(row, all, func(r *replay.Result) (float64, bool) {
				up, ok := value(r.LatencyUp.Median)
				down, also := value(r.LatencyDown.Median)
				return up + down, ok && also
			})
			row.What, row.Unit, row.Note, row.Lost = kind+" pipe: payload's share of the octets on the link", "%", "random octets there, 20 octets of text back", 0
			p.figures(row, all, func(r *replay.Result) (float64, bool) {
				return 100 * float64(many*(size+20)) / float64(r.LinkBytes.Up+r.LinkBytes.Down), true
			})
			if kind == "unicast" && size <= 1000 {
				p.figures(Row{What: "open an output pipe to the other site", Unit: "s", Less: true, N: 1}, all, func(r *replay.Result) (float64, bool) { return value(r.PipeSetupS.Replay) })
			}
		}
	}
	return nil
}

func lost(all []*replay.Result) (n int) {
	for _, r := range all {
		n += r.Messages.Lost
	}
	return n
}

// elements measures a message of 20 kB in several elements, in octets on the link.
func (p plays) elements(ctx context.Context) error {
	octets := map[int][]float64{}
	for _, n := range []int{1, 5, 10, 20} {
		p.progressf("20 kB in %d elements", n)
		s, r := newScript("propagate"), rand.New(rand.NewPCG(seed, 20))
		s.listen(1)
		words := noise(20_000, r)
		var parts []trace.PartOf
		for i := range n {
			parts = append(parts, part(fmt.Sprintf("trk:part%d", i), "", words[i*20_000/n:(i+1)*20_000/n]))
		}
		s.message(300, true, parts...)
		all, err := p.play(ctx, &s.File)
		if err != nil {
			return err
		}
		row := Row{What: "message of 20 kB, octets on the link", Number: n, Of: "elements", Unit: "octets", Less: true, N: 1, Lost: lost(all)}
		p.figures(row, all, func(r *replay.Result) (float64, bool) {
			v := float64(r.LinkBytes.Up + r.LinkBytes.Down)
			octets[n] = append(octets[n], v)
			return v, true
		})
	}
	var ratios []float64
	for i := range octets[1] {
		ratios = append(ratios, octets[20][i]/octets[1][i])
	}
	p.put(Row{What: "message of 20 kB, octets on the link, 20 elements over 1", Unit: "times", Must: 1.1, Aim: 1.1, Less: true, Note: "paired by seed"}.of(ratios...))
	return nil
}

// losses measures a pipe that JXTA calls unreliable, by loss and size.
func (p plays) losses(ctx context.Context) error {
	for _, loss := range []int{1, 5, 10} {
		for _, size := range p.sizes(10_000, 100, 1000, 10_000, 100_000) {
			p.progressf("%d %% loss: messages of %s", loss, octetsText(size))
			const many = 10
			with := p
			for _, d := range []*profile.Direction{&with.profile.Up, &with.profile.Down} {
				d.LossPct, d.LossRef, d.GEp = float64(loss), 0, 0
			}
			s, r := newScript("propagate"), rand.New(rand.NewPCG(seed, uint64(size)))
			s.listen(1)
			for i := range many {
				s.message(300+float64(i)*(30+1.5*p.airtime(size)), true, part("trk:body", "", noise(size, r)))
			}
			all, err := with.play(ctx, &s.File)
			if err != nil {
				return err
			}
			row := Row{What: fmt.Sprintf("unreliable pipe, %d %% loss: arrived", loss), Size: size, Unit: "%", N: many * len(all), Lost: lost(all), Must: 100, Aim: 100}
			with.figures(row, all, func(r *replay.Result) (float64, bool) {
				return 100 * float64(r.Messages.Delivered) / float64(max(1, r.Messages.Expected)), true
			})
			row.What, row.Unit, row.Must, row.Aim, row.Lost, row.Less = fmt.Sprintf("unreliable pipe, %d %% loss: time of a message, median", loss), "s", 0, 0, 0, true
			with.figures(row, all, func(r *replay.Result) (float64, bool) { return value(r.Latency.Median) })
		}
	}
	return nil
}

// employees is a document in the form of figure 10 of the paper of 2007.
func employees(n int, r *rand.Rand) []byte {
	pick := func(list string) string { w := strings.Fields(list); return w[r.IntN(len(w))] }
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE employees>\n<employees>\n")
	for range n {
		fmt.Fprintf(&b, "  <employee id=\"%06d\">\n    <fname>%s</fname>\n    <lname>%s</lname>\n    <age>%d</age>\n    <jobtitle>%s</jobtitle>\n    <phone>%03d-%04d</phone>\n  </employee>\n",
			r.IntN(1_000_000), pick("Ann Berit Carl David Eva Finn Grete Hans Ida Jon"), pick("Hansen Olsen Larsen Berg Dahl Lie Moen Strand Vik Aas"), 20+r.IntN(45),
			pick("Mechanic Navigator Cook Captain Engineer Clerk"), 200+r.IntN(800), r.IntN(10_000))
	}
	b.WriteString("</employees>\n")
	return []byte(b.String())
}

// documents repeats tables 2 to 7 of 2007: one document over 640 kbit/s, with compaction and without, paired by seed.
func (p plays) documents(ctx context.Context) error {
	link, err := profile.Load("geo-satcom-128k", nil)
	if err != nil {
		return err
	}
	link.Name = "640 kbit/s"
	for _, d := range []*profile.Direction{&link.Up, &link.Down} {
		*d = profile.Direction{RateBps: 640_000, Delay: 250 * time.Millisecond} // so that 254 octets take the 504 ms there and back of 2007
	}
	counts, sizes := []int{1, 50, 100, 250, 500, 750, 1000}, []int{254, 8720, 17290, 43208, 86370, 129384, 172491}
	if p.Quick {
		counts = counts[:3]
	}
	for i, n := range counts {
		doc := employees(n, rand.New(rand.NewPCG(seed, uint64(n))))
		for _, with := range []bool{true, false} {
			p.progressf("%d employees, compaction %v", n, with)
			on := plays{p.session, link}
			what, doc := whatTransit, doc
			if !with { // no rule can keep a gateway from deflating, so the control is a document that cannot be shortened
				what, doc = whatControl, noise(len(doc), rand.New(rand.NewPCG(seed, uint64(n))))
			}
			s := newScript("propagate")
			s.listen(1)
			s.message(120, true, part("trk:body", "text/xml", doc))
			all, err := on.play(ctx, &s.File)
			if err != nil {
				return err
			}
			row := Row{What: what, Size: sizes[i], Unit: "ms", Less: true, N: 1, Lost: lost(all), Note: fmt.Sprintf("one way, %s octets here", number(float64(len(doc))))}
			on.figures(row, all, func(r *replay.Result) (float64, bool) { v, ok := value(r.Latency.Median); return 1e3 * v, ok })
			row.What, row.Unit, row.Lost = strings.Replace(what, "transit of", "octets on the link of", 1), "octets", 0
			on.figures(row, all, func(r *replay.Result) (float64, bool) {
				return float64(r.LinkBytes.Up), true
			})
		}
	}
	return nil
}
