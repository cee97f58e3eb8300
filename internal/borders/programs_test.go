package borders

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked are the packages of this module that a program links, by their paths below the module's.
func linked(t *testing.T, program string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "./cmd/"+program)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range strings.Fields(string(out)) {
		if own, ok := strings.CutPrefix(p, module); ok {
			list = append(list, own)
		}
	}
	return list
}

// TestShipHasNoLaboratory: the ship's program links nothing of the workshop, and the second program does.
func TestShipHasNoLaboratory(t *testing.T) {
	ashore := func(p string) bool {
		return below(p, []string{"internal/lab/", "field-tests/", "internal/lab/pmulfile"})
	}
	for _, p := range linked(t, "gateway") {
		if ashore(p) {
			t.Errorf("gateway has %s in it", p)
		}
	}
	lab := linked(t, "gateway-lab")
	for _, p := range []string{"internal/lab/commands", "internal/lab/field", "internal/lab/replay", "internal/lab/pmulfile"} {
		if !slices.Contains(lab, p) {
			t.Errorf("gateway-lab lacks %s", p)
		}
	}
	if slices.Contains(lab, "internal/operator/node") {
		t.Error("gateway-lab can run a gateway")
	}
}
