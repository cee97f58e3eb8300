package config

import (
	"fmt"
	"slices"

	"aldis/internal/edge/keyfile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// Trust is the keys of single nodes: this node's own, and a roster of everybody's that an authority has signed.
type Trust struct {
	RosterFile, NodeKeyFile string
	Roster                  *roster.Roster
	Own                     *seal.SigningKey
	Authority               seal.PublicKey
}

// On says that each node has its own key; otherwise all share Link.Key.
func (t *Trust) On() bool { return t.Roster != nil }

// Enrolled are the other nodes whose bearers the roster names: they need no [[link.peer]].
func (l *Link) Enrolled() (list []roster.Node) {
	if !l.Trust.On() {
		return nil
	}
	for _, n := range l.Trust.Roster.Nodes {
		if len(n.Ways) > 0 && (l.Trust.Own == nil || n.Public != l.Trust.Own.Public()) {
			list = append(list, n)
		}
	}
	return list
}

// trustKeys go together and replace key_file.
var trustKeys = []string{"roster", "node_key", "authority"}

// readKeys reads either the network's key, or the roster and the node's own key, from the files that [link] names.
func (r *reader) readKeys(link section) {
	l := &r.cfg.Link
	i := slices.IndexFunc(trustKeys, link.has)
	switch {
	case i < 0 && !link.has("key_file"):
		link.missing("key_file", "")
	case i < 0 && l.KeyFile != "":
		var err error
		if l.Key, err = keyfile.LoadKey(l.KeyFile); err != nil {
			link.fail("key_file", "%v", err)
		}
	case i < 0: // reported already
	case link.has("key_file"):
		link.fail("key_file", "goes not with %s: either all share a key, or each node has its own; leave out one of both", trustKeys[i])
	default:
		for _, key := range trustKeys {
			if !link.has(key) {
				link.missing(key, "")
			}
		}
		if t := &l.Trust; t.RosterFile != "" && t.NodeKeyFile != "" && link.has("authority") {
			r.readTrust(link, t)
		}
	}
}

func (r *reader) readTrust(link section, t *Trust) {
	var err error
	if t.Own, err = keyfile.LoadNodeKey(t.NodeKeyFile); err != nil {
		link.fail("node_key", "%v", err)
	}
	if t.Authority == (seal.PublicKey{}) {
		return // reported already
	}
	list, err := keyfile.LoadRoster(t.RosterFile)
	if err == nil {
		if wrong := list.Verify(t.Authority); wrong != nil {
			err = fmt.Errorf("%s: %w; link.authority is %s", t.RosterFile, wrong, t.Authority.Fingerprint())
		}
	}
	if err != nil {
		link.fail("roster", "%v", err)
		return
	}
	t.Roster = list
	if t.Own != nil {
		r.checkOwn(link, t)
	}
}

// checkOwn reports mistakes in this node's line of the roster.
func (r *reader) checkOwn(link section, t *Trust) {
	id := r.cfg.Node.ID
	n, ok := t.Roster.Node(id)
	switch {
	case id == 0: // reported already
	case !ok:
		link.fail("roster", "%s does not name this node, %d: have the authority add it: gateway keys roster add --node '%d,NAME,%s'",
			t.RosterFile, id, id, roster.NodePublic(t.Own.Public()))
	case n.Public != t.Own.Public():
		link.fail("node_key", "%s has the key %s, and the roster names %s for node %d: bring the right one, or have the authority name this one: gateway keys roster add --node '%d,%s,%s'",
			t.NodeKeyFile, t.Own.Public().Fingerprint(), n.Public.Fingerprint(), id, id, n.Name, roster.NodePublic(t.Own.Public()))
	default:
		if _, err := roster.Ring(id, t.Own, t.Roster); err != nil {
			link.fail("roster", "%s: %v", t.RosterFile, err)
		}
	}
}

// checkMember reports a peer that the roster does not have. A peer without a name gets that of the roster.
func (r *reader) checkMember(s section, p *Peer) {
	t := &r.cfg.Link.Trust
	if !t.On() || p.ID == 0 {
		return
	}
	n, ok := t.Roster.Node(p.ID)
	if !ok {
		s.fail("id", "the roster, serial %d, does not name node %d: take the peer out, or have the authority add it", t.Roster.Serial, p.ID)
		return
	}
	if !s.has("name") {
		p.Name = n.Name
	}
}
