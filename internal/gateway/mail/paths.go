package mail

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Paths are the addresses of a peer, and the choice of one of them: docs/decisions/addresses.md.
type Paths struct {
	// Addr is where everything for the peer goes now. Invalid: no address is known.
	Addr netip.AddrPort

	configured netip.AddrPort // as the operator wrote it; invalid: left out
	heard      netip.AddrPort // where the newest authentic datagram came from, or a newer address from the operator
	proven     netip.AddrPort // the last that has shown that it receives
	failed     netip.AddrPort // was left because it did not answer, though the newest datagram had come from there
	wary       time.Time      // until then nothing goes to a new address while the proven one answers
	misses     int            // questions without an answer in a row
	shut       bool           // no address is learned: a direct session with the peer has ended
}

// wariness is how long a peer is not followed to new addresses after one of them did not answer and the old one did.
const wariness = 10 * time.Minute

// NewPaths knows the address that the operator wrote; the zero AddrPort: none.
func NewPaths(configured netip.AddrPort) Paths {
	return Paths{Addr: configured, configured: configured, heard: configured}
}

// Configured is the address that the operator wrote; invalid: none.
func (p *Paths) Configured() netip.AddrPort { return p.configured }

// Known says whether an address is one of the peer's.
func (p *Paths) Known(addr netip.AddrPort) bool { return slices.Contains(p.order(), addr) }

// Proven says whether Addr has shown that it receives.
func (p *Paths) Proven() bool { return p.Addr == p.proven }

// order is the addresses, first the one to use. None is there twice.
func (p *Paths) order() []netip.AddrPort {
	list := []netip.AddrPort{p.heard, p.proven, p.configured}
	if !p.wary.IsZero() && p.proven.IsValid() {
		list[0], list[1] = p.proven, p.heard
	}
	order := list[:0]
	for _, a := range list {
		if a.IsValid() && !slices.Contains(order, a) {
			order = append(order, a)
		}
	}
	return order
}

// Heard notes where the newest authentic datagram came from, and says whether everything goes there from now on, and
// did not before. anew: the peer has started anew with it, on another machine of its site perhaps: the record of its old addresses says
// nothing against new ones.
func (p *Paths) Heard(now time.Time, from netip.AddrPort, anew bool) (moved bool) {
	if p.shut {
		return false
	}
	if anew {
		p.failed = netip.AddrPort{}
	}
	if anew || !p.wary.IsZero() && !now.Before(p.wary) {
		p.wary = time.Time{}
	}
	p.heard = from
	if p.Addr == from {
		p.misses = 0
		return false
	}
	if !p.wary.IsZero() && p.Addr.IsValid() {
		return false
	}
	p.Addr, p.misses = from, 0
	return true
}

// Join takes the address of a connection with the peer. It is the only one: addresses learned before led to another connection.
func (p *Paths) Join(at netip.AddrPort) {
	*p = Paths{Addr: at, configured: p.configured, heard: at, proven: at}
}

// Missed notes that a question which went to Addr has no answer: the next goes to another address in turn, if there is
// one. An address that is proven is asked twice, for a datagram is lost now and then.
func (p *Paths) Missed() (changed bool) {
	order := p.order()
	if len(order) < 2 {
		return false
	}
	p.misses++
	turn := p.misses % len(order)
	if order[0] == p.proven {
		turn = max(0, p.misses%(len(order)+1)-1)
	}
	if p.Addr == p.heard && p.heard != p.proven && order[turn] != p.heard {
		p.failed = p.heard
	}
	changed = p.Addr != order[turn]
	p.Addr = order[turn]
	return changed
}

// Answered notes that the peer has a datagram that went to an address, and says whether that was not known. Where the old
// address answered, and not the new one, the peer has not moved: somebody else sent a datagram that it had sealed.
func (p *Paths) Answered(now time.Time, at netip.AddrPort) (news bool) {
	p.misses = 0
	if p.failed.IsValid() && p.failed != at && p.proven == at {
		p.heard, p.Addr, p.wary = at, at, now.Add(wariness)
	}
	p.failed = netip.AddrPort{}
	news = p.proven != at
	p.proven = at
	return news
}

// Write takes an address that the operator has written anew, and says whether it differs. It is newer than the learned ones, and
// not proven.
func (p *Paths) Write(configured netip.AddrPort) (changed bool) {
	if p.configured == configured {
		return false
	}
	p.configured = configured
	if configured.IsValid() {
		p.heard, p.Addr, p.failed, p.wary, p.misses = configured, configured, netip.AddrPort{}, time.Time{}, 0
	}
	return true
}

// Forget leaves only the address that the operator wrote.
func (p *Paths) Forget() { *p = NewPaths(p.configured) }

// Shut forgets learned addresses, and learns none until they are forgotten once more.
func Shut(p *Paths) {
	p.Forget()
	p.shut = true
}

// Append is the durable part: the learned addresses, and the one that the operator had written then.
func (p *Paths) Append(b []byte) []byte {
	text := make([]string, 3)
	for i, a := range []netip.AddrPort{p.heard, p.proven, p.configured} {
		text[i] = "-"
		if a.IsValid() {
			text[i] = a.String()
		}
	}
	return append(b, strings.Join(text, " ")...)
}

// Restore takes a record of Append, or one of version 0.1: the one address that it had learned. An address that the operator has written
// since is newer than the learned ones; changed says that it differs from the one in the record, if the record has one.
func (p *Paths) Restore(b []byte) (changed bool, err error) {
	fields := strings.Split(string(b), " ")
	if len(fields) != 1 && len(fields) != 3 {
		return false, ErrRecord
	}
	var list [3]netip.AddrPort
	for i, text := range fields {
		if text == "-" && len(fields) == 3 {
			continue
		}
		if list[i], err = netip.ParseAddrPort(text); err != nil {
			return false, ErrRecord
		}
	}
	p.heard, p.proven = list[0], list[1]
	changed = len(fields) == 3 && p.configured.IsValid() && p.configured != list[2]
	if changed {
		p.heard = p.configured
	}
	p.Addr = p.heard
	return changed, nil
}
