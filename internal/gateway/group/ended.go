package group

import (
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// Messages that have ended are kept for a while, for a recipient that cannot read one of them.
const (
	maxEnded       = 256
	maxEndedOctets = 1 << 20
)

type endedMessages struct {
	order    []pmul.MessageID
	payloads map[pmul.MessageID]*site.Message
	octets   int
	peers    map[pmul.MessageID]map[uint16]*outcome // also of those that have not ended for all
}

// outcome is what became of a message for one peer.
type outcome struct {
	delivered bool           // it has acknowledged it
	repair    pmul.MessageID // what was sent in its place; 0: nothing
}

// of is where that is noted; what the caller changes there stays.
func (e *endedMessages) of(id pmul.MessageID, peer uint16) *outcome {
	if e.peers == nil {
		e.peers = map[pmul.MessageID]map[uint16]*outcome{}
	}
	if e.peers[id] == nil {
		e.peers[id] = map[uint16]*outcome{}
	}
	if e.peers[id][peer] == nil {
		e.peers[id][peer] = &outcome{}
	}
	return e.peers[id][peer]
}

// take takes back that a peer has acknowledged a message; false: it was not noted.
func (e *endedMessages) take(id pmul.MessageID, peer uint16) bool {
	o := e.peers[id][peer]
	if o == nil || !o.delivered {
		return false
	}
	o.delivered = false
	return true
}

// latest is what a peer was sent last in the place of a message; a peer that was put back asks for the message again.
func (e *endedMessages) latest(id pmul.MessageID, peer uint16) pmul.MessageID {
	for o := e.peers[id][peer]; o != nil && o.repair != 0; o = e.peers[id][peer] {
		id = o.repair
	}
	return id
}

func payloadOctets(p *site.Message) (n int) {
	for i := range p.Parts {
		n += len(p.Parts[i].Data)
	}
	return n
}

// add keeps what a message said that has ended for all.
func (e *endedMessages) add(id pmul.MessageID, p *site.Message) {
	if p == nil || payloadOctets(p) > maxEndedOctets {
		delete(e.peers, id)
		return
	}
	if e.payloads == nil {
		e.payloads = map[pmul.MessageID]*site.Message{}
	}
	e.payloads[id] = p
	e.order = append(e.order, id)
	for e.octets += payloadOctets(p); e.octets > maxEndedOctets || len(e.order) > maxEnded; e.order = e.order[1:] {
		e.octets -= payloadOctets(e.payloads[e.order[0]])
		delete(e.payloads, e.order[0])
		delete(e.peers, e.order[0])
	}
}
