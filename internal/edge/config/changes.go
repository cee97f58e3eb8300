package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// Change is one difference between two configurations.
type Change struct {
	Key  string `json:"key"`            // as in the file: link.listen, [[filter]]
	From string `json:"from,omitempty"` // "": it was not there, or it is secret
	To   string `json:"to,omitempty"`
	// Restart says that a running gateway cannot apply the change: the next start does.
	Restart bool `json:"restart,omitempty"`
	// Effect is what the change causes at once, beyond the new value.
	Effect string `json:"effect,omitempty"`
}

// String is the change as a line for people.
func (c Change) String() string {
	if c.Effect != "" {
		return c.difference() + "; " + c.Effect
	}
	return c.difference()
}

func (c Change) difference() string {
	switch {
	case c.From == "" && c.To == "":
		return c.Key + ": changed"
	case c.From == "":
		return fmt.Sprintf("%s: %s is new", c.Key, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: %s is gone", c.Key, c.From)
	}
	return fmt.Sprintf("%s: %s, was %s", c.Key, c.To, c.From)
}

// Changes lists what differs in next, in the order of the keys in docs/configure.md. The file's own path is no difference.
func (c *Config) Changes(next *Config) (list []Change) {
	parts := schema(next)
	if !reflect.DeepEqual(peerless(c, next), peerless(next, c)) {
		list = append(list, Change{Key: "[[link]]", From: count(c.More), To: count(next.More), Restart: true})
	}
	for i, was := range schema(c) {
		switch is := parts[i]; {
		case was.name == "link.peer":
			list = append(list, peerChanges(c.Link.Peers, next.Link.Peers, next.Link.TLS)...)
		case was.rules != nil && !sameRules(was.rules, is.rules):
			list = append(list, Change{Key: "[[" + was.name + "]]", From: count(was.rules), To: count(is.rules), Restart: !was.live})
		case was.rules == nil:
			list = append(list, keyChanges(was, is)...)
		}
	}
	return list
}

// Live lists the keys and sections that a reload applies to a running gateway, in the order of docs/configure.md.
func Live() (names []string) {
	for _, p := range schema(&Config{}) {
		if p.live {
			names = append(names, "[["+p.name+"]]")
		}
		for _, k := range p.keys {
			if k.live && k.read != nil {
				names = append(names, p.name+"."+k.name)
			}
		}
	}
	return names
}

// keyChanges are the changes of one section. A derived value is compared only if the key above it has the same value.
func keyChanges(was, is part) (list []Change) {
	same := true // whether the last key has
	for i, k := range was.keys {
		next := is.keys[i]
		if k.to == nil || k.read == nil && !same {
			continue
		}
		equal := reflect.DeepEqual(k.value(), next.value())
		c := Change{Key: k.name, Restart: !k.live}
		if k.read != nil {
			c.Key, same = was.name+"."+k.name, equal
		}
		if !k.hidden {
			c.From, c.To = k.String(), next.String()
		}
		if !equal {
			list = append(list, c)
		}
	}
	return list
}

// plain is a value for people; the zero value is "".
func plain(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v)
	case []string:
		return strings.Join(v, ", ")
	}
	if reflect.ValueOf(v).IsZero() {
		return ""
	}
	return fmt.Sprint(v)
}

// PeerKey is the Key of the Change of a peer.
func PeerKey(id uint16) string { return fmt.Sprintf("[[link.peer]] %d", id) }

// peerless are the bearers behind the first, without those of their peers that come to or go from the first as well.
func peerless(c, other *Config) (list []Link) {
	stays := func(p Peer) bool {
		return slices.ContainsFunc(c.Link.Peers, func(q Peer) bool { return q.ID == p.ID }) && slices.ContainsFunc(other.Link.Peers, func(q Peer) bool { return q.ID == p.ID })
	}
	for _, l := range c.More {
		l.Peers = slices.DeleteFunc(slices.Clone(l.Peers), func(p Peer) bool { return !stays(p) })
		list = append(list, l)
	}
	return list
}

// peerChanges names each [[link.peer]] that came, went or changed. Their order does not matter. Over TLS a changed address needs a restart.
func peerChanges(old, next []Peer, tls bool) (list []Change) {
	with := func(peers []Peer, id uint16) string {
		i := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == id })
		if i < 0 {
			return ""
		}
		address := "no address"
		if peers[i].Address.IsValid() {
			address = peers[i].Address.String()
		}
		if peers[i].Shore {
			address += ", the shore"
		}
		if peers[i].Via != "" {
			address += ", via " + peers[i].Via
		}
		return fmt.Sprintf("%q at %s", peers[i].Name, address)
	}
	relayed := func(p Peer) bool { return p.Via != "" }
	first := !slices.ContainsFunc(old, relayed) && slices.ContainsFunc(next, relayed) // only a start can set up relays
	var ids []uint16
	for _, p := range slices.Concat(old, next) {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if from, to := with(old, id), with(next, id); from != to {
			list = append(list, Change{Key: PeerKey(id), From: from, To: to, Restart: first || tls && dialled(old, id) != dialled(next, id)})
		}
	}
	return list
}

// dialled is the address of a peer.
func dialled(peers []Peer, id uint16) (at netip.AddrPort) {
	for _, p := range peers {
		if p.ID == id {
			at = p.Address
		}
	}
	return at
}

// sameRules says whether two slices have the same rules. A rule that only moved to another line is the same.
func sameRules(a, b any) bool {
	old, next := reflect.ValueOf(a), reflect.ValueOf(b)
	if old.Len() != next.Len() {
		return false
	}
	for i := range old.Len() {
		if !reflect.DeepEqual(lineless(old.Index(i)), lineless(next.Index(i))) {
			return false
		}
	}
	return true
}

func lineless(rule reflect.Value) any {
	r := reflect.New(rule.Type()).Elem()
	r.Set(rule)
	if line := r.FieldByName("Line"); line.IsValid() {
		line.SetInt(0)
	}
	return r.Interface()
}

func count(rules any) string {
	switch n := reflect.ValueOf(rules).Len(); n {
	case 0:
		return ""
	case 1:
		return "1 rule"
	default:
		return fmt.Sprintf("%d rules", n)
	}
}
