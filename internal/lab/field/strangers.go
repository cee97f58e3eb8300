package field

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"aldis/internal/lab/shapes"
)

// Kinds of messages that the peers send, as `gateway lab --shapes` spells them.
const (
	ShapesTracks    = "tracks"
	ShapesStrangers = "strangers"
)

// start has a peer begin to send on its own service: tracks that it makes itself, or messages as applications of strangers would send
// them.
func (g *game) start(ctx context.Context, p *Peer, site int) error {
	svc := service(p.Name())
	if g.o.Shapes != ShapesStrangers {
		return sendCommands(p, fmt.Sprintf("send %s %d 0 %g", svc, g.o.Size, g.o.Rate.Seconds()))
	}
	ctx, p.hush = context.WithCancel(ctx)
	go g.speak(ctx, p, g.o.Seed<<8+uint64(site))
	return sendCommands(p, "open "+svc)
}

// speak has a peer send messages of strangers once its pipe is open, each at its time, until ctx or the peer ends.
func (g *game) speak(ctx context.Context, p *Peer, seed uint64) {
	svc := service(p.Name())
	if _, err := p.Wait(ctx, is("opened", svc)); err != nil {
		return // the game ends: the caller that waits for it has the reason
	}
	app := shapes.Report(seed, p.Name(), g.o.Size)
	next, _ := shapes.Arrivals(seed, g.o.Arrivals, g.o.Rate)
	for at := time.Now(); pause(ctx, time.Until(at)); at = at.Add(next()) {
		if sendCommands(p, putLine(svc, app.Next(time.Now()))) != nil {
			return
		}
	}
}

// putLine is the command of field-tests/peers/README.md that sends a message.
func putLine(svc string, m shapes.Message) string {
	var b strings.Builder
	b.WriteString("put " + svc)
	for _, e := range m {
		b.WriteString(" " + e.Name)
		if e.Type != "" {
			b.WriteString(":" + e.Type)
		}
		b.WriteString("=" + base64.StdEncoding.EncodeToString(e.Data))
	}
	return b.String()
}
