package gateway

import (
	"time"

	"aldis/internal/due"
	"aldis/internal/site"
)

// Meeting is where faces of this gateway meet (internal/meet): what the clients of one say may reach those of another here.
type Meeting interface {
	// Hear is told of every Step of a face: what happened to it, and what it wants done. It takes out of that what is not for
	// the road. Before the first Step it hears of the items of an earlier run, of each face's by itself.
	Hear(now time.Time, from site.Face, ev site.Event, out *site.Output)
	// Step brings it to now, when something was heard or it is due.
	Step(now time.Time) site.Met
}

// meeting is the Meeting of a gateway, and when it has its next Step; empty where faces do not meet.
type meeting struct {
	Meeting
	due   time.Time
	begun bool
	heard bool // since its last Step
	tells bool // the faces are being told what it wants
}

// hear lets it know what a face does.
func (m *meeting) hear(now time.Time, from site.Face, ev site.Event, out *site.Output) {
	if m.Meeting != nil {
		m.Meeting.Hear(now, from, ev, out)
		m.heard = true
	}
}

// begin comes before its first Step, when the faces have had theirs.
func (m *meeting) begin(now time.Time, own []site.Item) {
	if m.Meeting == nil {
		return
	}
	for _, it := range own {
		m.Meeting.Hear(now, it.Face, nil, &site.Output{Items: []site.Item{it}})
	}
	m.begun, m.heard = true, true
}

// meet tells the faces what their meeting wants them to be told, until it wants nothing more.
func (g *Gateway) meet(now time.Time) {
	m := &g.faces.meeting
	if !m.begun || m.tells || g.faces.stepped {
		return
	}
	m.tells = true
	for m.heard || due.Reached(now, m.due) {
		m.heard = false
		out := m.Step(now)
		m.due = out.Deadline
		g.out.Notes = append(g.out.Notes, out.Notes...)
		for _, memory := range out.Remember {
			g.Record(memoryRecord(site.Meeting, memory))
		}
		for _, t := range out.Tell {
			g.stepFace(now, t.Face, t.Event)
		}
	}
	m.tells = false
}
