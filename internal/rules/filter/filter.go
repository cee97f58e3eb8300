package filter

import (
	"aldis/internal/site"
	"time"
)

// Counts count the effects of a rule since the start.
type Counts struct {
	Fits    uint64 `json:"fits"`    // things that the rule took
	Waited  uint64 `json:"waited"`  // advertisements that its rate made wait
	Dropped uint64 `json:"dropped"` // messages beyond its rate
}

// Filter applies rules. It is not for concurrent use; nil has no rules.
type Filter struct {
	rules   []Rule
	buckets []bucket
	counts  []Counts
	sites   bool // a rule depends on the far site
}

// bucket is a token bucket, stored as the time at which it is full.
type bucket struct{ full time.Time }

// New makes a Filter with full buckets.
func New(rules []Rule) *Filter {
	f := &Filter{}
	f.Replace(rules)
	return f
}

// Replace replaces the rules, and returns a Filter that judges as this one did before. A rule that was there already keeps its
// counters and the rest of its rate, even if it is on another line now.
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

// Empty says that there is no rule.
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
	Rule   int // index of the rule that decided; -1: none did
	Action Action
}

// Default is the verdict if no rule matches.
var Default = Verdict{Rule: -1}

// Stays says that the item may not cross.
func (v Verdict) Stays() bool { return v.Action != Allow }

// Judge returns the decision of the first rule that matches s, and counts nothing.
func (f *Filter) Judge(s *site.Subject) Verdict {
	if f == nil {
		return Default
	}
	if len(s.Owners) > 0 {
		one, v := *s, Default
		one.Owners = nil
		for _, one.Owner = range s.Owners {
			if v = f.Judge(&one); !v.Stays() {
				break
			}
		}
		return v
	}
	for i := range f.rules {
		if f.rules[i].Misses(s) == "" {
			return Verdict{i, f.rules[i].Action}
		}
	}
	return Default
}

// Rule is the rule with this index.
func (f *Filter) Rule(i int) Rule { return f.rules[i] }

// Count records that a verdict was carried out.
func (f *Filter) Count(v Verdict) {
	if v.Rule >= 0 {
		f.counts[v.Rule].Fits++
	}
}

// Limited says that the rule of a verdict has a rate.
func (f *Filter) Limited(v Verdict) bool { return v.Rule >= 0 && f.rules[v.Rule].Rate.Count > 0 }

// Allow asks for one token of a rule's rate. If there is none, at is the time of the next.
func (f *Filter) Allow(now time.Time, v Verdict) (ok bool, at time.Time) {
	if v.Rule < 0 || f.rules[v.Rule].Rate.Count == 0 {
		return true, time.Time{}
	}
	// The bucket is one time: when it will be full. Each item moves that time on by as long as one token takes.
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

// Waits counts an item that waits for the rate of a verdict's rule.
func (f *Filter) Waits(v Verdict) { f.counts[v.Rule].Waited++ }

// Drops counts an item that was dropped by the rate of a verdict's rule.
func (f *Filter) Drops(v Verdict) { f.counts[v.Rule].Dropped++ }

// Status is one rule with its counters.
type Status struct {
	Label  string `json:"label,omitempty"`
	Line   int    `json:"line"`
	Action string `json:"action"`
	Rate   string `json:"rate,omitempty"`
	Counts
}

// Status returns the rules with their counters, in order.
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
