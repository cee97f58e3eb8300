package report

import (
	"fmt"
	"io"
	"strings"
)

// FaultList is the faults of a play.
type FaultList []string

// Check adds a fault if bad is true.
func (l *FaultList) Check(bad bool, format string, args ...any) {
	if bad {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

// String is all faults on one line; "": there are none.
func (l FaultList) String() string { return strings.Join(l, "; ") }

// board writes a page as text, after the output that a terminal shows already.
func board(w io.Writer, p Page) error {
	fmt.Fprintln(w)
	return p.Text(w)
}
