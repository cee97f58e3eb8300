package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Events of the clients of another adapter of this gateway, by the operator's rules on where adapters meet (internal/adapters/interop).
type (
	// Met is an event made from the data of such a client. It may name the unit of a device here: both are one unit.
	Met struct{ Event *cot.Event }
	// Ears names the chat rooms that such clients read: chats for those rooms need not wait for a device.
	Ears struct{ Rooms []string }
)

// AdapterEvent marks it as an event of this adapter.
func (Met) AdapterEvent() {}

// AdapterEvent marks it as an event of this adapter.
func (Ears) AdapterEvent() {}

// hears says whether clients of another adapter read the chat room of an event.
func (d *devices) hears(e *cot.Event) bool {
	chat := e.Find("__chat")
	return e.Type == "b-t-f" && chat != nil && slices.Contains(d.ears, chat.Get("chatroom"))
}

// reckoned marks the last event as extrapolated (Spread.Reckoned).
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
