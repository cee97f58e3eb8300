package trace

import "fmt"

// Drops are packets that were to be captured and are not in the file, by the file's own counts (pcapng).
type Drops struct {
	Interface int64 `json:"interface"` // by the network card or its driver
	System    int64 `json:"system"`    // by the operating system, because the capture program was too slow
	Between   int64 `json:"between"`   // by either, from counts in single packets for the time before them
}

func (d Drops) all() int64 { return max(d.Interface+d.System, d.Between) }

// losses is the part that the capture lacks of the packets that it should have.
type losses struct {
	drops      Drops
	cutPackets int64
	cutOctets  int64
	beheaded   int64 // cut within their headers
	firstCut   int64 // number of a packet
}

// cut notes a packet with octets that are not in the file.
func (l *losses) cut(number int64, octets int) {
	if l.cutPackets == 0 {
		l.firstCut = number
	}
	l.cutPackets++
	l.cutOctets += int64(max(octets, 0))
}

// CaptureLoss is the part of the packets on the wire that is not in the capture.
type CaptureLoss struct {
	CutPackets int64 `json:"packets_cut"` // by the snap length, or in a file that was cut itself
	CutOctets  int64 `json:"octets_cut"`
	Dropped    Drops `json:"dropped,omitzero"`
}

// Dropped gives the Analyser the counts of dropped packets in the capture's file.
func (a *Analyser) Dropped(d Drops) { a.lost.drops = d }

// lacks notes the losses of the capture, with a remedy.
func (a *Analyser) lacks() {
	l := a.lost
	if l.cutPackets > 0 {
		within := ""
		if l.beheaded > 0 {
			within = fmt.Sprintf(", %d of them within their headers, which do not count", l.beheaded)
		}
		a.problem("%d packets are cut by the snap length, packet %d first%s: %d octets are missing. Capture whole packets: tcpdump -s 0", l.cutPackets, l.firstCut, within, l.cutOctets)
	}
	if d := l.drops; d.all() > 0 {
		where := ""
		if d.Interface+d.System > 0 {
			where = fmt.Sprintf(" (%d by the interface, %d by the system)", d.Interface, d.System)
		}
		a.problem("%d packets were dropped while capturing%s: the file says so. A larger buffer helps: tcpdump -B 65536", d.all(), where)
	}
	if m := a.missed; m.places > 0 {
		a.problem("packets are missing: %d octets of TCP payload in %d places were acknowledged and are not in the capture", m.octets, m.places)
	}
	link := a.link != nil && a.link.r.Datagrams > 0
	switch {
	case a.totals.packets > 0 || link || a.cot != nil:
	case a.packets == 0:
		a.problem("nothing found: the capture has no packets. The interface, or the filter with which it was made, may be the wrong one")
	case a.ofOthers > 0:
		a.problem("nothing found: none of %d packets with TCP or UDP is from or to %s; the addresses are %s", a.ofOthers, a.opt.Edge, top(a.strangers.ends, func(name string, _ int64) string { return name }))
	default:
		a.problem("nothing found: none of %d packets is IPv4 or IPv6 with TCP%s", a.packets, a.strangers.were())
	}
}

// remarks are caveats for a reader of the figures, although nothing is missing.
func (a *Analyser) remarks() (list []string) {
	if f := a.fragments.FragmentCounts; f.Whole > 0 {
		list = append(list, fmt.Sprintf("%d IP packets came in fragments and were put together; each counts once, with the octets of all its fragments", f.Whole))
	}
	if f := a.fragments.FragmentCounts; f.Incomplete > 0 {
		list = append(list, fmt.Sprintf("of %d IP packets only some fragments are there, packet %d first: others were lost on the way or not captured, and each loss costs the whole packet. They do not count", f.Incomplete, f.First))
	}
	if n := a.edges(); n > 1 && !a.opt.Edge.IsValid() {
		list = append(list, fmt.Sprintf("%d peers dialled and carry the application's octets: tables 5.8 to 5.10 show %s alone, but count its octets against those of all. --edge ADDR counts one peer alone", n, a.guessEdge()))
	}
	if a.totals.packets > 0 && len(a.kinds) == 0 && a.cot == nil && (a.link == nil || a.link.r.Datagrams == 0) {
		list = append(list, fmt.Sprintf("no JXTA was found in %d octets of %d TCP connections", a.read.stream, a.connCount))
	}
	return list
}

// edges counts the peers that dialled, have application octets and do not pass on those of others.
func (a *Analyser) edges() (n int) {
	for addr := range a.opened {
		if h := a.hosts[addr]; h != nil && h.in+h.out > 0 && !a.passesOn(addr) {
			n++
		}
	}
	return n
}
