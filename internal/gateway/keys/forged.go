package keys

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/seal"
)

const (
	forgedMost  = 64          // misses in one name, in forgedEvery
	forgedEvery = time.Minute // docs/decisions/trust.md
)

// forgeries are what members have sealed for all in another's name.
type forgeries struct {
	since time.Time // the first of these
	count int
	deaf  bool // what is for all is not looked at in this name
}

// enter counts one. deaf says that no more are looked at until the time is over.
func (f *forgeries) enter(now time.Time) (deaf bool) {
	if now.Sub(f.since) >= forgedEvery {
		f.since, f.count = now, 0
	}
	f.count++
	f.deaf = f.count >= forgedMost
	return f.deaf
}

// over ends the deafness.
func (f *forgeries) over(now time.Time) bool {
	if !f.deaf || now.Sub(f.since) < forgedEvery {
		return false
	}
	f.deaf = false
	return true
}

// isForged says that a member of the net has sealed for all in another's name: a peer's, or this node's.
func (k *Keys) isForged(now time.Time, id uint16, dg api.Datagram) {
	m, name, count := k.known[id], k.cfg.Name, uint64(1)
	if m.here {
		m.forged++
		name, count = m.Name, m.forged
	}
	if m.forgeries.enter(now) {
		k.opener.Mute(id, true)
	}
	if m.may(now, "forged", sayAgain) {
		k.cfg.Road.Note("error", "a member of the net seals datagrams to all in the name of another, and they are refused: find out who, and have the authority take it out of the roster",
			"in_the_name_of", name, "address", dg.Addr, "address_of", k.at(dg.Addr), "datagrams", count)
	}
}

// isGone says that a node which the roster does not name any more still sends.
func (k *Keys) isGone(now time.Time, id uint16, dg api.Datagram) {
	if m := k.known[id]; m != nil && m.may(now, "gone", sayAgain) {
		k.cfg.Road.Note("warn", "a node that the roster does not name any more, or names with another key, sends datagrams: they are refused",
			"id", id, "address", dg.Addr)
	}
}

// otherName says that datagrams in the name of a peer were not sealed by its key: with keys of single nodes that is no other
// net's key at the peer, but somebody else.
func (k *Keys) otherName(now time.Time, dg api.Datagram) {
	var one *member
	for _, m := range k.peers {
		if fits, _ := seal.Claims(dg.Data, m.ID); !fits {
			continue
		}
		if m.forgeries.over(now) {
			k.opener.Mute(m.ID, false)
		}
		if m.Known(dg.Addr) {
			one = m
			break
		}
		if one != nil {
			return // nobody knows in whose
		}
		one = m
	}
	if one == nil || k.orphaned(one, dg.Data) {
		return
	}
	one.foreign++
	one.strange++
	if one.strange >= keySigns && one.may(now, "name", sayAgain) {
		k.cfg.Road.Note("warn", "datagrams that say to be from a peer are not sealed with its key, and are refused: somebody else sends them, or the two go by different rosters or node keys",
			"in_the_name_of", one.Name, "address", dg.Addr, "address_of", k.at(dg.Addr), "datagrams", one.foreign)
	}
}

// orphaned says that a datagram which nobody can open may be sealed with the key of a start of this node that is over: a short one,
// of a peer that has not been heard since.
func (k *Keys) orphaned(m *member, datagram []byte) bool {
	_, boot := seal.Claims(datagram, m.ID)
	return k.forward != nil && m.LastHeard.IsZero() && boot == 0
}

// at names the peer that is believed to be at an address; "": none is.
func (k *Keys) at(addr netip.AddrPort) string {
	for _, m := range k.peers {
		if m.Addr == addr || m.Known(addr) {
			return m.Name
		}
	}
	return ""
}
