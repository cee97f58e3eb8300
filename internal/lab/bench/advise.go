package bench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"aldis/internal/lab/trace"
)

// Use is an application's use of its network: the questions of the thesis's decision path (chapter 7).
type Use struct {
	Of        string // its source; empty: nothing in particular
	Peers     int
	Duration  time.Duration
	Questions float64 // discovery, per second
	Messages  float64 // per second
	Octets    int     // of a message, the median
	Largest   int
	Many      float64 // share of the messages that go to propagate pipes
	TwoWay    bool    // messages go both ways between peers
	Services  int
}

// PlainUse is the use on the page: tracks of a few units, as in the Blue Game.
var PlainUse = Use{Peers: 8, Duration: 30 * time.Minute, Questions: 0.1, Messages: 1, Octets: 1000, Largest: 10_000, Many: 0.5, TwoWay: true, Services: 2}

// UseOf reads a Use from a trace.
func UseOf(f *trace.File) Use {
	u := Use{Of: f.Header.Source, Duration: time.Duration(f.Header.Duration * float64(time.Second))}
	kinds := map[string]string{}
	senders := map[string]bool{}
	var sizes []int
	questions, many := 0, 0
	for _, l := range f.Lines {
		u.Duration = max(u.Duration, time.Duration(l.T*float64(time.Second)))
		switch l.Do {
		case "peer":
			u.Peers++
		case "pipe":
			kinds[l.Pipe] = l.Kind
		case trace.EventPublish:
			u.Services++
		case trace.EventQuery:
			questions++
		case trace.EventSend:
			sizes = append(sizes, l.Octets)
			senders[l.Peer] = true
			if kinds[l.Pipe] == "propagate" {
				many++
			}
		}
	}
	if s := u.Duration.Seconds(); s > 0 {
		u.Questions, u.Messages = float64(questions)/s, float64(len(sizes))/s
	}
	u.TwoWay = len(senders) > 1
	if len(sizes) > 0 {
		slices.Sort(sizes)
		u.Octets, u.Largest, u.Many = sizes[len(sizes)/2], sizes[len(sizes)-1], float64(many)/float64(len(sizes))
	}
	return u
}

// book finds cells.
type book []Row

// near is the cell of a measurement at a place whose size is nearest; nil: it was not measured.
func (b book) near(bench, what, where string, size int) (best *Row) {
	for i := range b {
		r := &b[i]
		if r.Bench == bench && r.What == what && r.Where == where && r.measured() && (best == nil || apart(r.Size, size) < apart(best.Size, size)) {
			best = r
		}
	}
	return best
}

// apart is the ratio of two sizes.
func apart(a, b int) float64 {
	x, y := float64(max(a, 1)), float64(max(b, 1))
	return max(x, y) / min(x, y)
}

func says(r *Row) string {
	if r == nil {
		return "not measured"
	}
	return number(r.Value) + " " + r.Unit
}

// Advise is the decision path of the thesis (chapter 7.2) in five sentences, with measured figures: transport, pipe, grouping, lifetime
// of advertisements, size of messages.
func Advise(rows []Row, u Use) []string {
	b := book(rows)
	size := cmp.Or(u.Octets, 1000)
	const unicast = "unicast pipe: " + whatRoundTrip
	tcp, overHTTP := b.near("layers", unicast, gatewayTCP, size), b.near("layers", unicast, gatewayHTTP, size)
	transport := fmt.Sprintf("Transport: TCP; HTTP only where a firewall lets nothing else through (message of %s and its acknowledgement through the gateway: %s over TCP, %s over HTTP).",
		octetsText(size), says(tcp), says(overHTTP))
	return []string{transport, b.pipe(u, size), b.grouping(u), lifetime(u), b.size(u, size)}
}

func (b book) pipe(u Use, size int) string {
	trip := func(kind string) *Row { return b.near("layers", kind+": "+whatRoundTrip, gatewayTCP, size) }
	switch {
	case u.Many >= 0.5:
		rate := b.near("propagate", whatToReceivers, gatewayTCP, size)
		return fmt.Sprintf("Pipe: a propagate pipe, for %.0f %% of the messages go to several; one of %s reaches 8 receivers %s times a second through the gateway, and crosses the link once.",
			100*u.Many, octetsText(size), rateText(rate))
	case u.TwoWay && u.Messages < 20:
		kind := "BiDi pipe"
		if s, bidi := trip("socket"), trip(kind); s != nil && bidi != nil && s.Value < bidi.Value {
			kind = "socket"
		}
		return fmt.Sprintf("Pipe: a %s, reliable in both directions, at %.3g messages a second (%s for a message and its acknowledgement; unicast pipe %s, secure pipe %s).",
			kind, u.Messages, says(trip(kind)), says(trip("unicast pipe")), says(trip("secure pipe")))
	}
	return fmt.Sprintf("Pipe: a unicast pipe, at %.3g messages a second (%s without loss); where it must be secret a secure pipe (%s for a message and its acknowledgement).",
		u.Messages, says(b.near("pipe", whatSmooth, gatewayTCP, size)), says(trip("secure pipe")))
}

func rateText(r *Row) string {
	if r == nil {
		return "(not measured)"
	}
	return number(r.Value)
}

func (b book) grouping(u Use) string {
	var best *Row
	for i := range b {
		r := &b[i]
		if r.Bench == "query" && r.What == whatQuestions && r.Where == gatewayTCP && r.measured() && (best == nil || r.Value > best.Value) {
			best = r
		}
	}
	text := "One group with one gateway for each site"
	if best != nil && u.Questions > best.Value/2 {
		text = fmt.Sprintf("Several groups, each with fewer than %s questions a second", number(best.Value/2))
	}
	return fmt.Sprintf("Grouping: %s: %d peers ask %.3g questions a second, one gateway answers %s a second; a second rendezvous is for when the first dies, not for speed.",
		lower(text), u.Peers, u.Questions, rateText(best))
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }

// lifetime follows 7.2: as long as the service exists, published again before it ends.
func lifetime(u Use) string {
	life := u.Duration.Round(time.Minute)
	life = min(max(life, 10*time.Minute), 2*time.Hour)
	text := life.String()
	if life%time.Hour == 0 {
		text = fmt.Sprintf("%.0f h", life.Hours())
	} else if life < time.Hour {
		text = fmt.Sprintf("%.0f min", life.Minutes())
	}
	return fmt.Sprintf("Lifetime: %s for an advertisement, published again at half of it: as long as a service is there and no longer.", text)
}

func (b book) size(u Use, size int) string {
	var enough *Row
	for i := range b {
		r := &b[i]
		if r.Bench == "pipe" && r.What == whatShare && r.Where == gatewayTCP && r.measured() && r.Value >= 90 && (enough == nil || r.Size < enough.Size) {
			enough = r
		}
	}
	share := b.near("pipe", whatShare, gatewayTCP, size)
	text := fmt.Sprintf("Size: messages of %s as they are", octetsText(size))
	if enough != nil && size < enough.Size/2 {
		text = fmt.Sprintf("Size: on the LAN gather what can wait into messages of %s", octetsText(enough.Size))
	}
	if u.Largest > 64_000 {
		text += ", and nothing above 64 kB on a pipe (peers of 2.3 and later refuse it): a socket takes it"
	}
	return fmt.Sprintf("%s: of a message of %s %s is payload; between gateways the size matters little, for they join and compress what waits.", text, octetsText(size), says(share))
}
