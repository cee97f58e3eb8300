package envelope

import (
	"encoding/hex"
	"strings"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// A JXTA peer's question for another peer, and the answer, in a regular form that has only the parts that the other end
// cannot reconstruct: the group is the net peer group, the id is of a UUID there, and the advertisement has id, group and
// name alone.

// The JXTA texts around the parts of a regular form.
const (
	netGroup   = "jxta-NetGroup"
	regularID  = "uuid-59616261646162614A78746150325033"
	regularEnd = "03"
	byName     = "Name="
	byID       = "PID="
	idOctets   = 16
)

// regular is the text before and after the name in the document of a peer whose advertisement has only id, group and name.
func regular(id string) (head, tail string) {
	return "<jxta:PA><PID>urn:jxta:" + id + "</PID><GID>urn:jxta:" + netGroup + "</GID><Name>", "</Name></jxta:PA>"
}

// regularOctets are the octets of a regular id that vary.
func regularOctets(id string) ([]byte, bool) {
	digits, a := strings.CutPrefix(id, regularID)
	digits, z := strings.CutSuffix(digits, regularEnd)
	b, err := hex.DecodeString(digits)
	return b, a && z && err == nil && len(b) == idOctets && digits == strings.ToUpper(digits)
}

func regularOf(b []byte) string {
	return regularID + strings.ToUpper(hex.EncodeToString(b)) + regularEnd
}

// Asks says whether an item is a question for a peer, by a name, an id or a pattern.
func Asks(it site.Item) bool {
	return it.Adapter == site.JXTA && it.Kind == site.Question && it.Sub == 0 && !it.Gone
}

// AppendQuery writes a question for which Asks is true. Its lifetime is not written: both ends know it.
func AppendQuery(dst []byte, it site.Item) (b []byte, short bool) {
	name, named := strings.CutPrefix(it.ID, byName)
	id, is := regularOctets(it.Owner)
	switch {
	case it.Scope == netGroup && it.ID == byID && is:
		return append(dst, id...), true
	case it.Scope == netGroup && named && it.Owner == "" && name != "" && len(name) != idOctets:
		return append(dst, name...), true
	}
	text := func(b []byte) { dst = append(append(dst, byte(len(b))), b...) }
	text(compact.AppendID(nil, it.Scope))
	text(compact.AppendID(nil, it.Owner))
	return append(dst, it.ID...), false
}

// ParseQuery reads the octets of AppendQuery.
func ParseQuery(b []byte, short bool) (it site.Item, err error) {
	it = site.Item{Kind: site.Question, Scope: netGroup}
	switch {
	case short && len(b) == idOctets:
		it.ID, it.Owner = byID, regularOf(b)
		return it, nil
	case short && len(b) > 0:
		it.ID = byName + string(b)
		return it, nil
	}
	text := func() (id string) {
		if err != nil || len(b) == 0 || len(b) <= int(b[0]) {
			err = ErrMalformed
			return ""
		}
		n := int(b[0])
		id, err = compact.ParseID(b[1 : 1+n])
		b = b[1+n:]
		return id
	}
	it.Scope, it.Owner = text(), ""
	it.Owner = text()
	it.ID = string(b)
	return it, err
}

// AppendFound writes the peer that answers a question, if both are regular: the parts that the question does not have.
func AppendFound(dst []byte, question, found site.Item) (b []byte, short bool) {
	id, is := regularOctets(found.Owner)
	head, tail := regular(found.Owner)
	name, begins := strings.CutPrefix(string(found.Doc), head)
	name, ends := strings.CutSuffix(name, tail)
	switch {
	case !is || !begins || !ends || name == "" || found.Adapter != site.JXTA || found.Kind != site.Endpoint || found.Sub != 0 ||
		found.Scope != netGroup || found.Variant || found.Gone || !found.Expires.IsZero():
		return dst, false
	case question.ID == byID && question.Owner == found.Owner:
		return append(dst, name...), true
	case question.ID == byName+name:
		return append(dst, id...), true
	}
	return dst, false
}

// ParseFound reads the octets of AppendFound.
func ParseFound(question site.Item, b []byte) (it site.Item, err error) {
	it = site.Item{Kind: site.Endpoint, Scope: netGroup, Owner: question.Owner}
	name := string(b)
	if question.ID != byID {
		if len(b) != idOctets {
			return it, ErrMalformed
		}
		it.Owner, name = regularOf(b), strings.TrimPrefix(question.ID, byName)
	}
	head, tail := regular(it.Owner)
	it.Doc = []byte(head + name + tail)
	return it, nil
}
