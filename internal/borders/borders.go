package borders

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "aldis/"

// Fault is one broken border. A fault of the tree as a whole has no line.
type Fault struct {
	Pos token.Position
	Why string
}

// String spells the fault as compilers do: file, line, what is wrong.
func (f Fault) String() string {
	if f.Pos.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Pos.Filename, f.Why)
	}
	return fmt.Sprintf("%s:%d: %s", f.Pos.Filename, f.Pos.Line, f.Why)
}

// faultAt is a fault of a file or a directory, without a line.
func faultAt(name, format string, args ...any) Fault {
	return Fault{token.Position{Filename: name}, fmt.Sprintf(format, args...)}
}

// file is one parsed Go file.
type file struct {
	path            string // below the module's directory, with slashes
	room            string // Path of its room
	test, generated bool
	set             *token.FileSet
	tree            *ast.File
	lines           int
	names           map[string]string // local name of an import -> its import path
}

// parse reads a file by its path below the module's directory.
func parse(name string, source []byte) (*file, error) {
	f := &file{path: name, room: pathOf(path.Dir(name)), set: token.NewFileSet(), names: map[string]string{},
		test: strings.HasSuffix(name, "_test.go"), generated: strings.HasSuffix(name, ".pb.go"),
		lines: strings.Count(string(source), "\n")}
	var err error
	if f.tree, err = parser.ParseFile(f.set, name, source, parser.SkipObjectResolution|parser.ParseComments); err != nil {
		return nil, err
	}
	for _, spec := range f.tree.Imports {
		p := importPath(spec)
		local := path.Base(p)
		if local == "v2" {
			local = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		f.names[local] = p
	}
	return f, nil
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser accepted it
	}
	return p
}

// source says whether the file is neither test nor generated.
func (f *file) source() bool { return !f.test && !f.generated }

func (f *file) fault(n ast.Node, format string, args ...any) Fault {
	return Fault{f.set.Position(n.Pos()), fmt.Sprintf(format, args...)}
}

// selector splits pkg.Name if pkg is an import.
func (f *file) selector(n ast.Node) (pkg, name string, ok bool) {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := s.X.(*ast.Ident)
	if !ok || f.names[id.Name] == "" {
		return "", "", false
	}
	return f.names[id.Name], s.Sel.Name, true
}

// read parses every Go file below root.
func read(root string) (files []*file, err error) {
	err = walk(root, func(d fs.DirEntry) bool { return strings.HasSuffix(d.Name(), ".go") }, func(rel string, source []byte) error {
		f, err := parse(rel, source)
		files = append(files, f)
		return err
	})
	return files, err
}

// walk calls each for the wanted files below root, the module's directory, with their path below root. It skips hidden
// directories and those named testdata.
func walk(root string, wanted func(fs.DirEntry) bool, each func(rel string, source []byte) error) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !wanted(d):
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(rel), source)
	})
}

// Check reads every Go file below root, the module's directory, and returns the broken rules. The error is of reading.
func Check(root string) ([]Fault, error) {
	files, err := read(root)
	if err != nil {
		return nil, err
	}
	faults := append(walls(files, Rooms, Upward), astray(Rooms)...)
	for _, f := range files {
		faults = append(faults, f.check(Rooms)...)
	}
	faults = append(faults, comments(files)...)
	faults = append(faults, lists(files)...)
	_, lost, err := paths(root, files)
	return append(faults, lost...), err
}

// check checks the rules that one file alone can break.
func (f *file) check(rooms table) []Fault {
	return slices.Concat(f.wall(rooms), f.speaksC(), f.impure(rooms), f.sleeps())
}
