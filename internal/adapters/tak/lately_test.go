package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/check"
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
