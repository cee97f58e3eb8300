package reliable

// Place is where a block of the near peer belongs.
type Place uint8

// Places.
const (
	Next  Place = iota // it is the next one
	Early              // blocks before it are missing
	Taken              // it was taken before
	Kept               // it is here, and blocks before it are missing
	Wrong              // its number is 0, or further ahead than any gap
)

// maxAhead is how far ahead a number may be; beyond that it is a mistake.
const maxAhead = 1024

// Up holds what the near peer sends towards the link. The zero value expects block 1.
type Up[B any] struct {
	Taken   uint32 // highest block that was taken, all before it too
	Waiting int    // octets given to the link that the far site does not have yet
	Blocks  int    // and how many blocks

	early map[uint32]B // blocks beyond a gap
}

// Look tells where block n belongs.
func (u *Up[B]) Look(n uint32) Place {
	_, kept := u.early[n]
	switch {
	case n == 0 || n > u.Taken+maxAhead:
		return Wrong
	case n <= u.Taken:
		return Taken
	case kept:
		return Kept
	case n == u.Taken+1:
		return Next
	}
	return Early
}

// Early is how many blocks wait for one before them.
func (u *Up[B]) Early() int { return len(u.early) }

// Keep holds a block until those before it are here. It is not to be acknowledged: the near peer keeps it until it is
// durable here.
func (u *Up[B]) Keep(n uint32, block B) {
	if u.early == nil {
		u.early = map[uint32]B{}
	}
	u.early[n] = block
}

// Take takes the next block and those that waited for it, in order, until carry answers false.
func (u *Up[B]) Take(block B, carry func(B) bool) {
	for ok := true; ok; block, ok = u.early[u.Taken+1] {
		u.Taken++
		delete(u.early, u.Taken)
		if !carry(block) {
			return
		}
	}
}

// Restart begins anew behind block n. What was given to the link stays counted.
func (u *Up[B]) Restart(n uint32) { u.Taken, u.early = n, nil }

// Give counts a block that was given to the link.
func (u *Up[B]) Give(octets int) {
	u.Waiting += octets
	u.Blocks++
}

// Stored counts a block off that the far site has, or will never get.
func (u *Up[B]) Stored(octets int) {
	u.Waiting = max(0, u.Waiting-octets)
	u.Blocks = max(0, u.Blocks-1)
}

// Full tells whether so much waits for the link.
func (u *Up[B]) Full(octets, blocks int) bool { return u.Waiting >= octets || u.Blocks >= blocks }
