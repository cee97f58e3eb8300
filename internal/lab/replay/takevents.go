package replay

import (
	"fmt"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/trace"
)

// TAKEvents are the events of TAK devices in a trace; none if it has no pipe of TAK, or if other messages are sent in it as well. A trace
// of TAK that keeps only sizes cannot be played, which is an error.
func TAKEvents(f *trace.File) ([]TAKEvent, error) {
	pipes, from := map[string]bool{}, map[string]string{}
	var list []TAKEvent
	for i := range f.Lines {
		l := &f.Lines[i]
		switch {
		case l.Do == "pipe" && l.Kind == trace.PipeTAK:
			pipes[l.Pipe] = true
		case l.Do == "peer":
			from[l.Peer] = l.Address
			if l.Address == "" {
				from[l.Peer] = l.Peer
			}
		case l.Do == trace.EventSend && !pipes[l.Pipe]:
			return nil, nil
		case l.Do == trace.EventSend:
			if len(l.Parts) != 1 || l.Parts[0].Content() == nil {
				return nil, fmt.Errorf("replay: the event at %.3f s has no content: a trace of TAK devices can be played only with it", l.T)
			}
			e, err := cot.ParseXML(l.Parts[0].Content())
			if err != nil {
				return nil, fmt.Errorf("replay: the event at %.3f s: %w", l.T, err)
			}
			if len(list) >= MaxTAKEvents {
				return nil, fmt.Errorf("replay: more than %d events", MaxTAKEvents)
			}
			list = append(list, TAKEvent{time.Duration(l.T * float64(time.Second)), from[l.Peer], e})
		}
	}
	return list, nil
}
