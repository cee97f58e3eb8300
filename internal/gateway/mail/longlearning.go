package mail

import (
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// Long says which number the flow of message number of the bulk queue has, and whether the message has to spell the flow out: the
// first of the flow in that queue does, because the queues do not wait for each other.
func (a *SharedHistory) Long(p *site.Message, number uint64) (flow uint32, spells bool) {
	f := a.Flow(p)
	if f == nil {
		return 0, true
	}
	if f.long == 0 || number < f.long {
		if f.definer == 0 { // its number is given, also after a restart
			a.record(envelope.FlowOf(p), f)
		}
		f.long = number
	}
	return f.Number, f.long == number
}

// EncodeLong lets texts code message number of the bulk queue after a long one of its flow that the peer holds.
func (a *SharedHistory) EncodeLong(texts *envelope.Texts, payload *site.Message, number uint64) {
	if f := a.Flow(payload); f != nil && texts != nil {
		a.bulk.Encode(texts, f.Number, number)
	}
}

// SentLong notes that a message of the bulk queue has its number, and is under way from now on.
func (a *SharedHistory) SentLong(payload *site.Message, number uint64) {
	if f := a.Flow(payload); f != nil {
		a.bulk.Sent(f.Number, number, payload)
	}
}

// HoldsLong notes that the peer holds a message of the bulk queue.
func (a *SharedHistory) HoldsLong(payload *site.Message, number uint64) {
	if payload == nil {
		return
	}
	if f := a.flows[envelope.FlowOf(payload)]; f != nil {
		a.bulk.Insert(f.Number, number, payload)
	}
}
