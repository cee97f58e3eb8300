package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// What the clients of another adapter of this gateway say and hear, by the operator's rules of where adapters meet (internal/adapters/interop).
type (
	// Met is an event made of what one of them said. It may name the unit of a device here: both are one unit.
	Met struct{ Event *cot.Event }
	// Ears says of which chat rooms somebody there hears what is said: words that wait for a device are told then.
	Ears struct{ Rooms []string }
)

// AdapterEvent marks it as an event of this adapter.
func (Met) AdapterEvent() {}

// AdapterEvent marks it as an event of this adapter.
func (Ears) AdapterEvent() {}

// hears says whether somebody there hears an event.
func (d *devices) hears(e *cot.Event) bool {
	chat := e.Find("__chat")
	return e.Type == "b-t-f" && chat != nil && slices.Contains(d.ears, chat.Get("chatroom"))
}

// reckoned marks the event that was given last.
func (d *devices) reckoned() {
	orders := d.out.Orders
	if o, ok := orders[len(orders)-1].(Spread); ok {
		o.Reckoned = true
		orders[len(orders)-1] = o
	}
}

func (d *devices) hear(now time.Time, ev Ears) {
	d.ears = ev.Rooms
	d.release(now)
}
