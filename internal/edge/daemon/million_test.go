package daemon_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"aldis/internal/jxta"
)

type footprint struct {
	heap                  uint64
	descriptors, routines int
}

func (r *rig) footprint() footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{m.HeapAlloc, descriptors(r), runtime.NumGoroutine()}
}

// relayed sends count messages of 200 octets from one local peer to another, half of them on a propagate pipe. All must arrive,
// and no more resources may be in use after the last than after the first tenth. It returns both measurements.
func relayed(tb testing.TB, count int) (early, late footprint) {
	r := newRig(tb, "wire")
	from, to := r.peer(), r.peer()
	data := jxta.Element{Namespace: "trk", Name: "body", Data: bytes.Repeat([]byte("x"), 200)}
	w := jxta.WireHeader{Src: from.id, Pipe: "uuid-0104", MsgID: serial, TTL: 200}
	bodies := [][]byte{from.routed(to.id, "PipeService", "urn:jxta:uuid-0104", data),
		from.propagated("jxta.service.wirepipe", jxta.NetGroup, data, docElement("JxtaWireHeader", w.Append(nil)))}
	sent := 0
	send := func(n int) {
		done := make(chan error, 1)
		go func() {
			var buf []byte
			var err error
			for range n {
				if buf, err = to.get(buf); err != nil {
					break
				}
			}
			done <- err
		}()
		for range n {
			if err := from.put(number(bodies[sent%2], uint64(sent))); err != nil {
				tb.Fatal(err)
			}
			sent++
		}
		if err := from.w.Flush(); err != nil {
			tb.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				tb.Fatal(err)
			}
		case <-time.After(10 * time.Minute):
			tb.Fatalf("of %d messages some have not arrived", sent)
		}
	}
	send(count / 10)
	early = r.footprint()
	send(count - count/10)
	return early, r.footprint()
}

func TestRelayLeavesNothingBehind(t *testing.T) {
	early, late := relayed(t, 40_000)
	if late.heap > early.heap+early.heap/4+(2<<20) || late.descriptors > early.descriptors+2 || late.routines > early.routines+2 {
		t.Errorf("after a tenth %+v, after all %+v", early, late)
	}
}

// The relay of 2004 died after 2,100 to 3,900 messages.
func BenchmarkMillionMessages(b *testing.B) {
	for range b.N {
		early, late := relayed(b, 1_000_000)
		b.ReportMetric(float64(early.heap)/(1<<20), "MiB-after-100000")
		b.ReportMetric(float64(late.heap)/(1<<20), "MiB-after-all")
		b.ReportMetric(float64(late.descriptors-early.descriptors), "descriptors-more")
	}
	b.ReportMetric(1e6*float64(b.N)/b.Elapsed().Seconds(), "per-s")
}
