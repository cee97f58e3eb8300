package jxtabridge

import (
	"time"

	"aldis/internal/jxta"
)

// ConnID names one TCP connection of the LAN, or one poll of a peer that speaks HTTP, for the life of the process;
// never reused, never 0.
type ConnID uint64

// Event is what the LAN or the link tells the bridge: one of the types below.
type Event interface{ bridgeEvent() }

type (
	// Opened: a peer dialled in. Remote is "ip:port". The bridge answers with its own welcome at once, but not over
	// HTTP, which has none: there the connection is a poll.
	Opened struct {
		Conn   ConnID
		Remote string
		HTTP   bool
	}
	// Welcomed: the peer's welcome line, parsed; over HTTP made of what the poll names: the peer, and in Dest the
	// address dialled.
	Welcomed struct {
		Conn    ConnID
		Welcome jxta.Welcome
	}
	// Received: the body of one package: a bare binary message and, from signed 2.7 peers, its trailer.
	// The bridge keeps no reference to Body after Step returns.
	Received struct {
		Conn ConnID
		Body []byte
	}
	// Heard: the body of one multicast datagram, as of Received. Remote is "ip:port" and proves nothing. The bridge
	// keeps no reference to Body.
	Heard struct {
		Remote string
		Body   []byte
	}
	// Quiet: nothing more can be written to this connection, what was not written is lost; the peer may still be heard
	// through it. That is a peer over HTTP between two polls, whose messages come by themselves (wire 3.1). It stays
	// so until Closed, soon after the next poll has opened.
	Quiet struct{ Conn ConnID }
	// Closed: the connection is gone, whoever closed it. Nothing more comes from it.
	Closed struct{ Conn ConnID }
	// Written: every body up to and including the one with this Token was handed to the peer's socket.
	Written struct {
		Conn  ConnID
		Token uint64
	}

	// FarItem: a sister gateway's site has, or no longer has, this.
	FarItem struct {
		Site uint16
		Item Item
	}
	// FarPayload: a message from a peer of another site, to be re-created for the local peers.
	// Token comes back in Output.Done when no local peer waits for it any more; until then the
	// gateway keeps the message in its journal and hands it in again after a restart.
	FarPayload struct {
		Site    uint16
		Token   uint64
		Payload Payload
	}
	// SiteLost: all that is known of this site is void (the node left the net's configuration, or lost its store).
	SiteLost struct{ Site uint16 }
	// Carried: the far site has stored the payload with this Token or, Refused, will never get it.
	Carried struct {
		Token   uint64
		Refused bool
	}
)

func (Opened) bridgeEvent()     {}
func (Welcomed) bridgeEvent()   {}
func (Received) bridgeEvent()   {}
func (Heard) bridgeEvent()      {}
func (Quiet) bridgeEvent()      {}
func (Closed) bridgeEvent()     {}
func (Written) bridgeEvent()    {}
func (FarItem) bridgeEvent()    {}
func (FarPayload) bridgeEvent() {}
func (SiteLost) bridgeEvent()   {}
func (Carried) bridgeEvent()    {}

// ItemKind says what an Item is.
type ItemKind uint8

const (
	ItemPeer ItemKind = 1 + iota // a peer that holds a lease here
	ItemAdv                      // an advertisement that a local peer published
	ItemPipe                     // an input pipe that a local peer has open
	ItemAsk                      // what local peers look for: far sites tell what fits, though nobody there uses it
)

// Item is one piece of a site's state, as sister gateways replicate it. Two items with the same Key are versions of
// one thing; the newer replaces the older. Items are values: the receiver of one never changes Doc.
type Item struct {
	Kind  ItemKind
	Group string // unique value of the group: "jxta-NetGroup", "uuid-...02"
	Peer  string // unique value of the owner: "cbid-...03"
	ID    string // ItemAdv: unique value of the advertisement, or "h-<hex>" where it has none; ItemPipe: pipe's unique value; ItemAsk: "attribute=pattern"
	// Sub is the discovery type of an ItemAdv or ItemAsk (0 peer, 1 group, 2 other) and the PipeType of an ItemPipe.
	Sub uint8
	// Doc is XML: the advertisement itself (ItemAdv), or what has to be known of the peer to rebuild its
	// peer advertisement (ItemPeer: no route, no signature, no root certificate). Empty for ItemPipe.
	Doc    []byte
	Signed bool // ItemPeer: speaks the signed 2.7 format
	// Expires is when an ItemAdv dies by itself; zero for those that live until withdrawn.
	Expires time.Time
	// Gone withdraws the item with this Key; only Kind, Group, Peer, ID and Sub matter then.
	Gone bool
	// Home keeps the item from all sites but those in To, and those that hold it already: those are told of changes.
	// Both are of this site's own items alone and do not cross the link.
	Home bool
	To   []uint16
}

// Key is the same for all versions of one thing of one site.
func (it Item) Key() string {
	return string([]byte{byte(it.Kind), it.Sub}) + it.Group + "\x00" + it.Peer + "\x00" + it.ID
}

// PipeType is the type of a pipe as ItemPipe.Sub carries it.
const (
	PipePropagate     uint8 = 1 // JxtaPropagate
	PipeUnicast       uint8 = 2 // JxtaUnicast
	PipeUnicastSecure uint8 = 3 // JxtaUnicastSecure
)

// Payload is an application's message without everything a hop adds (jxta-ghosts.md section 3).
type Payload struct {
	// Wire: a propagate pipe's message, for every listener of Pipe; Dst, Service and Param are empty.
	// Otherwise routed to Dst: Service and Param are those of the router message's Dest.
	Wire    bool
	Group   string // unique value
	Pipe    string // unique value; Wire only
	Src     string // unique value of the origin
	Dst     string // unique value of the destination
	Service string
	Param   string
	// MsgID is the JxtaWireHeader's MsgId. It does not cross the link: the far gateway makes one of its own that is
	// the same whenever it delivers this message again.
	MsgID    string
	Elements []jxta.Element
	// Precedence, Key and Expires are the gateway's, by the operator's rules (package sched). Key is not 0 for a message
	// that a later one of the same key may replace: 24 bits of Supersedes' hash, which alone crosses the link. Expires,
	// when it is not sent any more (zero: never), stays here too.
	Precedence uint8
	Key        uint32
	Supersedes string
	Expires    time.Time
	// Token of a Carry to one site asks for Carried. It does not cross the link and ends with the process; 0: not asked.
	Token uint64
}

// Carry asks the gateway to take a payload into custody for the named sites.
type Carry struct {
	Sites   []uint16
	Payload Payload
}

// Send hands one body (message and trailer) to a connection. A non-zero Token asks for Written.
type Send struct {
	Conn ConnID
	Body []byte
	// Sign is the source to sign for (jxta.SignMessage) before Body goes out; empty: it goes as it is.
	Sign  string
	Token uint64
	// Confirms: the peer may forget what this acknowledges, so it must not go before the records of earlier Steps are
	// durable: the block may have come twice, the first time over another connection.
	Confirms bool
}

// WelcomeOut is the line that answers Opened.
type WelcomeOut struct {
	Conn ConnID
	Line jxta.Welcome
}

// Output is what one Step wants done. Order within each slice matters; the gateway commits what it must before it acts.
type Output struct {
	Welcome []WelcomeOut
	Send    []Send
	Shout   []Shout // by multicast
	Dial    []Dial
	Close   []ConnID
	Gates   []Gate
	Items   []Item   // the local site's state changed
	Carry   []Carry  // to other sites
	Done    []uint64 // Tokens of FarPayload that are finished
	// Remember asks the gateway to keep Value under Key in the journal across restarts (leases, the bridge's own
	// tables); an empty Value forgets it. Handed back to New at the next start.
	Remember []Memory
	Notes    []Note
	Deadline time.Time // zero: nothing to wait for
}

// Memory is one record that the bridge wants to find again after a restart.
type Memory struct {
	Key   string
	Value []byte
}

// Note is something that the operator's log should say; the bridge itself logs nothing.
type Note struct {
	Level string // "debug", "info", "warn", "error"
	Text  string
	Attrs []any // slog style: key, value, key, value
}
