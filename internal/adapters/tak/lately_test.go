package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A device that is back within minutes gets the chat that came in the meantime, once, also if it has two streams. The others do
// not get it again, and a device that comes much later does not get it.
func TestDeviceThatWasAwayForAMoment(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	talker := w.connect(w.Nodes[0])
	there, back, beside, late := w.connect(w.Nodes[1]), w.connect(w.Nodes[1]), w.connect(w.Nodes[1]), w.connect(w.Nodes[1])
	w.Run(30 * time.Second)
	talker.say(newUnit(1).report(w.Now))
	there.say(newUnit(2).report(w.Now))
	for _, stream := range []*device{back, beside} {
		stream.say(newUnit(3).report(w.Now))
	}
	late.say(newUnit(4).report(w.Now))
	w.Run(time.Minute)
	for _, d := range []*device{back, beside, late} {
		d.leave()
	}
	talker.say(w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", "m-1", "man overboard", ""))
	w.Run(time.Minute)
	uid := fmt.Sprintf("GeoChat.%s.All Chat Rooms.m-1", newUnit(1).uid)
	for _, d := range []*device{back, beside} {
		d.again()
		check.Equal(t, "before the gateway knows the device", len(d.of(uid)), 0)
		d.say(newUnit(3).report(w.Now))
	}
	there.say(newUnit(2).report(w.Now))
	w.Run(5 * time.Minute)
	late.again()
	late.say(newUnit(4).report(w.Now))
	w.Run(10 * time.Second)
	check.Equal(t, "device that was there", len(there.of(uid)), 1)
	check.Equal(t, "both streams of the one that came back", len(back.of(uid))+len(beside.of(uid)), 1)
	check.Equal(t, "device that came late", len(late.of(uid)), 0)
	check.Equal(t, "caught up", w.adapters[2].Counts()["caught_up"], 1)
}

// A device that is back gets the withdrawals that it missed, except those of objects that have been placed again; however many there
// are, it gets the chat.
func TestWithdrawalsMissed(t *testing.T) {
	w := newWorld(t, 2, "wire", 7)
	talker, back := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	w.connect(w.Nodes[1])
	w.Run(30 * time.Second)
	talker.say(newUnit(1).report(w.Now))
	back.say(newUnit(3).report(w.Now))
	objects := []string{"again", "gone"}
	for _, uid := range objects {
		talker.say(w.marker(uid, "a-h-G", "M", 24*time.Hour))
	}
	w.Run(time.Minute)
	back.leave()
	back.got = nil
	talker.say(w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", "m-1", "man overboard", ""))
	withdraw := func(uid string) {
		w.Run(50 * time.Millisecond)
		talker.say(w.event("delete "+uid, "t-x-d-d", fmt.Sprintf(`<link uid="%s" relation="p-p" type="a-u-G"/>`, uid), time.Hour))
	}
	for i := range 150 {
		withdraw(fmt.Sprint("other ", i))
	}
	for _, uid := range objects {
		withdraw(uid)
	}
	w.Run(5 * time.Second)
	talker.say(w.marker("again", "a-h-G", "M", 24*time.Hour))
	w.Run(time.Minute)
	back.again()
	back.say(newUnit(3).report(w.Now))
	w.Run(time.Second)
	check.Equal(t, "object that is back", len(back.of("again")), 1)
	check.Equal(t, "its withdrawal", len(back.of("delete again")), 0)
	check.Equal(t, "withdrawal of the other", len(back.of("delete gone")), 1)
	check.Equal(t, "chat", len(back.of(fmt.Sprintf("GeoChat.%s.All Chat Rooms.m-1", newUnit(1).uid))), 1)
}

// A device that is back gets no chat whose wait is over.
func TestMissedUntil(t *testing.T) {
	w := newWorld(t, 2, "wire", 7)
	now := w.Now
	near, err := tak.New(tak.Config{Sites: []uint16{1}}, nil)
	check.Equal(t, "error", err, nil)
	far, err := tak.New(tak.Config{Sites: []uint16{2}}, nil)
	check.Equal(t, "error", err, nil)
	for _, f := range []*tak.Adapter{near, far} {
		f.Step(now, tak.Opened{Conn: 1, Remote: "10.0.0.1:5000"})
	}
	carry := near.Step(now, tak.Heard{Conn: 1, Frame: []byte(w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", "m-1", "man overboard", ""))}).Carry
	check.Equal(t, "messages", len(carry), 1)
	far.Step(now, site.FarMessage{Site: 2, Token: 1, Message: carry[0].Message, Until: now.Add(2 * time.Minute)})
	for i, after := range []time.Duration{time.Minute, time.Minute} {
		now = now.Add(after)
		conn := site.ConnID(i + 2)
		far.Step(now, tak.Opened{Conn: conn, Remote: fmt.Sprintf("10.0.0.%d:5000", conn)})
		far.Step(now, tak.Heard{Conn: conn, Frame: []byte(newUnit(i + 2).report(now))})
		check.Equal(t, "caught up", far.Counts()["caught_up"], 1)
	}
}
