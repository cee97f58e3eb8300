package tak

import (
	"slices"
	"time"

	"aldis/internal/tak/cot"
)

// What the clients of another face of this gateway say and hear, by the operator's rules of where faces meet (internal/meet).
type (
	// Met is an event made of what one of them said. It may name the unit of a device here: both are one unit.
	Met struct{ Event *cot.Event }
	// Ears says of which chat rooms somebody there hears what is said: words that wait for a device are told then.
	Ears struct{ Rooms []string }
)

// FaceEvent marks it as an event of this face.
func (Met) FaceEvent() {}

// FaceEvent marks it as an event of this face.
func (Ears) FaceEvent() {}

// metSide is the Face as far as it meets another one.
type metSide struct{ of *Face }

// met takes an event as one of a device of this LAN.
func (side metSide) met(now time.Time, e *cot.Event) {
	side.of.trouble.Count("met")
	side.of.event(now, &client{host: "met", met: true}, e)
}

// hears says whether somebody there hears an event.
func (side metSide) hears(e *cot.Event) bool {
	chat := e.Find("__chat")
	return e.Type == "b-t-f" && chat != nil && slices.Contains(side.of.ears, chat.Get("chatroom"))
}

// reckoned marks the event that was given last.
func (side metSide) reckoned() {
	orders := side.of.out.Orders
	if o, ok := orders[len(orders)-1].(Spread); ok {
		o.Reckoned = true
		orders[len(orders)-1] = o
	}
}

func (side metSide) ears(now time.Time, ev Ears) {
	side.of.ears = ev.Rooms
	side.of.release(now)
}
