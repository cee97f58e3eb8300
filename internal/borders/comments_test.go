package borders

import (
	"strings"
	"testing"
)

func TestComments(t *testing.T) {
	for _, tt := range []struct{ file, code, want string }{
		{"a.go", "// f does.\nfunc f() {}", ""},
		{"a.go", "// Sizes of all.\nfunc f() {}", ""},
		{"a.go", "// f, g: all.\nfunc f() {}", ""},
		{"a.go", "// Of the two.\ntype t int", ""},
		{"a.go", "// later orders.\nfunc compare() {}", `the comment of compare begins with "later"`},
		{"a.go", "// later orders.\nfunc (t t) compare() {}", `the comment of compare begins with "later"`},
		{"a.go", "// T is old.\ntype t int\ntype T int", `the comment of t begins with "T"`},
		{"a.go", "// Same as ever.\nvar same int", `the comment of same begins with "Same"`},
		{"a.go", "// Reads all.\nfunc Read() {}", `the comment of Read begins with "Reads"`},
		{"a.go", "// x and y.\nvar x, y int", ""},
		{"a.go", "// y and x.\nvar x, y int", ""},
		{"a.go", "// z and x.\nconst x, y = 1, 2", `the comment of x begins with "z"`},
		{"a.go", "// other things.\nvar (\n// b is it.\na int\n)", `the comment of a begins with "b"`},
		{"a.go", "// \"quoted\" is.\nfunc f() {}", ""},
		{"a_test.go", "// kill -9 and again.\nfunc TestF() {}", ""},
		{"a_test.go", "// TestG is another.\nfunc TestF() {}\nfunc TestG() {}", `the comment of TestF begins with "TestG"`},
		{"a_test.go", "// Jammed is.\ntype jammed int", `the comment of jammed begins with "Jammed"`},
		{"a_test.go", "// jam is.\nfunc jammed() {}", `the comment of jammed begins with "jam"`},
		{"a.pb.go", "// later orders.\nfunc compare() {}", ""},
	} {
		var got []string
		for _, f := range comments(tree(t, map[string]string{"internal/a/" + tt.file: "package a\n" + tt.code})) {
			got = append(got, f.Why)
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: %q, want %q", tt.code, got, tt.want)
		}
	}
}
