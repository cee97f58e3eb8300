package pmul_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// aired lets a sender run for so long and lists the messages that have begun on the air, in this order.
func aired(s *pmul.Sender, now time.Time, out pmul.Output, d time.Duration) (ids []pmul.MessageID) {
	for until := now.Add(d); ; out = s.Step(now, nil) {
		for _, p := range out.Send {
			for _, pdu := range p.PDUs {
				if d, ok := pdu.(pmul.DataPDU); ok && !slices.Contains(ids, d.Message) {
					ids = append(ids, d.Message)
				}
			}
		}
		if out.Deadline.IsZero() || out.Deadline.After(until) {
			return ids
		}
		now = out.Deadline
	}
}

// A held message does not go, also after a restart, until it is released; a Replace gives it another payload and Priority.
// A message that has begun is not held.
func TestHold(t *testing.T) {
	s := newSender(t, nil)
	journal := map[string]pmul.Record{}
	step := func(now time.Time, ev pmul.Event) pmul.Output {
		out := s.Step(now, ev)
		for _, r := range out.Records {
			if key := r.Bucket + "\x00" + string(r.Key); r.Value == nil {
				delete(journal, key)
			} else {
				journal[key] = r
			}
		}
		return out
	}
	step(epoch, pmul.EMCON{Silent: true})
	var ids []pmul.MessageID
	for range 4 {
		out := step(epoch, pmul.Submit{Payload: []byte("text"), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)})
		ids = append(ids, out.Accepted[0].Message)
	}
	step(epoch, pmul.Hold{Message: ids[0], On: true})
	step(epoch, pmul.Hold{Message: ids[1], On: true})
	step(epoch, pmul.Hold{Message: ids[1], On: false})
	step(epoch, pmul.Hold{Message: ids[3] + 1, On: true}) // no such message
	priority := uint8(3)
	step(epoch, pmul.Replace{Message: ids[3], Payload: []byte("urgent"), Expires: epoch.Add(time.Hour), Priority: &priority})
	step(epoch, pmul.Replace{Message: ids[0], Payload: []byte("other"), Expires: epoch.Add(time.Hour)})
	check.True(t, "it may be replaced yet", s.Waits(ids[0]))
	var records []pmul.Record
	for _, r := range journal {
		records = append(records, r)
	}
	again, err := pmul.NewSender(config(t, self, nil), records)
	check.NoError(t, err)
	s = again
	now := epoch.Add(time.Second)
	out := step(now, pmul.EMCON{Silent: false})
	check.Equal(t, "what goes, in order", fmt.Sprint(aired(s, now, out, time.Minute)), fmt.Sprint([]pmul.MessageID{ids[3], ids[1], ids[2]}))
	check.Equal(t, "what is known of the held one", pmul.AiredOf(s, ids[0]), pmul.Aired{})
	check.Equal(t, "what is known of another", pmul.AiredOf(s, ids[1]), pmul.Aired{Begun: true, Whole: true})
	now = now.Add(2 * time.Minute)
	step(now, pmul.Hold{Message: ids[1], On: true})
	check.True(t, "what has begun is not held", !s.Waits(ids[1]))
	out = step(now, pmul.Hold{Message: ids[0], On: false})
	// No node has answered: it goes when its receiver is asked again.
	check.True(t, "what is let go goes", slices.Contains(aired(s, now, out, 20*time.Minute), ids[0]))
}

// A held message expires at its time, and cancelling it ends it at once.
func TestHeldEnds(t *testing.T) {
	s := newSender(t, nil)
	s.Step(epoch, pmul.EMCON{Silent: true})
	var ids []pmul.MessageID
	for range 2 {
		out := s.Step(epoch, pmul.Submit{Payload: []byte("text"), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Minute)})
		ids = append(ids, out.Accepted[0].Message)
		s.Step(epoch, pmul.Hold{Message: ids[len(ids)-1], On: true})
	}
	fates := s.Step(epoch.Add(time.Second), pmul.Cancel{Message: ids[0]}).Fates
	check.Equal(t, "fates", len(fates), 1)
	check.Equal(t, "the state", fates[0].State, pmul.Cancelled)
	s.Step(epoch.Add(2*time.Second), pmul.EMCON{Silent: false})
	fates = s.Step(epoch.Add(time.Minute), nil).Fates
	check.Equal(t, "fates", len(fates), 1)
	check.Equal(t, "the state", fates[0].State, pmul.Expired)
}
