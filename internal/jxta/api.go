package jxta

import "aldis/internal/site"

// Element is one element of a JXTA message (wire 2.3): Namespace is "" (applications), "jxta", or any other; an
// encoding was never seen, and is kept; Signature is there if flag 4 was set. Data aliases the parsed packet.
type Element = site.Part

// Message is a binary message, with its address elements; elements are in order, duplicates are kept.
type Message struct {
	Version  uint8 // wire version octet, 0 or 1
	Elements []Element
}

// Welcome is the line that opens a TCP connection (wire 2.1).
type Welcome struct {
	Dest        string // address dialled, with service and parameter
	Public      string
	Peer        string // URN
	NoPropagate bool
	MsgVersion  uint8  // 3.0 only
	Version     string // "1.1" or "3.0"
}
