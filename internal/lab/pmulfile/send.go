package pmulfile

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"aldis/internal/pmul"
)

// Job is a file to send.
type Job struct {
	Payload  []byte
	To       []netip.Addr
	Silent   []netip.Addr // of To: they receive and may not transmit
	Dynamic  bool         // in a group of its own, requested first: one of the 16 addresses after the network's
	Priority uint8
	Expires  time.Time
	// Report, when set, is called from the loop: about once a second and at each fate.
	Report func(Progress)
}

// Progress of a Job.
type Progress struct {
	Message   pmul.MessageID
	Fragments int
	Sent      int // fragments that have been on the air
	Elapsed   time.Duration
	To        []RecipientProgress
	Counters  Counters
}

// RecipientProgress is one recipient's part; Has is the fragments that it is known to have.
type RecipientProgress struct {
	Node  netip.Addr
	Has   int
	State pmul.State
	After time.Duration // when the state became final
}

// Delivered tells whether every recipient is known to have the file.
func (p Progress) Delivered() bool {
	for _, r := range p.To {
		if r.State != pmul.Delivered {
			return false
		}
	}
	return len(p.To) > 0
}

// strange logs acknowledgements that are not as ACP 142 defines them.
func (e *end) strange(before *pmul.SenderStats, now pmul.SenderStats) {
	if now.Selfnamed > before.Selfnamed && before.Selfnamed == 0 {
		e.log("a receiver's acknowledgements name it as the sender of our message, as libjpmul writes them: they count for ours")
	}
	if now.Misnamed > before.Misnamed {
		e.log("an acknowledgement names its own node as the sender, and no message of ours that is under way to it: it is not understood",
			"times", now.Misnamed)
	}
	*before = now
}

// bucketKept is the only bucket that a sender's state keeps: Message_IDs and Message_Sequence_Numbers.
const bucketKept = "pmul-node"

// lastWords is how long the announcement of a message's end may take on the air once all fates are known.
const lastWords = 30 * time.Second

// Send sends a file until every recipient has its final state. When ctx ends, it tells the recipients that still wait to drop the file.
// The error is about this node; the fate of the file is in the Progress.
func Send(ctx context.Context, cfg Config, job Job) (p Progress, err error) {
	e, records, err := open(cfg, ackPort)
	if err != nil {
		return p, err
	}
	defer func() {
		if cerr := e.close(); err == nil {
			err = cerr
		}
	}()
	if err := e.sockets.join(allNodes, requestPort); err != nil {
		return p, err
	}
	sender, err := pmul.NewSender(e.engine, records)
	if err != nil {
		return p, err
	}
	now := time.Now()
	for _, a := range job.Silent {
		sender.Step(now, pmul.PeerEMCON{Node: Node(a), Silent: true}) // this run's setting of its operator: not kept
	}
	submit := pmul.Submit{Payload: job.Payload, Dynamic: job.Dynamic, Priority: job.Priority, Expires: job.Expires}
	for _, a := range job.To {
		submit.To = append(submit.To, Node(a))
		p.To = append(p.To, RecipientProgress{Node: a})
	}
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	// update fills in the state of the message; after the last fate its numbers stay.
	update := func(now time.Time) {
		p.Elapsed, p.Counters = now.Sub(began), e.counters
		for i := range p.To {
			has, sent, fragments := sender.Progress(p.Message, Node(p.To[i].Node))
			if fragments == 0 {
				break
			}
			p.To[i].Has, p.Sent, p.Fragments = has, sent, fragments
		}
		if job.Report != nil {
			job.Report(p)
		}
	}
	var ev pmul.Event = submit
	var before pmul.SenderStats
	wait := ctx
	for {
		now := time.Now()
		out := sender.Step(now, ev)
		e.strange(&before, sender.Stats())
		if err := e.commit(keptOf(out.Records)); err != nil {
			return p, err
		}
		for _, a := range out.Accepted {
			if a.Err != nil {
				return p, fmt.Errorf("refused: %w", a.Err)
			}
			p.Message = a.Message
		}
		p.ended(out.Fates, now.Sub(began))
		if err := e.send(out.Send); err != nil {
			return p, err
		}
		if _, submitted := ev.(pmul.Submit); submitted || len(out.Fates) > 0 || ev == nil {
			update(now)
		}
		if len(sender.Messages()) == 0 {
			p.whole()
			update(now)
			return p, nil
		}
		ev, err = e.wait(wait, out.Deadline, tick.C)
		switch {
		case err != nil && wait == ctx: // the recipients still learn of the message's end
			ev = pmul.Cancel{Message: p.Message}
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
		case err != nil:
			return p, nil
		}
	}
}

// ended notes fates of the message for recipients, and after how long they came.
func (p *Progress) ended(fates []pmul.Fate, after time.Duration) {
	for _, f := range fates {
		for i := range p.To {
			if Node(p.To[i].Node) == f.To {
				p.To[i].State, p.To[i].After = f.State, after
			}
		}
	}
}

// whole marks recipients to whom the message was delivered as having all fragments.
func (p *Progress) whole() {
	for i := range p.To {
		if p.To[i].State == pmul.Delivered {
			p.To[i].Has = p.Fragments
		}
	}
}

// keptOf returns the records that outlive the program.
func keptOf(records []pmul.Record) (kept []pmul.Record) {
	for _, r := range records {
		if r.Bucket == bucketKept {
			kept = append(kept, r)
		}
	}
	return kept
}
