package logbook

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const top = "../../.."

// line is a place in the source that writes to the log.
type line struct {
	at     string
	level  string
	texts  []string // one of them is logged; of a text that ends with a variable, only the part before it
	fields []string // fields at the place itself
	spread bool     // others come from elsewhere
}

// scan finds every line of the log in the source of the ship's program.
func scan(t *testing.T) (lines []line) {
	t.Helper()
	dirs := map[string]bool{"cmd/gateway": true}
	err := filepath.WalkDir(filepath.Join(top, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "lab" || d.Name() == "borders" || d.Name() == "pmulfile" { // they write no log of a gateway
			return filepath.SkipDir
		}
		dirs[strings.TrimPrefix(path, top+"/")] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		paths, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var r room
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			r = append(r, f)
		}
		for _, f := range r {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok {
						if l, ok := r.lineOf(fn, call); ok {
							l.at = strings.TrimPrefix(set.Position(call.Pos()).String(), top+"/")
							lines = append(lines, l)
						}
					}
					return true
				})
			}
		}
	}
	return lines
}

// lineOf reads a call that writes to the log: Note(level, text, fields...) of the pure rooms, Warn(text, fields...) and the
// like of a logger, slog.NewRecord.
func (r room) lineOf(fn *ast.FuncDecl, call *ast.CallExpr) (l line, ok bool) {
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel || len(call.Args) == 0 {
		return l, false
	}
	args := call.Args
	switch name := sel.Sel.Name; {
	case name == "Note" || name == "note":
		if l.level, ok = literal(args[0]); !ok || !slices.Contains([]string{"debug", "info", "warn", "error"}, l.level) {
			return l, false
		}
		args = args[1:]
	case slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, name) && logger(sel.X):
		l.level = strings.ToLower(name)
	case name == "NewRecord" && len(args) == 4:
		level, _ := args[1].(*ast.SelectorExpr)
		l.level, args = strings.ToLower(strings.TrimPrefix(level.Sel.Name, "Level")), args[2:3]
	default:
		return l, false
	}
	if len(args) == 0 {
		return l, false
	}
	l.texts = r.texts(fn, args[0])
	for i := 1; i < len(args); i += 2 {
		if key, ok := literal(args[i]); ok {
			l.fields = append(l.fields, key)
		} else {
			l.spread = true
		}
	}
	l.spread = l.spread || call.Ellipsis.IsValid()
	return l, true
}

// logger says, by its name, whether an expression is a logger.
func logger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}

func literal(x ast.Expr) (string, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// room is the files of one package.
type room []*ast.File

// texts are the possible values of an expression: a literal or constant, the part before a variable, or the values that the
// function or its callers in the same package give to a variable.
func (r room) texts(fn *ast.FuncDecl, x ast.Expr) []string {
	if s, ok := literal(x); ok {
		return []string{s}
	}
	switch x := x.(type) {
	case *ast.BinaryExpr:
		return r.texts(fn, x.X)
	case *ast.Ident:
		found := map[string]bool{}
		for _, f := range r {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if s, ok := "", false; name.Name == x.Name && i < len(n.Values) {
							if s, ok = literal(n.Values[i]); ok {
								found[s] = true
							}
						}
					}
				case *ast.CallExpr:
					sel, ok := n.Fun.(*ast.SelectorExpr)
					if at := parameter(fn, x.Name); ok && sel.Sel.Name == fn.Name.Name && at >= 0 && at < len(n.Args) && n.Args[at] != ast.Expr(x) {
						for _, s := range r.texts(fn, n.Args[at]) {
							found[s] = true
						}
					}
				}
				return true
			})
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			assign, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, left := range assign.Lhs {
				if id, ok := left.(*ast.Ident); ok && id.Name == x.Name && i < len(assign.Rhs) {
					for _, s := range r.texts(fn, assign.Rhs[i]) {
						found[s] = true
					}
				}
			}
			return true
		})
		return slices.Sorted(maps.Keys(found))
	}
	return nil
}

// parameter is the index of a parameter, -1 if the function has none of this name.
func parameter(fn *ast.FuncDecl, name string) (at int) {
	for _, f := range fn.Type.Params.List {
		for _, id := range f.Names {
			if id.Name == name {
				return at
			}
			at++
		}
	}
	return -1
}
