package gateway

import (
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/api"
	"aldis/internal/rules/calendar"
)

// windows are the operator's times of silence, by the wall clock. What an order says counts until a window begins; what a window
// says counts until an order.
type windows struct {
	list   calendar.Windows
	look   time.Time // when one may begin next, by the wall clock; zero: none does
	lifted time.Time // an order has ended the silence of a window that lasts until then
}

// set takes other windows.
func (w *windows) set(list calendar.Windows, wall time.Time) {
	w.list, w.look, w.lifted = list, wall, time.Time{}
}

// begin looks whether a window holds, and makes the silence last as long; true: it lasts longer than it did.
func (w *windows) begin(s *silence, now time.Time) (ev api.Silence, silent bool) {
	wall := s.wall(now)
	if w.look.IsZero() || wall.Before(w.look) {
		return ev, false
	}
	until, announce, holds := w.list.At(wall)
	if w.look = w.list.Next(wall); !holds || !until.After(w.lifted) || s.on && (s.until.IsZero() || !until.After(s.until)) {
		return ev, false
	}
	return api.Silence{On: true, Until: until, Announce: announce}, true
}

// ordered notes an order: one that ends the silence of a window ends all of that window.
func (w *windows) ordered(ev api.Silence, wall time.Time) {
	if w.lifted = (time.Time{}); ev.On {
		return
	}
	if until, _, holds := w.list.At(wall); holds {
		w.lifted = until
	}
}

// due is when a window may begin, as a time of Steps.
func (w *windows) due(s *silence, now time.Time) time.Time {
	if w.look.IsZero() {
		return time.Time{}
	}
	return due.Latest(now, now.Add(w.look.Sub(s.wall(now))))
}
