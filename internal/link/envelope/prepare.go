package envelope

import (
	"aldis/internal/link/compact"
)

// Prepare codes the texts of a message in advance, about so many octets of work in this call, so that AppendCoded answers
// at once. It says whether AppendCoded can do so now.
func (t *Texts) Prepare(m Message, octets int) (done bool) {
	if t == nil {
		return true
	}
	until := t.Coder.Work() + uint64(octets)
	left := t.room(maxExpanded)
	prepare := func(effort compact.Effort, text []byte, how func(text []byte, octets int) bool) bool {
		if effort != compact.Full || len(text) > left.modelled {
			return true
		}
		left.modelled -= len(text) // at the most
		return how(text, max(0, int(int64(until-t.Coder.Work()))))
	}
	if m.Payload != nil {
		for i, e := range flat(m.Payload.Parts) {
			how := t.Coder.Prepare
			if t.Ahead != nil {
				how = func(text []byte, octets int) bool { return t.Ahead(i, text, octets) }
			}
			if !prepare(compact.EffortFor(t.Rules, e.Type, e.Name, len(e.Data)), e.Data, how) {
				return false
			}
		}
	}
	for i := range m.Items {
		if !prepare(compact.Full, m.Items[i].Doc, t.Coder.Prepare) {
			return false
		}
	}
	return true
}
