package mail

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func at(port byte) netip.AddrPort {
	if port == '-' {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(port))
}

// A walk is what happens to a peer's addresses, each a letter: "hX" the newest datagram came from X, "m" a question had no
// answer, "aX" the peer has a datagram that went to X, "s" it starts anew with the next datagram, "w" ten minutes pass, "x" a session with it is over, "f" all is
// forgotten.
// want is where things go after each.
func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		name             string
		configured       byte
		walk, want       string
		restart, changed byte // what the operator has written at the restart that follows, and where things go then
	}{
		{"nothing is known", '-', "m m", "- -", '-', '-'},
		{"as configured", 'C', "hC m m aC", "C C C C", 'C', 'C'},
		{"a dialled terminal", '-', "hA aA hB aB hD m hD", "A A B B D B D", '-', 'D'},
		{"a redial, and nothing is sent there yet", 'C', "hC aC hB hD", "C C B D", 'C', 'D'},
		{"one that is proven is asked twice", 'C', "hA aA m m m m m", "A A A C A A C", 'C', 'A'},
		{"one that is not proven is asked once", 'C', "hC aC hB m m m", "C C B C B C", 'C', 'B'},
		{"stolen: the old one answers", 'C', "hC aC hX m hC aC", "C C X C C C", 'C', 'C'},
		{"stolen again within ten minutes", 'C', "hC aC hX m aC hX hC", "C C X C C C C", 'C', 'C'},
		{"moved within ten minutes after that", 'C', "hC aC hX m aC hB m m aB", "C C X C C C C B B", 'C', 'B'},
		{"stolen again later", 'C', "hC aC hX m aC w hX", "C C X C C C X", 'C', 'X'},
		{"away, and back where it was proven", 'C', "hA aA m m aC hA", "A A A C C A", 'C', 'A'},
		{"three machines lead in turn, the second does not live to answer", '-', "hA aA s hB m s hA aA s hC", "A A A B A A A A A C", '-', 'C'},
		{"stolen, and started anew since", 'C', "hC aC hX m aC hX s hB", "C C X C C C C B", 'C', 'B'},
		{"a session is over, and another begins", '-', "hA aA x hA hB f hB", "A A - - - - B", '-', 'B'},
		{"the operator writes another", 'C', "hC aC hB aB", "C C B B", 'D', 'D'},
		{"the operator writes none", 'C', "hB aB", "B B", '-', 'B'},
	} {
		now := time.Unix(1_800_000_000, 0)
		p := NewPaths(at(tt.configured))
		var got []string
		anew := false
		for _, step := range strings.Fields(tt.walk) {
			switch step[0] {
			case 'h':
				before := p.Addr
				check.Equal(t, tt.name+", "+step+": moved", p.Heard(now, at(step[1]), anew), p.Addr != before)
				anew = false
			case 'm':
				p.Missed()
			case 'a':
				p.Answered(now, at(step[1]))
			case 'x':
				Shut(&p)
			case 'f':
				p.Forget()
			case 's':
				anew = true
			case 'w':
				now = now.Add(wariness)
			}
			name := "-"
			if p.Addr.IsValid() {
				name = string(rune(p.Addr.Port()))
			}
			got = append(got, name)
		}
		check.Equal(t, tt.name, strings.Join(got, " "), tt.want)
		q := NewPaths(at(tt.restart))
		changed, err := q.Restore(p.Append(nil))
		check.True(t, tt.name+": the record is read", err == nil, err)
		check.Equal(t, tt.name+": the operator wrote another", changed, tt.restart != '-' && tt.restart != tt.configured)
		check.Equal(t, tt.name+": after a restart", q.Addr, at(tt.changed))
		q.Forget()
		check.Equal(t, tt.name+": forgotten", q, NewPaths(at(tt.restart)))
	}
	for _, bad := range []string{"", "-", "- -", "- - - -", "- - 10.0.0.1", "x - -"} {
		p := NewPaths(at('C'))
		if _, err := p.Restore([]byte(bad)); !errors.Is(err, ErrRecord) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
