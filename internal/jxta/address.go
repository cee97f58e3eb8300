package jxta

import "strings"

// Address is an endpoint address, <scheme>://<host>[/<service>[/<param>]] (wire 4.1). With scheme "jxta" Host is a
// peer's unique value in normal form.
type Address struct {
	Scheme, Host, Service, Param string
}

const maxAddress = 4096 // octets; relay requests in welcome lines are the longest seen, 180

// ParseAddress reads both spellings: with "://" and the URN form "urn:jxta:<unique>#service/param".
func ParseAddress(s string) (Address, error) {
	s = strings.TrimSpace(s)
	if len(s) > maxAddress {
		return Address{}, fail("address", "length", ErrTooLong)
	}
	var a Address
	var rest string
	var more bool
	if len(s) > len(urnPrefix) && strings.EqualFold(s[:len(urnPrefix)], urnPrefix) {
		a.Scheme = "jxta"
		a.Host, rest, more = strings.Cut(s[len(urnPrefix):], "#")
	} else {
		scheme, after, ok := strings.Cut(s, "://")
		if !ok || scheme == "" {
			return Address{}, fail("address", "scheme", ErrMissing)
		}
		a.Scheme = strings.ToLower(scheme)
		a.Host, rest, more = strings.Cut(after, "/")
	}
	if a.Host == "" {
		return Address{}, fail("address", "host", ErrMissing)
	}
	if a.Scheme == "jxta" || a.Scheme == "jxtatls" {
		n, err := Normalize(strings.TrimPrefix(a.Host, urnPrefix))
		if err != nil {
			return Address{}, err
		}
		a.Host = n
	}
	if more {
		a.Service, a.Param, _ = strings.Cut(rest, "/")
	}
	return a, nil
}

// String writes the form with "://".
func (a Address) String() string {
	s := a.Scheme + "://" + a.Host
	if a.Service == "" {
		return s
	}
	s += "/" + a.Service
	if a.Param == "" {
		return s
	}
	return s + "/" + a.Param
}

// PeerAddress is the logical address of a peer: "jxta://<unique>".
func PeerAddress(unique string) string { return "jxta://" + unique }

const groupService = "EndpointService:"

// Mangle names a service of a group in the form used outside of the group (wire 4.3).
func Mangle(group, service, param string) (string, string) {
	if param != "" {
		service += "/" + param
	}
	return groupService + group, service
}

// Demangle undoes Mangle; group is empty when nothing was mangled.
func Demangle(service, param string) (group, svc, prm string) {
	if !strings.HasPrefix(service, groupService) {
		return "", service, param
	}
	g, err := Normalize(strings.TrimPrefix(service[len(groupService):], urnPrefix))
	if err != nil {
		return "", service, param
	}
	svc, prm, _ = strings.Cut(param, "/")
	return g, svc, prm
}
