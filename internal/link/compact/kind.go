package compact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// OtherKind is the kind of texts whose beginning tells no kind.
const OtherKind = "other"

// Kind is one kind of messages in a corpus, and how its samples were used when the corpus was built. Sizes are octets.
// Sizes of messages are means, and include the octet that names the codec.
type Kind struct {
	Kind         string  `json:"kind"`
	Samples      int     `json:"samples"`
	Taught       int     `json:"taught"` // of the samples, in the corpus
	TaughtOctets int     `json:"taught_octets"`
	Held         int     `json:"held_back"` // samples held back until all was measured by them
	NotTaken     int     `json:"not_taken"` // samples that the limit on the kind's room has cut
	Room         int     `json:"room"`      // that limit, in octets; 0: it has cut no samples
	Octets       float64 `json:"octets"`    // of a message held back,
	Before       float64 `json:"before"`    // as the first message of its flow,
	After        float64 `json:"after"`     // and with the corpus
	LeftOut      bool    `json:"left_out,omitempty"`
}

// Kinds lists what a corpus has of each kind, in the order of their names.
func Kinds(f *CorpusFile) (list []Kind) {
	of := map[string]*Kind{}
	for _, t := range f.Messages {
		name := KindOf(t)
		if of[name] == nil {
			of[name] = &Kind{Kind: name}
		}
		of[name].Taught++
		of[name].TaughtOctets += len(t)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, *of[name])
	}
	return list
}

// KindOf is a name of at most 40 octets for the kind of a text, by its beginning.
func KindOf(text []byte) string {
	t := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	switch {
	case len(t) == 0:
		return OtherKind
	case t[0] == '<':
		if root := rootOf(t); root != "" {
			return "xml " + root
		}
	case t[0] == '{' || t[0] == '[':
		var object map[string]json.RawMessage
		if json.Unmarshal(t, &object) == nil && len(object) > 0 {
			keys := slices.Sorted(maps.Keys(object))
			return short("json " + strings.Join(keys[:min(len(keys), 3)], ","))
		}
		return "json"
	case prose(t):
		return "text"
	}
	if word := firstWord(t); word != "" {
		return short("lines " + word)
	}
	return OtherKind
}

func short(s string) string { return s[:min(len(s), 40)] }

// rootOf is the name of a document's root, without its namespace prefix.
func rootOf(t []byte) string {
	for len(t) > 1 && t[0] == '<' && (t[1] == '?' || t[1] == '!') {
		end := ">"
		if bytes.HasPrefix(t, []byte("<!--")) {
			end = "-->"
		}
		_, rest, ok := bytes.Cut(t, []byte(end))
		if !ok {
			return ""
		}
		t = bytes.TrimSpace(rest)
	}
	if len(t) < 2 || t[0] != '<' {
		return ""
	}
	name := t[1:]
	if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
		name = name[:i]
	}
	if i := bytes.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	return short(string(name))
}

// prose says whether a text is what people write: mostly words.
func prose(t []byte) bool {
	letters, words := 0, 0
	for i, c := range t {
		if letter(c) || c >= 0x80 {
			letters++
		} else if c == ' ' && i > 0 && letter(t[i-1]) {
			words++
		}
	}
	return words >= 2 && letters*4 >= (len(t)-words)*3
}

// firstWord is the first two letters or more near the beginning, with the letters after them.
func firstWord(t []byte) string {
	for i := 0; i < min(len(t), 24); i++ {
		n := i
		for n < len(t) && letter(t[n]) {
			n++
		}
		if n-i >= 2 {
			return string(t[i:n])
		}
		i = n
	}
	return ""
}
