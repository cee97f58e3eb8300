package borders

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// strangersRooms read octets of a link or a LAN: inputs that once found a new path through them are kept, and go test runs
// them.
var strangersRooms = []string{"internal/jxta", "internal/edge/lan", "internal/link/compact", "internal/link/envelope", "internal/link/frame", "internal/link/segment",
	"internal/link/roster", "internal/link/seal", "internal/link/elide", "internal/pmul", "internal/adapters/tak/code", "internal/adapters/tak/cot",
	"internal/adapters/xmpp/code", "internal/adapters/xmpp/stanza"}

// arithmetic are fuzz tests of these rooms that do not read a stranger's octets (scripts/fuzz).
var arithmetic = map[string]bool{"FuzzNormalize": true, "FuzzModel": true}

// TestFuzzCorporaAreKept: each fuzz test of the module has seeds, and in rooms that read a stranger's octets each has inputs in
// its testdata, where scripts/fuzz writes new ones.
func TestFuzzCorporaAreKept(t *testing.T) {
	root := "../.."
	kept := map[string]bool{}
	for _, room := range strangersRooms {
		kept[room] = true
	}
	aFuzz := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	found := 0
	err := filepath.WalkDir(root+"/internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		room, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		for _, m := range aFuzz.FindAllStringSubmatch(string(text), -1) {
			found++
			inputs, _ := os.ReadDir(filepath.Join(dir, "testdata", "fuzz", m[1]))
			if len(inputs) == 0 && kept[room] && !arithmetic[m[1]] {
				t.Errorf("%s: no inputs are kept in testdata/fuzz/%s", room, m[1])
			}
			if _, body, _ := strings.Cut(string(text), m[0]); len(inputs) == 0 && !strings.Contains(body, ".Add(") {
				t.Errorf("%s: %s has no seeds", room, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("%d fuzz tests were found", found)
	}
}
