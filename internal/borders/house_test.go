package borders

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHouse(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	faults, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// The check fires on each kind of fault, at its line, and on nothing else of the sample.
func TestBadSample(t *testing.T) {
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
			"12: a pure room imports the edge room journal",
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
		{"internal/daemon/bad.go", nil}, // an edge room may do all that
		{"internal/link/custody/bad_test.go", nil},
	}
	for _, tt := range tests {
		faults, err := CheckFile(tt.file, source)
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

func TestOtherFaults(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"internal/lan/x.go", "package lan\nimport \"C\"", "C is spoken in"},
		{"internal/link/seal/other.go", "package seal\nimport \"C\"", "C is spoken in"},
		{"internal/link/seal/sodium.go", "package seal\nimport \"C\"", ""},
		{"internal/lan/x_test.go", "package lan\nimport \"time\"\nfunc f() { time." + "Sleep(1) }", "a test sleeps"},
		{"internal/link/custody/x.go", "package custody\nimport . \"strings\"", "dot import"},
		{"internal/link/custody/x.go", "package custody\nimport \"fmt\"\nfunc f() { fmt.Println() }", "does I/O: fmt.Println"},
		{"internal/link/custody/x.go", "package custody\nimport \"math/rand\"", "imports math/rand"},
		{"internal/link/custody/x.go", "package custody\nimport \"net/netip\"\nimport \"time\"\nvar x = time.Unix(1, 0)\nvar y netip.Addr", ""},
		{"internal/link/envelope/x.pb.go", "package envelope\nimport \"sync\"", ""},
		{"cmd/gateway/main.go", "package main\nimport \"os\"", ""},
	} {
		faults, err := CheckFile(tt.file, []byte(tt.source))
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" && len(faults) > 0 || tt.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Why, tt.want)) {
			t.Errorf("%s %q: %v, want %q", tt.file, tt.source, faults, tt.want)
		}
	}
}

// Everything that go.mod names has its licence in NOTICE.
func TestNotice(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(mod), "require (")
	n := 0
	for line := range strings.Lines(requires) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.Contains(fields[0], ".") {
			continue
		}
		n++
		if !strings.Contains(string(notice), fields[0]+" "+fields[1]) {
			t.Errorf("NOTICE lacks %s %s", fields[0], fields[1])
		}
	}
	if n == 0 {
		t.Error("no modules found in go.mod")
	}
}

// A room that nobody classified is a fault, and so is a fault anywhere in a tree.
func TestCheckTree(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"internal/attic/a.go":               "package attic\n",
		"internal/rules/mark/s.go":          "package mark\nimport \"os\"\n",
		"internal/rules/mark/testdata/x.go": "package x\nimport \"os\"\n",
		"internal/lan/l.go":                 "package lan\nimport \"os\"\n",
	} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	faults, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(faults))
	for i, f := range faults {
		got[i] = f.String()
	}
	want := []string{
		"internal/attic:0: a room that internal/borders knows neither as pure nor as edge",
		"internal/rules/mark/s.go:2: a pure room imports os",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
