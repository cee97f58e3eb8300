package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// earliest is a time before every gateway of this kind, and slack is how far the clocks of two nodes may differ: both as in
// internal/gateway.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const slack = 24 * time.Hour

const setClock = "set it (timedatectl set-time, or by GPS or NTP), then restart the gateway"

func (f *findings) clock(run *Running, now time.Time) {
	stamp := now.UTC().Format("2006-01-02 15:04:05 UTC")
	switch {
	case now.Before(earliest):
		f.fault("clock", "", setClock, "the clock says %s, which is before the first gateway: lifetimes and leases are wrong, and peers may refuse this node", stamp)
	case run != nil && run.Report != nil && int64(run.Report.IncarnationNumber) > now.Add(slack).Unix():
		f.fault("clock", "", "set the clock if it is wrong now. If it was wrong then: gateway run --start-by-clock once, and at each far gateway gateway peer forget",
			"the clock says %s, and this gateway has a start of %s: it is behind now, or was ahead at an earlier start", stamp,
			time.Unix(int64(run.Report.IncarnationNumber), 0).UTC().Format("2006-01-02 15:04 UTC"))
	default:
		f.ok("clock", "", "the clock says %s", stamp)
	}
	if run != nil && run.Report != nil && run.Report.Dropped["far_boot"] > 0 {
		f.fault("clock", "", "compare the clocks of both; set the wrong one and restart that gateway; to hear it all the same: gateway peer forget ID --any-start",
			"starts of a far gateway that lie more than a day ahead of this clock were refused (%d datagrams)", run.Report.Dropped["far_boot"])
	}
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	f.synchronised(state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0, err)
}

func (f *findings) synchronised(free bool, err error) {
	const check = "clock.synchronised"
	switch {
	case err != nil:
		f.warn(check, "", "timedatectl, chronyc tracking", "the kernel does not say whether the clock is synchronised: %v", err)
	case free:
		f.warn(check, "", "let NTP or a GPS receiver set it (timedatectl set-ntp true, chrony). It need be right by some minutes only; a day is too much",
			"nothing keeps the clock right")
	default:
		f.ok(check, "", "the clock is kept right")
	}
}
