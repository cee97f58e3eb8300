package commands

import (
	"context"
	"errors"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
)

// chatters are the clients of a trace of XMPP alone.
type chatters struct {
	source string
	events []replay.XMPPEvent
}

func (c chatters) replay(ctx context.Context, o replay.Options) (*outcome, error) {
	res, err := replay.RunXMPP(ctx, c.events, o)
	if res == nil {
		return nil, err
	}
	p := report.XMPPPlays(c.source, "", "", []trace.XMPPCost{*res})
	return &outcome{html: p.HTML, text: p.Text, figures: res}, err
}

func (c chatters) replayLive(context.Context, replay.Options, string, string) (*outcome, error) {
	return nil, errors.New("a trace of XMPP is played in virtual time alone: leave --live out; gateway lab blue-game --peers xmpp plays real servers")
}

func (c chatters) rehearse(ctx context.Context, o replay.Options, plays int, judged replay.Judging, _ bool) (string, *outcome, error) {
	results, errs := make([]trace.XMPPCost, plays), make([]error, plays)
	onAllCores(plays, func(i int) {
		o := o
		o.Seed += uint64(i)
		res, err := replay.RunXMPP(ctx, c.events, o)
		if errs[i] = err; err == nil {
			results[i] = *res
		}
	})
	if err := errors.Join(errs...); err != nil {
		return "", nil, err
	}
	verdict, line := replay.JudgeXMPP(results, judged.Deadline)
	p := report.XMPPPlays(c.source, verdict, line, results)
	return verdict, &outcome{html: p.HTML, text: p.Text, figures: results}, nil
}
