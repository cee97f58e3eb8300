package borders

import (
	"fmt"
	"testing"
)

func TestLists(t *testing.T) {
	defer func(rooms []string) { listsLater = rooms }(listsLater)
	listsLater = []string{"later"}
	room := func(path, doc string, names ...string) map[string]string {
		files := map[string]string{path + "/doc.go": "// Package a is.\n" + doc + "package a\n"}
		for _, n := range names {
			files[path+"/"+n] = "package a\n"
		}
		return files
	}
	var seven []string
	for i := range listFrom {
		seven = append(seven, fmt.Sprintf("f%d.go", i))
	}
	section := "//\n// # Files\n//\n//   - a.go: what\n//   - b.go: c.go is named here in passing\n//\n// # Units\n//\n//   - d.go: is no file\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"no list, few files", room("internal/a", "", "a.go", "b.go"), nil},
		{"whole", room("internal/a", section, "a.go", "b.go", "a_test.go", "x.pb.go"), nil},
		{"a file lacks", room("internal/a", section, "a.go", "b.go", "c.go"), []string{"internal/a/doc.go: the list of files lacks c.go"}},
		{"no such file", room("internal/a", section, "a.go"), []string{"internal/a/doc.go: the list of files names b.go, which does not exist"}},
		{"as a paragraph", room("internal/a", "//\n// Files: a.go Step; b.go the\n// rest; c.go more.\n//\n// And d.go.\n", "a.go", "b.go", "d.go"),
			[]string{"internal/a/doc.go: the list of files names c.go, which does not exist", "internal/a/doc.go: the list of files lacks d.go"}},
		{"many files without", room("internal/a", "", seven...),
			[]string{"internal/a: a room of 7 files without a list of them in its package comment"}},
		{"many files but one", room("internal/a", "", seven[1:]...), nil},
		{"excused", room("internal/"+listsLater[0], "", seven...), nil},
		{"excused for nothing", room("internal/"+listsLater[0], section, "a.go", "b.go"),
			[]string{"internal/" + listsLater[0] + "/doc.go: listsLater excuses a room whose list is whole"}},
	} {
		same(t, tt.name, spell(lists(tree(t, tt.files))), tt.want)
	}
}
