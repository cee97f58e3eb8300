package trace

import (
	"encoding/binary"
	"reflect"
	"testing"

	"aldis/internal/lab/check"
)

// Files as Windows writes them: pcapng of two interfaces at once, Ethernet in microseconds and Npcap's loopback (BSD null, address family
// in the host's order) in units of 100 ns; and pcap whose link type has flags of a frame check sequence in its upper half.
func TestWindowsCaptures(t *testing.T) {
	list := packets(t, load(t, "jxta22-tcp-iridium")) // raw IP
	want := analyse(list, Options{})
	order := binary.LittleEndian
	block := func(b []byte, kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		n := uint32(len(body) + 12)
		b = order.AppendUint32(b, kind)
		b = order.AppendUint32(b, n)
		b = append(b, body...)
		return order.AppendUint32(b, n)
	}
	head := order.AppendUint32(nil, 0x1a2b3c4d)
	head = append(head, 1, 0, 0, 0)
	head = order.AppendUint64(head, ^uint64(0))
	name := "\\Device\\NPF_Loopback"
	head = append(head, 4, 0, byte(len(name)), 0) // shb_userappl
	head = append(head, name...)
	for len(head)%4 != 0 {
		head = append(head, 0)
	}
	file := block(nil, blockSection, append(head, 0, 0, 0, 0))
	file = block(file, blockInterface, []byte{byte(linkEthernet), 0, 0, 0, 0, 0, 4, 0})
	file = block(file, blockInterface, []byte{byte(linkNull), 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0})
	ether := append(make([]byte, 12), 8, 0)
	for i, p := range list {
		interfaceID, units, link := uint32(i%2), uint64(p.At/1000), ether
		if interfaceID == 1 {
			units, link = uint64(p.At/100), []byte{2, 0, 0, 0}
		}
		body := order.AppendUint32(nil, interfaceID)
		body = order.AppendUint32(body, uint32(units>>32))
		body = order.AppendUint32(body, uint32(units))
		body = order.AppendUint32(body, uint32(len(link)+len(p.Data)))
		body = order.AppendUint32(body, uint32(len(link)+p.Length))
		body = append(append(body, link...), p.Data...)
		file = block(file, blockEnhanced, body)
	}
	got := packets(t, file)
	r := analyse(got, Options{})
	check.Same(t, "r.Kinds", r.Kinds, want.Kinds)
	check.Equal(t, "r.Figures.Retransmissions", r.Figures.Retransmissions, want.Figures.Retransmissions)
	check.True(t, "not r.Partial", !r.Partial, r.Problems)
	check.Equal(t, "r.Seconds()", r.Seconds(), want.Seconds())
	for i := range got {
		if d := got[i].At - list[i].At; d < -1000 || d > 1000 {
			t.Fatalf("packet %d is %d ns off", i+1, d)
		}
	}
	flagged := asPcap(list, order, false)
	order.PutUint32(flagged[20:], order.Uint32(flagged[20:])|0x24000000) // FCS of 4 octets
	if r := analyse(packets(t, flagged), Options{}); !reflect.DeepEqual(r.Kinds, want.Kinds) || r.Partial {
		t.Errorf("with flags: other figures, or partial: %v", r.Problems)
	}
}
