package gateway_test

// What a script shows of its world (script_test.go).

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
	"aldis/internal/site"
)

// stepped shows what a Step of a node did, at the end of it.
func (p *player) stepped(n *sim.Node, out api.Output) {
	at := sim.Epoch
	if p.w != nil { // else the world is being made
		at = p.w.Now
		for ; p.notes < len(p.w.Notes); p.notes++ {
			p.printf("%s\n", p.w.Notes[p.notes])
		}
	}
	for ; p.got[n.ID] < len(n.Site.Got); p.got[n.ID]++ {
		g := n.Site.Got[p.got[n.ID]]
		data := g.Payload.Parts[0].Data
		text, _, _ := strings.Cut(string(data), "\x00")
		p.show(at, n.Name, "is handed a message of %s, %s, %d octets: %q", nameOf(g.From), g.Payload.Precedence, len(data), text)
	}
	for from := uint16(1); int(from) <= len(p.ears); from++ {
		p.learned(at, n, from, n.Site.Far[from])
	}
	for _, d := range out.Datagrams {
		if p.air {
			p.datagram(at, n, d)
		} else {
			p.frames(n, d)
		}
	}
}

func (p *player) show(at time.Time, node, format string, args ...any) {
	p.printf("%8.3f %s %s\n", at.Sub(sim.Epoch).Seconds(), node, fmt.Sprintf(format, args...))
}

// learned shows which items of a site a node has learned and forgotten since the last call.
func (p *player) learned(at time.Time, n *sim.Node, from uint16, items map[string]site.Item) {
	if p.far[n.ID] == nil {
		p.far[n.ID] = map[uint16]map[string]site.Item{}
	}
	old := p.far[n.ID][from]
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, has := items[key]; !has {
			p.show(at, n.Name, "forgets %s's document %s", nameOf(from), old[key].ID)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		if it := items[key]; !reflect.DeepEqual(it, old[key]) {
			p.show(at, n.Name, "learns %s's document %s: %q", nameOf(from), it.ID, it.Doc)
		}
	}
	p.far[n.ID][from] = maps.Clone(items)
}

// ears hear every datagram that goes to a node, those too that the air loses.
type ears map[uint16]*seal.Opener

func newEars(nodes int) ears {
	e := ears{}
	for id := uint16(1); id <= uint16(nodes); id++ {
		peers := map[uint16]seal.PeerState{}
		for other := uint16(1); other <= uint16(nodes); other++ {
			if other != id {
				peers[other] = seal.PeerState{}
			}
		}
		e[id] = seal.NewOpener(seal.Key{1, 2, 3}, id, seal.Incarnation{}, peers)
	}
	return e
}

// receiverOf is the node that a datagram is for; 0: all.
func receiverOf(d api.Datagram) uint16 {
	if ip := d.Addr.Addr().As4(); ip[0] == 10 {
		return uint16(ip[3])
	}
	return 0
}

// open is the content of a datagram, and one node that can open it; 0 when none can.
func (e ears) open(from uint16, d api.Datagram) (by uint16, long bool, frames []frame.Frame) {
	for id, opener := range e {
		if to := receiverOf(d); id == from || to != 0 && to != id {
			continue
		}
		_, body, info, err := opener.Open(d.Data)
		if err != nil {
			continue
		}
		by, long, frames = id, info.Long, nil
		for len(body) > 0 {
			f, rest, err := frame.Parse(body)
			if err != nil {
				return 0, long, nil
			}
			frames, body = append(frames, f), rest
		}
	}
	return by, long, frames
}

// frames says what is in a datagram.
func (p *player) frames(from *sim.Node, d api.Datagram) string {
	by, long, frames := p.ears.open(from.ID, d)
	if by == 0 {
		return "cannot be opened"
	}
	text := "short form"
	if long {
		text = "long form"
	}
	for _, f := range frames {
		text += ", " + describe(f, from.ID, by)
	}
	return text
}

func describe(f frame.Frame, from, to uint16) string {
	switch f := f.(type) {
	case frame.Data:
		text := fmt.Sprintf("data %d (%d)", f.Number, len(f.Body))
		if f.Prompt {
			text += " prompt"
		}
		if f.Rides {
			text += fmt.Sprintf(" with acknowledgement %d", f.Cumulative)
		}
		return text
	case frame.Ack:
		return fmt.Sprintf("acknowledgement %d %08b", f.Cumulative, f.Bitmap)
	case frame.PMul:
		pdus, err := pmul.ParseCompact(f.Body, pmul.NodeID(from), pmul.NodeID(to))
		if err != nil {
			return err.Error()
		}
		kinds := []string{}
		for _, pdu := range pdus {
			kinds = append(kinds, pdu.Kind().String())
		}
		return fmt.Sprintf("%s (%d)", strings.Join(kinds, " and "), len(f.Body))
	case frame.NORM:
		return fmt.Sprintf("norm (%d)", len(f.Body))
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", f), "frame."))
}

func (p *player) datagram(at time.Time, from *sim.Node, d api.Datagram) {
	to := "all"
	if id := receiverOf(d); id != 0 {
		to = nameOf(id)
	}
	p.show(at, from.Name, "-> %s %d octets: %s", to, len(d.Data)+profile.IPUDPOctets, p.frames(from, d))
}

// status shows the fields that are not zero.
func (p *player) status(n *sim.Node) {
	s := n.GW.Status(p.w.Now)
	if s.Silence.On {
		p.printf("silent: owes %d acknowledgements, %d messages, %d items\n", s.Silence.Acks, s.Silence.Messages, s.Silence.Items)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Dropped)) {
		p.printf("dropped %s %d\n", reason, s.Dropped[reason])
	}
	for _, peer := range s.Peers {
		p.printf("%s:", peer.Name)
		v := reflect.ValueOf(peer)
		for _, f := range reflect.VisibleFields(v.Type()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if _, ofDistance := reflect.TypeFor[api.Quality]().FieldByName(f.Name); ofDistance { // it goes by the profile, and distance_test.go has it
				continue
			}
			if value := v.FieldByIndex(f.Index); f.IsExported() && !f.Anonymous && !value.IsZero() && !slices.Contains([]string{"id", "name", "address", "configured_address", "start", "last_heard", "link_since", "known_since", "queue", "delays"}, name) {
				p.printf(" %s %v", name, value)
			}
		}
		p.printf("\n")
	}
}
