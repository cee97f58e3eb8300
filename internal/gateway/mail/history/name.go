package history

import (
	"fmt"
	"strconv"
	"strings"
)

// The name of a message is its ID as people say it: the start in which it was accepted, seven letters and digits, and its
// number in that start, as in 1NG54QN-17. I, L, O and U do not occur: read 1, 1 and 0 for the first three.
const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const nameLetters = 7 // five bits each, of 32

// Name is the name of the message with an ID.
func Name(id uint64) string {
	var b [nameLetters]byte
	incarnation := uint32(id >> 32)
	for i := nameLetters - 1; i >= 0; i-- {
		b[i] = letters[incarnation&31]
		incarnation >>= 5
	}
	return string(b[:]) + "-" + strconv.FormatUint(id&0xffffffff, 10)
}

// ParseName is the ID of a name, in capitals or not. Letters that are taken for digits are those digits.
func ParseName(name string) (uint64, error) {
	start, number, ok := strings.Cut(strings.ToUpper(strings.TrimSpace(name)), "-")
	n, err := strconv.ParseUint(number, 10, 32)
	if !ok || len(start) != nameLetters || err != nil || strings.HasPrefix(number, "+") {
		return 0, fmt.Errorf("%q is no id of a message: seven letters and digits, a dash and a number, as in 1NG54QN-17", name)
	}
	incarnation := uint64(0)
	for _, c := range strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(start) {
		at := strings.IndexRune(letters, c)
		if at < 0 {
			return 0, fmt.Errorf("%q is no id of a message: %q is not among its letters", name, c)
		}
		incarnation = incarnation<<5 | uint64(at)
	}
	if incarnation > 0xffffffff {
		return 0, fmt.Errorf("%q is no id of a message: no start has this number", name)
	}
	return incarnation<<32 | n, nil
}
