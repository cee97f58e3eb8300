package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// creditOctets is how many octets one credit of Iridium Short Burst Data pays for; a message takes a credit for each started unit, and at
// least one (issue's unit; the carrier bills SBD in steps of 50 octets).
const creditOctets = 50

// Tariff is a user's prices. A price of zero is unknown.
type Tariff struct {
	Currency string  `json:"currency,omitempty"`
	Minute   float64 `json:"per_minute,omitempty"`   // of a call, for each started minute
	Credit   float64 `json:"per_credit,omitempty"`   // of CreditOctets
	Megabyte float64 `json:"per_megabyte,omitempty"` // of 1,000,000 IP octets, both directions
}

// TariffError names the part of a tariff that cannot be read.
type TariffError struct{ Part, Problem string }

// Error says which part is wrong, and why.
func (e *TariffError) Error() string { return fmt.Sprintf("tariff: %q: %s", e.Part, e.Problem) }

// ParseTariff reads a text such as "minute=1.10,credit=0.05,megabyte=7,currency=EUR"; any part may be missing.
func ParseTariff(s string) (t Tariff, err error) {
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, text, ok := strings.Cut(part, "=")
		if !ok {
			return Tariff{}, &TariffError{part, "is not NAME=PRICE"}
		}
		if name == "currency" {
			if len(text) == 0 || len(text) > 8 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Sc, r) }) {
				return Tariff{}, &TariffError{part, "a currency is up to 8 letters or a sign"}
			}
			t.Currency = text
			continue
		}
		price, err := strconv.ParseFloat(text, 64)
		if err != nil || !(price >= 0) || math.IsInf(price, 0) || price > 1e6 {
			return Tariff{}, &TariffError{part, "a price is a number from 0 to 1,000,000"}
		}
		switch name {
		case "minute":
			t.Minute = price
		case "credit":
			t.Credit = price
		case "megabyte":
			t.Megabyte = price
		default:
			return Tariff{}, &TariffError{part, "there is minute, credit, megabyte and currency"}
		}
	}
	return t, nil
}

// credits are the credits for datagrams, each sent as one SBD message: sizes are of sealed datagrams, because SBD has no IP.
func credits(datagrams map[int]int64) (n int64) {
	for octets, count := range datagrams {
		n += count * int64(max(1, (octets+creditOctets-1)/creditOctets))
	}
	return n
}
