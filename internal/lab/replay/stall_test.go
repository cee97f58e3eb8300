package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
)

// jammed is a trace of two peers that send each other so many reports of 900 octets within 700 s, some at once: for a while more than
// hf-300 can carry.
func jammed(t *testing.T, seed uint64, reports, atOnce int) *trace.File {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 300))
	type send struct {
		at   float64
		peer int
	}
	var sends []send
	for len(sends) < reports {
		at := 100 + r.Float64()*550
		for i := range min(atOnce, reports-len(sends)) {
			sends = append(sends, send{at + float64(i)/2, 1 + r.IntN(2)})
		}
	}
	slices.SortFunc(sends, func(a, b send) int { return int(1000 * (a.at - b.at)) })
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`{"aldis_trace":1,"duration_s":700,"content":"data"}`)
	for i, id := range []string{"uuid-59616261646162614A78746150325033B5CD5D6A12C9467BA7B4B59324A58603", "uuid-59616261646162614A7874615032503349D98DD0636142C397A3D456CFE762E303"} {
		line(`{"t":5,"do":"peer","peer":"p%d","id":"%s","edge":%v}`, i+1, id, i == 0)
	}
	for i, id := range []string{"uuid-59616261646162614E504720503250333DFE4A4C0A1C44C78BE09C3CBF7288BA04", "uuid-59616261646162614E504720503250333E91A726B6B846489DC6DD6025E9DECE04"} {
		line(`{"t":5,"do":"pipe","pipe":"q%d","id":"%s","kind":"propagate"}`, i+1, id)
	}
	line(`{"t":40,"do":"open","peer":"p1","pipe":"q2","listen":true}`)
	line(`{"t":40,"do":"open","peer":"p2","pipe":"q1","listen":true}`)
	for i, s := range sends {
		text := fmt.Sprintf("TRK;%d;%d;", s.peer, i)
		for len(text) < 900 {
			text += fmt.Sprintf("N%07.4f;E%08.4f;C%05.1f;S%04.1f;T%04d;", 55+10*r.Float64(), 12*r.Float64(), 360*r.Float64(), 30*r.Float64(), r.IntN(10000))
		}
		part, err := json.Marshal(map[string]any{"name": "trk:body", "octets": 900, "text": text[:900]})
		check.NoError(check.Fatal(t), err)
		line(`{"t":%.3f,"do":"send","peer":"p%d","pipe":"q%d","octets":900,"parts":[%s]}`, s.at, s.peer, s.peer, part)
	}
	f, err := trace.ReadFile(strings.NewReader(b.String()))
	if f == nil {
		t.Fatal(err)
	}
	return f
}

// On a channel of two, no message waits for longer than a turn of the other while the channel is idle, however full it was before, and no
// radio gets more than it holds. In the first seven of these plays 66 to 330 s passed without a transmission while messages were under
// way, because a sender that had asked in vain took lost datagrams for late ones, and waited longer and longer.
func TestPairDoesNotWaitOnIdleAir(t *testing.T) {
	p := load(t, "hf-300")
	for _, play := range []struct{ trace, seed uint64 }{{0, 2}, {0, 9}, {1, 7}, {1, 10}, {2, 12}, {3, 2}, {3, 5}, {0, 4}, {1, 1}, {2, 3}, {3, 6}} {
		res, err := Run(context.Background(), jammed(t, play.trace, 70, 6), Options{Profile: p, Seed: play.seed, Bin: 6 * time.Second})
		if over := (*OverloadError)(nil); err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
		var idle, longest float64
		for _, b := range res.Bins {
			if b.BusyS.Up+b.BusyS.Down > 0 || b.Queue.Up.UnderWay+b.Queue.Down.UnderWay == 0 {
				idle = 0
				continue
			}
			idle += res.BinS
			longest = max(longest, idle)
		}
		name := fmt.Sprintf("trace %d, seed %d", play.trace, play.seed)
		t.Logf("%s: %d of %d messages, the worst after %.0f s, idle with messages under way for %.0f s, %d octets, %d dropped", name, res.Messages.Delivered,
			res.Messages.Expected, *res.Latency.Max, longest, res.LinkBytes.Up+res.LinkBytes.Down, res.Dropped.Up+res.Dropped.Down)
		check.True(t, name+": seconds idle <= a turn", longest <= p.MaxHold.Seconds(), longest)
		check.Equal(t, name+": dropped by the radios", res.Dropped.Up+res.Dropped.Down, 0)
	}
}
