package envelope

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Renewal says that an item which the receiver holds now lives longer: six octets for a known document.
type Renewal struct {
	Hash    Hash
	Minutes uint16 // the low bits of the minutes since 1970 UTC when it expires
}

// RenewalMost is how far ahead the expiry of a Renewal may be.
const RenewalMost = 40 * 24 * time.Hour

const renewalOctets = len(Hash{}) + 2

// RenewalOf makes a Renewal to an expiry, which must not be further than RenewalMost; seconds are left out.
func RenewalOf(h Hash, expires time.Time) Renewal { return Renewal{h, uint16(expires.Unix() / 60)} }

// Expires is the expiry that the Renewal means, at the receiver's now: clocks may differ by a day.
func (r Renewal) Expires(now time.Time) time.Time {
	from := now.Unix()/60 - 24*60
	return time.Unix((from+int64(r.Minutes-uint16(from)))*60, 0).UTC()
}

func joinRenewals(list []Renewal) []byte {
	var b []byte
	for _, r := range list {
		b = binary.BigEndian.AppendUint16(append(b, r.Hash[:]...), r.Minutes)
	}
	return b
}

func splitRenewals(b []byte) ([]Renewal, error) {
	if len(b)%renewalOctets != 0 {
		return nil, fmt.Errorf("%w: %d octets of renewals", ErrMalformed, len(b))
	}
	var list []Renewal
	for ; len(b) > 0; b = b[renewalOctets:] {
		list = append(list, Renewal{Hash(b[:len(Hash{})]), binary.BigEndian.Uint16(b[len(Hash{}):])})
	}
	return list, nil
}
