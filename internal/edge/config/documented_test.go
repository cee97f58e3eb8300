package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

var writePage = flag.Bool("write", false, "write the reference into docs/configure.md")

// The reference in docs/configure.md agrees with the schema: every section and key, default, bounds, and the keys that a reload
// applies.
func TestPage(t *testing.T) {
	const file = "../../../docs/configure.md"
	const from = "<!-- Written by: go test ./internal/edge/config -run TestPage -args -write -->\n"
	const to = "<!-- End of the reference. -->\n"
	page, err := os.ReadFile(file)
	check.NoError(check.Fatal(t), err)
	before, rest, ok := strings.Cut(string(page), from)
	was, after, also := strings.Cut(rest, to)
	check.True(check.Fatal(t), "the page has a place for the reference", ok && also)
	is := "\n" + reference()
	if *writePage {
		check.NoError(t, os.WriteFile(file, []byte(before+from+is+to+after), 0o644))
	} else if was != is {
		t.Errorf("docs/configure.md is not what the schema says: go test ./internal/edge/config -run TestPage -args -write")
	}
}

func reference() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`gateway reload` applies `%s`, and the tariff of a profile file. Other keys take effect at the next start.\n", strings.Join(Live(), "`, `"))
	for _, p := range schema(&Config{}) {
		mark, name := "##", "["+p.name+"]"
		if p.rules != nil {
			name = "[" + name + "]"
		}
		if strings.Contains(p.name, ".") {
			mark = "###"
		}
		fmt.Fprintf(&b, "\n%s %s: %s\n\n", mark, name, p.title)
		if p.doc != "" {
			fmt.Fprintf(&b, "%s\n\n", p.doc)
		}
		var names []string
		for _, k := range p.keys {
			if k.read == nil {
				continue
			}
			if names = append(names, written(k)); k.doc != "" {
				fmt.Fprintf(&b, "- %s: %s\n", strings.Join(names, ", "), meaning(k))
				names = nil
			}
		}
	}
	return b.String() + "\n"
}

// written is a key, with its default if that could be written in the file, or with the word that it is required.
func written(k key) string {
	switch {
	case k.must:
		return "`" + k.name + "` (required)"
	case k.absent == "" || strings.Contains(k.absent, " "):
		return "`" + k.name + "`"
	case k.quoted:
		return "`" + k.name + " = " + strconv.Quote(k.absent) + "`"
	}
	return "`" + k.name + " = " + k.absent + "`"
}

// meaning is the purpose of a key, with its default and bounds unless the text has them.
func meaning(k key) string {
	text := k.doc
	if strings.Contains(k.absent, " ") {
		text += "; default: " + k.absent
	}
	said := strings.HasPrefix(k.bounds, "`") && !slices.ContainsFunc(strings.Split(k.bounds, ", "), func(word string) bool { return !strings.Contains(k.doc, word) })
	if k.bounds != "" && !said {
		text += " (" + k.bounds + ")"
	}
	return text
}
