package envelope

import (
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// Bounds of what both ends hold in memory and in their journals: only so many flows of a queue, by number, and so many
// elements of their messages are coded after earlier messages.
const (
	HistoryFlows    = 64
	historyElements = 8

	longFlows    = 16 // the flows whose long messages are learned from,
	longElements = 2  // and their elements
)

type historyKey struct {
	flow    uint32
	element int
}

// Histories are the messages of one direction of the direct queue that both ends are known to hold, by flow and element.
// The sender adds a message when it and all before it are acknowledged, the receiver when it is delivered: both in order of
// number. The zero value is empty.
type Histories struct {
	Complete bool // for each compact.History,
	Long     bool // for those of the first flows and elements

	of map[historyKey]*compact.History
}

// Of is the history of an element; nil where none is kept.
func (h *Histories) Of(flow uint32, element int) *compact.History {
	if flow == 0 || flow > HistoryFlows || element >= historyElements {
		return nil
	}
	k := historyKey{flow, element}
	if h.of == nil {
		h.of = map[historyKey]*compact.History{}
	}
	if h.of[k] == nil {
		h.of[k] = &compact.History{Complete: h.Complete, Long: h.Long && flow <= longFlows && element < longElements}
	}
	return h.of[k]
}

// Add takes a message that both ends hold.
func (h *Histories) Add(flow uint32, number uint64, p *site.Message) {
	for i, e := range flat(p.Parts) {
		if hist := h.Of(flow, i); hist != nil {
			hist.Add(number, e.Data)
		}
	}
}

// Insert adds the long elements of a message that both ends hold, at its place by number: for queues whose messages may
// come out of order.
func (h *Histories) Insert(flow uint32, number uint64, p *site.Message) {
	Elements(flow, p, func(element int, data []byte) {
		if len(data) > compact.MaxLearned {
			h.InsertElement(flow, element, number, data, 0, 0)
		}
	})
}

// Sent tells the sender's histories that message number of a flow goes out, before later ones are coded.
func (h *Histories) Sent(flow uint32, number uint64, p *site.Message) {
	for i := range flat(p.Parts) {
		if hist := h.Of(flow, i); hist != nil {
			hist.Sent(number)
		}
	}
}

// AddElement is Add for one element.
func (h *Histories) AddElement(flow uint32, element int, number uint64, data []byte) {
	if hist := h.Of(flow, element); hist != nil {
		hist.Add(number, data)
	}
}

// InsertElement adds one element of a message that may come out of order, and keeps so many, and about so many octets, of
// its flow and place. It returns the numbers of messages that are not kept any more.
func (h *Histories) InsertElement(flow uint32, element int, number uint64, data []byte, keep, octets int) (gone []uint64) {
	if hist := h.Of(flow, element); hist != nil {
		return hist.Insert(number, data, keep, octets)
	}
	return nil
}

// Elements calls f with each element of a payload that is learned from, or the part of it that is kept.
func Elements(flow uint32, p *site.Message, f func(element int, data []byte)) {
	if flow == 0 || flow > HistoryFlows {
		return
	}
	for i, e := range flat(p.Parts) {
		if i < historyElements && (len(e.Data) <= compact.MaxLearned || flow <= longFlows && i < longElements) {
			f(i, compact.Excerpt(e.Data))
		}
	}
}

// Decode expands an element of message number; it is for Texts.
func (h *Histories) Decode(coder *compact.Coder, number uint64) func(uint32, int, compact.Codec, []byte, int) ([]byte, error) {
	return func(flow uint32, i int, codec compact.Codec, code []byte, limit int) ([]byte, error) {
		if codec == compact.Kin {
			other, _ := compact.KinOf(code)
			if hist := h.of[historyKey{other, i}]; hist != nil {
				return coder.ExpandKin(code, hist, number, limit)
			}
		}
		if hist := h.Of(flow, i); hist != nil {
			return coder.ExpandAfter(codec, code, hist, number, limit)
		}
		return coder.Expand(codec, code, limit)
	}
}

// kin is the flow whose element at this place is most like data, the first of a flow without history; nil: there is none.
func (h *Histories) kin(flow uint32, element int, data []byte, number uint64) (kin uint32, best *compact.History) {
	if len(h.of) == 0 || element >= historyElements || len(data) < leastKin || len(data) > compact.MaxLearned {
		return 0, nil
	}
	likeness, most := compact.LikenessOf(data), 0
	for other := uint32(1); other <= HistoryFlows; other++ {
		hist := h.of[historyKey{other, element}]
		if hist == nil || other == flow {
			continue
		}
		if n := likeness.To(hist, number); n > most {
			kin, best, most = other, hist, n
		}
	}
	return kin, best
}

// leastKin is the least size of a text that is compared with other flows: for shorter texts, a head of five octets would
// cost more than it saves.
const leastKin = 24

// Encode lets texts code message number of a flow after the messages in h.
func (h *Histories) Encode(texts *Texts, flow uint32, number uint64) {
	texts.Encode = func(i int, data []byte) ([]byte, compact.Codec) {
		hist := h.Of(flow, i)
		if hist == nil || !hist.Serves(number) {
			if kin, hist := h.kin(flow, i, data, number); hist != nil {
				return texts.Coder.AppendKin(nil, data, hist, kin, number)
			}
		}
		if hist != nil {
			return texts.Coder.AppendAfter(nil, data, hist, number)
		}
		return texts.Coder.Append(nil, data)
	}
	texts.Ahead = func(i int, data []byte, octets int) bool {
		hist := h.Of(flow, i)
		if hist == nil || !hist.Serves(number) {
			if _, hist := h.kin(flow, i, data, number); hist != nil {
				return texts.Coder.PrepareKin(data, hist, number, octets)
			}
		}
		if hist != nil {
			return texts.Coder.PrepareAfter(data, hist, number, octets)
		}
		return texts.Coder.Prepare(data, octets)
	}
	texts.Alike = func(i int, codec compact.Codec, code []byte) bool {
		hist := h.Of(flow, i)
		return hist != nil && hist.Alike(codec, code, number)
	}
}
