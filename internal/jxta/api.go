package jxta

// Element is one element of a JXTA message (jxta-wire.md 2.3). Data aliases the parsed packet.
type Element struct {
	Namespace string // "" (applications), "jxta", or any other
	Name      string
	Type      string // MIME type; "" means application/octet-stream and is not written
	Encoding  string // never seen; kept
	Data      []byte
	Signature *Element // the element's own signature element, if flag 4 was set
}

// Message is a binary message without addresses taken out; elements in order, duplicates kept.
type Message struct {
	Version  uint8 // wire version octet, 0 or 1
	Elements []Element
}

// Welcome is the line that opens a TCP connection (jxta-wire.md 2.1).
type Welcome struct {
	Dest        string // address dialled, with service and parameter
	Public      string
	Peer        string // URN
	NoPropagate bool
	MsgVersion  uint8  // 3.0 only
	Version     string // "1.1" or "3.0"
}
