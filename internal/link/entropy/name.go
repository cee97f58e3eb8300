package entropy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a group's name.
const (
	MostName  = 64 // octets
	MostDepth = 8  // parts
)

// CheckName says what is wrong with the name of a group: it has parts with / between them, each printable and not empty. A
// group is inside the group whose name its own begins with.
func CheckName(name string) error {
	parts := strings.Split(name, "/")
	if len(name) > MostName || len(parts) > MostDepth {
		return fmt.Errorf("the name of a group has at most %d octets and %d parts", MostName, MostDepth)
	}
	if slices.Contains(parts, "") {
		return errors.New("the name of a group has parts with / between them, none of them empty: fleet/squadron/ops")
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) {
		return errors.New("the name of a group has a blank or another character that is not printed")
	}
	return nil
}
