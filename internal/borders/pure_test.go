package borders

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// The check reports each kind of fault, at its line, and nothing else in the sample.
func TestImpureSample(t *testing.T) {
	source, err := os.ReadFile("testdata/bad/bad.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		file string
		want []string
	}{
		{"internal/link/custody/bad.go", []string{
			"4: a pure room imports log",
			"6: a pure room imports net",
			"8: a pure room imports os",
			"9: a pure room imports sync",
			"12: a pure room imports the edge room edge/journal",
			"18: a pure room has an init function",
			"21: a pure room starts a goroutine",
			"22: a pure room uses time.Now: now is an argument",
			"23: a pure room uses channels",
			"24: a pure room uses channels",
			"24: a pure room draws from the global random source: rand.IntN",
			"25: a pure room uses channels",
			"26: a pure room uses channels",
			"27: a pure room does I/O: println",
			"28: a pure room uses time.Now: now is an argument",
			"29: a pure room uses time.Since: now is an argument",
			"29: a pure room uses time.Until: now is an argument",
		}},
		{"internal/edge/daemon/bad.go", nil}, // an edge room may do all that
		{"internal/link/custody/bad_test.go", nil},
	}
	for _, tt := range tests {
		faults, err := checkOne(tt.file, string(source))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
		for _, f := range faults {
			got = append(got, strings.TrimPrefix(f.String(), tt.file+":"))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.file, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

func TestOtherImpurities(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"internal/edge/lan/x.go", "package lan\nimport \"C\"", "C is spoken in"},
		{"internal/link/seal/other.go", "package seal\nimport \"C\"", "C is spoken in"},
		{"internal/link/seal/sodium.go", "package seal\nimport \"C\"", ""},
		{"internal/link/custody/x.go", "package custody\nimport . \"strings\"", "dot import"},
		{"internal/link/custody/x.go", "package custody\nimport \"fmt\"\nfunc f() { fmt.Println() }", "does I/O: fmt.Println"},
		{"internal/link/custody/x.go", "package custody\nimport \"math/rand\"", "imports math/rand"},
		{"internal/link/custody/x.go", "package custody\nimport \"net/netip\"\nimport \"time\"\nvar x = time.Unix(1, 0)\nvar y netip.Addr", ""},
		{"internal/link/envelope/x.pb.go", "package envelope\nimport \"sync\"", ""},
		{"cmd/gateway/main.go", "package main\nimport \"os\"", ""},
	} {
		faults, err := checkOne(tt.file, tt.source)
		if err != nil {
			t.Fatal(err)
		}
		in := check.In(t, tt.file, tt.source)
		if tt.want == "" {
			check.Equal(in, "len(faults)", len(faults), 0)
		} else if check.Equal(in, "len(faults)", len(faults), 1) {
			check.Contains(in, "faults[0].Why", faults[0].Why, tt.want)
		}
	}
}

// checkOne checks one file as a pure room's, or as the kind of room that the table names.
func checkOne(name, source string) ([]Fault, error) {
	f, err := parse(name, []byte(source))
	if err != nil {
		return nil, err
	}
	return append(f.speaksC(), f.impure(Rooms)...), nil
}
