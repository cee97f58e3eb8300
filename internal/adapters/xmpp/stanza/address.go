package stanza

import (
	"strings"

	"golang.org/x/text/secure/precis"
)

// MostPart is the longest part of an address, in octets.
const MostPart = 1023

// CutAddress reads an address (RFC 7622), local@domain/resource; false: the text is not one. The local part and the resource
// are brought to their canonical form, the domain to small letters. A missing part is "".
func CutAddress(text string) (local, domain, resource string, ok bool) {
	rest, resource, full := strings.Cut(text, "/")
	local, domain, user := strings.Cut(rest, "@")
	if !user {
		local, domain = "", rest
	}
	if user {
		if local, ok = Local(local); !ok {
			return "", "", "", false
		}
	}
	if full {
		if resource, ok = Resource(resource); !ok {
			return "", "", "", false
		}
	}
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	if domain == "" || len(domain) > MostPart || strings.ContainsAny(domain, "@ \"&'<>\x00") {
		return "", "", "", false
	}
	return local, domain, resource, true
}

// Local is the canonical form of the part before the @; false: the text cannot be one.
func Local(text string) (string, bool) {
	local, err := precis.UsernameCaseMapped.String(text)
	return local, err == nil && local != "" && len(local) <= MostPart && !strings.ContainsAny(local, "\"&'/:<>@")
}

// Resource is the canonical form of the part behind the /; false: the text cannot be one.
func Resource(text string) (string, bool) {
	resource, err := precis.OpaqueString.String(text)
	return resource, err == nil && resource != "" && len(resource) <= MostPart
}
