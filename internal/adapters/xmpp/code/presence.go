package code

// Subscription is a request or an answer of one user to another about a subscription to presence (RFC 6121, 3).
type Subscription uint8

// Values of Subscription.
const (
	Subscribe Subscription = iota
	Subscribed
	Unsubscribe
	Unsubscribed
)

// Subscriptions are their names as types of stanzas.
var Subscriptions = []string{"subscribe", "subscribed", "unsubscribe", "unsubscribed"}

// Append appends the octet of the subscription, with which no message begins.
func (s Subscription) Append(dst []byte) []byte { return append(dst, notMessage|byte(s)) }

// ParseSubscription reads what Append appended. The error is ErrMalformed.
func ParseSubscription(b []byte) (Subscription, error) {
	if len(b) != 1 || !IsSubscription(b) || b[0]&^notMessage > byte(Unsubscribed) {
		return 0, ErrMalformed
	}
	return Subscription(b[0] &^ notMessage), nil
}

// Show is how ready a user is; its names are those of RFC 6121, "" for Available.
type Show uint8

// Shows, the readiest first.
const (
	FreeForChat Show = iota
	Available
	Away
	Busy
	ExtendedAway
)

// Shows are their names.
var Shows = []string{"chat", "", "away", "dnd", "xa"}

// Presence is the presence of an available user.
type Presence struct {
	Show     Show
	Priority int8
	Wants    uint8  // Nodes of others from which the user's clients want events: bit n is Nodes[n]
	Status   string // at most MaxStatus octets
}

// MaxStatus is the longest status that crosses.
const MaxStatus = 1024

const (
	hasPriority = 0x80
	hasWants    = 0x20
)

// Append appends the presence: octet show; with its bit 0x80 the octet of the priority, with 0x20 the octet of Wants; the status.
func (p Presence) Append(dst []byte) []byte {
	begin := len(dst)
	dst = append(dst, byte(p.Show))
	if p.Priority != 0 {
		dst[begin] |= hasPriority
		dst = append(dst, byte(p.Priority))
	}
	if p.Wants != 0 {
		dst[begin] |= hasWants
		dst = append(dst, p.Wants)
	}
	return append(dst, p.Status...)
}

// ParsePresence reads what Append appended. The error is ErrMalformed.
func ParsePresence(b []byte) (p Presence, err error) {
	r := &reader{b: b}
	show := r.octet()
	if p.Show = Show(show &^ (hasPriority | hasWants)); p.Show > ExtendedAway {
		r.fail("show %d", p.Show)
	}
	if show&hasPriority != 0 {
		if p.Priority = int8(r.octet()); p.Priority == 0 {
			r.fail("a priority of 0")
		}
	}
	if show&hasWants != 0 {
		if p.Wants = r.octet(); p.Wants == 0 {
			r.fail("no wants")
		}
	}
	if len(r.b) > MaxStatus {
		r.fail("a status of %d octets", len(r.b))
	}
	p.Status = r.text(uint64(len(r.b)))
	return p, r.err
}
