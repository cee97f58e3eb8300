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

// Pure are the rooms that are state machines and codecs: (now, event) in, values out.
var Pure = []string{
	"jxta", "jxtabridge", "advcache", "gateway", "pmul", "norm/elide", "rules/filter", "rules/mark",
	"link/compact", "link/envelope", "link/frame", "link/custody", "link/replica", "link/profile",
	"lab/linkemu", "lab/sim", "lab/edgepeer", "lab/trace", "lab/replay", "lab/forecast", "lab/tune", "lab/report",
}

// Edge are the rooms with sockets, files, clocks and goroutines. Pure rooms never import them, seal excepted: it is
// as deterministic as they are, and has C inside.
var Edge = []string{
	"daemon", "lan", "radio", "norm", "link/seal", "journal", "control", "config", "lab/field", "borders", "pmul/pmulfile",
	"lab/edgepeer/tcp", "lab/bench", "lab/wait",
}

// cgoFiles are the only files that speak C, by room.
var cgoFiles = map[string]string{"link/seal": "sodium.go", "norm": "cgo.go"}

// forbidden are packages whose business is not a pure room's; a trailing slash takes all below.
var forbidden = []string{
	"C", "os", "os/", "net", "net/http", "net/http/", "net/rpc", "net/rpc/", "net/smtp", "net/textproto", "syscall", "log", "log/",
	"sync", "sync/", "runtime", "runtime/", "context", "plugin", "crypto/rand", "crypto/tls", "io/ioutil", "math/rand",
	"testing", "testing/", "time/tzdata", "golang.org/x/sys/", "golang.org/x/net/", "go.etcd.io/", "github.com/prometheus/",
}

// clocks are what of package time reads or waits for the wall clock.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// ownRandom is what of math/rand/v2 needs no global source.
var ownRandom = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// Fault is one broken border.
type Fault struct {
	Pos token.Position
	Why string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.Pos.Filename, f.Pos.Line, f.Why) }

// Check reads every Go file below root, the module's directory, and returns what breaks the rules.
func Check(root string) ([]Fault, error) {
	var faults []Fault
	unknown := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if dir := path.Dir(rel); strings.HasPrefix(dir, "internal/") && roomOf(rel) == "" && !unknown[dir] {
			unknown[dir] = true
			faults = append(faults, Fault{token.Position{Filename: dir}, "a room that internal/borders knows neither as pure nor as edge"})
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := CheckFile(rel, source)
		faults = append(faults, found...)
		return err
	})
	return faults, err
}

// CheckFile judges one file by its path below the module's directory.
func CheckFile(file string, source []byte) ([]Fault, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	c := &checker{set: set, names: map[string]string{}}
	room, test := roomOf(file), strings.HasSuffix(file, "_test.go")
	c.imports(tree, room, path.Base(file), test)
	generated := strings.HasSuffix(file, ".pb.go")
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if pkg, name, ok := c.selector(n); ok && test && pkg == "time" && name == "Sleep" {
			c.fail(n, "a test sleeps: wait for the condition, or use virtual time")
		}
		if slices.Contains(Pure, room) && !test && !generated {
			c.pure(n)
		}
		return true
	})
	return c.faults, nil
}

// roomOf is the room that a file below internal belongs to: the longest name of a room that its path begins with.
func roomOf(file string) (room string) {
	dir, inside := strings.CutPrefix(path.Dir(file), "internal/")
	for ; inside && dir != "."; dir = path.Dir(dir) {
		if slices.Contains(Pure, dir) || slices.Contains(Edge, dir) {
			return dir
		}
	}
	return ""
}

type checker struct {
	set    *token.FileSet
	names  map[string]string // local name of an import -> its path
	faults []Fault
}

func (c *checker) fail(n ast.Node, format string, args ...any) {
	c.faults = append(c.faults, Fault{c.set.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

func (c *checker) imports(tree *ast.File, room, base string, test bool) {
	pure := slices.Contains(Pure, room)
	generated := strings.HasSuffix(base, ".pb.go")
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		c.names[name] = p
		if p == "C" && (room == "" || cgoFiles[room] != base) {
			c.fail(spec, "C is spoken in internal/link/seal/sodium.go and internal/norm/cgo.go alone")
		}
		if !pure || test || generated {
			continue
		}
		if below(p, forbidden) {
			c.fail(spec, "a pure room imports %s", p)
		}
		if name == "." {
			c.fail(spec, "a dot import hides where names come from")
		}
		if own, ok := strings.CutPrefix(p, module+"internal/"); ok && own != "link/seal" && slices.Contains(Edge, roomOf(p[len(module):]+"/")) {
			c.fail(spec, "a pure room imports the edge room %s", own)
		}
	}
}

func below(p string, list []string) bool {
	return slices.ContainsFunc(list, func(f string) bool {
		return p == f || strings.HasSuffix(f, "/") && strings.HasPrefix(p, f)
	})
}

// selector splits pkg.Name where pkg is an import.
func (c *checker) selector(n ast.Node) (pkg, name string, ok bool) {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := s.X.(*ast.Ident)
	if !ok || c.names[id.Name] == "" {
		return "", "", false
	}
	return c.names[id.Name], s.Sel.Name, true
}

func (c *checker) pure(n ast.Node) {
	if pkg, name, ok := c.selector(n); ok {
		switch {
		case pkg == "time" && slices.Contains(clocks, name):
			c.fail(n, "a pure room uses time.%s: now is an argument", name)
		case pkg == "math/rand/v2" && !slices.Contains(ownRandom, name):
			c.fail(n, "a pure room draws from the global random source: rand.%s", name)
		case pkg == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")):
			c.fail(n, "a pure room does I/O: fmt.%s", name)
		}
	}
	switch n := n.(type) {
	case *ast.GoStmt:
		c.fail(n, "a pure room starts a goroutine")
	case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
		c.fail(n, "a pure room uses channels")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.fail(n, "a pure room uses channels")
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			c.fail(n, "a pure room does I/O: %s", id.Name)
		}
	case *ast.FuncDecl:
		if n.Name.Name == "init" && n.Recv == nil {
			c.fail(n, "a pure room has an init function")
		}
	}
}
