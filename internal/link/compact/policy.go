package compact

import (
	"path"
	"strings"
)

// Effort is how much is tried to make an element small.
type Effort int

const (
	Full  Effort = iota // every codec
	Light               // deflate alone
	None                // stored
)

// Rule says what to do with elements of a MIME type, a name and a size. The first rule that fits decides.
type Rule struct {
	Type   string // a pattern as in path.Match, "image/*"; "" fits any. Parameters after ";" are ignored
	Name   string // likewise, of the element, without its namespace
	Octets int    // fits elements of at least so many
	Effort Effort
}

// DefaultRules store data that is already compressed or encrypted. Random octets of other types are stored too, after trying.
var DefaultRules = []Rule{
	{Type: "image/jpeg", Effort: None},
	{Type: "image/png", Effort: None},
	{Type: "image/webp", Effort: None},
	{Type: "image/jp2", Effort: None},
	{Type: "video/*", Effort: None},
	{Type: "audio/*", Effort: None},
	{Type: "application/zip", Effort: None},
	{Type: "application/gzip", Effort: None},
	{Type: "application/x-gzip", Effort: None},
	{Type: "application/x-7z-compressed", Effort: None},
	{Type: "application/x-xz", Effort: None},
	{Type: "application/zstd", Effort: None},
	{Type: "application/pkcs7-mime", Effort: None},
	{Type: "application/pgp-encrypted", Effort: None},
	{Type: "x/sealed", Effort: None},
}

// CheckRule says whether a rule's patterns can be read.
func CheckRule(r Rule) error {
	if _, err := path.Match(r.Type, ""); err != nil {
		return err
	}
	_, err := path.Match(r.Name, "")
	return err
}

// EffortFor returns the effort that the rules give an element.
func EffortFor(rules []Rule, mime, name string, octets int) Effort {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	fits := func(pattern, s string) bool {
		ok, err := path.Match(pattern, s)
		return pattern == "" || ok && err == nil
	}
	for _, r := range rules {
		if octets >= r.Octets && fits(strings.ToLower(r.Type), mime) && fits(r.Name, name) {
			return r.Effort
		}
	}
	return Full
}

// AppendElement is Append with an effort.
func (c *Coder) AppendElement(dst, data []byte, e Effort) ([]byte, Codec) {
	switch e {
	case None:
		return append(dst, data...), Stored
	case Light:
		if out, ok := c.Deflate(data); ok {
			return append(dst, out...), Deflated
		}
		return append(dst, data...), Stored
	}
	return c.Append(dst, data)
}
