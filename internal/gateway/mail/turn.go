package mail

import "time"

// Turn bounds the octets that are coded or read in one turn of the loop, so that local peers do not wait for it.
type Turn struct {
	most  int
	began time.Time
	spent int
}

// NewTurn makes a Turn in which so many octets of work may begin. Work that goes beyond is finished.
func NewTurn(most int) Turn { return Turn{most: most} }

const (
	// ReadOctets is for reading a peer's messages. Those without room are kept like messages that came before their turn, and read
	// in later turns; one message that takes longer is read in slices.
	ReadOctets = 1 << 10
	// ReadWhole is the same where messages are read as a whole: the work of a full datagram of coded reports.
	ReadWhole = 24 << 10
	// leastSlice is how many octets of a message one call reads, however little room is left; a smaller turn reads fewer.
	leastSlice = 256
	// octetTime is about how long an octet of work takes. After a turn that was full the loop is free for as long.
	octetTime = 4 * time.Microsecond
	// plainOctets is how many octets that no model expands are as much work as one that a model expands.
	plainOctets = 16
)

// Room says whether more work may begin now.
func (t *Turn) Room(now time.Time) bool {
	if !now.Before(t.Due()) {
		t.began, t.spent = now, 0
	}
	return t.spent < t.most
}

// Left is how many octets of the model's work this turn has room for.
func (t *Turn) Left() int { return max(min(leastSlice, t.most), t.most-t.spent) }

// Spent notes work: the octets that the model took, and others.
func (t *Turn) Spent(modelled uint64, octets int) { t.spent += int(modelled) + octets/plainOctets }

// Due is when there is room for certain.
func (t *Turn) Due() time.Time { return t.began.Add(time.Duration(t.spent) * octetTime) }
