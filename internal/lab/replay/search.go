package replay

import (
	"cmp"
	"fmt"
	"slices"

	"aldis/internal/link/profile"
)

// Rules of the search.
const (
	slack      = 0.01  // neither octets nor p95 may grow by more for a change to count
	meanSlack  = 0.15  // nor mean latency, which each repair changes
	tailSlack  = 0.75  // nor the mean of the slowest twentieth: so few messages that only large changes count
	gain       = 0.005 // a change must be worth so much: half of the relative savings in octets and in p95
	most       = 0.5   // share of the plays, taken one by one, that must be no worse
	maxRounds  = 8
	promising  = 6    // candidates of a round that are played a second time
	tooDear    = 3    // %: a candidate that costs so many octets more at first sight is dropped
	confirmed  = 3    // candidates that are played on all variants in a round
	maxLoss    = 0.02 // on unseen variants neither octets nor p95 may be worse by more
	endSlack   = 2    // times the slack of a decision, for mean and tail: there are no more plays to average them
	screenings = 3    // variants of a trace on which promising candidates are played
	decisions  = 6    // variants for decisions, the screenings included
	unseen     = 6    // variants for the judgement at the end
	proofs     = 2    // variants of a trace that serves only the proof, the first of them the trace itself
	firstOfEnd = 1 << 20
)

// Trial is one play that the search wants.
type Trial struct {
	Profile profile.Profile
	Trace   int    // index
	Variant Number // of the trace
	Seed    uint64 // of losses
}

// Number of a variant; 0 is the trace as it is.
type Number int

// Figures are the results of a play.
type Figures struct {
	Octets    int64     // on the link, both directions
	Times     []float64 // latencies of the arrived messages, s, ascending
	Expected  int
	Delivered int
	Wrong     int // messages that came twice or changed
	Err       string
	Cut       bool // the time was up before its end: the figures mean nothing
}

// SearchConfig of a search.
type SearchConfig struct {
	Profile profile.Profile
	Traces  int // for decisions
	Proof   int // further ones, played at the end with the untouched profile and with the outcome; they change no decision
	Seed    uint64
}

// Change is one changed value, and its effect alone over all variants for decisions, against the settings before its step; less is
// better.
type Change struct {
	Key       string  `json:"key"`
	Was       int     `json:"was"`
	Now       int     `json:"now"`
	OctetsPct float64 `json:"octets_percent"`
	P95Pct    float64 `json:"p95_percent"`
}

// Step is the changes of one round: one value, or several that are better together.
type Step struct {
	Changes   []Change `json:"changes"`
	OctetsPct float64  `json:"octets_percent"` // of all changes together
	P95Pct    float64  `json:"p95_percent"`
	before    profile.Profile
}

// Tried is a value and its effect at first sight: on the traces as they are, against the settings at that time.
type Tried struct {
	Round     int     `json:"round"`
	Key       string  `json:"key"`
	Value     int     `json:"value"`
	OctetsPct float64 `json:"octets_percent"`
	MedianPct float64 `json:"median_percent"`
	P95Pct    float64 `json:"p95_percent"`
	Lost      int     `json:"lost_more"`
}

// Tuning is the result of a search.
type Tuning struct {
	Profile profile.Profile `json:"-"`
	Steps   []Step          `json:"steps"`                // in the order in which they were found
	Taken   []Step          `json:"taken_back,omitempty"` // failed on unseen variants
	Seen    Judgement       `json:"seen"`
	Unseen  Judgement       `json:"unseen"`
	Proof   []Judgement     `json:"proof,omitempty"` // by trace
	Proven  *Judgement      `json:"proof_together,omitempty"`
	Plays   int             `json:"plays"`
	Rounds  int             `json:"rounds"`
	Cut     bool            `json:"cut"`            // the time limit ended the search before it had tried everything
	Idle    []string        `json:"without_effect"` // keys whose values changed nothing in these traces
	Tried   []Tried         `json:"tried"`
	Problem string          `json:"problem,omitempty"`
}

// phase is the kind of plays for which the search waits.
type phase int

const (
	baseline phase = iota
	looking
	screening
	confirming
	judging
	proving
	over
)

// Search is one search.
type Search struct {
	cfg     SearchConfig
	knobs   []knob
	phase   phase
	asked   []Trial
	current profile.Profile
	played  map[playKey]Figures // of the current round's profiles
	tries   []candidate
	idle    map[string]bool
	wide    bool
	res     Tuning
	stopped bool
}

type candidate struct {
	knob    *knob
	value   int
	profile profile.Profile
	changes []Change // one, or several tried together
}

type playKey struct {
	profile profile.Profile
	trace   int
	variant Number
}

// NewSearch begins a search.
func NewSearch(cfg SearchConfig) *Search {
	return &Search{cfg: cfg, knobs: knobs(), current: cfg.Profile, played: map[playKey]Figures{}, idle: map[string]bool{}, wide: true,
		res: Tuning{Steps: []Step{}, Idle: []string{}}}
}

// Stop asks the search to begin no further round, because the time is up, and to end with the judgement of its changes so far.
func (s *Search) Stop() { s.stopped = true }

// Share is the part of the time left that the trials of the latest Next may take before the rest of their phase is cut: a round that
// looks at half of the values and confirms its findings is worth more than one that only looks at all.
func (s *Search) Share() float64 {
	if s.phase == looking || s.phase == screening {
		return 0.5
	}
	return 1
}

// Reserve is how many plays the judgement will take.
func (s *Search) Reserve() int {
	switch s.phase {
	case judging, proving:
		return 0
	}
	return 2 * (unseen*s.cfg.Traces + proofs*s.cfg.Proof)
}

// Phase describes the purpose of the latest trials of Next.
func (s *Search) Phase() string {
	switch s.phase {
	case baseline:
		return "the profile as it is"
	case looking:
		return fmt.Sprintf("round %d, each value", s.res.Rounds)
	case screening:
		return fmt.Sprintf("round %d, those that look promising", s.res.Rounds)
	case confirming:
		return fmt.Sprintf("round %d, the best again", s.res.Rounds)
	}
	if s.phase == proving {
		return "proof on other traces"
	}
	return "judgement on what it has not seen"
}

// Next returns the plays that are needed now, in order; none: the search is over.
func (s *Search) Next() []Trial {
	if s.asked != nil {
		return s.asked
	}
	var list []Trial
	switch s.phase {
	case baseline:
		list = s.plays(s.current, 0, decisions)
	case looking:
		for _, c := range s.tries {
			list = append(list, s.plays(c.profile, 0, 1)...)
		}
	case screening:
		for _, c := range s.tries {
			list = append(list, s.plays(c.profile, 0, screenings)...)
		}
	case confirming:
		for _, c := range s.tries {
			list = append(list, s.plays(c.profile, 0, decisions)...)
		}
	case judging:
		list = append(s.plays(s.cfg.Profile, firstOfEnd, unseen), s.plays(s.current, firstOfEnd, unseen)...)
	case proving:
		for t := range s.cfg.Proof {
			list = append(list, s.proof(s.cfg.Profile, t)...)
			list = append(list, s.proof(s.current, t)...)
		}
	}
	var fresh []Trial
	asked := map[playKey]bool{}
	for _, t := range list {
		k := playKey{t.Profile, t.Trace, t.Variant}
		if _, ok := s.played[k]; !ok && !asked[k] {
			asked[k] = true
			fresh = append(fresh, t)
		}
	}
	s.asked = fresh
	if len(fresh) == 0 && s.phase != over {
		s.advance() // all trials were played before
		return s.Next()
	}
	return fresh
}

// Tell takes the results of the trials of Next, in their order.
func (s *Search) Tell(figures []Figures) {
	for i, t := range s.asked {
		if figures[i].Cut {
			s.res.Cut = true
			continue
		}
		s.played[playKey{t.Profile, t.Trace, t.Variant}] = figures[i]
		if e := figures[i].Err; e != "" && t.Profile == s.cfg.Profile && s.res.Problem == "" {
			s.res.Problem = e
		}
	}
	s.res.Plays += len(s.asked)
	s.asked = nil
	s.advance()
}

// Result is the result, once Next returns no more trials.
func (s *Search) Result() Tuning { return s.res }

// plays are the trials of a profile on all traces and n variants.
func (s *Search) plays(p profile.Profile, from Number, n int) (list []Trial) {
	for t := range s.cfg.Traces {
		for v := from; v < from+Number(n); v++ {
			list = append(list, Trial{p, t, v, s.cfg.Seed*1_000_003 + uint64(v)})
		}
	}
	return list
}

// proof are the trials of a profile on one of the traces that serve only the proof.
func (s *Search) proof(p profile.Profile, t int) (list []Trial) {
	for v := range Number(proofs) {
		list = append(list, Trial{p, s.cfg.Traces + t, v, s.cfg.Seed*1_000_003 + uint64(v)})
	}
	return list
}

// advance goes on to the next phase with the results of the plays.
func (s *Search) advance() {
	s.asked = nil
	switch s.phase {
	case baseline:
		if s.res.Problem != "" || !s.known(s.current, 0, decisions) {
			s.finish()
			return
		}
		s.round()
	case looking:
		s.looked()
	case screening:
		s.screened()
	case confirming:
		s.confirm()
	case judging:
		s.judge()
	case proving:
		s.finish()
	}
}

// round begins another round of candidates, or the end.
func (s *Search) round() {
	s.tries = nil
	if s.res.Rounds >= maxRounds || s.stopped {
		s.res.Cut = s.res.Cut || s.stopped
		s.phase = judging
		return
	}
	s.res.Rounds++
	for i := range s.knobs {
		k := &s.knobs[i]
		if s.idle[k.Key] {
			continue
		}
		for _, v := range k.candidates(s.current, s.wide) {
			p := s.current
			k.set(&p, v)
			s.tries = append(s.tries, candidate{k, v, p, []Change{{Key: k.Key, Was: k.get(&s.current), Now: v}}})
		}
	}
	s.wide = false
	s.phase = looking
	if len(s.tries) == 0 {
		s.phase = judging
	}
}

// looked drops candidates that change nothing or cost too much at first sight.
func (s *Search) looked() {
	moved := map[string]bool{}
	var list []candidate
	for _, c := range s.tries {
		if !s.known(c.profile, 0, 1) {
			moved[c.knob.Key] = true // it may have an effect
			continue
		}
		j := s.compare(s.current, c.profile, 0, 1)
		s.res.Tried = append(s.res.Tried, Tried{s.res.Rounds, c.knob.Key, c.value, j.OctetsPct, j.MedianPct, j.P95Pct, j.Lost})
		if s.same(s.current, c.profile, 1) {
			continue
		}
		moved[c.knob.Key] = true
		if j.Lost == 0 && j.OctetsPct <= tooDear && promise(j) > 0 {
			list = append(list, c)
		}
	}
	for _, c := range s.tries {
		if !moved[c.knob.Key] && !s.idle[c.knob.Key] {
			s.idle[c.knob.Key] = true
			s.res.Idle = append(s.res.Idle, c.knob.Key)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Compare(promise(s.compare(s.current, b.profile, 0, 1)), promise(s.compare(s.current, a.profile, 0, 1)))
	})
	s.tries = list[:min(len(list), promising)]
	if len(s.tries) == 0 {
		s.phase = judging
		return
	}
	s.phase = screening
}

// screened chooses the candidates to play again: the best value of each knob that shows promise, and all of them together.
func (s *Search) screened() {
	best := map[string]candidate{}
	for _, c := range s.tries {
		j := s.compare(s.current, c.profile, 0, screenings)
		if !s.known(c.profile, 0, screenings) || !acceptable(j) || worth(j) < gain {
			continue
		}
		if old, ok := best[c.knob.Key]; !ok || worth(j) > worth(s.compare(s.current, old.profile, 0, screenings)) {
			best[c.knob.Key] = c
		}
	}
	var list []candidate
	for _, k := range s.knobs {
		if c, ok := best[k.Key]; ok {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Compare(worth(s.compare(s.current, b.profile, 0, screenings)), worth(s.compare(s.current, a.profile, 0, screenings)))
	})
	if len(list) == 0 {
		s.phase = judging
		return
	}
	together := candidate{profile: s.current}
	for _, c := range list[:min(len(list), confirmed)] {
		q := together.profile
		c.knob.set(&q, c.value)
		if q.Validate("", nil) == nil {
			together.profile = q
			together.changes = append(together.changes, c.changes...)
		}
	}
	list = list[:min(len(list), confirmed)]
	if len(together.changes) > 1 {
		list = append(list, together)
	}
	s.tries, s.phase = list, confirming
}

// confirm adopts the best candidate if it is better on all variants together and on most of them.
func (s *Search) confirm() {
	at, best := -1, 0.0
	for i, c := range s.tries {
		j := s.compare(s.current, c.profile, 0, decisions)
		if w := worth(j); s.known(c.profile, 0, decisions) && acceptable(j) && w >= gain && w > best && s.mostly(c.profile) {
			at, best = i, w
		}
	}
	if at < 0 {
		s.phase = judging
		return
	}
	c := s.tries[at]
	j := s.compare(s.current, c.profile, 0, decisions)
	step := Step{OctetsPct: j.OctetsPct, P95Pct: j.P95Pct, before: s.current}
	for _, ch := range c.changes {
		alone := s.current
		s.knob(ch.Key).set(&alone, ch.Now)
		j := s.compare(s.current, alone, 0, decisions)
		ch.OctetsPct, ch.P95Pct = j.OctetsPct, j.P95Pct
		step.Changes = append(step.Changes, ch)
	}
	s.res.Steps = append(s.res.Steps, step)
	for key := range s.idle { // with other values it may have an effect
		if s.datagramChanged(c) {
			delete(s.idle, key)
		}
	}
	if s.datagramChanged(c) {
		s.res.Idle = s.res.Idle[:0]
	}
	s.current = c.profile
	s.round()
}

func (s *Search) datagramChanged(c candidate) bool {
	return c.profile.DatagramOctets != s.current.DatagramOctets
}

func (s *Search) knob(key string) *knob {
	i := slices.IndexFunc(s.knobs, func(k knob) bool { return k.Key == key })
	return &s.knobs[i]
}

// judge compares the settings with the untouched profile on unseen variants, and takes back steps that fail there.
func (s *Search) judge() {
	j := s.compare(s.cfg.Profile, s.current, firstOfEnd, unseen)
	if !s.known(s.cfg.Profile, firstOfEnd, unseen) || !s.known(s.current, firstOfEnd, unseen) { // nothing shows that the steps hold
		s.res.Taken, s.res.Steps, s.current = append(s.res.Taken, s.res.Steps...), []Step{}, s.cfg.Profile
		s.finish()
		return
	}
	if len(s.res.Steps) > 0 && (j.Lost > 0 || j.OctetsPct > 100*maxLoss || j.P95Pct > 100*maxLoss || j.MeanPct > 100*endSlack*meanSlack || j.TailPct > 100*endSlack*tailSlack) {
		last := s.res.Steps[len(s.res.Steps)-1]
		s.res.Steps = s.res.Steps[:len(s.res.Steps)-1]
		s.res.Taken = append(s.res.Taken, last)
		s.current = last.before
		return // judge the remaining steps again
	}
	s.phase = proving
	if s.cfg.Proof == 0 || len(s.res.Steps) == 0 {
		s.finish()
	}
}

func (s *Search) finish() {
	s.phase = over
	s.res.Profile = s.current
	if s.known(s.current, 0, decisions) {
		s.res.Seen = s.compare(s.cfg.Profile, s.current, 0, decisions)
	}
	s.res.Unseen = s.compare(s.cfg.Profile, s.current, firstOfEnd, unseen)
	if len(s.res.Steps) > 0 {
		var all []Trial
		for t := range s.cfg.Proof {
			trials := s.proof(s.cfg.Profile, t)
			s.res.Proof = append(s.res.Proof, s.over(trials, s.current))
			all = append(all, trials...)
		}
		if len(all) > 0 {
			j := s.over(all, s.current)
			s.res.Proven = &j
		}
	}
}

// known says whether all plays of a profile on n variants were played to their end.
func (s *Search) known(p profile.Profile, from Number, n int) bool {
	for _, t := range s.plays(p, from, n) {
		if _, ok := s.played[playKey{p, t.Trace, t.Variant}]; !ok {
			return false
		}
	}
	return true
}
