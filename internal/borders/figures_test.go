package borders

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods and mostFields are the bounds of TestFigures. The aim is 60 and 25.
const (
	mostMethods = 60
	mostFields  = 25
)

var otherTree = flag.String("root", "", "TestFigures measures the tree in this directory and judges nothing")

// With -v the figures of the source are printed. No type has more methods, and no struct more fields, than the bounds.
func TestFigures(t *testing.T) {
	root := filepath.Join("..", "..")
	if *otherTree != "" {
		root = *otherTree
	}
	files, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	fig, faults := measure(files)
	if fig.Cited, _, err = paths(root, files); err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		what string
		all  []Figure
		most int
	}{{"methods", fig.Methods, mostMethods}, {"fields", fig.Fields, mostFields}} {
		var text strings.Builder
		for _, f := range list.all[:min(10, len(list.all))] {
			fmt.Fprintf(&text, "\n%6d %s", f.N, f.Type)
		}
		t.Logf("%s, at most %d:%s", list.what, list.most, text.String())
		for _, f := range list.all {
			if f.N > list.most && *otherTree == "" {
				t.Errorf("%s has %d %s, more than %d", f.Type, f.N, list.what, list.most)
			}
		}
	}
	t.Logf("%d source lines below internal/, %d paths and make targets in comments resolved", fig.Lines, fig.Cited)
	for _, f := range faults {
		if *otherTree == "" {
			t.Error(f)
		}
	}
}

// Methods from embedded types count, across packages; an embedded type counts as one field.
func TestMeasure(t *testing.T) {
	fig, _ := measure(tree(t, map[string]string{
		"internal/a/a.go": "package a\nimport q \"aldis/internal/b\"\n" +
			"type Big struct { *inner; q.Other[int]; x, y int }\nfunc (b *Big) One() {}\n" +
			"type inner struct { deep; *Big }\nfunc (inner) One() {}\nfunc (i *inner) Two() {}\n" +
			"type deep struct { A, B, C, D, E int }\nfunc (deep) Three() {}\n" +
			"type loadConfig struct { A, B, C, D, E, F, G int }\n",
		"internal/a/b.go":      "package a\nfunc (b *Big) Five() {}\ntype adapter interface { Six(); deep }\ntype alias = deep\n",
		"internal/a/a_test.go": "package a\nfunc (b *Big) Test() {}\n",
		"internal/a/a.pb.go":   "package a\ntype Wire struct { A, B, C, D, E, F int }\n",
		"internal/b/b.go":      "package b\ntype Other[T any] struct { T int }\nfunc (o *Other[T]) Four() {}\n",
		"cmd/gateway/a.go":     "package main\nfunc main() {}\n",
	}))
	spelt := func(list []Figure) (out []string) {
		for _, f := range list {
			out = append(out, fmt.Sprint(f.N, " ", f.Type))
		}
		return out
	}
	same(t, "methods", spelt(fig.Methods), []string{"5 a.Big", "5 a.inner", "2 a.adapter", "1 a.deep", "1 b.Other"})
	same(t, "fields", spelt(fig.Fields), []string{"5 a.deep", "4 a.Big", "2 a.inner", "1 b.Other"})
	if fig.Lines != 10+4+3 {
		t.Errorf("%d lines below internal/", fig.Lines)
	}
}
