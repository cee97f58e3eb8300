package trace

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bareACK says whether a packet acknowledges and does nothing else.
func bareACK(p Packet) bool {
	var s tcpSegment
	return decode(p, &s) == isTransport && s.proto == protoTCP && s.length == 0 && s.flags&(flagSYN|flagFIN|flagRST|flagACK) == flagACK
}

// Several queues of a receiver store an acknowledgement before the data that it acknowledges: no message is lost by that.
func TestAcknowledgementsStoredEarly(t *testing.T) {
	for _, name := range captures {
		list := packets(t, load(t, name))
		want := analyse(list, Options{})
		for seed := range uint64(5) {
			random := rand.New(rand.NewPCG(seed, 3))
			mixed := slices.Clone(list)
			for i := 8; i < len(mixed); i++ {
				if j := i - 1 - random.IntN(4); bareACK(mixed[i]) {
					p := mixed[i]
					mixed = slices.Insert(slices.Delete(mixed, i, i+1), j, p)
				}
			}
			got := analyse(mixed, Options{})
			checkSums(t, got)
			if !reflect.DeepEqual(got.Kinds, want.Kinds) || got.UnreadBytes != want.UnreadBytes {
				t.Errorf("%s, seed %d: %d messages, unread %d; want %d, %d", name, seed, got.Messages, got.UnreadBytes, want.Messages, want.UnreadBytes)
			}
		}
	}
}

// Octets that were acknowledged and are not in the capture are reported, and make the figures partial.
func TestMissingPacketsAreSaid(t *testing.T) {
	for _, name := range captures {
		list := packets(t, load(t, name))
		random := rand.New(rand.NewPCG(1, 4))
		var less []Packet
		for i, p := range list {
			if i > 20 && hasData(p) && random.IntN(10) == 0 {
				continue
			}
			less = append(less, p)
		}
		r := analyse(less, Options{})
		if !r.Partial || r.MissingBytes == 0 || !strings.Contains(strings.Join(r.Problems, "\n"), "were acknowledged and are not in the capture") {
			t.Errorf("%s: partial %t, %d octets missing, %q", name, r.Partial, r.MissingBytes, r.Problems)
		}
	}
}

// A report without figures says why.
func TestNothingFoundIsSaid(t *testing.T) {
	list := packets(t, load(t, "jxta22-http"))
	wrong := slices.Clone(list)
	for i := range wrong {
		wrong[i].Link = 101 // raw IP, which it is not
	}
	for what, r := range map[string]*Report{
		"none of 248 packets is IPv4 or IPv6 with TCP":                     analyse(wrong, Options{}),
		"none of 248 packets with TCP or UDP is from or to 198.51.100.200": analyse(list, Options{Edge: netip.MustParseAddr("198.51.100.200")}),
	} {
		if all := strings.Join(r.Problems, "\n"); !r.Partial || !strings.Contains(all, what) {
			t.Errorf("partial %t, %q, want %q", r.Partial, all, what)
		}
	}
	if r := analyse(nil, Options{}); !r.Partial || !strings.Contains(strings.Join(r.Problems, "\n"), "the capture has no packets") {
		t.Errorf("an empty capture: %q", r.Problems)
	}
}

// A capture with several edges says that the application's octets are those of one of them.
func TestSeveralEdgesAreSaid(t *testing.T) {
	one := packets(t, load(t, "jxta22-tcp-iridium")) // raw IP
	other := wrapped(one, linkRaw, func(ip []byte) []byte {
		b := slices.Clone(ip)
		for _, at := range []int{12, 16} { // the edge is 10.77.0.2
			if b[at+3] == 2 {
				b[at+3] = 9
			}
		}
		return b
	})
	r := analyse(append(slices.Clone(one), other...), Options{})
	if all := strings.Join(r.Remarks, "\n"); !strings.Contains(all, "2 peers dialled and carry the application's octets: tables 5.8 to 5.10 show 10.77.0.2 alone") {
		t.Errorf("%q", r.Remarks)
	}
	if r := analyse(one, Options{}); len(r.Remarks) > 0 {
		t.Errorf("one edge: %q", r.Remarks)
	}
}
