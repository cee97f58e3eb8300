package pair

// Witness is the state that the third voter keeps of a site: the newest epoch that it has voted for, and the machine whose epoch that is.
type Witness struct {
	Epoch, Machine uint64
}

// Judge answers a claim. Where it votes, the Witness has changed, and is made durable before the answer is sent.
func (w *Witness) Judge(c Claim) Verdict {
	again := c.Epoch == w.Epoch && c.Machine == w.Machine
	newer := c.Epoch > w.Epoch && (w.Epoch <= c.From || w.Machine == c.Machine || c.Forced)
	if newer {
		w.Epoch, w.Machine = c.Epoch, c.Machine
	}
	return Verdict{Epoch: c.Epoch, Granted: again || newer, Newest: w.Epoch}
}
