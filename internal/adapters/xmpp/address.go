package xmpp

import "aldis/internal/adapters/xmpp/stanza"

// jid is an address (RFC 7622): local@domain/resource.
type jid struct{ local, domain, resource string }

// parseJID reads an address; false: the text is not an address.
func parseJID(text string) (j jid, ok bool) {
	j.local, j.domain, j.resource, ok = stanza.CutAddress(text)
	return j, ok
}

var localOf, resourceOf = stanza.Local, stanza.Resource

func (j jid) bare() string {
	if j.local == "" {
		return j.domain
	}
	return j.local + "@" + j.domain
}

// String is the address as it stands in stanzas.
func (j jid) String() string {
	if j.resource == "" {
		return j.bare()
	}
	return j.bare() + "/" + j.resource
}
