// Package recent remembers the last of many things, so that a repeated one is recognised. It is pure.
package recent

// Set holds the last keys that were added, and forgets the oldest for new ones. It is for one goroutine.
type Set[K comparable] struct {
	most   int
	in     map[K]struct{}
	order  []K // a ring once it is full
	oldest int
}

// New makes a Set of at most so many keys, one or more. It takes memory for those that it has.
func New[K comparable](most int) *Set[K] { return &Set[K]{most: most, in: map[K]struct{}{}} }

// Add says whether a key was not there, and then has it.
func (s *Set[K]) Add(key K) bool {
	if s.Has(key) {
		return false
	}
	if len(s.order) < s.most {
		s.order = append(s.order, key)
	} else {
		delete(s.in, s.order[s.oldest])
		s.order[s.oldest] = key
		s.oldest = (s.oldest + 1) % s.most
	}
	s.in[key] = struct{}{}
	return true
}

// Has says whether a key is there.
func (s *Set[K]) Has(key K) bool {
	_, has := s.in[key]
	return has
}

// Len is how many keys are there.
func (s *Set[K]) Len() int { return len(s.in) }
