package xmpp

import (
	"encoding/json"
	"fmt"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// charter says who may do what in a room that the gateway serves itself (XEP-0045, 5). The first user of this site who enters a room is its
// owner. Roles that do not follow from a setting or a rank end when nobody is in the room any more.
type charter struct {
	Ranks    map[string]rank `json:",omitempty"` // by bare JID: ranks other than none
	Name     string          `json:",omitempty"`
	About    string          `json:",omitempty"`
	Password string          `json:",omitempty"`
	Closed   bool            `json:",omitempty"` // only members may enter
	Quiet    bool            `json:",omitempty"` // only members, and occupants who were given a voice, have one
	Hidden   bool            `json:",omitempty"` // it is in no list
	Fixed    bool            `json:",omitempty"` // only moderators set its subject
	Known    bool            `json:",omitempty"` // everybody sees real JIDs
	Kept     bool            `json:",omitempty"` // it is kept while nobody is in it
}

// rank is an affiliation.
type rank int8

const (
	outcast rank = iota - 1
	nobody
	aMember
	admin
	owner
)

var ranks = map[string]rank{"outcast": outcast, "none": nobody, "member": aMember, "admin": admin, "owner": owner}

// String is its word.
func (a rank) String() string {
	return [...]string{"outcast", "none", "member", "admin", "owner"}[a+1]
}

// role is the role of an occupant; zero: it follows from the rank.
type role uint8

const (
	byRank role = iota
	visitor
	participant
	moderator
)

var roles = map[string]role{"visitor": visitor, "participant": participant, "moderator": moderator}

// String is its word.
func (o role) String() string { return [...]string{"none", "visitor", "participant", "moderator"}[o] }

const (
	mostRanks    = 500  // of one room
	mostCharters = 1000 // that are kept
	mostOwned    = 50   // rooms of one owner
	mostWord     = 1000 // octets of a setting
)

// governed is the charter of a room that the gateway serves itself; nil: the gateway does not serve it, or nobody owns it.
func governed(r *rooms, m *room) *charter {
	if m == nil || r.own == nil || m.home != r.cfg.ID {
		return nil
	}
	return r.charters[m.name]
}

// found makes a user the owner of a room without one; false: it has an owner, or a bound on charters is reached.
func found(r *rooms, m *room, bare string) bool {
	if r.own == nil || m.home != r.cfg.ID || r.charters[m.name] != nil || len(r.charters) >= mostCharters {
		return false
	}
	owned := 0
	for _, c := range r.charters {
		if c.rank(bare) == owner {
			owned++
		}
	}
	if owned >= mostOwned {
		return false
	}
	r.charters[m.name] = &charter{Ranks: map[string]rank{bare: owner}}
	r.charters[m.name].save(r, m)
	return true
}

func (c *charter) save(r *rooms, m *room) {
	value, err := json.Marshal(c)
	if err != nil {
		panic("xmpp: memory of plain values: " + err.Error())
	}
	r.remember(keyCharter+m.name, value)
}

// repeal ends the charter of a room.
func repeal(r *rooms, m *room) {
	if governed(r, m) != nil {
		delete(r.charters, m.name)
		r.remember(keyCharter+m.name, nil)
	}
}

func restoreCharter(r *rooms, name string, value []byte) error {
	c := &charter{}
	if err := json.Unmarshal(value, c); err != nil || r.own == nil {
		return err
	}
	for _, a := range c.Ranks {
		if a < outcast || a > owner {
			return fmt.Errorf("the rank %d", a)
		}
	}
	if c.Ranks == nil {
		c.Ranks = map[string]rank{}
	}
	r.charters[name] = c
	return nil
}

// bareOf is the real address of a member; "": it speaks for other adapters.
func bareOf(r *rooms, k member) string {
	switch {
	case k.site == metSite:
		return ""
	case k.site == r.cfg.ID:
		return jid{local: k.user, domain: r.cfg.Domain}.bare()
	}
	return jid{local: k.user, domain: r.cfg.domainOf(k.site)}.bare()
}

// rank is the rank of a user.
func (c *charter) rank(bare string) rank { return c.Ranks[bare] }

// role is the role of an occupant.
func (c *charter) role(r *rooms, k member, o *occupant) role {
	bare := bareOf(r, k)
	switch a := c.rank(bare); {
	case a >= admin:
		return moderator
	case o.role != byRank:
		return o.role
	case c.Quiet && a < aMember && bare != "":
		return visitor
	}
	return participant
}

// bars says why a user may not enter, as the condition of an error; "": the user may. Far users send no password.
func (c *charter) bars(bare, password string) string {
	a := c.rank(bare)
	switch {
	case a == outcast:
		return "forbidden"
	case c.Closed && a < aMember:
		return "registration-required"
	case c.Password != "" && a < owner && password != c.Password:
		return "not-authorized"
	}
	return ""
}

// itemOf is the element with which a room describes a member to one client here.
func itemOf(r *rooms, m *room, k member, o *occupant, to string) stanza.Element {
	c := governed(r, m)
	if c == nil {
		return stanza.New(nsRoomUser, "item", "affiliation", nobody.String(), "role", participant.String())
	}
	real := ""
	if viewer, ok := parseJID(to); ok && (c.Known || c.rank(viewer.bare()) >= admin || c.looks(r, m, viewer)) {
		if real = bareOf(r, k); len(o.jids) > 0 && k.site == r.cfg.ID && real != "" {
			real = o.jids[0]
		}
	}
	return stanza.New(nsRoomUser, "item", "affiliation", c.rank(bareOf(r, k)).String(), "role", c.role(r, k, o).String(), "jid", real)
}

// looks says whether an occupant here is a moderator.
func (c *charter) looks(r *rooms, m *room, viewer jid) bool {
	k := member{r.cfg.ID, viewer.local}
	o := m.members[k]
	return o != nil && c.role(r, k, o) == moderator
}

// barred says whether a far user may not be in a room here, and if so tells the user's site.
func barred(r *rooms, m *room, k member) bool {
	c := governed(r, m)
	if c == nil || k.site == metSite {
		return false
	}
	why := c.bars(bareOf(r, k), "")
	if why == "" {
		return false
	}
	r.trouble.Count("barred")
	tellOut(r, m, k, code.Removal{Reason: code.ReasonOf(why), User: k.user})
	return true
}

// tellOut tells the site of a far user that it is not in the room.
func tellOut(r *rooms, m *room, k member, why code.Removal) {
	r.out.Carry = append(r.out.Carry, site.Carry{Sites: []uint16{k.site}, Message: site.Message{Published: true, Topic: roomTopic + r.scope(m),
		Parts: []site.Part{{Data: why.Append(nil)}}}})
}

// silences says why an occupant may not send a message to a room, as the condition of an error; "": it may.
func silences(r *rooms, m *room, k member, o *occupant, s *code.Message) string {
	c := governed(r, m)
	if c == nil {
		return ""
	}
	is := c.role(r, k, o)
	if is == visitor && s.Get(code.Private) == "" || s.Body == "" && c.Fixed && is != moderator {
		return "forbidden"
	}
	return ""
}

// expel takes an occupant out of a room here. All others see the item and why, which may be nil. codes are status codes of
// XEP-0045, the first for far sites.
func expel(r *rooms, now time.Time, m *room, k member, item stanza.Element, why *stanza.Element, codes ...string) {
	o := m.members[k]
	if o == nil {
		return
	}
	o.end = []stanza.Element{item}
	if why != nil {
		o.end = append(o.end, *why)
	}
	if k.site != r.cfg.ID {
		status := uint16(307)
		if len(codes) > 0 {
			fmt.Sscan(codes[0], &status)
		}
		r.trouble.Count("put_out")
		tellOut(r, m, k, code.Removal{Reason: code.ReasonOf("gone"), Status: status, User: k.user})
		r.leave(now, m, k, codes)
		return
	}
	r.forgetHere(now, m, k, codes)
}
