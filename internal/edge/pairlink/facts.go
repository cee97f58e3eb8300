package pairlink

import (
	"fmt"
	"net/netip"
	"time"
)

// protocol is the version of the protocol between the machines of a site.
const protocol = 2

// mostApart is the most by which the clocks of the two may differ. Far gateways refuse a start that is numbered a day ahead.
const mostApart = time.Hour

// Fact is a setting that must be the same on both machines.
type Fact struct{ Name, Value string }

// Way is an address at which local peers connect, by its key in the configuration.
type Way struct {
	Key string
	At  netip.AddrPort
}

// refusal says why the other machine is refused; "": it is accepted.
func (l *Link) refusal(g greeting) string {
	own, h := l.m.Stored(), g.Hello
	if g.Member != nil {
		return "it is a member of [cluster], and this machine one of two: give both the same sections"
	}
	switch by := time.Duration(l.cfg.Wall().Unix()-g.Clock) * time.Second; {
	case g.Protocol != protocol:
		return fmt.Sprintf("it speaks version %d of the protocol between the two, this machine %d: install the same version of the gateway", g.Protocol, protocol)
	case l.conn != nil && l.conn.hello.Machine != h.Machine:
		return "it is a third machine: this one is connected with another already, and a site has two"
	case h.Machine == own.Machine:
		return "it has a copy of this machine's data directory: give it an empty one"
	case by.Abs() > mostApart:
		return fmt.Sprintf("its clock and this machine's differ by %v: set the wrong one", by.Abs())
	case h.Epoch == 0 && own.Epoch == 0 && h.Whole && own.Whole:
		return "both machines have a journal from before they were two: keep the one that counts, and move node.data_dir of the other away"
	}
	return l.differs(g)
}

// differs describes a fact that is different on another machine; "": there is none.
func (l *base) differs(g greeting) string {
	theirs := map[string]string{}
	for _, f := range g.Facts {
		theirs[f.Name] = f.Value
	}
	for _, f := range l.cfg.Facts {
		if theirs[f.Name] != f.Value {
			return fmt.Sprintf("it differs in %s: %q there, %q here", f.Name, theirs[f.Name], f.Value)
		}
	}
	return ""
}
