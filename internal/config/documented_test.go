package config

import (
	"os"
	"strings"
	"testing"
)

// Every key that a configuration may have is in docs/configure.md.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	for section, keys := range known {
		if section != "" && !strings.Contains(string(page), "["+section+"]") {
			t.Errorf("docs/configure.md has no section %s", section)
		}
		for _, key := range keys {
			if !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/configure.md has no key `%s` of %s", key, section)
			}
		}
	}
}
