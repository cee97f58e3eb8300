package gateway

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/entropy"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// Groups with a key of their own: docs/decisions/groups.md.

// Buckets of the journal, besides those of groups.
const (
	bucketGroupKeys = "group-keys"   // name -> keys.GroupKeys.Standing
	bucketUnread    = "group-unread" // tag, origin, number of a message -> 1: its key is not here; 4 octets: nor are the names with this hash
	bucketKeyless   = "group-unsaid" // order -> octets of the group's name, name, envelope in full
)

// Bounds.
const (
	mostKeyless = 64   // messages that wait until they can be sealed
	mostUnread  = 1024 // messages of one origin that cannot be read yet
	// partingTime is how long a node that has left a group with a key stays among the group's neighbours: its last message may need repair.
	partingTime = 4 * time.Minute
	// sureFor is how long a member seals after a neighbour has said that it knows no more; after sureAsks it asks a neighbour again. So a
	// member that has left reads nothing a minute later, not even messages of a member that does not know that it left.
	sureFor  = 50 * time.Second
	sureAsks = 30 * time.Second
	sureTry  = 20 * time.Second // between two of these questions
	// missing is how long a key may be on its way.
	missing = 10 * time.Minute
)

// groupSecrets are the keys of groups, and the messages that wait for one.
type groupSecrets struct {
	of       map[entropy.Tag]*keys.GroupKeys
	standing map[string][]byte // of the journal, by name
	parting  map[entropy.Tag]time.Time
	keyless  []keyless
	last     uint64 // order of the last of keyless
	unread   map[unread]lack
	lost     uint64                    // messages for which no key came, of this node too
	at       time.Time                 // when unread is looked through
	asked    map[entropy.Tag]time.Time // when a neighbour was last asked whether it knows more
}

// keyless is a message of this node that waits until it can be sealed. It has an end.
type keyless struct {
	order uint64
	*site.Message
}

// unread is a message that cannot be read yet.
type unread struct {
	tag entropy.Tag
	entropy.Name
}

// lack is what is not here: its key, or the names with a hash.
type lack struct {
	since time.Time // of a key; never: this node has joined again since
	names bool
	ref   uint32
}

func newGroupSecrets() groupSecrets {
	return groupSecrets{of: map[entropy.Tag]*keys.GroupKeys{}, standing: map[string][]byte{}, parting: map[entropy.Tag]time.Time{}, unread: map[unread]lack{}, asked: map[entropy.Tag]time.Time{}}
}

func (u unread) key() []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(u.tag)), u.Origin)
	return binary.BigEndian.AppendUint64(b, u.Number)
}

// restoreKeyless reads a record of bucketKeyless.
func (s *groupSecrets) restoreKeyless(key, value []byte) error {
	if len(key) != 8 || len(value) == 0 || len(value) <= int(value[0]) {
		return mail.ErrRecord
	}
	m, _, _, err := envelope.Parse(value[1+value[0]:], nil)
	if err != nil || m.Payload == nil {
		return mail.ErrRecord
	}
	m.Payload.Open = string(value[1 : 1+value[0]])
	s.last = max(s.last, binary.BigEndian.Uint64(key))
	s.keyless = append(s.keyless, keyless{binary.BigEndian.Uint64(key), m.Payload})
	return nil
}

// restore reads a record of bucketUnread.
func (s *groupSecrets) restore(key, value []byte) error {
	if len(key) != 12 {
		return mail.ErrRecord
	}
	u := unread{entropy.Tag(binary.BigEndian.Uint16(key)), entropy.Name{Origin: binary.BigEndian.Uint16(key[2:]), Number: binary.BigEndian.Uint64(key[4:])}}
	if s.unread[u] = (lack{}); len(value) == 4 {
		s.unread[u] = lack{names: true, ref: binary.BigEndian.Uint32(value)}
	}
	s.at = time.Unix(0, 0)
	return nil
}

// leaves says that this node has left a group, and stays only until its neighbours know.
func (s *groupSecrets) leaves(tag entropy.Tag) bool { return !s.parting[tag].IsZero() }

// octets is how many octets a message of a group grows by when it is sealed.
func (s *groupSecrets) octets(tag entropy.Tag) int {
	if s.of[tag] == nil {
		return 0
	}
	return keys.SealedOctets
}

// wait keeps a message until it can be sealed, at most for its lifetime, and says whether it does.
func (gs *groups) wait(m site.Message, expires time.Time) bool {
	s := &gs.secrets
	m.Expires = expires
	full, err := envelope.Append(append([]byte{byte(len(m.Open))}, m.Open...), envelope.Message{Payload: &m}, 0, true)
	if err != nil {
		return false
	}
	if len(s.keyless) == mostKeyless {
		gs.unsay(s.keyless[0], false)
		s.keyless = s.keyless[1:]
	}
	s.last++
	s.keyless = append(s.keyless, keyless{s.last, &m})
	gs.g.Record(bucketKeyless, binary.BigEndian.AppendUint64(nil, s.last), full)
	return true
}

// unsay takes a message that has waited out of the journal; not said, it is lost.
func (gs *groups) unsay(m keyless, said bool) {
	gs.g.Record(bucketKeyless, binary.BigEndian.AppendUint64(nil, m.order), nil)
	if !said {
		gs.secrets.lost++
	}
}

// due is when turnSecrets has something to do; zero: never.
func (s *groupSecrets) due() (at time.Time) {
	for _, k := range s.of {
		at = due.Earliest(at, k.Due())
	}
	for _, end := range s.parting {
		at = due.Earliest(at, end)
	}
	for _, m := range s.keyless {
		at = due.Earliest(at, m.Expires)
		if asked := s.asked[entropy.TagOf(m.Open)]; !asked.IsZero() {
			at = due.Earliest(at, asked.Add(sureTry))
		}
	}
	return due.Earliest(at, s.at)
}

var errNoChance = errors.New("a group with a key of its own needs a source of chance")

// hide gives a group its keys, if it is one with a key of its own.
func (gs *groups) hide(tag entropy.Tag, name string) error {
	s, c := &gs.secrets, gs.configured(name)
	delete(s.parting, tag)
	if gs.ordered[name] != 2 && (c == nil || !c.Key) {
		return nil
	}
	if gs.g.cfg.Trust.Chance == nil {
		return errNoChance
	}
	if s.of[tag] == nil {
		s.of[tag] = gs.g.keys.NewGroupKeys(gs.g.cfg.Trust.Chance, s.standing[name])
	}
	return nil
}

// parts tells a group with a key that this node leaves it, and forgets its keys; false: the group has none, or was told long enough ago.
func (gs *groups) parts(now time.Time, tag entropy.Tag, name string) bool {
	s := &gs.secrets
	if end := s.parting[tag]; !end.IsZero() {
		if due.Reached(now, end) {
			delete(s.parting, tag)
			return false
		}
		return true
	}
	k := s.of[tag]
	if k == nil {
		return false
	}
	gs.utter(now, gs.item(now, tag, entropy.MostLife, entropy.MostHops), k.Leave())
	delete(s.of, tag)
	delete(s.standing, name)
	gs.g.Record(bucketGroupKeys, []byte(name), nil)
	for u := range s.unread {
		if u.tag == tag {
			gs.read(u)
		}
	}
	gs.sayKeyless(now) // those of this group are lost
	s.parting[tag] = now.Add(partingTime)
	return true
}

// sure says that a neighbour has lately told this node that it knows no more of a group: of no member that has left, and of no other key.
func (gs *groups) sure(now time.Time, tag entropy.Tag) bool {
	at := gs.engine.Agreed(tag)
	return !at.IsZero() && now.Sub(at) < sureFor
}

// assure asks a neighbour for this again, when it is due.
func (gs *groups) assure(now time.Time, tag entropy.Tag) {
	s, at := &gs.secrets, gs.engine.Agreed(tag)
	if (at.IsZero() || now.Sub(at) >= sureAsks) && now.Sub(s.asked[tag]) >= sureTry {
		s.asked[tag] = now
		gs.engine.Check(now, tag)
	}
}

// seal is a message as it goes to its group; false: no key is in force, or this node is not sure of it.
func (gs *groups) seal(now time.Time, it *entropy.Item, body []byte) ([]byte, bool) {
	if k := gs.secrets.of[it.Tag]; k != nil {
		if gs.assure(now, it.Tag); !gs.sure(now, it.Tag) {
			return nil, false
		}
		return k.Seal(it.Number, gs.signed(it, nil), body)
	}
	return body, true
}

// unseal is the content of a message; false: it is not for local peers, or cannot be read yet.
func (gs *groups) unseal(now time.Time, it *entropy.Item, body []byte) ([]byte, bool) {
	s := &gs.secrets
	k := s.of[it.Tag]
	if k == nil {
		return body, !s.leaves(it.Tag)
	}
	h, err := k.Hear(now, it.Origin, it.Number, gs.signed(it, nil), body)
	switch {
	case err != nil:
		gs.g.Drop("group_unreadable")
	case h.Lacking:
		gs.await(now, it, lack{since: now})
	case h.Changed:
		gs.keep(it.Tag)
	}
	if h.NewKey {
		gs.keyed(now, it.Tag)
	}
	return h.Content, h.Content != nil
}

// await notes that a message cannot be read yet.
func (gs *groups) await(now time.Time, it *entropy.Item, l lack) {
	s, waiting := &gs.secrets, 0
	for u := range s.unread {
		if u.Origin == it.Origin {
			waiting++
		}
	}
	if waiting >= mostUnread {
		gs.lose(l)
		return
	}
	u, value := unread{it.Tag, it.Name}, []byte{1}
	if l.names {
		value = binary.BigEndian.AppendUint32(nil, l.ref)
	}
	s.unread[u], s.at = l, due.Earliest(s.at, now.Add(missing))
	gs.g.Record(bucketUnread, u.key(), value)
}

// lose counts a message that will not be read.
func (gs *groups) lose(l lack) {
	if l.names {
		gs.g.Drop("group_unnamed")
	} else {
		gs.secrets.lost++
	}
}

func (gs *groups) keep(tag entropy.Tag) {
	gs.g.Record(bucketGroupKeys, []byte(gs.names[tag]), gs.secrets.of[tag].Standing())
}

// read forgets that a message cannot be read yet.
func (gs *groups) read(u unread) {
	delete(gs.secrets.unread, u)
	gs.g.Record(bucketUnread, u.key(), nil)
}

// keyed tries again, with a new key, to read and to send messages that it could not.
func (gs *groups) keyed(now time.Time, tag entropy.Tag) {
	gs.readable(now, func(u unread, l lack) bool { return u.tag == tag && !l.names })
	gs.sayKeyless(now)
}

// readable tries again to read messages.
func (gs *groups) readable(now time.Time, which func(u unread, l lack) bool) {
	var list []unread
	for u, l := range gs.secrets.unread {
		if which(u, l) {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b unread) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Number, b.Number))
	})
	for _, u := range list {
		it, held := gs.engine.Item(u.tag, u.Name)
		if gs.read(u); held {
			gs.open(now, it)
		}
	}
}

// sayKeyless tries again to send messages that wait until they can be sealed.
func (gs *groups) sayKeyless(now time.Time) {
	waiting := gs.secrets.keyless
	gs.secrets.keyless = nil
	for _, m := range waiting {
		tag := entropy.TagOf(m.Open)
		k := gs.secrets.of[tag]
		if k == nil || gs.names[tag] != m.Open || !m.Expires.After(now) { // nil: the group has no key of its own any more, or this node left it
			gs.unsay(m, false)
			continue
		}
		if gs.assure(now, tag); gs.sure(now, tag) && k.Mark() != "" {
			gs.unsay(m, gs.say(now, m.Message, false))
		} else {
			gs.secrets.keyless = append(gs.secrets.keyless, m)
		}
	}
}

// missed looks through messages that cannot be read. If one whose key is not here was sent long after this node joined, the node joins again.
func (gs *groups) missed(now time.Time) {
	s := &gs.secrets
	for u, l := range s.unread {
		it, held := gs.engine.Item(u.tag, u.Name)
		switch {
		case !held || s.of[u.tag] == nil && !l.names:
			gs.read(u)
			gs.lose(l)
		case l.names:
		case l.since.IsZero(): // of an earlier run
			s.unread[u] = lack{since: now}
		case l.since != never && !now.Before(l.since.Add(missing)):
			if said := it.Expires.Add(-entropy.LifeOf(it.Life)); said.After(s.of[u.tag].Since().Add(missing)) {
				s.of[u.tag].Missed()
			}
			s.unread[u] = lack{since: never}
		}
	}
	if s.at = (time.Time{}); len(s.unread) > 0 {
		s.at = now.Add(time.Minute)
	}
}

// turnSecrets sends this node's messages about keys, and drops groups whose parting is over.
func (gs *groups) turnSecrets(now time.Time) {
	s := &gs.secrets
	if due.Reached(now, s.at) {
		gs.missed(now)
	}
	if len(s.keyless) > 0 {
		gs.sayKeyless(now)
	}
	for tag, end := range s.parting {
		if due.Reached(now, end) {
			delete(s.parting, tag)
			gs.engine.Leave(now, tag, true)
			delete(gs.names, tag)
		}
	}
	for _, tag := range gs.engine.Tags() {
		k := s.of[tag]
		if k == nil {
			continue
		}
		if k.Joins(now) {
			it := gs.item(now, tag, entropy.MostLife, entropy.MostHops)
			gs.utter(now, it, k.Join(now, it.Number))
			gs.keep(tag)
		}
		next := gs.item(now, tag, entropy.MostLife, entropy.MostHops)
		says := k.Make(now, next.Number, gs.room())
		for _, body := range says {
			gs.utter(now, gs.item(now, tag, entropy.MostLife, entropy.MostHops), body)
		}
		if len(says) > 0 {
			gs.keep(tag)
			gs.keyed(now, tag)
		}
	}
}
