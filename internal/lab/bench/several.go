package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// inARow starts two gateways of two sites with a link as fast as a LAN.
func inARow(ctx context.Context, s *session) (*server, error) {
	radio, err := freePorts("udp", 2)
	if err != nil {
		return nil, err
	}
	var sites []site
	for i := range 2 {
		sites = append(sites, site{id: i + 1, profile: "wire", radio: radio[i], peers: map[int]string{2 - i: fmt.Sprintf("127.0.0.1:%d", radio[1-i])}})
	}
	all, err := gateways(ctx, s, sites...)
	if err != nil {
		return nil, err
	}
	first := *all[0]
	first.other, first.stop = all[1], stopOf(all...)
	return &first, nil
}

// gateways starts all of the sites' gateways, or none.
func gateways(ctx context.Context, s *session, sites ...site) (all []*server, err error) {
	for _, at := range sites {
		srv, err := s.gateway(ctx, at)
		if err != nil {
			return nil, errors.Join(err, stopOf(all...)())
		}
		all = append(all, srv)
	}
	return all, nil
}

// stopOf returns a function that stops all servers.
func stopOf(all ...*server) func() error {
	return func() error {
		var errs []error
		for _, srv := range all {
			errs = append(errs, srv.stop())
		}
		return errors.Join(errs...)
	}
}

const (
	mortals   = 8  // peers that send questions, each with an advertisement
	deathRate = 16 // questions a second
)

// deaths is figures 6.24, 6.25 and 6.34: peers of several rendezvous ask for each other's advertisements. One rendezvous after the other
// is killed; its peers dial the next and publish again.
func deaths(s *session, ctx context.Context) error {
	var all []*server
	stop := func() error { return stopOf(all...)() }
	if s.where == gatewaySite {
		first, err := severalOf(ctx, s)
		if err != nil {
			return err
		}
		all, stop = []*server{first, first.other}, first.stop
	}
	for len(all) < 3 && s.where == jxse {
		seed := ""
		if len(all) > 0 {
			seed = "tcp://" + all[0].address
		}
		s.progressf("rendezvous %d", len(all)+1)
		srv, err := s.rendezvous(ctx, rendezvousUnsigned, false, seed)
		if err != nil {
			return errors.Join(err, stop())
		}
		all = append(all, srv)
	}
	err := outlive(ctx, s, all)
	return errors.Join(err, stop())
}

func outlive(ctx context.Context, s *session, all []*server) error {
	peers := make([]*mortal, mortals)
	for i := range peers {
		peers[i] = &mortal{number: i, at: i % len(all)}
	}
	defer func() {
		for _, p := range peers {
			p.leave()
		}
	}()
	dead := 0
	for {
		left, of := len(all)-dead, "rendezvous left"
		s.progressf("%d rendezvous left", left)
		began := time.Now()
		row := Row{What: fmt.Sprintf("until each of %d peers is answered", mortals), Number: left, Of: of, Unit: "s", Less: true, N: mortals, Note: "from its start"}
		if dead > 0 {
			row.Note = "from the death of one"
		}
		if err := together(ctx, peers, all, dead, time.Duration(s.quick(120, 30))*time.Second); err != nil {
			s.failed(ctx, row, err) // the answers to the others are measured nevertheless
		} else {
			s.put(row.of(time.Since(began).Seconds()))
		}
		c := &crew{server: all[dead], stock: mortals}
		for _, p := range peers {
			if p.asker != nil {
				p.asker.forget()
				c.askers = append(c.askers, p.asker)
			}
		}
		if len(c.askers) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.asked(ctx, c, deathRate, fmt.Sprintf("%d a second of %d peers", deathRate, mortals), left, of); err != nil {
			return err
		}
		if left == 1 {
			return nil
		}
		all[dead].kill()
		dead++
	}
}

// together has all find each other's advertisements, with the first servers dead.
func together(ctx context.Context, peers []*mortal, all []*server, dead int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(peers))
	var wait sync.WaitGroup
	for i, p := range peers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			errs[i] = p.live(ctx, all, dead)
		}()
	}
	wait.Wait()
	if n := len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })); n > 0 {
		return fmt.Errorf("%d of %d peers are not answered within %v", n, len(peers), limit)
	}
	return nil
}

// mortal is a peer whose rendezvous may die.
type mortal struct {
	number, at int
	asker      *asker
}

func (p *mortal) leave() {
	if p.asker != nil {
		p.asker.peer.Close()
		p.asker = nil
	}
}

// live dials a server that is not dead if the peer has none, publishes, and asks for its neighbour's advertisement until that is there.
func (p *mortal) live(ctx context.Context, all []*server, dead int) error {
	found := make(chan string, 1024)
	for ctx.Err() == nil {
		if p.asker != nil {
			select {
			case <-p.asker.peer.Done():
				p.leave()
			default:
			}
		}
		if p.asker == nil {
			p.at = max(p.at, dead)
			a, err := newAsker(ctx, all[p.at], fmt.Sprintf("mortal-%d", p.number))
			if err != nil {
				p.at = dead + (p.at+1-dead)%(len(all)-dead)
				pause(ctx, 200*time.Millisecond)
				continue
			}
			p.asker = a
			doc := edgepeer.Specification(advName(p.number), edgepeer.NamedPipe(advName(p.number)), jxta.PipeTypePropagate)
			if _, err := a.peer.Do(edgepeer.Publish{Doc: doc, Life: 2 * time.Hour}); err != nil {
				p.leave()
				continue
			}
		}
		p.asker.reset(func(name string) { found <- name }, nil)
		if err := p.asker.ask(advName((p.number+1)%mortals), time.Now()); err != nil {
			p.leave()
			continue
		}
		select {
		case <-found:
			return nil
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// day is figures 6.32 and 6.33 in virtual time: the memory and time of two gateways and of the program that plays them, while a peer asks
// every quarter of a minute and both send a message every minute.
func day(s *session, ctx context.Context) error {
	p, err := profile.Load(s.Profile, nil)
	if err != nil {
		return err
	}
	hour := time.Duration(s.quick(3600, 360)) * time.Second
	f := newScript("propagate")
	for i := range 100 {
		pipe := fmt.Sprintf("q%d", 10+i)
		f.add(trace.Line{Do: "pipe", Pipe: pipe, Kind: "propagate"}, trace.Line{T: 1, Do: trace.EventPublish, Peer: ashore, Pipe: pipe, Name: fmt.Sprintf("service-%04d", i)})
	}
	f.listen(1)
	for t := 300.0; t < 20*hour.Seconds(); t += 15 {
		i := int(t / 15)
		f.add(trace.Line{T: t, Do: trace.EventQuery, Peer: atSea, Attr: "Name", Name: fmt.Sprintf("service-%04d", i%200)}) // half of them do not exist
		if i%4 == 0 {
			f.message(t+1, i%8 == 0, part("trk:body", "", fmt.Appendf(nil, "<position n=\"%d\"/>", i)))
		}
	}
	f.Header.Duration = f.Lines[len(f.Lines)-1].T + 60
	began, since := processor(), time.Duration(0)
	hours := []int{1, 12, 20}
	note := fmt.Sprintf("of both gateways and of what plays them, a question every 15 s, %s", p.Name)
	if s.Quick {
		note += "; an hour is six minutes"
	}
	progress := func(at, _ time.Duration) {
		for len(hours) > 0 && at >= time.Duration(hours[0])*hour-time.Minute {
			h := hours[0]
			hours = hours[1:]
			now := processor()
			s.progressf("%d hours", h)
			s.put(Row{What: "processor for an hour", Number: h, Of: "hours", Unit: "ms", Less: true, Note: note}.of((now - began).Seconds() * 1e3 / max(0.1, (at-since).Hours())))
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			s.put(Row{What: "memory in use", Number: h, Of: "hours", Unit: "MB", Less: true, Note: note}.of(float64(m.HeapAlloc) / 1e6))
			began, since = processor(), at
		}
	}
	res, err := replay.Run(ctx, &f.File, replay.Options{Profile: p, Seed: 1, Progress: progress})
	if err != nil {
		return err
	}
	s.put(Row{What: "messages of twenty hours that arrived", Unit: "%", N: int(res.Messages.Expected), Lost: int(res.Messages.Lost), Must: 100, Aim: 100}.of(
		100 * float64(res.Messages.Delivered) / float64(max(1, res.Messages.Expected))))
	return nil
}

// processor is the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
