package borders

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var writePage = flag.Bool("write", false, "write the table of docs/house.md")

const pageFile = "../../docs/house.md"

// docs/house.md shows the present table of rooms.
func TestMap(t *testing.T) {
	old, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	now, err := page(string(old), Rooms, Upward)
	if err != nil {
		t.Fatal(err)
	}
	if now == string(old) {
		return
	}
	if !*writePage {
		t.Fatal("docs/house.md is stale: go test ./internal/borders -run TestMap -args -write")
	}
	if err := os.WriteFile(pageFile, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPage(t *testing.T) {
	rooms := table{
		{"jxta", Pure, "JXTA", true, "Formats.", nil}, {"edge/lan", Edge, "edges", false, "Sockets.", []string{"jxta", "site"}},
		{"cmd/gateway", Edge, "programs", false, "The binary.", nil}, {"ground/due", Pure, "ground", false, "Times.", nil},
	}
	got, err := page("before\n"+pageBegins+"old\n"+pageEnds+"after\n", rooms, map[string][]string{"jxta": {"edge/lan", "site"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + pageBegins, "- `internal/jxta` (adapter): Formats.\n",
		"- `internal/edge/lan` (edge): Sockets.\n", "- `cmd/gateway` (edge): The binary.\n", "- `internal/ground/due`: Times.\n", "jxta imports edge/lan, site.\n\n" + pageEnds + "after\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("the old table stays: %q", got)
	}
	for _, old := range []string{"", pageBegins, pageEnds + pageBegins} {
		if _, err := page(old, rooms, nil); err == nil {
			t.Errorf("a page without its marks is taken: %q", old)
		}
	}
}

// The road is drawn in docs/house.md and in the gateway's package comment: both drawings are equal.
func TestRoad(t *testing.T) {
	road := regexp.MustCompile(`(?m)^(?:    |//\t)(.* -> .* -> .*)$`)
	var drawn [2][]string
	for i, name := range []string{pageFile, "../gateway/doc.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range road.FindAllStringSubmatch(string(text), -1) {
			drawn[i] = append(drawn[i], m[1])
		}
	}
	if len(drawn[0]) != 2 || !slices.Equal(drawn[0], drawn[1]) {
		t.Errorf("docs/house.md draws\n%s\nand gateway/doc.go\n%s", strings.Join(drawn[0], "\n"), strings.Join(drawn[1], "\n"))
	}
}

// Every page of docs is listed in docs/README.md once, and every listed page exists.
func TestEveryPageIsListed(t *testing.T) {
	const list = "../../docs/README.md"
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^(?:\||-) \[[^]]+\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		rows[m[1]]++
	}
	for _, pattern := range []string{"*.md", "decisions/*.md"} {
		pages, err := filepath.Glob("../../docs/" + pattern)
		if err != nil || len(pages) == 0 {
			t.Fatal(pages, err)
		}
		for _, page := range pages {
			name := strings.TrimPrefix(filepath.ToSlash(page), "../../docs/")
			if name != "README.md" && rows[name] != 1 {
				t.Errorf("docs/README.md has %d lines of %s, want one", rows[name], name)
			}
		}
	}
	for name := range rows {
		if _, err := os.Stat("../../docs/" + name); err != nil {
			t.Errorf("docs/README.md: %v", err)
		}
	}
}
