package xmpp

import (
	"strings"

	"golang.org/x/text/secure/precis"
)

// jid is an address (RFC 7622): local@domain/resource.
type jid struct{ local, domain, resource string }

// mostPart is the longest part of an address, in octets.
const mostPart = 1023

// parseJID reads an address; false: it is none. Its local part is brought to its canonical form, its domain to small letters.
func parseJID(text string) (j jid, ok bool) {
	rest, resource, full := strings.Cut(text, "/")
	local, domain, user := strings.Cut(rest, "@")
	if !user {
		local, domain = "", rest
	}
	if user {
		if local, ok = localOf(local); !ok {
			return j, false
		}
	}
	if full {
		if resource, ok = resourceOf(resource); !ok {
			return j, false
		}
	}
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	if domain == "" || len(domain) > mostPart || strings.ContainsAny(domain, "@ \"&'<>\x00") {
		return j, false
	}
	return jid{local, domain, resource}, true
}

// localOf is the canonical form of the part before the @; false: it is none.
func localOf(text string) (string, bool) {
	local, err := precis.UsernameCaseMapped.String(text)
	return local, err == nil && local != "" && len(local) <= mostPart && !strings.ContainsAny(local, "\"&'/:<>@")
}

// resourceOf is the canonical form of the part behind the /; false: it is none.
func resourceOf(text string) (string, bool) {
	resource, err := precis.OpaqueString.String(text)
	return resource, err == nil && resource != "" && len(resource) <= mostPart
}

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
