package trace

import (
	"net/netip"
	"strings"
	"testing"

	"aldis/internal/jxta"
)

// feed gives an Analyser a segment of the i-th connection.
func feed(a *Analyser, i int, seq uint32, flags uint8, data []byte) {
	src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 24), byte(i >> 16), byte(i >> 8)}), 1024+uint16(i&0xff))
	s := tcpSegment{
		at: int64(i) * 1000, number: int64(i + 1), src: src, dst: netip.MustParseAddrPort("10.200.0.1:9701"), proto: protoTCP,
		seq: seq, flags: flags, data: data, length: len(data), frame: len(data) + 54,
	}
	a.totals.packets++
	a.tcp(&s)
}

// Whatever peers or strangers send, the state kept stays within its limits, and the report says that it is partial.
func TestBounds(t *testing.T) {
	t.Run("connections", func(t *testing.T) {
		a := New(Options{})
		for i := range 3 * maxConns {
			feed(a, i, 1, flagSYN, nil)
			if len(a.conns) > maxConns || len(a.order) > 3*maxConns {
				t.Fatalf("%d connections, %d in order", len(a.conns), len(a.order))
			}
		}
		if r := a.Finish(); !r.Partial || r.Figures.Connections != 3*maxConns || r.FailedSetups != 3*maxConns {
			t.Errorf("%+v", r.Figures)
		}
	})
	t.Run("connections that end", func(t *testing.T) {
		a := New(Options{})
		for i := range 2 * maxConns {
			feed(a, i, 1, flagSYN, nil)
			feed(a, i, 2, flagRST, nil)
		}
		if r := a.Finish(); r.Partial || r.Figures.Connections != 2*maxConns {
			t.Errorf("%+v", r.Figures)
		}
	})
	t.Run("messages without end", func(t *testing.T) {
		a := New(Options{})
		head := jxta.AppendPackageHeader([]byte("JXTAHELLO a b urn:jxta:uuid-59616261646162614A78746150325033F2D519D6CA8B42FB9DC7DF1066B7744E03 0 1.1\r\n"), 15<<20)
		part := make([]byte, 1<<20)
		for i := range 100 {
			feed(a, i, 1, flagACK, head)
			for n := range 4 {
				feed(a, i, 1+uint32(len(head)+n<<20), flagACK, part)
			}
			if a.bodies > maxBodies {
				t.Fatalf("%d octets are kept", a.bodies)
			}
		}
		r := a.Finish()
		checkSums(t, r)
		if !r.Partial || !strings.Contains(strings.Join(r.Problems, "\n"), "unfinished messages") {
			t.Errorf("%v", r.Problems)
		}
	})
	t.Run("segments out of order", func(t *testing.T) {
		a := New(Options{})
		part := make([]byte, 1000)
		for i := range 100 {
			feed(a, i, 1, flagACK, part)
			for n := range 2000 {
				feed(a, i, 3000+uint32(n)*1500, flagACK, part)
			}
			if a.held > maxPendingAll+(1<<16) {
				t.Fatalf("%d octets are kept", a.held)
			}
		}
		r := a.Finish()
		checkSums(t, r)
		if a.held != 0 || r.Gaps == 0 {
			t.Errorf("%d octets still kept, %d gaps", a.held, r.Gaps)
		}
	})
	t.Run("names", func(t *testing.T) {
		a := New(Options{})
		for i := range 2 * maxNames {
			a.host(netip.AddrFrom4([4]byte{1, 2, byte(i >> 8), byte(i)}))
			a.element(&jxta.Element{Name: string(rune('a'+i%26)) + strings.Repeat("x", i%500) + string(rune(i))})
		}
		if len(a.hosts) > maxNames || len(a.elements) > maxNames+1 {
			t.Errorf("%d hosts, %d elements", len(a.hosts), len(a.elements))
		}
	})
}
