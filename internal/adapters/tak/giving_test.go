package tak_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// A chat for all is in custody until the devices' machines have it: a gateway that is killed before gives it again, and one that is killed
// after does not. A device whose stream breaks before gets it when it is back, and a device that never answers holds up nothing.
func TestChatIsInCustodyUntilTaken(t *testing.T) {
	w := newWorld(t, 2, "iridium-certus-100", 7, func(c *tak.Config) { c.Taken = true })
	talker := w.connect(w.Nodes[0])
	hears, breaks := w.connect(w.Nodes[1]), w.connect(w.Nodes[1])
	w.Run(time.Minute)
	talker.say(newUnit(1).report(w.Now))
	said := 0
	say := func() (uid string) {
		said++
		id := fmt.Sprintf("m-%d", said)
		talker.say(w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", id, "position of the wreck follows", ""))
		w.Run(10 * time.Second)
		return fmt.Sprintf("GeoChat.%s.All Chat Rooms.%s", newUnit(1).uid, id)
	}
	back := func(kind int, d *device) {
		d.again()
		d.say(newUnit(kind).report(w.Now))
	}
	take := func(devices ...*device) {
		for _, d := range devices {
			for _, token := range w.tokens[w.Nodes[1].ID] {
				w.DeliverLAN(w.Nodes[1], site.TAK, tak.Taken{Conn: d.conn, Token: token})
			}
		}
	}
	restart := func() {
		w.Kill(w.Nodes[1], time.Second)
		hears.conn, breaks.conn = 0, 0
		w.Run(5 * time.Second)
		back(2, hears)
		back(3, breaks)
		w.Run(5 * time.Second)
	}
	restart() // from here on the gateway knows both by their reports

	uid := say()
	take(hears, breaks)
	restart()
	check.Equal(t, "taken before the kill: times given", len(hears.of(uid)), 1)

	uid = say() // ten seconds without an answer: the devices hold up nothing
	restart()
	check.Equal(t, "not taken for long: times given", len(hears.of(uid)), 1)

	talker.say(w.chat(newUnit(1), "All Chat Rooms", "All Chat Rooms", "m-last", "abandon the wreck", ""))
	uid = fmt.Sprintf("GeoChat.%s.All Chat Rooms.m-last", newUnit(1).uid)
	for range 200 {
		if w.Run(20 * time.Millisecond); len(hears.of(uid)) > 0 {
			break
		}
	}
	take(hears) // one of two has it when the power fails
	restart()
	check.Equal(t, "not taken by all before the kill: times given to one that lacks it", len(breaks.of(uid)), 2)

	uid = say()
	take(hears)
	breaks.leave()
	breaks.got = nil
	w.Run(time.Second)
	back(3, breaks)
	w.Run(time.Second)
	check.Equal(t, "to one whose stream broke before it had it", len(breaks.of(uid)), 1)
	check.Equal(t, "to one that has it", len(hears.of(uid)), 1)
}

// noteToken keeps the tokens whose Taken the adapter waits for.
func (w *world) noteToken(n *sim.Node, o site.Order) {
	switch o := o.(type) {
	case tak.Send:
		w.tokens[n.ID] = append(w.tokens[n.ID], o.Token)
	case tak.Spread:
		w.tokens[n.ID] = append(w.tokens[n.ID], o.Token)
	}
}
