package borders

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPaths(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"internal/edge/lan", "docs/decisions"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"Makefile":            "X := y\n.PHONY: gone\nbuild deps:\n\t@x\ntest: build\n",
		"docs/decisions/a.md": "", "internal/edge/lan/lan.go": "",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		comment  string
		resolved int
		lost     string
	}{
		{"in internal/edge/lan, as docs/decisions/a.md says.", 2, ""},
		{"internal/edge/lan/lan.go, internal/edge/lan.Stats and internal/edge/lan.", 3, ""},
		{"see ../internal/none and x-internal/none", 0, ""},
		{"internal/house holds", 0, "internal/house"},
		{"internal/edge/lan.stats", 0, "internal/edge/lan.stats"},
		{"(docs/none.md)", 0, "docs/none.md"},
		{"by `make build`, (make deps) and `make test`", 3, ""},
		{"make test runs it", 1, ""},
		{"they make sense", 0, ""},
		{"by `make generate`", 0, "make generate"},
		{"(make gone)", 0, "make gone"},
		{"make sizes writes", 0, "make sizes"},
	} {
		for _, source := range []string{"package a\n// " + tt.comment + "\n", "package a\nvar a int // " + tt.comment + "\n"} {
			resolved, faults, err := paths(root, tree(t, map[string]string{"internal/edge/lan/a.go": source}))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if tt.lost != "" {
				want = []string{"internal/edge/lan/a.go:2: the comment names " + tt.lost + ", which does not exist"}
			}
			if same(t, tt.comment, spell(faults), want); resolved != tt.resolved {
				t.Errorf("%s: %d resolved, want %d", tt.comment, resolved, tt.resolved)
			}
		}
	}
}
