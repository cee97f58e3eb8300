package pmul_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/pmul"
)

// libjpmul writes its own number in the place where an entry of an Ack_PDU names the sender of the message (p-mul 2.3).
// Such an entry counts if it can mean one thing only, and is otherwise counted as not understood.
func TestAckThatNamesItself(t *testing.T) {
	for _, tt := range []struct {
		name, hex string
		to        bool // it came to this node's own address
		want      pmul.State
		count     pmul.SenderStats
	}{
		{"as ACP 142 has it", "0018 0401 0000 dd47 0a4d0001 0001 000a 0a4d0002 00000001", true, pmul.Delivered, pmul.SenderStats{}},
		{"names itself", "0018 0401 0000 d154 0a4d0001 0001 000a 0a4d0001 00000001", true, pmul.Delivered, pmul.SenderStats{Selfnamed: 1}},
		{"names itself, two lack", "001a 0401 0000 f926 0a4d0001 0001 000c 0a4d0001 00000001 0002", true, pmul.Waiting, pmul.SenderStats{Selfnamed: 1}},
		{"to a group", "0018 0401 0000 d154 0a4d0001 0001 000a 0a4d0001 00000001", false, pmul.Waiting, pmul.SenderStats{Misnamed: 1, PassedBy: 1}},
		{"never sent", "0018 0401 0000 e143 0a4d0001 0001 000a 0a4d0001 00000002", true, pmul.Waiting, pmul.SenderStats{Misnamed: 1, PassedBy: 1}},
		{"never sent to it", "0018 0401 0000 021e 0a4d0004 0001 000a 0a4d0004 00000001", true, pmul.Waiting, pmul.SenderStats{Misnamed: 1, PassedBy: 1}},
		{"of a third node", "0018 0401 0000 e93a 0a4d0001 0001 000a 0a4d0003 00000001", true, pmul.Waiting, pmul.SenderStats{PassedBy: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSender(t, func(c *pmul.Config) { c.FirstMessage = 1 })
			s.Step(epoch, pmul.Submit{Payload: make([]byte, 1000), To: []pmul.NodeID{origin}, Expires: epoch.Add(time.Hour)})
			s.Step(epoch, pmul.Submit{Payload: make([]byte, 1000), To: []pmul.NodeID{0x0a4d0004}, Expires: epoch.Add(time.Hour)}) // 2: not to origin
			p := ackOf(t, tt.hex)
			var ev pmul.Event = p
			if tt.to {
				ev = pmul.Told{AckPDU: p}
			}
			s.Step(epoch.Add(time.Minute), ev)
			state, _ := s.Fate(1, origin)
			check.Equal(t, "state", state, tt.want)
			st := s.Stats()
			check.Equal(t, "Selfnamed", st.Selfnamed, tt.count.Selfnamed)
			check.Equal(t, "Misnamed", st.Misnamed, tt.count.Misnamed)
			check.Equal(t, "PassedBy", st.PassedBy, tt.count.PassedBy)
		})
	}
}

// ackOf reads an Ack_PDU in hexadecimal digits.
func ackOf(t *testing.T, digits string) pmul.AckPDU {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := pmul.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return p.(pmul.AckPDU)
}

// A file to a node that acknowledges so, and to one that does it as ACP 142 prescribes: both have it and are known to have
// it, repairs included, as soon as two nodes of the usual kind.
func TestFileToNodeThatNamesItself(t *testing.T) {
	for _, name := range []string{"vhf-cnr-16k", "hf-2400"} {
		p := load(t, name)
		for seed := range uint64(20) {
			took := func(stranger int) time.Duration {
				w := newWorld(t, setup{nodes: 3, p: p, coding: pmul.ACP142, seed: seed + 1})
				w.stranger = w.nodes[max(stranger, 0)]
				w.send(w.nodes[0], content(20000, seed), 1, 24*time.Hour, w.nodes[1:]...)
				w.run(24*time.Hour, func() bool { return len(w.nodes[0].fates) == 2 })
				for _, f := range w.nodes[0].fates {
					check.Equal(t, "fate", f.State, pmul.Delivered)
				}
				if st := w.nodes[0].sender.Stats(); st.Misnamed > 0 || stranger > 0 && st.Selfnamed == 0 {
					t.Errorf("%s, seed %d: %+v", name, seed, st)
				}
				return w.now.Sub(epoch)
			}
			usual, strange := took(0), took(1)
			if seed < 3 {
				t.Logf("%s, seed %d: told after %v, of the usual kind %v; at the profile's rate %v", name, seed+1, strange, usual, limit(p, 20000))
			}
			if strange != usual {
				t.Errorf("%s, seed %d: told after %v, of the usual kind %v", name, seed+1, strange, usual)
			}
		}
	}
}
