package keys

import (
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// A node that the roster names since later than others brings them that roster itself: they do not know its key before
// (docs/decisions/rollover.md).

const (
	introFirst = 6           // of so many HELLOs without an answer every other one is introduced
	introEvery = 8           // then every eighth, with the whole roster: the peer may lack the one that a change is of; on a shared channel all of the first eight
	introPause = time.Second // for so long after an introduction that came to nothing none is looked at
)

// introductions are the own ones and the one that is coming.
type introductions struct {
	own    [2][]byte // of the newest roster: as a change of the rosters before this node, and the whole
	serial uint32    // of own
	coming seal.Intro
	deaf   time.Time // none is looked at before
}

// Introduce is the introduction that goes before a HELLO to a peer, in datagrams of at most so many octets; nil: the peer was heard, or
// the node is in the first roster of the network, or it was introduced lately. tries is how many HELLOs went without an answer.
func (k *Keys) Introduce(peer uint16, tries, most int) [][]byte {
	o := k.Rosters
	m := o.known[peer]
	if k.cfg.Trust == nil || m == nil || m.gone || m.keeps.newest != 0 || k.Incarnation(peer) != 0 || !k.introduces(tries) {
		return nil
	}
	r := o.list[0]
	self, _ := r.Node(k.cfg.ID)
	its, _ := r.Node(peer)
	if self.Since < 2 || its.Since >= self.Since || len(o.alike()) > 1 {
		return nil
	}
	if o.intro.serial != r.Serial {
		e, err := r.Epoch(k.cfg.ID, k.cfg.Trust.Own)
		if err != nil {
			return nil
		}
		o.intro.serial, o.intro.own = r.Serial, [2][]byte{r.Introduction(self.Since-1, e.Secret), r.Introduction(0, e.Secret)}
	}
	whole := 0
	if tries%introEvery == introFirst {
		whole = 1
	}
	return seal.IntroParts(o.intro.own[whole], most)
}

// introduces says that an introduction goes before a HELLO that follows so many others without an answer.
func (k *Keys) introduces(tries int) bool {
	switch {
	case tries%introEvery == introFirst:
		return true
	case k.cfg.Shared:
		return tries < introEvery
	}
	return tries < introFirst && tries%2 == 0
}

// Introduced takes a part of an introduction; true: with it a newer roster is in force, and Names may have changed for some peers.
func (k *Keys) Introduced(now time.Time, dg api.Datagram) bool {
	o := k.Rosters
	if k.cfg.Trust == nil || now.Before(o.intro.deaf) {
		k.cfg.Services.Drop("introduction")
		return false
	}
	b := o.intro.coming.Add(dg.Data, roster.MaxOctets)
	if b == nil {
		return false
	}
	change, err := roster.Introduced(b, k.cfg.ID, k.cfg.Trust.Own, o.common.Serial)
	if errors.Is(err, roster.ErrOld) {
		return false // it is for others
	}
	var r *roster.Roster
	if err == nil {
		r, err = o.read(change)
	}
	old := o.common
	if err == nil {
		err = o.take(r, "a new node")
	}
	if err == nil {
		if self, _ := r.Node(k.cfg.ID); self.Relay {
			o.farther(now, r.ChangeFrom(old).Added)
		}
		return true
	}
	o.intro.deaf = now.Add(introPause)
	k.cfg.Services.Drop("introduction")
	if k.known[k.cfg.ID].may(now, "introduction", sayAgain) {
		k.cfg.Services.Note("warn", "a new node brought a roster that was rejected; nothing has changed", "address", dg.Addr, "error", err)
	}
	return false
}

// farther has the newest roster told to those peers that have no bearer to a node that it adds: that node cannot introduce itself to them.
func (o *Rosters) farther(now time.Time, added []uint16) {
	for _, m := range o.peers {
		self, _ := o.common.Node(m.ID)
		for _, id := range added {
			n, _ := o.common.Node(id)
			if id != m.ID && !slices.ContainsFunc(n.Ways, func(w roster.Way) bool { _, on := self.On(w.Bearer); return on && w.Addr.IsValid() }) {
				m.lags = now
			}
		}
	}
}

// Enrolled are the nodes that the rosters of a configuration and a journal name, by id, each as the newest roster that names it has it;
// gone nodes too, as long as a roster that names them is kept, so that messages that wait for them are ended. records are those of
// BucketRoster.
func Enrolled(t *Trust, records [][]byte) (list []roster.Node, since uint32) {
	rosters := []*roster.Roster{t.Roster}
	for _, value := range records {
		r, err := roster.Parse(value)
		if err == nil && r.Network == t.Roster.Network && r.Verify(t.Authority) == nil {
			rosters = append(rosters, r)
		}
	}
	slices.SortStableFunc(rosters, func(a, b *roster.Roster) int { return int(int64(b.Serial) - int64(a.Serial)) })
	for _, r := range rosters {
		for _, n := range r.Nodes {
			switch {
			case n.Public == t.Own.Public():
				since = max(since, n.Since)
			case !slices.ContainsFunc(list, func(is roster.Node) bool { return is.ID == n.ID }):
				list = append(list, n)
			}
		}
	}
	slices.SortFunc(list, func(a, b roster.Node) int { return int(a.ID) - int(b.ID) })
	return list, since
}

// Newest is the serial of the roster that this node goes by; 0: all share a key.
func (o *Rosters) Newest() uint32 {
	if o.common == nil {
		return 0
	}
	return o.common.Serial
}

// Enrolled are the other nodes that the newest roster names, by id, and since when it names this one.
func (o *Rosters) Enrolled() (list []roster.Node, since uint32) {
	if o.common == nil {
		return nil, 0
	}
	return Enrolled(&Trust{Own: o.cfg.Trust.Own, Authority: o.cfg.Trust.Authority, Roster: o.common}, nil)
}
