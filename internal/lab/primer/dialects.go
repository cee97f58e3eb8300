package primer

import (
	"aldis/internal/link/compact/corpus"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialects of the formats that others send, for the corpus: dialects.txt has an example of each, written for it from what standards
// and manuals name. A block begins with %% and a kind. Within ⟨ ⟩ stands what differs from message to message: one of several, by |; a
// value, by $ (see values); a value that has got a letter before (⟨a=$uuid⟩, ⟨a=x|a=y⟩, and then ⟨=a⟩); several of the same (⟨*2-5 sep|body⟩); a sentence
// of NMEA 0183 with its checksum (⟨!body⟩).

//go:embed dialects.txt
var dialectText string

// talkText is talk.txt: what people write and say to each other, a line each, in the same notation: sentences of our own.
//
//go:embed talk.txt
var talkText string

// wordText is words.txt: words that English messages are made of, the most frequent first.
//
//go:embed words.txt
var wordText string

const (
	dialectRounds = 5 // messages of each example,
	moreRounds    = 9 // and of those of kinds with many shapes
	talkRounds    = 10
	wordRounds    = 2  // each word stands in as many lists
	wordsOfList   = 14 // words of one
)

// dialectParts are messages of each dialect.
func dialectParts(m *Field) (parts []corpus.Part) {
	for round := range moreRounds {
		for block := range strings.SplitSeq(dialectText, "%% ") {
			kind, body, ok := strings.Cut(block, "\n")
			if !ok || round >= dialectRounds && !slices.Contains(manyShapes, kind) {
				continue
			}
			text := filled(m, strings.TrimSuffix(body, "\n"))
			parts = append(parts, corpus.Part{Name: kind, Messages: [][]byte{[]byte(text)}})
			if coded, ok := cborOf([]byte(text)); ok && round%2 == 0 {
				parts = append(parts, corpus.Part{Name: "cbor", Messages: [][]byte{coded}})
			}
		}
	}
	for range dialectRounds {
		parts = append(parts, binaryParts(m)...)
	}
	talk := strings.Split(strings.TrimSpace(talkText), "\n")
	for range talkRounds {
		for _, line := range talk {
			parts = append(parts, corpus.Part{Name: "talk", Messages: [][]byte{[]byte(filled(m, line))}})
		}
	}
	words := strings.Fields(wordText)
	for range wordRounds {
		m.Rand.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		for i := 0; i < len(words); i += wordsOfList {
			parts = append(parts, corpus.Part{Name: "words", Messages: [][]byte{[]byte(strings.Join(words[i:min(i+wordsOfList, len(words))], " "))}})
		}
	}
	m.Rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return parts
}

// manyShapes are kinds of which one example stands for more shapes than others.
var manyShapes = []string{"xmpp", "sensorthings", "senml", "signalk", "soap", "kml", "geojson"}

const opens, closes = "⟨", "⟩"

// filled is a template with its values.
func filled(m *Field, template string) string {
	return (&filling{m, map[string]string{}}).text(template)
}

// filling is a template on its way.
type filling struct {
	m    *Field
	kept map[string]string
}

func (f *filling) text(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, opens)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		body, after := matched(rest)
		b.WriteString(f.value(body))
		s = after
	}
}

// matched cuts a text behind the bracket that closes it.
func matched(s string) (body, rest string) {
	depth := 1
	for i, c := range s {
		switch string(c) {
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return s[:i], s[i+len(closes):]
			}
		}
	}
	panic("compact: dialects: " + s)
}

// choices are the parts between bars that stand in no bracket.
func choices(s string) (list []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch string(c) {
		case opens:
			depth++
		case closes:
			depth--
		case "|":
			if depth == 0 {
				list = append(list, s[from:i])
				from = i + 1
			}
		}
	}
	return append(list, s[from:])
}

func (f *filling) value(body string) string {
	switch {
	case body[0] == '!':
		return strings.TrimSuffix(string(Sentence(f.text(body[1:]))), "\r\n")
	case body[0] == '*':
		head, what, _ := strings.Cut(body[1:], "|")
		counts, separator, _ := strings.Cut(head, " ")
		var least, most int
		fmt.Sscanf(counts, "%d-%d", &least, &most)
		var list []string
		for range least + f.m.Rand.IntN(most-least+1) {
			list = append(list, f.text(what))
		}
		return strings.Join(list, separator)
	case body[0] == '=':
		return f.kept[body[1:]]
	case body[0] == '$' && len(choices(body)) == 1:
		return f.named(strings.Fields(f.text(body[1:])))
	case len(body) > 2 && body[1] == '=':
		f.kept[body[:1]] = f.choice(strings.TrimPrefix(f.m.Pick(choices(body)), body[:2]))
		return f.kept[body[:1]]
	}
	return f.choice(f.m.Pick(choices(body)))
}

// choice is one of several: a value by its name, or a text.
func (f *filling) choice(s string) string {
	if strings.HasPrefix(s, "$") {
		s = opens + s + closes
	}
	return f.text(s)
}

// named is a value by its name and bounds.
func (f *filling) named(words []string) string {
	number := func(i int) float64 {
		v, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			panic("compact: dialects: " + err.Error())
		}
		return v
	}
	if v, ok := values[words[0]]; ok {
		return v(f.m)
	}
	switch words[0] {
	case "i": // an integer between two
		return strconv.Itoa(int(number(1)) + f.m.Rand.IntN(int(number(2))-int(number(1))+1))
	case "f": // a number between two, with decimals
		return fixed(f.m.real(number(1), number(2)-number(1)), int(number(3)))
	case "d":
		return f.m.digits(int(number(1)))
	case "x":
		return f.m.lower(int(number(1)))
	case "X":
		return strings.ToUpper(f.m.lower(int(number(1))))
	case "t": // a time, in a layout of package time
		return f.m.clock().Format(strings.Join(words[1:], " "))
	}
	panic("compact: dialects: " + words[0])
}

// values are what dialects name.
var values = map[string]func(m *Field) string{
	"iso": func(m *Field) string { return m.clock().Format(isoSeconds) }, "isoms": func(m *Field) string { return m.clock().Format(isoMillis) },
	"unix": func(m *Field) string { return strconv.FormatInt(m.clock().Unix(), 10) }, "mail": func(m *Field) string { return m.nick() + "@" + m.host() },
	"ip": hostAddress, "host": (*Field).host, "nick": (*Field).nick, "call": (*Field).call, "person": (*Field).person, "uuid": (*Field).uuid,
	"name": (*Field).Name, "says": (*Field).Sentence, "word": func(m *Field) string { return strings.ToLower(strings.Fields(m.invent())[0]) },
	"first": func(m *Field) string { return m.Pick(m.Words.First) }, "place": func(m *Field) string { return m.Pick(m.Words.Places) },
	"base64": func(m *Field) string { return base64.RawStdEncoding.EncodeToString(m.Octets(12 + m.Rand.IntN(48))) },
	"bar":    func(*Field) string { return "|" },
	"date":   func(m *Field) string { return m.clock().Format(time.DateOnly) },
}
