package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A key or section under an old name is one mistake, which gives its present name: it is not reported as missing too.
func TestOldNames(t *testing.T) {
	defer func(names map[string]string) { oldNames = names }(oldNames)
	oldNames = map[string]string{"node.number": "node.id", "lan.peers_at_most": "lan.max_connections", "rule": "filter", "web": "http"}
	got := faults(t, strings.NewReplacer("id = 2\n", "number = 2\n", "[link]", "peers_at_most = 3\n[link]", "[http]\nlisten", "[[rule]]\nname = \"x\"\n[web]\nat").Replace(good))
	check.Equal(t, "mistakes", strings.Join(got, "\n"), strings.Join([]string{
		"2: node.number: there is no such key since version 0.2: it is node.id now",
		"7: lan.peers_at_most: there is no such key since version 0.2: it is lan.max_connections now",
		"18: rule: there is no such section since version 0.2: it is filter now",
		"20: web: there is no such section since version 0.2: it is http now",
	}, "\n"))
}

// Old names are not in the schema, new names are; and each key that a check names is in the schema.
func TestNamesOfKeys(t *testing.T) {
	names := map[string]bool{}
	for _, p := range schema(&Config{}) {
		names[p.name] = true
		for _, k := range p.keys {
			names[k.name], names[p.name+"."+k.name] = true, true
		}
	}
	for old, now := range oldNames {
		check.True(t, old+" is gone and "+now+" is there", !names[old] && names[now])
	}
	methods := []string{"fail", "get", "has", "line", "missing", "wrong", "fill", "section"}
	named := func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(methods, f.Sel.Name) {
			for i, arg := range call.Args {
				lit, ok := arg.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || i > 0 && (f.Sel.Name == "fail" || f.Sel.Name == "missing") {
					continue
				}
				name, _ := strconv.Unquote(lit.Value)
				check.True(t, f.Sel.Name+" names a key: "+lit.Value, names[name])
			}
		}
		return true
	}
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		check.NoError(check.Fatal(t), err)
		if !strings.HasSuffix(name, "_test.go") {
			ast.Inspect(file, named)
		}
	}
}
