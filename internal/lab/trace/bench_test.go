package trace

import (
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

// endless is a capture of any size: the same packets again and again, every time between other ports and later.
type endless struct {
	list  []Packet
	left  int64 // octets still to come
	round uint16
	next  int
	buf   []byte
}

func newEndless(b *testing.B, size int64, names ...string) *endless {
	e := &endless{left: size}
	for _, name := range names {
		for _, p := range packets(b, load(b, name)) {
			for p.Link == linkEthernet { // raw IP throughout
				p.Link, p.Data, p.Length = linkRaw, p.Data[14:], p.Length-14
			}
			e.list = append(e.list, p)
		}
	}
	e.buf = asPcap(e.list[:1], binary.LittleEndian, false)[:24]
	return e
}

func (e *endless) Read(b []byte) (int, error) {
	for len(e.buf) == 0 {
		if e.left <= 0 {
			return 0, io.EOF
		}
		p := e.list[e.next]
		h := binary.LittleEndian.AppendUint32(e.buf[:0], uint32(p.At/1e9)+uint32(e.round))
		h = binary.LittleEndian.AppendUint32(h, uint32(p.At%1e9/1000))
		h = binary.LittleEndian.AppendUint32(h, uint32(len(p.Data)))
		h = binary.LittleEndian.AppendUint32(h, uint32(p.Length))
		e.buf = append(h, p.Data...)
		at := len(h) + int(p.Data[0]&15)*4 // both ports, so that neither belongs to another connection
		for _, i := range []int{at, at + 2} {
			if port := binary.BigEndian.Uint16(e.buf[i:]); port > 9800 {
				binary.BigEndian.PutUint16(e.buf[i:], port+e.round)
			}
		}
		e.buf[len(h)+14] ^= byte(e.round >> 8) // addresses too: ports alone would repeat
		e.buf[len(h)+18] ^= byte(e.round >> 8)
		if e.next++; e.next == len(e.list) {
			e.next = 0
			e.round++
		}
		e.left -= int64(len(e.buf))
	}
	n := copy(b, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

// BenchmarkAnalyse reads 1 GiB; wanted are 100 MB/s or better in 256 MiB or less.
func BenchmarkAnalyse(b *testing.B) {
	const size = 1 << 30
	for _, bm := range []struct {
		name  string
		names []string
	}{
		{"tcp", []string{"jxta22-tcp-iridium", "jxse27-tcp-iridium"}},
		{"http", []string{"jxta22-http", "jxse27-http"}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(size)
			var peak uint64
			for b.Loop() {
				r, err := NewReader(newEndless(b, size, bm.names...))
				if err != nil {
					b.Fatal(err)
				}
				a := New(Options{})
				var m runtime.MemStats
				for n := 1; ; n++ {
					p, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					a.Add(p)
					if n&0x1ffff == 0 {
						runtime.ReadMemStats(&m)
						peak = max(peak, m.Sys)
					}
				}
				rep := a.Finish()
				if rep.Figures.Packets < 1e6 || rep.Messages < 1e4 {
					b.Fatalf("%d packets, %d messages", rep.Figures.Packets, rep.Messages)
				}
			}
			b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
		})
	}
}
