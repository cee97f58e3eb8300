package borders

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// cgoFiles are the only files that use cgo, by room.
var cgoFiles = map[string]string{"link/seal": "sodium.go", "edge/norm": "cgo.go"}

// forbidden are packages that a pure room must not import; a trailing slash includes all packages below.
var forbidden = []string{
	"C", "os", "os/", "net", "net/http", "net/http/", "net/rpc", "net/rpc/", "net/smtp", "net/textproto", "syscall", "log", "log/",
	"sync", "sync/", "runtime", "runtime/", "context", "plugin", "crypto/rand", "crypto/tls", "io/ioutil", "math/rand",
	"testing", "testing/", "time/tzdata", "golang.org/x/sys/unix", "golang.org/x/sys/windows/", "golang.org/x/net/", "go.etcd.io/bbolt", "go.etcd.io/bbolt/", "github.com/prometheus/",
}

// clocks are the functions of package time that read the wall clock or wait for it.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// ownRandom are the names of math/rand/v2 that need no global source.
var ownRandom = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

func (f *file) speaksC() (faults []Fault) {
	for _, spec := range f.tree.Imports {
		if importPath(spec) == "C" && cgoFiles[f.room] != path.Base(f.path) {
			faults = append(faults, f.fault(spec, "C is spoken in internal/link/seal/sodium.go and internal/edge/norm/cgo.go alone"))
		}
	}
	return faults
}

// impure finds forbidden things in the source of a pure room.
func (f *file) impure(rooms table) (faults []Fault) {
	if room, _ := rooms.find(f.room); !room.pure() || !f.source() {
		return nil
	}
	for _, spec := range f.tree.Imports {
		p := importPath(spec)
		if below(p, forbidden) {
			faults = append(faults, f.fault(spec, "a pure room imports %s", p))
		}
		if spec.Name != nil && spec.Name.Name == "." {
			faults = append(faults, f.fault(spec, "a dot import hides where names come from"))
		}
		if own, ok := rooms.find(pathOf(strings.TrimPrefix(p, module))); ok && strings.HasPrefix(p, module) && own.Kind == Edge {
			faults = append(faults, f.fault(spec, "a pure room imports the edge room %s", own.Path))
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if why := f.impurity(n); why != "" {
			faults = append(faults, f.fault(n, "%s", why))
		}
		return true
	})
	return faults
}

func below(p string, list []string) bool {
	return slices.ContainsFunc(list, func(f string) bool {
		return p == f || strings.HasSuffix(f, "/") && strings.HasPrefix(p, f)
	})
}

// impurity says what is wrong with a node in a pure room; "": nothing.
func (f *file) impurity(n ast.Node) string {
	if pkg, name, ok := f.selector(n); ok {
		switch {
		case pkg == "time" && slices.Contains(clocks, name):
			return "a pure room uses time." + name + ": now is an argument"
		case pkg == "math/rand/v2" && !slices.Contains(ownRandom, name):
			return "a pure room draws from the global random source: rand." + name
		case pkg == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")):
			return "a pure room does I/O: fmt." + name
		}
	}
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a pure room starts a goroutine"
	case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
		return "a pure room uses channels"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a pure room uses channels"
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			return "a pure room does I/O: " + id.Name
		}
	case *ast.FuncDecl:
		if n.Name.Name == "init" && n.Recv == nil {
			return "a pure room has an init function"
		}
	}
	return ""
}
