package site

import "time"

// Adapter is the number of a kind of LAN software, the same in all gateways of a network. On the link each item and each flow
// names its adapter; JXTA, the first, costs no octet.
type Adapter uint8

// JXTA is the adapter of package jxtabridge.
const JXTA Adapter = 0

// TAK is the adapter of package tak.
const TAK Adapter = 1

// XMPP is the adapter of package xmpp.
const XMPP Adapter = 2

// Corpora is the adapter of package corpusexchange.
const Corpora Adapter = 61

// Relay is no adapter: under this number gateways pass on messages that others have sealed for each other.
const Relay Adapter = 60

// Meeting is no adapter: the meeting of a gateway's adapters keeps its memories under this number. None of them crosses.
const Meeting Adapter = 62

// MaxAdapter is the highest number of an adapter.
const MaxAdapter Adapter = 63

// Kind says what an Item is.
type Kind uint8

// Kinds of items.
const (
	Endpoint Kind = 1 + iota // somebody who is here: a peer with a lease, a client that has logged in
	Document                 // something published here: an advertisement
	Listener                 // somebody here listens to a topic: an open input pipe
	Question                 // somebody here looks for documents: far sites send those that fit, though nobody there uses them
)

// Item is one piece of a site's state, as sister gateways replicate it. Two items with the same Key are versions of
// one thing; the newer replaces the older. Items are values: the receiver of one never changes Doc.
type Item struct {
	Adapter Adapter
	Kind    Kind
	Scope   string // in which its names are meant: a JXTA group's unique value
	Owner   string // whose it is: a JXTA peer's unique value
	// ID is its name: of a Document, of a Listener's topic, or a Question's "attribute=pattern".
	ID string
	// Sub divides a kind further. Its meaning is the adapter's own.
	Sub uint8
	// Doc is its content, as the adapter writes it, at most envelope.MaxDoc octets.
	Doc []byte
	// Variant tells two forms of one thing apart. Its meaning is the adapter's own; a change of it is a new version.
	Variant bool
	// Expires is when it dies by itself; zero: it lives until withdrawn.
	Expires time.Time
	// Gone withdraws the item with this Key; only the fields that make the Key matter then.
	Gone bool
	// Home keeps the item from all sites but those in To, and those that hold it already: these receive its changes.
	// Home and To are for this site's own items alone and do not cross the link.
	Home bool
	To   []uint16
}

// Key is the same for all versions of one thing of one site. Keys of different adapters differ: those of JXTA begin with
// the kind, which is never 0, all others with 0 and the adapter.
func (it Item) Key() string {
	head := []byte{byte(it.Kind), it.Sub}
	if it.Adapter != JXTA {
		head = []byte{0, byte(it.Adapter), byte(it.Kind), it.Sub}
	}
	return string(head) + it.Scope + "\x00" + it.Owner + "\x00" + it.ID
}

// Withdrawal is an item that withdraws this one.
func (it Item) Withdrawal() Item {
	return Item{Adapter: it.Adapter, Kind: it.Kind, Scope: it.Scope, Owner: it.Owner, ID: it.ID, Sub: it.Sub, Gone: true}
}

// WithdrawalOf is an item that withdraws the one with this key, which Item.Key made.
func WithdrawalOf(key string) Item {
	it := Item{Gone: true}
	if key[0] == 0 {
		it.Adapter, key = Adapter(key[1]), key[2:]
	}
	it.Kind, it.Sub, key = Kind(key[0]), key[1], key[2:]
	it.Scope, key = cut(key)
	it.Owner, it.ID = cut(key)
	return it
}

// cut splits a text at its first octet 0.
func cut(text string) (head, rest string) {
	for i := range len(text) {
		if text[i] == 0 {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
