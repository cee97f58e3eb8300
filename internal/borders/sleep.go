package borders

import (
	"go/ast"
	"go/token"
)

// sleeps finds tests that wait for time instead of a condition: time.Sleep, time.Tick, and a receive from time.After or from a
// new timer that nothing else can end. In a synctest bubble time is virtual, so tests may wait for it.
func (f *file) sleeps() (faults []Fault) {
	if !f.test {
		return nil
	}
	raced := map[ast.Node]bool{} // receives in a select with other cases
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if f.bubble(n) {
			return false
		}
		if s, ok := n.(*ast.SelectStmt); ok && len(s.Body.List) > 1 {
			for _, c := range s.Body.List {
				ast.Inspect(commOf(c), func(n ast.Node) bool {
					raced[n] = true
					return true
				})
			}
		}
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.ARROW && !raced[n] && f.onlyTime(u.X) {
			faults = append(faults, f.fault(n, "a test sleeps: wait for the condition, or use virtual time"))
		}
		if pkg, name, ok := f.selector(n); ok && pkg == "time" && (name == "Sleep" || name == "Tick") {
			faults = append(faults, f.fault(n, "a test sleeps: wait for the condition, or use virtual time"))
		}
		return true
	})
	return faults
}

// commOf is the send or receive that a case of a select waits for.
func commOf(s ast.Stmt) ast.Node {
	if c, ok := s.(*ast.CommClause); ok && c.Comm != nil {
		return c.Comm
	}
	return &ast.EmptyStmt{}
}

// onlyTime says that a channel is time.After's, or that of a timer made in the same expression.
func (f *file) onlyTime(x ast.Expr) bool {
	if s, ok := x.(*ast.SelectorExpr); ok && s.Sel.Name == "C" {
		x = s.X
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return false
	}
	pkg, name, ok := f.selector(ast.Unparen(call.Fun))
	return ok && pkg == "time" && (name == "After" || name == "NewTimer")
}

// bubble says that a node runs in virtual time: an argument of synctest.Test, or a function that calls synctest.Wait, which
// panics outside a bubble.
func (f *file) bubble(n ast.Node) bool {
	calls := func(n ast.Node, name string) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		pkg, called, ok := f.selector(call.Fun)
		return ok && pkg == "testing/synctest" && called == name
	}
	if calls(n, "Test") {
		return true
	}
	d, ok := n.(*ast.FuncDecl)
	if !ok || d.Body == nil {
		return false
	}
	for _, s := range d.Body.List {
		if e, ok := s.(*ast.ExprStmt); ok && calls(e.X, "Wait") {
			return true
		}
	}
	return false
}
