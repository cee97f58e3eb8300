// Package query evaluates conditions of the operator's rules on the content of messages: on an element or attribute of
// an XML document, a value of a JSON text, or the text itself. It is pure.
//
//	xml:/event/detail/contact/@callsign     an attribute; a step "*" is any element, names without a prefix match any prefix
//	xml:/message/body = *fire*              the text of an element, with a pattern that it must match
//	json:/track/id                          a value of an object; elements of an array stand in its place, null is no value
//	text: *MAYDAY*                          the whole text
//
// Without a pattern the value only has to exist. Several values at one place are examined one after the other. At most
// MostOctets of a content are examined, to a depth of MostDepth. Beyond the first syntax error there are no further
// values. The zero Condition matches everything.
package query

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of the content that is examined.
const (
	MostOctets = 64 << 10
	MostDepth  = 64
	mostValue  = 4 << 10 // octets of a value
)

// Condition is a place in a content, and the pattern that a value there must match. Conditions are comparable.
type Condition struct {
	kind    string // "xml", "json" or "text"
	path    string // steps, each behind a slash
	attr    string // of XML: the last step, without its @
	pattern string // "*" stands for anything; "" with any: the value must only exist
	any     bool
}

var errForm = errors.New(`must be like "xml:/event/@type = a-f-*", "json:/track/id" or "text: *MAYDAY*"`)

// Parse reads a condition. Errors are for operators.
func Parse(text string) (c Condition, err error) {
	kind, rest, ok := strings.Cut(text, ":")
	c.kind = strings.TrimSpace(kind)
	if !ok {
		return Condition{}, errForm
	}
	if c.kind == "text" {
		c.pattern = strings.TrimSpace(rest)
		if c.pattern == "" {
			return Condition{}, errForm
		}
		return c, nil
	}
	path, pattern, some := strings.Cut(rest, "=")
	c.path, c.pattern, c.any = strings.TrimSpace(path), strings.TrimSpace(pattern), !some
	if c.kind != "xml" && c.kind != "json" || !strings.HasPrefix(c.path, "/") {
		return Condition{}, errForm
	}
	if i := strings.LastIndex(c.path, "/@"); i >= 0 && c.kind == "xml" {
		c.path, c.attr = c.path[:i], c.path[i+2:]
		if c.attr == "" || strings.Contains(c.attr, "/") || c.path == "" { // no element is above the root
			return Condition{}, errForm
		}
	}
	steps := strings.Split(c.path, "/")[1:]
	for _, s := range steps {
		if s == "" || strings.ContainsAny(s, "@\"' \t") {
			return Condition{}, fmt.Errorf("has a step %q that is no name: %w", s, errForm)
		}
	}
	if len(steps) > MostDepth {
		return Condition{}, fmt.Errorf("has %d steps, at most %d are looked at", len(steps), MostDepth)
	}
	return c, nil
}

// Zero says that the condition matches everything.
func (c Condition) Zero() bool { return c == Condition{} }

// String is the condition in the form of the configuration.
func (c Condition) String() string {
	if c.kind == "text" || c.Zero() {
		return strings.TrimPrefix(c.kind+": "+c.pattern, ": ")
	}
	text := c.kind + ":" + c.path
	if c.attr != "" {
		text += "/@" + c.attr
	}
	if !c.any {
		text += " = " + c.pattern
	}
	return text
}

// Fits says whether a content has a value that meets the condition; match says whether a value matches a pattern.
func (c Condition) Fits(content []byte, match func(pattern, value string) bool) bool {
	if c.Zero() {
		return true
	}
	fits := false
	c.Values(content, func(value string) bool {
		fits = c.any || match(c.pattern, value)
		return !fits
	})
	return fits
}

// Values calls f for each value at the condition's place until f returns false.
func (c Condition) Values(content []byte, f func(value string) bool) {
	content = content[:min(len(content), MostOctets)]
	steps := strings.Split(c.path, "/")[1:]
	switch c.kind {
	case "text":
		f(string(content))
	case "xml":
		c.xml(content, steps, f)
	case "json":
		d := json.NewDecoder(bytes.NewReader(content))
		d.UseNumber()
		walk(d, steps, 0, f)
	}
}

// xml walks through a document, well formed or not.
func (c Condition) xml(content []byte, steps []string, f func(string) bool) {
	d := xml.NewDecoder(bytes.NewReader(content))
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	depth, fit := 0, 0 // open elements, and how many of them from the root on match the path
	var value []byte
	for {
		token, err := d.RawToken()
		if err != nil {
			return
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == fit && fit < len(steps) && named(steps[fit], t.Name) {
				fit++
				value = value[:0]
			}
			depth++
			if depth > MostDepth {
				return
			}
			if c.attr == "" || fit < len(steps) || depth != fit {
				continue
			}
			for _, a := range t.Attr {
				if named(c.attr, a.Name) && !f(a.Value) {
					return
				}
			}
		case xml.CharData:
			if fit == len(steps) && depth == fit && len(value)+len(t) <= mostValue {
				value = append(value, t...)
			}
		case xml.EndElement:
			if c.attr == "" && fit == len(steps) && depth == fit && !f(strings.TrimSpace(string(value))) {
				return
			}
			depth--
			if depth < fit {
				fit = depth
			}
			if depth <= 0 {
				return
			}
		}
	}
}

// named says whether a name matches a step: a step without a prefix matches any prefix.
func named(step string, name xml.Name) bool {
	if prefix, local, ok := strings.Cut(step, ":"); ok {
		return prefix == name.Space && (local == name.Local || local == "*")
	}
	return step == "*" || step == name.Local
}

// walk looks for the steps in the next value; false: f wants no more, or the rest cannot be read.
func walk(d *json.Decoder, steps []string, depth int, f func(string) bool) bool {
	token, err := d.Token()
	if err != nil || depth > MostDepth {
		return false
	}
	if token == nil { // null is no value
		return true
	}
	open, nested := token.(json.Delim)
	if !nested {
		return len(steps) > 0 || f(fmt.Sprint(token))
	}
	for d.More() {
		below := steps
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return false
			}
			if len(steps) == 0 || steps[0] != "*" && steps[0] != key {
				below = nowhere
			} else {
				below = steps[1:]
			}
		}
		if !walk(d, below, depth+1, f) {
			return false
		}
	}
	if open == '{' && len(steps) == 0 && !f("{}") {
		return false
	}
	_, err = d.Token()
	return err == nil
}

// nowhere is a path that no value has.
var nowhere = []string{"\x00"}
