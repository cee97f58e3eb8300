package borders

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tree breaks no rule.
func TestHouse(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	faults, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// Check finds faults of each kind anywhere in a tree; it skips testdata and hidden directories.
func TestCheckTree(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"Makefile":                          "test:\n",
		"internal/attic/a.go":               "package attic\n",
		"internal/rules/mark/s.go":          "package mark\nimport \"os\"\n",
		"internal/rules/mark/testdata/x.go": "package x\nimport \"os\"\n",
		"internal/edge/lan/l.go":            "package lan\nimport (\n\"os\"\n\"aldis/internal/edge/radio\")\n// g is f.\nfunc f() {} // see internal/attic/b.go\n",
		"internal/edge/lan/l_test.go":       "package lan\nimport \"time\"\nfunc g() { <-time.After(1) }\n",
		".hidden/x.go":                      "no Go\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	faults, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	faults = slices.DeleteFunc(faults, func(f Fault) bool { // most rooms of the table are not in this tree
		return strings.Contains(f.Why, "the tree does not") || strings.Contains(f.Why, "no file imports") || strings.Contains(f.Why, "excuses")
	})
	same(t, "faults", spell(faults), []string{
		"internal/attic: a room that the table does not have",
		"internal/edge/lan/l.go:4: the table of rooms does not let edge/lan import edge/radio",
		"internal/edge/lan/l_test.go:3: a test sleeps: wait for the condition, or use virtual time",
		"internal/rules/mark/s.go:2: a pure room imports os",
		"internal/edge/lan/l.go:5: the comment of f begins with \"g\"",
		"internal/edge/lan/l.go:6: the comment names internal/attic/b.go, which does not exist",
	})
}

func spell(faults []Fault) (list []string) {
	for _, f := range faults {
		list = append(list, f.String())
	}
	return list
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n\t%s\nwant:\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// tree parses files of a sample, in the order of their names.
func tree(t *testing.T, sources map[string]string) (files []*file) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parse(name, []byte(sources[name]))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
