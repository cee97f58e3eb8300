package field

import (
	"context"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/fleet"
)

// fleetSessions are the direct sessions of a play, as the gateways' status shows them.
type fleetSessions []*fleetSession

// fleetSession is a direct session, with what was on the air before it. Its Octets are those since then.
type fleetSession struct {
	fleet.Session
	before map[string]int64
}

// redial gives a site another address on a bearer, or its first one again. The kernel forgets the translations of an address that goes.
func redial(f *fleetPlay, c *fleetCrew, b int) error {
	if f.bearers[b].profile.Shared {
		return nil // nothing is translated there
	}
	at, addr := [2]int{c.index, b}, bearerAddr(b, c.index)
	if f.moved[at] = !f.moved[at]; f.moved[at] {
		addr = redialAddr(b, c.index)
	}
	return f.hubs[b].Redial(c.name, addr)
}

// look notes which direct sessions the gateways have. One that does not answer keeps those that it had.
func (l *fleetSessions) look(ctx context.Context, f *fleetPlay) {
	for _, c := range f.crews {
		if !c.joined {
			continue
		}
		st, err := c.leads().status(ctx)
		if err != nil {
			continue
		}
		for _, b := range st.Bearers {
			if b.Direct != nil {
				l.note(f, c.name, b.Name, b.Direct.Sessions)
			}
		}
	}
}

// note notes the direct sessions of a site on a bearer.
func (l *fleetSessions) note(f *fleetPlay, site, bearer string, has []api.DirectSession) {
	now := *seconds(time.Since(f.zero).Round(time.Millisecond))
	for _, s := range *l {
		if s.Site == site && s.Bearer == bearer && s.EndS == 0 && !slices.ContainsFunc(has, func(x api.DirectSession) bool { return x.Peer == s.Peer }) {
			f.tell(fmt.Sprintf("%s: the direct session with %s on %s is over, which has spared %d octets", site, s.Peer, bearer, s.Spared))
			s.EndS, s.Octets = now, sentSince(f, bearer, s.before)
		}
	}
	for _, x := range has {
		i := slices.IndexFunc(*l, func(s *fleetSession) bool {
			return s.Site == site && s.Bearer == bearer && s.EndS == 0 && s.Peer == x.Peer
		})
		if i < 0 {
			i = len(*l)
			*l = append(*l, &fleetSession{fleet.Session{Bearer: bearer, Site: site, Peer: x.Peer, AtS: now}, sentSince(f, bearer, nil)})
			f.tell(fmt.Sprintf("%s has a direct session with %s on %s", site, x.Peer, bearer))
		}
		(*l)[i].Spared = x.Spared
	}
}

// sentSince is what each site has sent on a bearer since it had sent so much.
func sentSince(f *fleetPlay, bearer string, before map[string]int64) map[string]int64 {
	octets := map[string]int64{}
	f.accounts(func(a fleet.Account) {
		if a.Bearer == bearer {
			octets[a.Site] = a.Octets - before[a.Site]
		}
	})
	return octets
}

// all are the direct sessions of the play, for its result.
func (l *fleetSessions) all(f *fleetPlay) (list []fleet.Session) {
	for _, s := range *l {
		if s.EndS == 0 {
			s.Octets = sentSince(f, s.Bearer, s.before)
		}
		list = append(list, s.Session)
	}
	return list
}
