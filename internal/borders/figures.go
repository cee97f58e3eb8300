package borders

import (
	"cmp"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Figure is a count of one type.
type Figure struct {
	Type string // room and name
	N    int
}

// Figures measure the source: no tests, no generated files.
type Figures struct {
	Methods []Figure // of each type, including those of embedded types; most first
	Fields  []Figure // of each struct that is not exempt; an embedded type counts as one field; most first
	Lines   int      // below internal/
	Cited   int      // paths and make targets in comments that exist
}

// plain are the suffixes of the names of structs that are lists of values: nobody has to understand how their fields change
// together, so their size is no burden.
var plain = []string{"Config", "Options", "Stats", "Counts", "Status", "Row", "Report", "Figures", "Result"}

// exempt are other such structs, with the reason. An entry for a struct that does not exist is a fault.
var exempt = map[string]string{
	"lab/field.Run":        "figures of one game, written as JSON",
	"lab/replay.Rehearsal": "figures of a forecast, written as JSON",
}

// kindOf is a declared type as the figures need it.
type kindOf struct {
	methods map[string]bool
	embeds  []string // keys of types
	fields  int      // -1: no struct
	at      string
}

// measure measures a tree.
func measure(files []*file) (fig Figures, faults []Fault) {
	types := map[string]*kindOf{}
	get := func(key string) *kindOf {
		if types[key] == nil {
			types[key] = &kindOf{methods: map[string]bool{}, fields: -1}
		}
		return types[key]
	}
	for _, f := range files {
		if !f.source() {
			continue
		}
		if strings.HasPrefix(f.path, "internal/") {
			fig.Lines += f.lines
		}
		for _, d := range f.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					get(f.key(d.Recv.List[0].Type)).methods[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && !s.Assign.IsValid() {
						f.declare(get(f.room+"."+s.Name.Name), s)
					}
				}
			}
		}
	}
	for key, t := range types {
		if t.at == "" {
			continue // only embedded here, and declared elsewhere
		}
		if n := len(promoted(types, key, nil)); n > 0 {
			fig.Methods = append(fig.Methods, Figure{key, n})
		}
		isPlain := slices.ContainsFunc(plain, func(end string) bool { return strings.HasSuffix(key, end) })
		if t.fields >= 0 && !isPlain && exempt[key] == "" {
			fig.Fields = append(fig.Fields, Figure{key, t.fields})
		}
	}
	for key := range exempt {
		if t := types[key]; t == nil || t.fields < 0 {
			faults = append(faults, faultAt(key, "exempt excuses a struct that is not there"))
		}
	}
	most := func(a, b Figure) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Type, b.Type)) }
	slices.SortFunc(fig.Methods, most)
	slices.SortFunc(fig.Fields, most)
	return fig, faults
}

// key names the type of an expression, that of a receiver or of an embedded field.
func (f *file) key(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return f.key(x.X)
	case *ast.ParenExpr:
		return f.key(x.X)
	case *ast.IndexExpr:
		return f.key(x.X)
	case *ast.IndexListExpr:
		return f.key(x.X)
	case *ast.Ident:
		return f.room + "." + x.Name
	case *ast.SelectorExpr:
		if pkg, name, ok := f.selector(x); ok {
			return pathOf(strings.TrimPrefix(pkg, module)) + "." + name
		}
	}
	return path.Join(f.room, "?")
}

// declare records a type's fields, its embedded types, and an interface's methods.
func (f *file) declare(t *kindOf, s *ast.TypeSpec) {
	t.at = f.path
	switch x := s.Type.(type) {
	case *ast.StructType:
		t.fields = x.Fields.NumFields()
		for _, field := range x.Fields.List {
			if len(field.Names) == 0 {
				t.embeds = append(t.embeds, f.key(field.Type))
			}
		}
	case *ast.InterfaceType:
		for _, m := range x.Methods.List {
			for _, n := range m.Names {
				t.methods[n.Name] = true
			}
			if len(m.Names) == 0 {
				t.embeds = append(t.embeds, f.key(m.Type))
			}
		}
	}
}

// promoted are the methods of a type, including those of the types of this module that it embeds.
func promoted(types map[string]*kindOf, key string, over []string) map[string]bool {
	all := map[string]bool{}
	t := types[key]
	if t == nil || slices.Contains(over, key) {
		return all
	}
	for m := range t.methods {
		all[m] = true
	}
	for _, e := range t.embeds {
		for m := range promoted(types, e, append(over, key)) {
			all[m] = true
		}
	}
	return all
}
