package corpusexchange

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// MostKept is how many corpora of other sites are kept at most.
const MostKept = 16

// service and part name a message with a corpus, and its part.
const (
	service = "corpus"
	part    = "file"
)

// Config of an Adapter.
type Config struct {
	Name       string              // of this site
	Configured *compact.CorpusFile // the corpus that the configuration names; nil: none
	From       []uint16            // sites whose corpora are accepted without an operator
	Refuse     bool                // corpora of other sites are not kept
	// Shared sends a corpus for several sites once for all of them. Then nobody learns when one of them has it.
	Shared bool
}

// Adapter keeps the corpora that other sites have sent. It is not for concurrent use.
type Adapter struct {
	cfg      Config
	received map[uint16]kept
	accepted kept // nil file: none, or it was accepted when another corpus was configured
	sent     int
	refused  int
	token    uint64
	told     map[uint64]sending // sent corpora whose fate is awaited, by token
	out      site.Output
}

// sending is a corpus on its way to one site.
type sending struct {
	site uint16
	name string
}

// New restores an adapter from its memories. A memory that cannot be read any more is dropped and logged with the first Step.
func New(cfg Config, memories []site.Memory) *Adapter {
	f := &Adapter{cfg: cfg, received: map[uint16]kept{}, told: map[uint64]sending{}}
	for _, m := range memories {
		var err error
		from, ok := siteOf(m.Key)
		switch {
		case ok:
			var k kept
			if k, err = parseKept(m.Value); err == nil {
				f.received[from] = k
			}
		case m.Key == accepted:
			in, k, unread := parseAccepted(m.Value)
			if err = unread; err == nil && in == hashOf(cfg.Configured) {
				f.accepted = k
			} else if err == nil {
				f.remember(accepted, nil)
				f.note("info", "the configuration names another corpus than before; the accepted corpus is no longer used", "corpus", Name(k.CorpusFile))
			}
		default:
			err = ErrMemory
		}
		if err != nil {
			f.remember(m.Key, nil)
			f.note("warn", "a corpus in the journal cannot be read; the gateway has dropped it", "key", m.Key, "error", err)
		}
	}
	return f
}

// Step brings the adapter to now and applies ev.
func (f *Adapter) Step(now time.Time, ev site.Event) site.Output {
	switch ev := ev.(type) {
	case Send:
		f.send(ev)
	case Accept:
		f.accept(ev.Name, "an operator")
	case Forget:
		f.forget(ev.Name)
	case site.FarMessage:
		f.arrived(now, ev)
	case site.Fate:
		f.ended(ev)
	}
	out := f.out
	f.out = site.Output{}
	return out
}

// send gives a corpus to the core. The operator who orders this has read the corpus.
func (f *Adapter) send(order Send) {
	f.sent++
	c, err := compact.ReadCorpus(order.File)
	if err != nil {
		f.note("warn", "the corpus to send is not valid; nothing was sent", "error", err)
		return
	}
	groups := [][]uint16{order.Sites}
	if !f.cfg.Shared {
		groups = groups[:0]
		for _, s := range order.Sites {
			groups = append(groups, []uint16{s})
		}
	}
	for _, sites := range groups {
		m := site.Message{From: f.cfg.Name, Service: service, Param: Name(c), Parts: []site.Part{{Name: part, Data: order.File}},
			Mark: site.Mark{Precedence: site.Deferred}}
		if len(sites) == 1 {
			f.token++
			f.told[f.token] = sending{sites[0], Name(c)}
			m.Token = f.token
		}
		f.out.Carry = append(f.out.Carry, site.Carry{Sites: sites, Message: m})
	}
	f.note("info", "the network's corpus is queued for other sites; it goes out when the link is idle", "corpus", Name(c), "octets", len(order.File), "sites", order.Sites)
}

// ended logs the outcome of a corpus that was sent to one site.
func (f *Adapter) ended(ev site.Fate) {
	s, ok := f.told[ev.Token]
	delete(f.told, ev.Token)
	switch {
	case ok && ev.Failed():
		f.note("warn", "a site does not get the network's corpus: its queue is full, or somebody cancelled the corpus", "corpus", s.name, "site", s.site)
	case ok:
		f.note("info", "a site has received the network's corpus; its operator decides whether to use it", "corpus", s.name, "site", s.site)
	}
}

// arrived keeps a corpus that another site has sent, in the same Step in which it tells the core that the message is done.
func (f *Adapter) arrived(now time.Time, m site.FarMessage) {
	undelivered := func(why string, err error) {
		f.refused++
		f.out.Undelivered = append(f.out.Undelivered, site.Undelivered{Token: m.Token, Why: site.Unfit})
		f.note("warn", "a received corpus was rejected; its sender is told", "site", m.Site, "why", why, "error", err)
	}
	parts := m.Message.Parts
	switch {
	case f.cfg.Refuse:
		undelivered("compact.corpus_refuse is set", nil)
		return
	case m.Message.Service != service || m.Message.Published || len(parts) != 1 || parts[0].Name != part:
		undelivered("it is not one", compact.ErrCorpus)
		return
	}
	c, err := compact.ReadCorpus(parts[0].Data)
	if err != nil {
		undelivered("it is not one", err)
		return
	}
	k := kept{c, slices.Clone(parts[0].Data), now.UTC().Round(0)}
	f.received[m.Site] = k
	f.remember(keyOf(m.Site), k.append(nil))
	f.out.Done = append(f.out.Done, m.Token)
	f.note("info", "another site has sent a corpus; to use it from the next start, run gateway corpus accept",
		"corpus", Name(c), "site", m.Site, "messages", len(c.Messages))
	for len(f.received) > MostKept {
		oldest := f.sites()[0]
		for _, s := range f.sites() {
			if f.received[s].at.Before(f.received[oldest].at) {
				oldest = s
			}
		}
		delete(f.received, oldest)
		f.remember(keyOf(oldest), nil)
	}
	if slices.Contains(f.cfg.From, m.Site) {
		f.accept(Name(c), "compact.corpus_from")
	}
}

// accept makes the gateway use a corpus from the next start on.
func (f *Adapter) accept(name, by string) {
	k, ok := f.find(name)
	if !ok {
		return
	}
	k.at = time.Time{}
	f.accepted = k
	in := hashOf(f.cfg.Configured)
	f.remember(accepted, append(in[:], k.file...))
	f.note("info", "the gateway will use a received corpus from its next start", "corpus", name, "by", by)
}

// forget deletes a corpus that was received or accepted.
func (f *Adapter) forget(name string) {
	for _, s := range f.sites() {
		if Name(f.received[s].CorpusFile) == name {
			delete(f.received, s)
			f.remember(keyOf(s), nil)
		}
	}
	if f.accepted.file != nil && Name(f.accepted.CorpusFile) == name {
		f.accepted = kept{}
		f.remember(accepted, nil)
	}
	f.note("info", "a received corpus was deleted", "corpus", name)
}

// find is the corpus of this name that was received or accepted.
func (f *Adapter) find(name string) (kept, bool) {
	for _, s := range f.sites() {
		if k := f.received[s]; Name(k.CorpusFile) == name {
			return k, true
		}
	}
	return f.accepted, f.accepted.file != nil && Name(f.accepted.CorpusFile) == name
}

func (f *Adapter) sites() []uint16 { return slices.Sorted(maps.Keys(f.received)) }

func keyOf(s uint16) string { return fmt.Sprint(ofSite, s) }

// File is the file of a corpus that was received or accepted; false: there is none of this name.
func (f *Adapter) File(name string) ([]byte, bool) {
	k, ok := f.find(name)
	return slices.Clone(k.file), ok
}

// Status describes the adapter.
func (f *Adapter) Status() Status {
	s := Status{Sent: f.sent, Refused: f.refused}
	if f.accepted.file != nil {
		s.Accepted = Name(f.accepted.CorpusFile)
	}
	for _, from := range f.sites() {
		k := f.received[from]
		row := Row{Name: Name(k.CorpusFile), Site: from, At: k.at, Messages: len(k.Messages)}
		for _, m := range k.Messages {
			row.Octets += len(m)
		}
		s.Received = append(s.Received, row)
	}
	return s
}

// DescribeItem returns the properties that rules can match; the adapter has no items.
func (f *Adapter) DescribeItem(it site.Item) site.Subject {
	return site.Subject{Type: "other", Scope: it.Scope, Owner: it.Owner}
}

// DescribeMessage returns the properties of a message; the rules are not asked about corpora.
func (f *Adapter) DescribeMessage(m *site.Message) site.Subject {
	s := site.Subject{Type: "message", Owner: m.From, Name: m.Param, Ordered: true}
	for _, p := range m.Parts {
		s.Octets += len(p.Data)
	}
	s.Topic = cmp.Or(m.Topic, m.Service)
	return s
}

func (f *Adapter) remember(key string, value []byte) {
	f.out.Remember = append(f.out.Remember, site.Memory{Key: key, Value: value})
}

func (f *Adapter) note(level, text string, attrs ...any) {
	f.out.Notes = append(f.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}
