package replay

import (
	"fmt"
	"time"

	"aldis/internal/lab/trace"
)

// Window is the part of a trace between two times, beginning at 0. Services and pipes from before are published and opened at its start;
// earlier questions and messages are left out. A zero to is the end.
func Window(f *trace.File, from, to time.Duration) *trace.File {
	start, end := from.Seconds(), to.Seconds()
	length := f.Header.Duration
	if n := len(f.Lines); n > 0 {
		length = max(length, f.Lines[n-1].T)
	}
	if to == 0 || end > length {
		end = length
	}
	out := &trace.File{Header: f.Header, Totals: trace.TotalsOf{Partial: f.Totals.Partial}}
	out.Header.Duration = max(0, end-start)
	out.Header.Source = fmt.Sprintf("%s, %.0f s to %.0f s", orElse(f.Header.Source, "trace"), start, end)
	edges := map[string]bool{}
	for _, l := range f.Lines {
		before := l.T < start
		switch {
		case l.T > end:
			continue
		case l.Do == "peer":
			edges[l.Peer] = l.Edge
		case l.Do == "pipe", l.Do == Publish, l.Do == Open:
		case before:
			continue
		}
		l.T = max(0, l.T-start)
		switch l.Do {
		case "peer", "pipe":
		case Send:
			out.Totals.Add(edges[l.Peer], l.Octets)
			out.Totals.Events++
		default:
			out.Totals.Events++
		}
		out.Lines = append(out.Lines, l)
	}
	return out
}
