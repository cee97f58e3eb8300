package borders

import (
	"os"
	"strings"
	"testing"
)

// Every module in go.mod has its licence in NOTICE.
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
