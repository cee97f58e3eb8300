package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aldis/internal/operator/manual"
)

// aCall is a call of the gateway in a line of a shell: of bin/gateway, with sudo, after a pipe or xargs.
var aCall = regexp.MustCompile(`(?:^|[|&(] ?|sudo |xargs (?:-r )?)(?:bin/)?gateway ([a-z][^#|;&>)]*)`)

// calls are the calls in the blocks of a page. A line that ends in "\" continues; a comment is cut off.
func calls(page string) (list []string) {
	page = strings.ReplaceAll(page, "\\\n", " ")
	for _, line := range strings.Split(page, "\n") {
		line, _, _ = strings.Cut(strings.TrimLeft(line, " "), " #")
		for _, m := range aCall.FindAllStringSubmatch(line, -1) {
			list = append(list, m[1])
		}
	}
	return list
}

// blocks are the lines of a page that are in blocks: indented by four blanks, or between fences.
func blocks(page string) string {
	var b strings.Builder
	fenced := false
	for _, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// wrongCall names the part of a call that does not exist: the command, its word, a flag. "": all exist.
func wrongCall(commands []manual.Command, call string) string {
	words := strings.Fields(call)
	at := slices.IndexFunc(commands, func(c manual.Command) bool { return len(words) > 1 && c.Name == words[0]+" "+words[1] })
	if at < 0 {
		at = slices.IndexFunc(commands, func(c manual.Command) bool { return c.Name == words[0] })
	}
	if at < 0 {
		return "there is no command " + words[0]
	}
	c := commands[at]
	for _, w := range words[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if strings.HasPrefix(w, "-") && name != "" && len(c.Flags) > 0 && !slices.ContainsFunc(c.Flags, func(f manual.Flag) bool { return f.Name == name }) && !strings.Contains(c.About, "--"+name) {
			return c.Name + " has no flag " + w
		}
	}
	return ""
}

// TestCallsOfPages: every call of the gateway in a block of README.md and docs names an existing command and existing flags.
func TestCallsOfPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands, all := described(t).Commands(), 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calls(blocks(string(text))) {
			all++
			if wrong := wrongCall(commands, call); wrong != "" {
				t.Errorf("%s: gateway %s: %s", filepath.Base(page), call, wrong)
			}
		}
	}
	if all < 150 {
		t.Errorf("%d calls were found", all)
	}
	for call, wrong := range map[string]bool{"stauts": true, "status --jsn": true, "status --json": false, "lab blue-game --colour": true, "pmul send --silent 3 x": false} {
		if got := wrongCall(commands, call); (got != "") != wrong {
			t.Errorf("gateway %s: %q", call, got)
		}
	}
}
