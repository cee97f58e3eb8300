package pmul_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// A silent sender's message is replaced; when silence ends the newest payload goes out, in the old one's place.
func TestReplace(t *testing.T) {
	s := newSender(t, nil)
	s.Step(epoch, pmul.EMCON{Silent: true})
	var ids []pmul.MessageID
	for range 3 {
		out := s.Step(epoch, pmul.Submit{Payload: []byte("old"), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)})
		ids = append(ids, out.Accepted[0].Message)
	}
	long := bytes.Repeat([]byte("new"), 500) // of another number of fragments
	replace := func(id pmul.MessageID, payload []byte) pmul.Output {
		return s.Step(epoch.Add(time.Minute), pmul.Replace{Ref: 7, Message: id, Payload: payload, Expires: epoch.Add(2 * time.Hour)})
	}
	out := replace(ids[1], long)
	{
		a := out.Accepted
		must := check.Fatal(t)
		check.Equal(must, "len(a)", len(a), 1)
		check.True(must, "no a[0].Err", a[0].Err == nil, a[0].Err)
		check.Equal(must, "a[0].Ref", a[0].Ref, 7)
		check.Equal(must, "a[0].Message", a[0].Message, ids[1])
		check.Differ(must, "len(out.Records)", len(out.Records), 0)
		check.Equal(must, "len(out.Fates)", len(out.Fates), 0)
		check.True(must, "s.Waits(ids[1])", s.Waits(ids[1]), ids[1])
	}
	if a := replace(ids[2]+1, long).Accepted; !errors.Is(a[0].Err, pmul.ErrBegun) {
		t.Errorf("no such message: %v", a[0].Err)
	}
	if a := replace(ids[1], make([]byte, 1<<30)).Accepted; !errors.Is(a[0].Err, pmul.ErrTooLarge) && !errors.Is(a[0].Err, pmul.ErrFull) {
		t.Errorf("too large: %v", a[0].Err)
	}
	var got []pmul.DataPDU
	sequences := map[pmul.MessageID]uint32{}
	now := epoch.Add(2 * time.Minute)
	out = s.Step(now, pmul.EMCON{Silent: false})
	for range 100 {
		for _, p := range out.Send {
			for _, pdu := range p.PDUs {
				switch pdu := pdu.(type) {
				case pmul.DataPDU:
					got = append(got, pdu)
				case pmul.AddressPDU:
					for _, d := range pdu.Destinations {
						sequences[pdu.Message] = d.Sequence
					}
				}
			}
		}
		if out.Deadline.IsZero() || out.Deadline.After(now.Add(10*time.Second)) {
			break
		}
		now = out.Deadline
		out = s.Step(now, nil)
	}
	whole := map[pmul.MessageID][]byte{}
	next := map[pmul.MessageID]uint16{}
	for _, d := range got {
		if d.Number == next[d.Message]+1 { // fragments that go again, because no node answers, are the same
			next[d.Message]++
			whole[d.Message] = append(whole[d.Message], d.Fragment...)
		}
	}
	if !bytes.Equal(whole[ids[1]], long) || string(whole[ids[0]]) != "old" || string(whole[ids[2]]) != "old" {
		t.Errorf("%d, %d and %d octets went out", len(whole[ids[0]]), len(whole[ids[1]]), len(whole[ids[2]]))
	}
	if sequences[ids[0]]+1 != sequences[ids[1]] || sequences[ids[1]]+1 != sequences[ids[2]] {
		t.Errorf("sequence numbers %v", sequences)
	}
	if s.Waits(ids[1]) {
		t.Error("it has been on the air, and still waits")
	}
	if a := replace(ids[1], long).Accepted; !errors.Is(a[0].Err, pmul.ErrBegun) {
		t.Errorf("replaced after it went out: %v", a[0].Err)
	}
}

// A restarted sender has the payload that replaced the first.
func TestReplaceSurvivesARestart(t *testing.T) {
	s := newSender(t, nil)
	journal := map[string]pmul.Record{}
	keep := func(out pmul.Output) pmul.Output {
		for _, r := range out.Records {
			if key := r.Bucket + "\x00" + string(r.Key); r.Value == nil {
				delete(journal, key)
			} else {
				journal[key] = r
			}
		}
		return out
	}
	keep(s.Step(epoch, pmul.EMCON{Silent: true}))
	id := keep(s.Step(epoch, pmul.Submit{Payload: []byte("old"), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)})).Accepted[0].Message
	keep(s.Step(epoch, pmul.Replace{Message: id, Payload: []byte("new"), Expires: epoch.Add(time.Hour)}))
	var records []pmul.Record
	for _, r := range journal {
		records = append(records, r)
	}
	again, err := pmul.NewSender(config(t, self, nil), records)
	if err != nil {
		t.Fatal(err)
	}
	out := again.Step(epoch.Add(time.Second), pmul.EMCON{Silent: false})
	for range 20 {
		for _, p := range out.Send {
			for _, pdu := range p.PDUs {
				if d, ok := pdu.(pmul.DataPDU); ok {
					if string(d.Fragment) != "new" {
						t.Errorf("%q goes out", d.Fragment)
					}
					return
				}
			}
		}
		out = again.Step(out.Deadline, nil)
	}
	t.Error("nothing goes out")
}
