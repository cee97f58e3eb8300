package field

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// traffic is the octets and packets on the air between the ships and HQ.
type traffic struct {
	Octets, Frames, Dropped, Lost int64
}

func (g *game) traffic() (up, down traffic) {
	st := g.hub.Stats().Link
	for _, s := range g.sites[1:] {
		n := st.Node(s.name)
		up.Octets += n.Up.OnAir.Octets
		up.Frames += n.Up.OnAir.Frames
		up.Dropped += n.Up.DroppedQueue.Frames
		up.Lost += n.Up.DroppedLoss.Frames + n.Up.DroppedOutage.Frames
		if !g.p.Shared {
			down.Octets += n.Down.OnAir.Octets
			down.Frames += n.Down.OnAir.Frames
			down.Dropped += n.Down.DroppedQueue.Frames
		}
		down.Lost += n.Down.DroppedLoss.Frames + n.Down.DroppedOutage.Frames
	}
	if g.p.Shared { // HQ sent its messages once, to all
		n := st.Node("hq")
		down.Octets, down.Frames, down.Dropped = n.Up.OnAir.Octets, n.Up.OnAir.Frames, n.Up.DroppedQueue.Frames
		up.Lost = n.Down.DroppedLoss.Frames + n.Down.DroppedOutage.Frames
	}
	return up, down
}

// patience is how long a game waits at its end for messages under way.
func (g *game) patience() time.Duration {
	switch {
	case g.o.Drain > 0:
		return g.o.Drain
	case g.kind == "unaided":
		return unaidedDrain // a queue of minutes does not empty soon, and no figure needs it
	}
	return time.Minute + 4*g.p.RoundTripMax(g.p.MTU)
}

// finish waits for messages under way, then for silence, and computes the figures.
func (g *game) finish(ctx context.Context) (*Run, error) {
	deadline := time.Now().Add(g.patience())
	for {
		run, _ := g.scoreSoFar()
		if g.picture != nil {
			g.sample(time.Now())
		}
		if run.MessagesSent > 0 && run.MessagesDelivered == run.MessagesSent || !time.Now().Before(deadline) {
			g.logf("%d of %d messages have arrived", run.MessagesDelivered, run.MessagesSent)
			break
		}
		if err := g.until(ctx, time.Now().Add(drainTick)); err != nil {
			return nil, err
		}
	}
	// The last receipts belong to the messages, not to the background traffic.
	settle := g.p.AckDelay + g.p.RoundTripMax(g.p.MTU)
	over := time.Now().Add(settle + g.o.Idle)
	g.stands(func() string { return fmt.Sprintf("silence; %v to go", time.Until(over).Round(time.Second)) })
	g.logf("silence: %v, of which the last %v are measured", (settle + g.o.Idle).Round(time.Second), g.o.Idle)
	if err := g.until(ctx, time.Now().Add(settle)); err != nil {
		return nil, err
	}
	up, down := g.traffic()
	quiet := time.Now()
	if g.picture != nil {
		g.sample(quiet)
	}
	if err := g.until(ctx, quiet.Add(g.o.Idle)); err != nil {
		return nil, err
	}
	up2, down2 := g.traffic()
	run, all := g.scoreSoFar()
	run.LinkBytes, run.LinkPackets = UpDown{Up: up.Octets, Down: down.Octets}, UpDown{Up: up.Frames, Down: down.Frames}
	run.DroppedPackets, run.LostPackets = UpDown{Up: up.Dropped, Down: down.Dropped}, UpDown{Up: up.Lost, Down: down.Lost}
	if sum := up.Octets + down.Octets; sum > 0 {
		run.PayloadRatio = round(100*float64(run.ApplicationBytes)/float64(sum), 2)
	}
	run.Idle = &Idle{
		Seconds: *seconds(time.Since(quiet)),
		Bytes:   UpDown{Up: up2.Octets - up.Octets, Down: down2.Octets - down.Octets},
		Packets: UpDown{Up: up2.Frames - up.Frames, Down: down2.Frames - down.Frames},
	}
	run.Background = round(float64(run.Idle.Bytes.Up+run.Idle.Bytes.Down)/run.Idle.Seconds, 2)
	if bps := g.p.SlowerBps(); bps > 0 {
		run.Idle.Percent = round(100*run.Background*8/float64(bps), 3)
	}
	st := g.hub.Stats()
	for _, n := range st.TCP {
		run.TCPConnections += n
	}
	run.EmulatorLateMS = round(float64(st.LateMax.Microseconds())/1000, 2)
	if g.o.Bulk > 0 {
		run.Bulk = bulkFigures(all, g.o.Bulk, g.limit)
	}
	if !g.begin.IsZero() {
		hq, ships := g.records()
		run.Outage = outageFigures(all, append(ships, hq), g.zero, g.begin, g.end)
		run.Outage.AnswerMS = g.answer()
	}
	g.mu.Lock()
	run.Kill = g.kill
	g.mu.Unlock()
	run.Deaf = g.deaf
	if g.quiet != nil {
		g.liveFigures(g.records())
		run.Silence = g.quiet
	}
	if !g.redialed.IsZero() {
		run.Redial = redialFigures(all, g.sites[1].name, g.zero, g.redialed)
	}
	for i := range run.Sites {
		n := st.Link.Node(run.Sites[i].Name)
		run.Sites[i].LinkBytes = UpDown{Up: n.Up.OnAir.Octets, Down: n.Down.OnAir.Octets}
	}
	return run, nil
}

func round(x float64, digits int) float64 {
	f := math.Pow10(digits)
	return math.Round(x*f) / f
}

// remove ends a game whose peers stop ends, removes its namespaces and files, and returns the errors of the gateways.
func (g *game) remove(stop func()) (troubles []string, err error) {
	g.stands(nil)
	g.logf("removing namespaces and processes")
	stop()
	under := &Run{}
	_, err = g.tearDown(under, nil, func() {})
	return under.GatewayErrors, err
}

// tearDown ends all processes and removes all namespaces and files, in any case.
func (g *game) tearDown(run *Run, err error, killPeers func()) (*Run, error) {
	for _, s := range g.sites {
		if s.gateway == nil || s.sunk {
			continue
		}
		if g.o.Keep != "" && run != nil {
			if serr := s.leads().snapshot(context.Background()); serr != nil {
				run.GatewayErrors = append(run.GatewayErrors, serr.Error())
			}
		}
		if serr := s.stop(); serr != nil && run != nil {
			run.GatewayErrors = append(run.GatewayErrors, serr.Error())
		}
	}
	killPeers()
	var errs []error
	for _, p := range append([]*Peer{g.hq, g.asker, g.deafEars}, g.ships...) {
		if p == nil {
			continue
		}
		<-p.Done()
		if g.o.Keep != "" {
			errs = append(errs, writeEvents(filepath.Join(g.dir, p.Name()+"-events.json"), p.Events()))
		}
	}
	if g.hub != nil {
		errs = append(errs, g.hub.Close())
		errs = append(errs, g.finishPicture(run))
	}
	if g.w != nil {
		errs = append(errs, g.w.close())
	}
	if cerr := errors.Join(errs...); cerr != nil {
		return nil, errors.Join(err, cerr)
	}
	return run, err
}

// writeEvents writes a peer's events, one a line.
func writeEvents(path string, events []Event) error {
	var b []byte
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		b = append(append(b, line...), '\n')
	}
	return os.WriteFile(path, b, 0o644)
}
