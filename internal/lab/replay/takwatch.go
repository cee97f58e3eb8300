package replay

import (
	"math"
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/trace"
)

// CompareAfter is how long after a report the far map is compared with it.
const CompareAfter = 5 * time.Second

const perDegree = 111194.9 // metres

// TAKWatch compares the events of devices with those that the far device shows. It is not for concurrent use.
type TAKWatch struct {
	waits   map[string]time.Time  // the times of events that are no positions, by uid and type
	took    []float64             // s
	newest  map[string]*TAKReport // the newest report of each unit
	shown   map[string]*cot.Event
	off     []float64 // metres
	missing int
}

// NewTAKWatch makes a watch without events.
func NewTAKWatch() *TAKWatch {
	return &TAKWatch{waits: map[string]time.Time{}, newest: map[string]*TAKReport{}, shown: map[string]*cot.Event{}}
}

// TAKReport is one position, until it is compared.
type TAKReport struct {
	w             *TAKWatch
	uid           string
	lat, lon      float64
	course, speed float64 // degrees, metres a second
}

// position reads the position, course and speed of an event.
func position(e *cot.Event) (r TAKReport) {
	r.uid = e.UID
	r.lat, _ = e.Point.Lat.Float()
	r.lon, _ = e.Point.Lon.Float()
	if t := e.Find("track"); t != nil {
		r.course, _ = cot.Number(t.Get("course")).Float()
		r.speed, _ = cot.Number(t.Get("speed")).Float()
	}
	return r
}

// Said notes an event of a device. For a position it returns a TAKReport to compare after CompareAfter; nil: the event is none.
func (w *TAKWatch) Said(now time.Time, e *cot.Event) *TAKReport {
	switch {
	case e.Is("a"):
		r := position(e)
		r.w = w
		w.newest[e.UID] = &r
		return &r
	case e.Local(), e.Is("t-x-d-d"): // not shown by themselves
		return nil
	}
	if _, ok := w.waits[e.UID+" "+e.Type]; !ok {
		w.waits[e.UID+" "+e.Type] = now
	}
	return nil
}

// Saw notes an event for the far device.
func (w *TAKWatch) Saw(now time.Time, e *cot.Event) {
	if e.Is("a") {
		w.shown[e.UID] = e
		return
	}
	key := e.UID + " " + e.Type
	if at, ok := w.waits[key]; ok {
		w.took = append(w.took, now.Sub(at).Seconds())
		delete(w.waits, key)
	}
}

// Compare compares the far map with the report, moved on by its own course and speed. A report that a newer one replaced no longer
// counts.
func (r *TAKReport) Compare() {
	w := r.w
	if w.newest[r.uid] != r {
		return
	}
	e := w.shown[r.uid]
	if e == nil {
		w.missing++
		return
	}
	there := position(e)
	m := r.speed * CompareAfter.Seconds()
	rad := r.course * math.Pi / 180
	lat := r.lat + m*math.Cos(rad)/perDegree
	narrow := math.Cos(lat * math.Pi / 180)
	lon := r.lon + m*math.Sin(rad)/perDegree/max(narrow, 1e-6)
	w.off = append(w.off, math.Hypot(there.lat-lat, (there.lon-lon)*narrow)*perDegree)
}

// Waiting counts the events that are no positions and have not come yet.
func (w *TAKWatch) Waiting() int { return len(w.waits) }

// Figures fills the results into r.
func (w *TAKWatch) Figures(r *trace.CoTCost) {
	slices.Sort(w.took)
	slices.Sort(w.off)
	r.Shown, r.Unshown, r.Missing = len(w.took), len(w.waits), w.missing
	if len(w.took) > 0 {
		r.MedianS, r.P95S, r.MaxS = linkemu.Between(w.took, 0.5), linkemu.Between(w.took, 0.95), w.took[len(w.took)-1]
	}
	if len(w.off) > 0 {
		r.MedianM, r.P95M = linkemu.Between(w.off, 0.5), linkemu.Between(w.off, 0.95)
	}
}
