package quorum

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// told gives a member a message, and does what it then wants; it returns why the message was not taken.
func (w *world) told(to int, x Message, from int) string {
	m := w.boxes[to].m
	if m.work != nil {
		m.Done()
	}
	out := m.Step(w.now, Heard{From: from, Message: x})
	for range 20 {
		if m.Work() == nil {
			break
		}
		m.Done()
	}
	return out.Strange
}

func raftText(t testing.TB, x *raftpb.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Messages of the library that no member sends are refused by name, and the site goes on.
func TestStrangeMessages(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.led(most)
	w.pass(2 * time.Second)
	leader := w.leader()
	follower, third := (leader+1)%3, (leader+2)%3
	term := w.boxes[leader].m.Stored().Term
	last := w.boxes[follower].m.last()
	entry := func(index, term uint64, kind raftpb.EntryType) []*raftpb.Entry {
		return []*raftpb.Entry{{Index: &index, Term: &term, Type: &kind, Data: []byte("12345678")}}
	}
	for _, row := range []struct {
		says     string
		from, to int
		x        *raftpb.Message
	}{
		{"member 9", follower, leader, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(9))}},
		{"to member 7", follower, leader, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), To: new(uint64(7))}},
		{"term 0", leader, follower, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(0))}},
		{"term 18446744073709551615", follower, leader, &raftpb.Message{Type: raftpb.MsgVote.Enum(), Term: new(uint64(math.MaxUint64))}},
		{"term 18446744073709551615", leader, follower, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64(math.MaxUint64))}},
		{"MsgSnap", leader, follower, &raftpb.Message{Type: raftpb.MsgSnap.Enum()}},
		{"MsgProp", follower, leader, &raftpb.Message{Type: raftpb.MsgProp.Enum(), Entries: entry(last.Index+1, term, raftpb.EntryNormal)}},
		{"MsgHup", third, follower, &raftpb.Message{Type: raftpb.MsgHup.Enum()}},
		{"MsgTransferLeader", follower, leader, &raftpb.Message{Type: raftpb.MsgTransferLeader.Enum()}},
		{"MsgTimeoutNow", third, follower, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum()}},
		{"MsgStorageAppendResp", third, follower, &raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), Index: new(last.Index)}},
		{"MsgHeartbeat of entry 18446744073709551615", leader, follower, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Commit: new(uint64(math.MaxUint64))}},
		{"MsgAppResp of entry 18446744073709551615", follower, leader, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), Index: new(uint64(math.MaxUint64))}},
		{"behind entry", leader, follower, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Index: new(last.Index), LogTerm: new(last.Term), Entries: entry(last.Index+9, term, raftpb.EntryNormal)}},
		{"behind entry", leader, follower, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Index: new(last.Index), LogTerm: new(last.Term), Entries: entry(last.Index+1, term+1, raftpb.EntryNormal)}},
		{"EntryConfChange", leader, follower, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Index: new(last.Index), LogTerm: new(last.Term), Entries: entry(last.Index+1, term, raftpb.EntryConfChange)}},
	} {
		x := row.x
		if x.From == nil {
			x.From = new(uint64(row.from + 1))
		}
		if x.To == nil {
			x.To = new(uint64(row.to + 1))
		}
		if x.Term == nil {
			x.Term = &term
		}
		if why := w.told(row.to, Message{Kind: KindRaft, Raft: raftText(t, x)}, row.from); !strings.Contains(why, row.says) {
			t.Errorf("%v was refused as %q, not as %q", x, why, row.says)
		}
	}
	for _, x := range []Message{{Kind: KindRaft, Raft: []byte("no message")}, {Kind: KindBeat, Term: term, Acked: []At{{math.MaxUint64, math.MaxUint64}}}} {
		if why := w.told(follower, x, leader); why == "" {
			t.Errorf("%v was taken", x)
		}
	}
	before := len(w.confirmed)
	w.pass(5 * time.Second)
	if w.leader() != leader || len(w.confirmed) < before+10 || w.boxes[leader].m.Stored().Term != term {
		t.Errorf("afterwards machine %d leads, not %d; confirmed were %d, then %d", w.leader(), leader, before, len(w.confirmed))
	}
}

// Whatever a member says in the library's protocol, the process of another one goes on, and no term is used up.
func FuzzHeard(f *testing.F) {
	f.Add(byte(raftpb.MsgApp), byte(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(1), false, []byte("data"))
	f.Add(byte(raftpb.MsgAppResp), byte(1), uint64(0), uint64(math.MaxUint64), uint64(0), uint64(0), uint64(0), true, []byte{})
	f.Add(byte(raftpb.MsgHeartbeat), byte(2), uint64(1), uint64(0), uint64(0), uint64(math.MaxUint64), uint64(0), false, []byte{})
	f.Add(byte(raftpb.MsgVote), byte(5), uint64(1), uint64(3), uint64(9), uint64(0), uint64(0), false, []byte("CampaignTransfer"))
	f.Add(byte(raftpb.MsgSnap), byte(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), false, []byte{})
	f.Add(byte(255), byte(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), false, []byte{8, 3, 16, 1})
	f.Fuzz(func(t *testing.T, kind, who byte, term, index, logTerm, commit, entries uint64, reject bool, data []byte) {
		w := newWorld(t, 1, 3)
		w.led(most)
		w.pass(time.Second)
		to := int(who) % 3
		from := (to + 1 + int(who/3)%2) % 3
		own := w.boxes[to].m.Stored().Term
		last := w.boxes[to].m.last()
		x := &raftpb.Message{Type: raftpb.MessageType(kind).Enum(), From: new(uint64(from + 1)), To: new(uint64(to + 1)), Term: new(own + term), Index: new(last.Index + index),
			LogTerm: new(last.Term + logTerm), Commit: new(last.Index + commit), Reject: &reject, RejectHint: &commit, Context: data}
		for i := range entries % 4 {
			x.Entries = append(x.Entries, &raftpb.Entry{Index: new(last.Index + index + 1 + i), Term: new(own + term), Data: data})
		}
		text := raftText(t, x)
		if kind == 255 {
			text = data
		}
		for range 2 {
			w.told(to, Message{Kind: KindRaft, Raft: text}, from)
			w.told(to, Message{Kind: KindBeat, Term: own + term, N: index, Acked: []At{{index, term}, {commit, logTerm}}}, from)
			w.told(to, Message{Kind: KindAnswer, Term: own + term, N: index}, from)
			if _, leads := w.boxes[to].m.leads(); leads {
				_ = w.boxes[to].m.Propose(data)
			}
			w.now += 3 * time.Second
			w.told(to, Message{Kind: KindForgot + 9}, from)
		}
		if is := w.boxes[to].m.Stored().Term; is > own+2*mostAhead+10 {
			t.Errorf("%s: term %d became %d", fmt.Sprint(x), own, is)
		}
	})
}
