package field

import (
	"context"
	"fmt"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/fleet"
)

// fleetSession is a direct session, with what was on the air before it. Its Octets are those since then.
type fleetSession struct {
	fleet.Session
	before map[string]int64
}

// redial gives a site another address on a bearer, or its first one again. The kernel forgets the translations of an address that goes.
func (f *fleetPlay) redial(c *fleetCrew, b int) error {
	if f.bearers[b].profile.Shared {
		return nil // nothing is translated there
	}
	at, addr := [2]int{c.index, b}, bearerAddr(b, c.index)
	if f.moved[at] = !f.moved[at]; f.moved[at] {
		addr = redialAddr(b, c.index)
	}
	return f.hubs[b].Redial(c.name, addr)
}

// sessions notes which direct sessions the gateways have. One that does not answer keeps those that it had.
func (f *fleetPlay) sessions(ctx context.Context) {
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
				f.keeps(c.name, b.Name, b.Direct.Sessions)
			}
		}
	}
}

// keeps notes the direct sessions of a site on a bearer.
func (f *fleetPlay) keeps(site, bearer string, list []api.DirectSession) {
	now := *seconds(time.Since(f.zero).Round(time.Millisecond))
	for _, s := range f.kept {
		if s.Site == site && s.Bearer == bearer && s.EndS == 0 && !slices.ContainsFunc(list, func(x api.DirectSession) bool { return x.Peer == s.Peer }) {
			f.tell(fmt.Sprintf("%s: the direct session with %s on %s is over, which has carried %d octets", site, s.Peer, bearer, s.Spared))
			s.EndS, s.Octets = now, f.since(bearer, s.before)
		}
	}
	for _, x := range list {
		i := slices.IndexFunc(f.kept, func(s *fleetSession) bool {
			return s.Site == site && s.Bearer == bearer && s.EndS == 0 && s.Peer == x.Peer
		})
		if i < 0 {
			i = len(f.kept)
			f.kept = append(f.kept, &fleetSession{fleet.Session{Bearer: bearer, Site: site, Peer: x.Peer, AtS: now}, f.since(bearer, nil)})
			f.tell(fmt.Sprintf("%s has a direct session with %s on %s", site, x.Peer, bearer))
		}
		f.kept[i].Spared = x.Spared
	}
}

// since is what each site has sent on a bearer since it had sent so much.
func (f *fleetPlay) since(bearer string, before map[string]int64) map[string]int64 {
	octets := map[string]int64{}
	f.accounts(func(a fleet.Account) {
		if a.Bearer == bearer {
			octets[a.Site] = a.Octets - before[a.Site]
		}
	})
	return octets
}

// allSessions are the direct sessions of the play.
func (f *fleetPlay) allSessions() (list []fleet.Session) {
	for _, s := range f.kept {
		if s.EndS == 0 {
			s.Octets = f.since(s.Bearer, s.before)
		}
		list = append(list, s.Session)
	}
	return list
}
