package borders

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every citation in the tree leads to a heading, and every named page exists.
func TestCitations(t *testing.T) {
	faults, err := Citations(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range files {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	citeTable = "# Reference\n\n| short | page | when |\n|---|---|---|\n| `wire` | [jxta.md](jxta.md) | JXTA |\n| `p-mul` | [p-mul.md](p-mul.md) | P_Mul |\n\nAs `(wire 99)`, in docs/pmul.md.\n"
	citeJXTA  = "# JXTA\n\n## 0. First\n\n1. one\n2. two\n\n## 4. Fourth\n\n### 4.1 A\n\n    1. code\n    ## 7. code\n\n### 4.3 B\n\n```\n## 9. code\n```\n\n## Without\n\n1. not to be cited\n"
	citePMul  = "## 6. Sender\n\n1. a\n2. b\n\n1. another list\n\n## 7. Receiver\n\nSee (wire 4.1) and [JXTA](jxta.md).\n"
)

func TestCitationsOfATree(t *testing.T) {
	root := writeTree(t, map[string]string{
		"docs/reference/README.md":       citeTable,
		"docs/reference/jxta.md":         citeJXTA,
		"docs/reference/p-mul.md":        citePMul,
		"docs/pmul.md":                   "Rules of (p-mul 6.2),\nand [more](reference/p-mul.md); also (p-mul\n6.3).\n\n| a (wire 5) | b |\n| c (wire 4) | d |\n\n    (wire 77) is code\n\n`(wire 78)` too, and jxta.md is not beside it\n",
		"internal/a/testdata/x.go":       "package x // (wire 55)\n",
		".git/x.go":                      "package x // (wire 56)\n",
		"internal/a/README.md":           "here\n",
		"internal/a/x.pb.go":             "package a // (wire 57)\n",
		"internal/a/x.proto":             "// As (wire 4.1)\n// and (wire\n// 4.2) say.\nmessage M {} // (wire 4)\n",
		"profiles/p.toml":                "a = 1 # given (wire 4.3)\nb = 2 # given (wire 44)\n",
		"Makefile":                       "# docs/gone.md\nall:\n",
		"internal/a/good.go":             "package a\n\n// As (wire 4.1, 4.3; p-mul 6.1 and 6.2), (wire 0 to 4), (wire 0.2: 2.7 only), (2.2; wire 4), (NACK, wire 4.1),\n// (wire 4; 2.2 differs), docs/pmul.md, README.md, wire 3 octets (and 4), the wire, https://x.example/y/gone.md, (fire 9).\nvar x = \"wire 4.9 in jxta.md\" // (p-mul\n",
		"internal/a/bad.go":              "package a\n\n// One (wire 4.2), two (p-mul 6, 9),\n// three (wire 4 to 5), four wire 4.1, five (jxta.md 4.1),\n// six (wire section 4), seven docs/none.md, eight (wire 0.2 is of 2.7),\n// nine p-mul, decision 6.\n/* ten\n(wire\n8) */\nvar x = 1 // eleven: (wire 4.1, and p-mul.md 7)\n",
		"internal/a/deeper/other/doc.go": "// Package other: (wire 7).\npackage other\n",
	})
	faults, err := Citations(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.String())
	}
	syntax := " is no citation: docs/reference/README.md has the syntax"
	want := []string{
		"Makefile:1: docs/gone.md does not exist",
		"docs/pmul.md:2: (p-mul 6.3): the page has no such number",
		"docs/pmul.md:5: (wire 5): the page has no such number",
		"docs/pmul.md:10: jxta.md does not exist",
		"internal/a/bad.go:3: (wire 4.2): the page has no such number",
		"internal/a/bad.go:3: (p-mul 9): the page has no such number",
		"internal/a/bad.go:4: (wire 5): the page has no such number",
		"internal/a/bad.go:8: (wire 8): the page has no such number",
		`internal/a/bad.go:4: "wire 4.1"` + syntax,
		`internal/a/bad.go:4: "jxta.md 4.1"` + syntax,
		`internal/a/bad.go:5: "wire section 4"` + syntax,
		`internal/a/bad.go:5: "wire 0.2"` + syntax,
		`internal/a/bad.go:6: "p-mul, decision 6"` + syntax,
		"internal/a/bad.go:4: jxta.md does not exist",
		"internal/a/bad.go:5: docs/none.md does not exist",
		`internal/a/bad.go:10: "p-mul.md 7"` + syntax,
		"internal/a/bad.go:10: p-mul.md does not exist",
		"internal/a/deeper/other/doc.go:1: (wire 7): the page has no such number",
		"internal/a/x.proto:2: (wire 4.2): the page has no such number",
		"profiles/p.toml:2: (wire 44): the page has no such number",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCitationsOfABadTable(t *testing.T) {
	root := writeTree(t, map[string]string{
		"docs/reference/README.md": "| `wire` | [jxta.md](jxta.md) | x |\n| `wire` | [jxta.md](jxta.md) | x |\n| `gone` | [no.md](no.md) | x |\n",
		"docs/reference/jxta.md":   "## 1. A\n\n## 1. B\n",
	})
	faults, err := Citations(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.String())
	}
	want := []string{
		"docs/reference/jxta.md:3: the heading 1 is there twice",
		"docs/reference/README.md:2: wire is in the table twice",
		"docs/reference/README.md:3: gone stands for docs/reference/no.md, which does not exist",
		"docs/reference/README.md:3: no.md does not exist",
		"docs/reference/README.md:3: no.md does not exist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for name, files := range map[string]map[string]string{
		"no table":      {"docs/reference/README.md": "nothing\n"},
		"no page":       {"docs/x.md": "nothing\n"},
		"damaged Go":    {"docs/reference/README.md": "| `wire` | [jxta.md](jxta.md) | x |\n", "docs/reference/jxta.md": "", "x.go": "pack"},
		"a table alone": {"docs/reference/README.md": "| wire | jxta.md |\n"},
	} {
		if _, err := Citations(writeTree(t, files)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
