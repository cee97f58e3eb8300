package trace

import (
	"net/netip"
	"testing"

	"aldis/internal/lab/check"
)

// dial adds connections that one address opens to another behind the last packet of a capture; answer is the second segment's flags.
func dial(a *Analyser, from, to netip.Addr, connections int, answer uint8) {
	for i := range connections {
		ends := [2]netip.AddrPort{netip.AddrPortFrom(from, uint16(40_000+i)), netip.AddrPortFrom(to, 9703)}
		for j, flags := range []uint8{flagSYN, answer, flagACK} {
			if j == 2 && answer&flagRST != 0 {
				break
			}
			s := tcpSegment{src: ends[j%2], dst: ends[1-j%2], proto: protoTCP, seq: 1000 + uint32(j/2), ack: 1001, flags: flags, frame: 40,
				at: a.totals.last + int64(20_000*j)}
			a.totals.packets++
			a.tcp(&s)
		}
	}
}

// Refused connections do not count against the link, and make no address the edge. Neither do complete ones, if an address passes on
// messages of others: rendezvous dial their peers, too.
func TestEdgeOfThoseWhoDial(t *testing.T) {
	for _, name := range []string{"jxta22-tcp", "jxse27-http", "jxta22-http-iridium"} {
		list := packets(t, load(t, name))
		want := analyse(list, Options{})
		edge := netip.MustParseAddr(want.Edge)
		for _, answer := range []uint8{flagRST | flagACK, flagSYN | flagACK} {
			a := New(Options{})
			var other netip.Addr
			for _, p := range list {
				a.Add(p)
			}
			for addr := range a.hosts {
				if addr != edge {
					other = addr
				}
			}
			dial(a, other, edge, 40, answer)
			refused := answer&flagRST != 0
			if !refused {
				a.hosts[other].passed = a.hosts[other].out
			}
			r := a.Finish()
			check.Equal(t, name+": edge", r.Edge, want.Edge)
			check.Equal(t, name+": octets in", r.Application.In, want.Application.In)
			check.Equal(t, name+": failed", r.FailedSetups, want.FailedSetups)
			check.Equal(t, name+": refused", r.RefusedSetups > 0, refused)
			check.Equal(t, name+": condition", r.Condition, want.Condition)
		}
	}
}
