package due

// Recent holds the keys that were added last, and forgets the oldest for new ones. It is for one goroutine.
type Recent[K comparable] struct {
	most   int
	in     map[K]struct{}
	order  []K // a ring once it is full
	oldest int
}

// NewRecent makes a Recent of at most so many keys, one or more. It takes memory only for the keys that it has.
func NewRecent[K comparable](most int) *Recent[K] {
	return &Recent[K]{most: most, in: map[K]struct{}{}}
}

// Add adds a key, and returns false if it was there already.
func (s *Recent[K]) Add(key K) bool {
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
func (s *Recent[K]) Has(key K) bool {
	_, has := s.in[key]
	return has
}

// Len is the number of keys.
func (s *Recent[K]) Len() int { return len(s.in) }
