package envelope

import (
	"aldis/internal/link/compact"
)

// Prepare codes the texts of a message beforehand, each by itself, about so many octets of work in this call, so that
// AppendCoded answers at once. It says whether that is so now.
func (t *Texts) Prepare(m Message, octets int) (done bool) {
	if t == nil {
		return true
	}
	until := t.Coder.Work() + uint64(octets)
	left := &room{maxExpanded, maxModelled}
	prepare := func(effort compact.Effort, text []byte) bool {
		if effort != compact.Full || len(text) > left.modelled {
			return true
		}
		left.modelled -= len(text) // at the most
		work := t.Coder.Work()
		return t.Coder.Prepare(text, max(0, int(int64(until-work))))
	}
	if m.Payload != nil {
		for _, e := range flat(m.Payload.Parts) {
			if !prepare(compact.EffortFor(t.Rules, e.Type, e.Name, len(e.Data)), e.Data) {
				return false
			}
		}
	}
	for i := range m.Items {
		if !prepare(compact.Full, m.Items[i].Doc) {
			return false
		}
	}
	return true
}
