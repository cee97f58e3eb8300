package cli

import "testing"

func TestVersionText(t *testing.T) {
	before := commit
	t.Cleanup(func() { commit = before })
	commit = "abc1234"
	if got, want := VersionText(), Version+" (commit abc1234)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
