package replay

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// A picture is judged by events that never come, by late ones and by how far off units are shown, in the worst play.
func TestJudgePicture(t *testing.T) {
	good := trace.CoTCost{Reports: 100, Shown: 3, MaxS: 4, P95M: 20}
	slow, off, lost, blind := good, good, good, good
	slow.MaxS, slow.BusyPct = 75, 90
	off.P95M = 80
	lost.Shown, lost.Unshown = 2, 1
	blind.Missing = 6
	for _, tt := range []struct {
		plays         []trace.CoTCost
		verdict, line string
		luck          string
	}{
		{[]trace.CoTCost{good, good}, Go, "GO. 95 of 100 reports are shown within 20 m on p, and markers, chats and the like within 4.0 s.", "All 2 plays are GO."},
		{[]trace.CoTCost{good, slow}, Late, "LATE. A marker, chat or the like takes 75 s on p, more than 60 s.", "It depends on luck: of 2 plays, which differ in losses and jitter alone, are 1 GO, 1 LATE."},
		{[]trace.CoTCost{off}, Late, "LATE. Units are shown up to 80 m off in 95 of 100 reports on p, more than 50 m.", "One play shows one way"},
		{[]trace.CoTCost{slow, lost, good}, No, "NO. 1 of 3 markers, chats and the like never arrive on p.", "1 GO, 1 LATE, 1 NO"},
		{[]trace.CoTCost{blind, blind}, No, "NO. 6 of 100 reports are of units that the far map does not show on p.", "It is no bad luck: each of 2 plays ends so."},
	} {
		r := JudgePicture(tt.plays, profile.Profile{Name: "p"}, time.Minute, 50)
		check.Equal(t, "verdict", r.Verdict, tt.verdict)
		check.Equal(t, "line", r.Line, tt.line)
		check.True(t, "luck", strings.Contains(r.Luck, tt.luck), r.Luck)
	}
	r := JudgePicture([]trace.CoTCost{slow}, profile.Profile{Name: "p"}, time.Minute, 50)
	check.True(t, "ways out", len(r.WaysOut) == 2 && strings.Contains(r.WaysOut[0], "[[tak.rule]]") && strings.Contains(r.WaysOut[1], "75 s"), r.WaysOut)
}
