package compact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// transitProfiles are the links of the table of transit times.
var transitProfiles = []string{"hf-2400", "iridium-dialup", "vhf-cnr-16k", "iridium-certus-100", "geo-satcom-128k"}

// datagramHead is what seal and frame add to a datagram of a message.
const datagramHead = 20

// transit is how long octets take from a terminal to the shore: the air of all datagrams, one after the other, and the way of the last.
func transit(p profile.Profile, octets int) (t time.Duration) {
	room := p.Filled() - datagramHead
	for left := octets; left > 0; left -= room {
		n := min(left, room)
		t += p.Airtime(p.Up, profile.IPUDPOctets+datagramHead+n)
	}
	return t + p.Up.Delay
}

// transitRows are lists of employees, as the paper of 2007 has them, by codec: how long each takes over each link.
func transitRows(t *testing.T) string {
	m := NewMaker(77, testWords)
	var b strings.Builder
	b.WriteString("| employees | codec | octets | " + strings.Join(transitProfiles, " | ") + " |\n|---|---|---|" + strings.Repeat("---|", len(transitProfiles)) + "\n")
	var c Coder
	for _, n := range []int{1, 10, 50, 200, 1000} {
		text := m.Employees(n)
		code, codec := c.Append(nil, text)
		for _, row := range []struct {
			codec  string
			octets int
		}{{"stored", len(text)}, {"deflated", len(c.Deflated(text))}, {codec.String(), len(code)}} {
			fmt.Fprintf(&b, "| %d | %s | %d |", n, row.codec, row.octets+1)
			for _, name := range transitProfiles {
				p, err := profile.Load(name, nil)
				check.NoError(check.Fatal(t), err)
				fmt.Fprintf(&b, " %.2f |", transit(p, row.octets+1).Seconds())
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// kinRow is what the first message of a flow costs by itself, and after six messages of another flow of its kind: the mean of four.
func kinRow(s stranger) string {
	flows := strangerFlows(s)
	var h History
	for i, text := range flows[0][:6] {
		h.Add(uint64(i+1), text)
	}
	var c Coder
	var sums [3]float64
	for _, flow := range flows[1:] {
		plain, _ := c.Append(nil, flow[0])
		code, _ := c.AppendKin(nil, flow[0], &h, 1, 20)
		for i, n := range []int{len(flow[0]), 1 + len(plain), 1 + len(code)} {
			sums[i] += float64(n) / float64(len(flows)-1)
		}
	}
	return fmt.Sprintf("| %s | %.0f | %.1f | **%.1f** |", s.kind, sums[0], sums[1], sums[2])
}

func kinRows() string {
	var b strings.Builder
	for _, s := range strangerKinds {
		b.WriteString(kinRow(s) + "\n")
	}
	return b.String()
}
