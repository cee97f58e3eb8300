package field

import (
	"io"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// A session that is over and one that follows it are two, each with what it has spared; one that is there at the end has no end.
func TestSessionsOfAPlay(t *testing.T) {
	f := &fleetPlay{game: &game{zero: time.Now().Add(-time.Minute), voice: (&progressLog{w: io.Discard}).voice("test")}}
	var l fleetSessions
	with := func(spared int64) []api.DirectSession { return []api.DirectSession{{Peer: "ship2", Spared: spared}} }
	for _, has := range [][]api.DirectSession{nil, with(5), with(9), nil, nil, with(2)} {
		l.note(f, "ship1", "sat", has)
		l.note(f, "ship1", "hf", nil)
	}
	list := l.all(f)
	check.True(check.Fatal(t), "two sessions", len(list) == 2, list)
	check.True(t, "the first is over", list[0].AtS >= 60 && list[0].EndS >= list[0].AtS && list[0].Spared == 9, list[0])
	check.True(t, "the second is not", list[1].EndS == 0 && list[1].Spared == 2 && list[1].Peer == "ship2", list[1])
	check.Equal(t, "events", len(f.events), 3)
	check.Equal(t, "a site gets another address", fleet.Accident{What: fleet.Redial, Site: "ship1", Bearer: "sat"}.Said(), "ship1 gets another address on sat, and its translation forgets all")
}
