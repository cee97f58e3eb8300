package house

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
	"jxta", "jxtabridge", "advcache", "compact", "envelope", "frame", "custody", "sched", "replica", "profile",
	"linkemu", "gateway", "normwire", "pmul", "report", "rehearse", "sim", "trace", "tune", "replay", "edgepeer", "filter",
}

// Edge are the rooms with sockets, files, clocks and goroutines. Pure rooms never import them, seal excepted: it is
// as deterministic as they are, and has C inside.
var Edge = []string{"daemon", "lan", "radio", "norm", "seal", "journal", "control", "config", "lab", "house", "pmulfile", "edgenet", "bench"}

// cgoFiles are the only files that speak C, by room.
var cgoFiles = map[string]string{"seal": "sodium.go", "norm": "cgo.go"}

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
	rooms, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		if r.IsDir() && !slices.Contains(Pure, r.Name()) && !slices.Contains(Edge, r.Name()) {
			faults = append(faults, Fault{token.Position{Filename: "internal/" + r.Name()}, "a room that internal/house knows neither as pure nor as edge"})
		}
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
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
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := CheckFile(filepath.ToSlash(rel), source)
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

// roomOf is the directory below internal; "" elsewhere.
func roomOf(file string) string {
	parts := strings.Split(file, "/")
	if len(parts) < 3 || parts[0] != "internal" {
		return ""
	}
	return parts[1]
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
			c.fail(spec, "C is spoken in internal/seal/sodium.go and internal/norm/cgo.go alone")
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
		if own, ok := strings.CutPrefix(p, module+"internal/"); ok && own != "seal" && slices.Contains(Edge, strings.Split(own, "/")[0]) {
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
