package edgepeer

import (
	"time"

	"aldis/internal/jxta"
)

const (
	resolveAgain  = 15 * time.Second // between two questions for one pipe (wire 8.2)
	resolveGiveUp = time.Minute
)

// target is a unicast pipe that this peer sends on.
type target struct {
	key     pipeKey
	kind    string
	peer    string // the peer that holds it; "" while unknown
	query   int
	ask     time.Time
	giveUp  time.Time
	waiting [][]jxta.Element
}

func (p *Peer) listen(ev Listen) {
	k := pipeKey{groupOf(ev.Group), ev.Pipe}
	if _, open := p.pipes[k]; open {
		return
	}
	p.pipes[k] = ev.Kind
	p.opened = append(p.opened, k)
	if p.Leased(k.group) {
		p.sayPipe(k.group, ev.Kind, jxta.MaxLife, k.pipe)
	}
}

func (p *Peer) unlisten(ev Unlisten) {
	k := pipeKey{groupOf(ev.Group), ev.Pipe}
	kind, open := p.pipes[k]
	if !open {
		return
	}
	delete(p.pipes, k)
	for i, o := range p.opened {
		if o == k {
			p.opened = append(p.opened[:i:i], p.opened[i+1:]...)
			break
		}
	}
	if p.Leased(k.group) {
		p.sayPipe(k.group, kind, 0, k.pipe)
	}
}

// sayPipes announces the open pipes to a new rendezvous, one message for each type (wire 12.1).
func (p *Peer) sayPipes(group string) {
	for _, kind := range []string{jxta.PipeTypePropagate, jxta.PipeTypeUnicast, jxta.PipeTypeSecure} {
		var pipes []string
		for _, k := range p.opened {
			if k.group == group && p.pipes[k] == kind {
				pipes = append(pipes, k.pipe)
			}
		}
		if len(pipes) > 0 {
			p.sayPipe(group, kind, jxta.MaxLife, pipes...)
		}
	}
}

// sayPipe pushes SRDI of the pipe resolver: this is how a rendezvous learns of input pipes (wire 5.6).
func (p *Peer) sayPipe(group, kind string, life time.Duration, pipes ...string) {
	s := jxta.SRDI{Peer: p.id, Key: kind, TTL: 1}
	for _, pipe := range pipes {
		s.Entries = append(s.Entries, jxta.SRDIEntry{Key: "Id", Value: jxta.URN(pipe), Life: life})
	}
	p.pushSRDI(group, jxta.HandlerPipe, s)
}

func (p *Peer) pushSRDI(group, handler string, s jxta.SRDI) {
	r := jxta.ResolverSRDI{Handler: handler, Payload: string(s.Append(nil))}
	p.post(p.rdv.Peer, group, jxta.URN(jxta.ClassResolver), group+"Srdi", xmlElement(group+"Srdi", r.Append(nil)))
}

func (p *Peer) resolve(ev Resolve) {
	t := p.target(pipeKey{groupOf(ev.Group), ev.Pipe}, ev.Kind)
	t.peer = ""
	p.askPipe(t)
	p.out.QueryID = t.query
}

func (p *Peer) target(k pipeKey, kind string) *target {
	t := p.targets[k]
	if t == nil {
		t = &target{key: k}
		p.targets[k] = t
	}
	t.kind = kind
	if kind == "" {
		t.kind = jxta.PipeTypeUnicast
	}
	return t
}

// askPipe asks the group who holds a pipe (wire 8.2).
func (p *Peer) askPipe(t *target) {
	if t.giveUp.IsZero() || !p.now.Before(t.giveUp) {
		t.giveUp = p.now.Add(resolveGiveUp)
	}
	t.ask = p.now.Add(resolveAgain)
	q := jxta.PipeResolver{Pipe: t.key.pipe, Type: t.kind}
	t.query = p.nextQuery()
	p.question(t.key.group, p.questionDoc(t.query, jxta.HandlerPipe, string(q.Append(nil))))
}

// wakeTargets repeats questions for pipes and gives up pipes for which no peer answers.
func (p *Peer) wakeTargets(until func(time.Time)) {
	for k, t := range p.targets {
		switch {
		case t.peer != "" || t.giveUp.IsZero():
			continue
		case !p.now.Before(t.giveUp):
			p.giveUp(k, t)
			continue
		case !p.now.Before(t.ask):
			p.askPipe(t)
		}
		until(t.ask)
		until(t.giveUp)
	}
}

func (p *Peer) giveUp(k pipeKey, t *target) {
	delete(p.targets, k)
	p.stats.Unsent += uint64(len(t.waiting))
	p.notice(PipeLost{Group: k.group, Pipe: k.pipe, Waiting: len(t.waiting)})
}

func (p *Peer) send(ev Send) {
	group := groupOf(ev.Group)
	if ev.Kind == jxta.PipeTypePropagate {
		id := ev.MsgID
		if id == "" {
			id = p.uuid()
		}
		all := make([]jxta.Element, 0, len(ev.Elements)+5)
		all = append(append(all, ev.Elements...), xmlElement(elWire, p.wireDoc(ev.Pipe, id)))
		p.propagate(group, svcWire, group, all...)
		return
	}
	if ev.To != "" {
		p.deliver(group, ev.Pipe, ev.To, ev.Elements)
		return
	}
	t := p.target(pipeKey{group, ev.Pipe}, ev.Kind)
	switch {
	case t.peer != "":
		p.deliver(group, ev.Pipe, t.peer, ev.Elements)
	case len(t.waiting) >= p.cfg.MaxWaiting:
		p.stats.Unsent++
	default:
		t.waiting = append(t.waiting, ev.Elements)
		if t.giveUp.IsZero() {
			p.askPipe(t)
			p.out.QueryID = t.query
		}
	}
}

// deliver sends a unicast pipe's message, routed to its holder (wire 8.3).
func (p *Peer) deliver(group, pipe, to string, elements []jxta.Element) {
	p.post(to, group, svcPipe, jxta.URN(pipe), elements...)
}

// pipeAnswer learns that a peer holds a pipe, or no longer holds it.
func (p *Peer) pipeAnswer(group string, queryID int, a jxta.PipeResolver) {
	k := pipeKey{group, a.Pipe}
	t := p.targets[k]
	if t == nil || len(a.Peers) == 0 {
		return
	}
	if !a.Found {
		if t.peer == a.Peers[0] {
			p.giveUp(k, t)
		}
		return
	}
	if t.peer == "" {
		t.peer = a.Peers[0]
	}
	p.notice(PipeResolved{Group: group, Pipe: a.Pipe, Peer: a.Peers[0], QueryID: queryID})
	for _, elements := range t.waiting {
		p.deliver(group, a.Pipe, t.peer, elements)
	}
	t.waiting = nil
}

// unreachable forgets which pipes a peer holds if the rendezvous says that the route to it is bad (wire 4.6).
func (p *Peer) unreachable(peer string) {
	for k, t := range p.targets {
		if t.peer == peer {
			p.giveUp(k, t)
		}
	}
}

// pipeQuestion answers for the peer's own pipes: a rendezvous passes the question on to the owner (wire 8.2).
func (p *Peer) pipeQuestion(group string, rq jxta.ResolverQuery) {
	q, err := jxta.ParsePipeResolver([]byte(rq.Query))
	if err != nil || q.Answer {
		p.stats.Bad++
		return
	}
	mine := len(q.Peers) == 0
	for _, peer := range q.Peers {
		mine = mine || peer == p.id
	}
	_, open := p.pipes[pipeKey{group, q.Pipe}]
	if !mine || !open && len(q.Peers) == 0 {
		return
	}
	a := jxta.PipeResolver{Answer: true, Pipe: q.Pipe, Type: q.Type, Peers: []string{p.id}, Found: open, PeerAdv: string(p.Advertisement(group))}
	p.respond(group, rq, string(a.Append(nil)))
}
