package filter

import (
	"aldis/internal/site"
	"time"
)

// Counts are what a rule did since the start.
type Counts struct {
	Fits    uint64 `json:"fits"`    // things that the rule took
	Waited  uint64 `json:"waited"`  // advertisements that its rate made wait
	Dropped uint64 `json:"dropped"` // messages beyond its rate
}

// Filter is the rules at work. It is not for concurrent use; nil has no rules.
type Filter struct {
	rules   []Rule
	buckets []bucket
	counts  []Counts
	sites   bool // a rule asks for the far site
}

// bucket is a token bucket: full since full.
type bucket struct{ full time.Time }

// New starts with full buckets.
func New(rules []Rule) *Filter {
	f := &Filter{}
	f.Replace(rules)
	return f
}

// Replace puts rules in the place of those that are there, and returns a Filter that judges as this one did before. A rule
// that was there already keeps its counters and what is left of its rate, at whatever line it stands now.
func (f *Filter) Replace(rules []Rule) (before *Filter) {
	old := *f
	*f = Filter{rules: rules, buckets: make([]bucket, len(rules)), counts: make([]Counts, len(rules))}
	taken := make([]bool, len(old.rules))
	for i, r := range rules {
		f.sites = f.sites || r.Site != 0
		for k, o := range old.rules {
			o.Line = r.Line
			if o == r && !taken[k] {
				taken[k], f.buckets[i], f.counts[i] = true, old.buckets[k], old.counts[k]
				break
			}
		}
	}
	return &old
}

// Empty says that no rule is there.
func (f *Filter) Empty() bool { return f == nil || len(f.rules) == 0 }

// Len is the number of rules.
func (f *Filter) Len() int {
	if f == nil {
		return 0
	}
	return len(f.rules)
}

// BySite says that verdicts may differ between far sites.
func (f *Filter) BySite() bool { return f != nil && f.sites }

// Verdict is a rule's decision.
type Verdict struct {
	Rule   int // number of the rule that decided; -1: none did
	Action Action
}

// Default is the verdict where no rule fits.
var Default = Verdict{Rule: -1}

// Stays says that the thing may not cross.
func (v Verdict) Stays() bool { return v.Action != Allow }

// Judge answers which rule takes s, and counts nothing.
func (f *Filter) Judge(s *site.Subject) Verdict {
	if f == nil {
		return Default
	}
	for i := range f.rules {
		if f.rules[i].Misses(s) == "" {
			return Verdict{i, f.rules[i].Action}
		}
	}
	return Default
}

// Rule is the one of that number.
func (f *Filter) Rule(i int) Rule { return f.rules[i] }

// Count notes that a verdict was carried out.
func (f *Filter) Count(v Verdict) {
	if v.Rule >= 0 {
		f.counts[v.Rule].Fits++
	}
}

// Limited says that the rule of a verdict has a rate.
func (f *Filter) Limited(v Verdict) bool { return v.Rule >= 0 && f.rules[v.Rule].Rate.Count > 0 }

// Allow asks a rule's rate for one thing. When it is used up, it answers when the next will be there.
func (f *Filter) Allow(now time.Time, v Verdict) (ok bool, at time.Time) {
	if v.Rule < 0 || f.rules[v.Rule].Rate.Count == 0 {
		return true, time.Time{}
	}
	// The bucket as one time: when it will be full. Each thing puts that off by what it takes to refill.
	b, rate := &f.buckets[v.Rule], f.rules[v.Rule].Rate
	each := rate.Per / time.Duration(rate.Count)
	if b.full.Before(now) {
		b.full = now
	}
	if wait := b.full.Add(each).Sub(now) - each*time.Duration(rate.Count); wait > 0 {
		return false, now.Add(wait)
	}
	b.full = b.full.Add(each)
	return true, time.Time{}
}

// Waits and Drops count what a rate did.
func (f *Filter) Waits(v Verdict) { f.counts[v.Rule].Waited++ }

// Drops counts what the rate of a verdict's rule has dropped.
func (f *Filter) Drops(v Verdict) { f.counts[v.Rule].Dropped++ }

// Status is one rule in a Status.
type Status struct {
	Label  string `json:"label,omitempty"`
	Line   int    `json:"line"`
	Action string `json:"action"`
	Rate   string `json:"rate,omitempty"`
	Counts
}

// Status copies the rules with their counters, in order.
func (f *Filter) Status() []Status {
	if f.Empty() {
		return nil
	}
	out := make([]Status, len(f.rules))
	for i, r := range f.rules {
		out[i] = Status{r.Label, r.Line, r.Action.String(), r.Rate.String(), f.counts[i]}
	}
	return out
}
