package sim

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Two worlds of one seed, crashes and losses included, play the same run.
func TestSameSeedSameRun(t *testing.T) {
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func() ([]string, []Got) {
		w, err := New(Config{Nodes: 3, Profile: p, Wire: wire, Seed: 5, Down: 3 * time.Second, CrashAfterCommit: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		hq := w.Nodes[0]
		for i := range 30 {
			m := site.Message{Published: true, Scope: "s", Topic: "t", From: "p", ID: fmt.Sprint(i),
				Parts: []site.Part{{Name: "body", Data: make([]byte, 200)}}}
			w.At(time.Duration(i)*2*time.Second+time.Second, func() { hq.Site.Send(w, m, 2, 3) })
		}
		w.Run(5 * time.Minute)
		return w.Notes, w.Nodes[1].Site.Got
	}
	notes, got := run()
	notes2, got2 := run()
	if len(got) == 0 {
		t.Error("nothing arrived: the test shows nothing")
	}
	if !reflect.DeepEqual(notes, notes2) {
		t.Error("two runs of one seed have different notes")
	}
	if !reflect.DeepEqual(got, got2) {
		t.Error("two runs of one seed deliver differently")
	}
}
