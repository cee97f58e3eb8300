package code

import (
	"encoding/binary"
	"slices"
)

// Became is the outcome of a message at its receiver's site.
type Became uint8

// Values of Became.
const (
	Received  Became = iota // a client has acknowledged it (XEP-0184)
	Displayed               // a client has displayed it (XEP-0333)
	Failed                  // it was refused, for the Reason
	Barred                  // likewise, by a room
)

// Reason is why a message was refused: a condition of a stanza error (RFC 6120, 8.3.3), numbered in the order of that section.
type Reason uint8

// Conditions are the names of the Reasons.
var Conditions = []string{"bad-request", "conflict", "feature-not-implemented", "forbidden", "gone", "internal-server-error",
	"item-not-found", "jid-malformed", "not-acceptable", "not-allowed", "not-authorized", "policy-violation", "recipient-unavailable",
	"redirect", "registration-required", "remote-server-not-found", "remote-server-timeout", "resource-constraint", "service-unavailable",
	"subscription-required", "undefined-condition", "unexpected-request"}

// ReasonOf is the number of a condition; for an unknown text it is that of undefined-condition.
func ReasonOf(condition string) Reason {
	if i := slices.Index(Conditions, condition); i >= 0 {
		return Reason(i)
	}
	return ReasonOf("undefined-condition")
}

// String is the name of the condition.
func (r Reason) String() string { return Conditions[min(int(r), len(Conditions)-1)] }

// Outcome tells the site of a message what became of it.
type Outcome struct {
	Number uint16
	Became Became
	Reason Reason // of Failed and Barred
}

// Append appends the outcome: varint number << 2 | became, and after Failed and Barred the octet of the reason.
func (o Outcome) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(o.Number)<<2|uint64(o.Became))
	if o.Became >= Failed {
		dst = append(dst, byte(o.Reason))
	}
	return dst
}

// ParseOutcomes reads one or more outcomes that Append appended, one behind the other. The error is ErrMalformed.
func ParseOutcomes(b []byte) (list []Outcome, err error) {
	r := &reader{b: b}
	for more := true; more; more = len(r.b) > 0 {
		n := r.uvarint()
		o := Outcome{Number: uint16(n >> 2 % MostNumbers), Became: Became(n & 3)}
		if n>>2 >= MostNumbers {
			r.fail("outcome %d", n)
		}
		if o.Became >= Failed {
			if o.Reason = Reason(r.octet()); int(o.Reason) >= len(Conditions) {
				r.fail("reason %d", o.Reason)
			}
		}
		if list = append(list, o); len(list) > MostNumbers {
			r.fail("more than %d outcomes", MostNumbers)
		}
	}
	return list, r.err
}
