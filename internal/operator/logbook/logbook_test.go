package logbook

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

var write = flag.Bool("write", false, "write docs/log.md")

const pageFile = top + "/docs/log.md"

// found are the lines for each text in the source.
func found(t *testing.T) map[string][]line {
	byText := map[string][]line{}
	for _, l := range scan(t) {
		if len(l.texts) == 0 {
			t.Errorf("%s: the text cannot be read from the source: give it as a literal", l.at)
		}
		for _, text := range l.texts {
			byText[text] = append(byText[text], l)
		}
	}
	return byText
}

// Every line of the log has one key, and every key has a line.
func TestEvents(t *testing.T) {
	byText := found(t)
	texts, keys := map[string]bool{}, map[string]bool{}
	for i, e := range Events {
		if !regexp.MustCompile(`^[a-z]+\.[a-z_]+$`).MatchString(e.Key) || keys[e.Key] || texts[e.Text] {
			t.Errorf("%q: the key is no word, a dot and a word, or it or its text is there twice", e.Key)
		}
		if i > 0 && strings.SplitN(Events[i-1].Key, ".", 2)[0] > strings.SplitN(e.Key, ".", 2)[0] {
			t.Errorf("%s stands behind %s", e.Key, Events[i-1].Key)
		}
		keys[e.Key], texts[e.Text] = true, true
		lines := byText[e.Text]
		if len(lines) == 0 {
			t.Errorf("%s: nobody writes %q", e.Key, e.Text)
			continue
		}
		for _, l := range lines {
			if l.level != lines[0].level {
				t.Errorf("%s: %s at %s and %s at %s", e.Key, l.level, l.at, lines[0].level, lines[0].at)
			}
			if l.spread && e.Fields == "" {
				t.Errorf("%s: %s takes fields from elsewhere: name them in the table", e.Key, l.at)
			}
			for _, f := range l.fields {
				if l.spread && !slices.Contains(strings.Fields(e.Fields), f) {
					t.Errorf("%s: the table lacks the field %s of %s", e.Key, f, l.at)
				}
			}
		}
		check.Equal(t, "the key of "+e.Text, KeyOf(e.Text+map[bool]string{true: "more"}[e.open()]), e.Key)
	}
	for text, lines := range byText {
		if !texts[text] {
			t.Errorf("%s writes %q, which is not in the table: give it a key in events.go", lines[0].at, text)
		}
	}
	check.Equal(t, "a line of nobody", KeyOf("the moon is full"), Unknown)
}

// docs/log.md agrees with the table and the source.
func TestPage(t *testing.T) {
	byText := found(t)
	var b strings.Builder
	b.WriteString(`# Lines of the log

Each line of ` + "`gateway run`" + ` carries a key in the field ` + "`" + Field + "`" + `. The key stays when the words of the line change: scripts and alerts go by it. ` + "`node`" + ` in each line is the name of this gateway. ` + "`like_it_left_out`" + ` at a line says how many of its kind were left out before it. What to do about the lines that matter is in [faults.md](faults.md#log-lines-worth-knowing).

    gateway run -c ship.toml 2>&1 | jq 'select(.event == "link.down")'
    journalctl -u aldis-gateway -o cat | jq -r 'select(.level == "ERROR") | [.time, .event, .msg] | @tsv'

This page is made from the source: ` + "`go test ./internal/operator/logbook -run TestPage -args -write`" + `.
`)
	section := ""
	for _, e := range Events {
		if s, _, _ := strings.Cut(e.Key, "."); s != section {
			section = s
			fmt.Fprintf(&b, "\n## %s\n\n| event | level | line | meaning | fields |\n|---|---|---|---|---|\n", section)
		}
		fields, level := strings.Fields(e.Fields), ""
		for _, l := range byText[e.Text] {
			level = l.level
			for _, f := range l.fields {
				if !slices.Contains(fields, f) {
					fields = append(fields, f)
				}
			}
		}
		text := e.Text
		if e.open() {
			text += "…"
		}
		list := ""
		if len(fields) > 0 {
			list = "`" + strings.Join(fields, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Key, level, strings.ReplaceAll(text, "|", `\|`), e.Meaning, list)
	}
	old, err := os.ReadFile(pageFile)
	if err != nil && !*write {
		t.Fatal(err)
	}
	if b.String() == string(old) {
		return
	}
	if !*write {
		t.Fatal("docs/log.md is stale: go test ./internal/operator/logbook -run TestPage -args -write")
	}
	if err := os.WriteFile(pageFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
