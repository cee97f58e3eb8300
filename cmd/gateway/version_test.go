package main

import (
	"os"
	"regexp"
	"runtime"
	"testing"

	"aldis/internal/operator/cli"
)

// The changelog has the changes of a release before it gets its number.
func TestChangelogNamesTheVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (.*)$`).FindSubmatch(text)
	if first == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	if want := regexp.MustCompile(`^\[` + regexp.QuoteMeta(cli.Version) + `\] - (unreleased|\d{4}-\d\d-\d\d)$`); !want.Match(first[1]) {
		t.Errorf("the first heading of CHANGELOG.md is %q, the version is %s", first[1], cli.Version)
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := run(t, "version")
	line := regexp.MustCompile(`^aldis gateway ` + regexp.QuoteMeta(cli.Version) + `( \(commit [0-9a-f]{7,}(-dirty)?\))?, ` +
		regexp.QuoteMeta(runtime.Version()) + ` \w+/\w+\n$`)
	if code != 0 || !line.MatchString(out) {
		t.Errorf("exit %d, %q", code, out)
	}
}
