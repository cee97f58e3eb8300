package edgepeer_test

import (
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
)

// leased is a peer of a LAN and one that hears its messages, after everything that is sent only once.
func leased(b *testing.B) (*lan, *edge, *edge) {
	l := newLAN(&testing.T{}, 1)
	x, y := l.peer(edgepeer.Config{Name: "a"}), l.peer(edgepeer.Config{Name: "b"})
	for _, e := range []*edge{x, y} {
		e.do(edgepeer.Listen{Pipe: uniPipe, Kind: jxta.PipeTypeUnicast})
		e.do(edgepeer.Listen{Pipe: wirePipe, Kind: jxta.PipeTypePropagate})
	}
	b.ReportAllocs()
	return l, x, y
}

// The load generator's own work must stay well below the work of the measured gateway.
func BenchmarkSend(b *testing.B) {
	l, x, y := leased(b)
	ev := edgepeer.Send{Pipe: uniPipe, To: y.ID(), Elements: body(string(make([]byte, 1000)))}
	for b.Loop() {
		x.Step(l.now, ev)
	}
}

func BenchmarkPropagate(b *testing.B) {
	l, x, _ := leased(b)
	ev := edgepeer.Send{Pipe: wirePipe, Kind: jxta.PipeTypePropagate, Elements: body(string(make([]byte, 1000)))}
	for b.Loop() {
		x.Step(l.now, ev)
	}
}

func BenchmarkQuery(b *testing.B) {
	l, x, _ := leased(b)
	for b.Loop() {
		x.Step(l.now, edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: "bench-adv-00001"})
	}
}

// hear measures a peer with the last package that its gateway sent it.
func hear(b *testing.B, l *lan, e *edge, ev func()) {
	var last []byte
	l.spy = func(to *edge, body []byte) {
		if to == e {
			last = body
		}
	}
	ev()
	for b.Loop() {
		e.Step(l.now, edgepeer.Received{Body: last})
	}
}

func BenchmarkHearUnicast(b *testing.B) {
	l, x, y := leased(b)
	hear(b, l, y, func() {
		x.do(edgepeer.Send{Pipe: uniPipe, To: y.ID(), Elements: body(string(make([]byte, 1000)))})
	})
}

func BenchmarkHearAnswer(b *testing.B) {
	l, x, y := leased(b)
	x.do(edgepeer.Publish{Doc: edgepeer.Specification("trk-1", wirePipe, jxta.PipeTypePropagate)})
	hear(b, l, y, func() { y.do(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: "trk-1"}) })
}
