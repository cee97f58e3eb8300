package roster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A roster of the second form says where its nodes are reached, whether they relay, and since when each is as it is. A
// roster has this form once one of its nodes has a way or relays; older versions of the gateway do not read it.

// Way is a bearer on which a node can be reached.
type Way struct {
	Bearer string         // its name, the same at all nodes; "": the bearer without a name
	Addr   netip.AddrPort // invalid: learned from the node's first authentic datagram
}

// MaxWays is how many bearers a node has at the most.
const MaxWays = 4

const (
	wayLen  = 1 + MaxName + 1 + 16 + 2
	dateLen = 5 + 1
)

// Dated says that the roster has the second form: a change of it serves members of several serials (AppendChange).
func (r *Roster) Dated() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Since != 0 })
}

func (r *Roster) purpose() string {
	if r.Dated() {
		return "aldis roster 2"
	}
	return purpose
}

// On is the node's way on a bearer, by its name; false: it has none there.
func (n Node) On(bearer string) (Way, bool) {
	i := slices.IndexFunc(n.Ways, func(w Way) bool { return w.Bearer == bearer })
	if i < 0 {
		return Way{}, false
	}
	return n.Ways[i], true
}

// says says whether two rosters agree on a node, apart from its secret.
func (n Node) says(other Node) bool {
	return n.ID == other.ID && n.Name == other.Name && n.Public == other.Public && n.Relay == other.Relay && slices.Equal(n.Ways, other.Ways)
}

// date sets since when each node is as it is, if the roster has the second form.
func (r *Roster) date(old *Roster) {
	form := old != nil && old.Dated()
	for i, n := range r.Nodes {
		form = form || n.Relay || len(n.Ways) > 0
		r.Nodes[i].Since = 0
	}
	if !form {
		return
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Since = r.Serial
		if old == nil {
			continue
		}
		if was, ok := old.Node(n.ID); ok && was.says(*n) {
			n.Since = was.Since
			if was.Since == 0 { // it is not known since when
				n.Since = old.Serial
			}
		}
	}
}

// checkWays returns the mistake in the fields of the second form, if they have one.
func (r *Roster) checkWays() error {
	type place struct {
		bearer string
		addr   netip.AddrPort
	}
	form, at := r.Dated(), map[place]uint16{}
	for _, n := range r.Nodes {
		switch {
		case !form && (n.Relay || len(n.Ways) > 0), form && (n.Since == 0 || n.Since > r.Serial):
			return wrong("node %d is as it is since roster %d", n.ID, n.Since)
		case len(n.Ways) > MaxWays:
			return wrong("node %d has %d bearers, at most %d", n.ID, len(n.Ways), MaxWays)
		}
		for i, w := range n.Ways {
			switch {
			case w.Bearer != "" && !proper(w.Bearer):
				return wrong("a bearer of node %d has a name that is none", n.ID)
			case slices.ContainsFunc(n.Ways[:i], func(o Way) bool { return o.Bearer == w.Bearer }):
				return wrong("node %d has the bearer %q twice", n.ID, w.Bearer)
			case !w.Addr.IsValid():
				continue
			case w.Addr.Port() == 0 || w.Addr.Addr().IsUnspecified() || w.Addr.Addr().Zone() != "" || w.Addr.Addr().Is4In6():
				return wrong("node %d cannot be reached at %v", n.ID, w.Addr)
			case slices.ContainsFunc(n.Ways[:i], func(o Way) bool { return o.Addr == w.Addr }):
				return wrong("two bearers of node %d have the address %v", n.ID, w.Addr)
			case at[place{w.Bearer, w.Addr}] != 0:
				return wrong("node %d has the address %v of node %d on the bearer %q", n.ID, w.Addr, at[place{w.Bearer, w.Addr}], w.Bearer)
			}
			at[place{w.Bearer, w.Addr}] = n.ID
		}
	}
	return nil
}

// Words are a roster's words on a node besides name and key, in the form of --node.
func (n Node) Words() string {
	var list []string
	if n.Relay {
		list = append(list, "relay")
	}
	for _, w := range n.Ways {
		list = append(list, "on="+w.String())
	}
	return strings.Join(list, " ")
}

// dated is the part of a node's line that the second form adds.
func (n Node) dated() string {
	switch words := n.Words(); {
	case n.Since == 0:
		return ""
	case words == "":
		return fmt.Sprintf(" since=%d", n.Since)
	default:
		return fmt.Sprintf(" since=%d %s", n.Since, words)
	}
}

// nameless is the bearer without a name.
const nameless = "-"

// String is the form that ParseWay reads.
func (w Way) String() string {
	name := cmp.Or(w.Bearer, nameless)
	if !w.Addr.IsValid() {
		return name
	}
	return name + "@" + w.Addr.String()
}

// ParseWay reads BEARER or BEARER@HOST:PORT; "-" is the bearer without a name.
func ParseWay(text string) (w Way, err error) {
	name, addr, has := strings.Cut(text, "@")
	if name == "" {
		return w, errField
	}
	if name != nameless {
		w.Bearer = name
	}
	if has {
		w.Addr, err = netip.ParseAddrPort(addr)
	}
	return w, err
}

// Read takes the words after a node's key in --node: relay, and on=BEARER or on=BEARER@HOST:PORT for each of its bearers.
func (n *Node) Read(words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case word == "relay" && !n.Relay:
			n.Relay = true
		case key == "on":
			w, err := ParseWay(value)
			if err != nil {
				return fmt.Errorf("%q is not on=BEARER or on=BEARER@HOST:PORT", word)
			}
			n.Ways = append(n.Ways, w)
		default:
			return fmt.Errorf("%q is neither relay nor on=BEARER", word)
		}
	}
	return nil
}

// read takes the words after a node's name in a roster.
func (n *Node) read(words []string) error {
	if len(words) == 0 {
		return nil
	}
	value, is := strings.CutPrefix(words[0], "since=")
	since, err := strconv.ParseUint(value, 10, 32)
	if !is || err != nil || since == 0 {
		return errField
	}
	n.Since = uint32(since)
	return n.Read(words[1:])
}
