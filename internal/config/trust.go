package config

import (
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// Trust is the keys of single nodes: this one's, and a roster with everybody's that an authority has signed.
type Trust struct {
	RosterFile, NodeKeyFile string
	Roster                  *roster.Roster
	Own                     *seal.SigningKey
	Authority               seal.PublicKey
}

// On says that each node has its own key; else all share Link.Key.
func (t *Trust) On() bool { return t.Roster != nil }

// readKeys reads the net's key, or roster, node's key and authority.
func (r *reader) readKeys(link section) {
	l := &r.cfg.Link
	keys := []string{"roster", "node_key", "authority"}
	var given []string
	for _, key := range keys {
		if _, ok := link.get(key); ok {
			given = append(given, key)
		}
	}
	_, shared := link.get("key_file")
	switch {
	case len(given) == 0:
		if keyFile := link.text("key_file", true); keyFile != "" {
			l.KeyFile = r.resolve(keyFile)
			var err error
			if l.Key, err = LoadKey(l.KeyFile); err != nil {
				link.fail("key_file", "%v", err)
			}
		}
		return
	case shared:
		link.fail("key_file", "goes not with %s: either all share a key, or each node has its own; leave out one of both", given[0])
		return
	}
	t := Trust{RosterFile: r.resolve(link.text("roster", true)), NodeKeyFile: r.resolve(link.text("node_key", true))}
	authority := link.text("authority", true)
	if t.RosterFile == "" || t.NodeKeyFile == "" || authority == "" {
		return
	}
	var err error
	if t.Own, err = LoadNodeKey(t.NodeKeyFile); err != nil {
		link.fail("node_key", "%v", err)
	}
	if t.Authority, err = roster.ParseAuthorityPublic(authority); err != nil {
		link.fail("authority", "%v: gateway keys authority show prints it", err)
		return
	}
	if t.Roster, err = LoadRoster(t.RosterFile); err != nil {
		link.fail("roster", "%v", err)
		return
	}
	if err = t.Roster.Verify(t.Authority); err != nil {
		link.fail("roster", "%s: %v; link.authority is %s", t.RosterFile, err, t.Authority.Fingerprint())
		return
	}
	l.Trust = t
	if t.Own != nil {
		r.checkOwn(link, &t)
	}
}

// checkOwn says what is wrong with this node's line of the roster.
func (r *reader) checkOwn(link section, t *Trust) {
	id := r.cfg.Node.ID
	n, ok := t.Roster.Node(id)
	switch {
	case id == 0: // said already
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

// checkMember says what is wrong with a peer that a roster should name. A peer without a name gets that of the roster.
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
	if _, named := s.get("name"); !named {
		p.Name = n.Name
	}
}
