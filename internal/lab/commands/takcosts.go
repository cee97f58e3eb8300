package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// takCosts plays the events of TAK devices of a capture on links.
type takCosts struct {
	links  []profile.Profile
	events []replay.TAKEvent
	over   int // events beyond the number that a play takes
}

// newTAKCosts is for the links of a list; "" is no link.
func newTAKCosts(list string) (*takCosts, error) {
	c := &takCosts{}
	names := strings.Split(list, ",")
	switch list {
	case "":
		return c, nil
	case "all":
		names = slices.DeleteFunc(profile.Names(), func(name string) bool { return name == "wire" })
	}
	for _, name := range names {
		p, err := profile.Load(strings.TrimSpace(name), cli.ReadProfile)
		if err != nil {
			return nil, err
		}
		c.links = append(c.links, p)
	}
	return c, nil
}

// observer is an Analyser's function for events; nil when there are no links.
func (c *takCosts) observer() func(trace.CoT) {
	if len(c.links) == 0 {
		return nil
	}
	return func(e trace.CoT) {
		switch {
		case e.Copy:
		case len(c.events) >= replay.MaxTAKEvents:
			c.over++
		default:
			c.events = append(c.events, takEventOf(e))
		}
	}
}

// play adds the costs to a report.
func (c *takCosts) play(r *trace.Report, stderr io.Writer) error {
	switch {
	case len(c.links) == 0:
		return nil
	case len(c.events) == 0:
		return errors.New("the capture has no event of a TAK device in clear")
	case c.over > 0:
		r.Remarks = append(r.Remarks, fmt.Sprintf("--links: the first %d events were played, %d more were not", len(c.events), c.over))
	}
	slices.SortStableFunc(c.events, func(a, b replay.TAKEvent) int { return int(max(-1, min(1, a.At-b.At))) })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	count := newCounted(stderr, "links", len(c.links))
	defer count.clear()
	for _, p := range c.links {
		one, err := replay.RunTAK(ctx, c.events, replay.Options{Profile: p, Seed: 1})
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		r.CoT.Costs = append(r.CoT.Costs, *one)
		count.one()
	}
	return nil
}
