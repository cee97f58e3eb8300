package borders

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	aTestCommand = regexp.MustCompile("`(go test [^`]*)`")
	aTestFunc    = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)
	aClaim       = regexp.MustCompile(`(?m)^\| .*\|$`)
)

// testsIn are the names of the tests, benchmarks and fuzz tests of a package, or with /... of all packages below.
func testsIn(root, pkg string) (names []string, err error) {
	dir, deep := strings.CutSuffix(pkg, "/...")
	dir = filepath.Join(root, dir)
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && !deep:
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range aTestFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	return names, err
}

// words are the words of a command line with single quotes.
func words(command string) (list []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

// missing reports names in a command that do not exist: packages, and each alternative of -run and -bench.
func missing(root, command string) (faults []string) {
	list := words(strings.ReplaceAll(command, `\|`, "|"))
	var names []string
	var patterns []string
	for i := 2; i < len(list); i++ {
		switch w := list[i]; {
		case w == "-args":
			i = len(list)
		case w == "-run" || w == "-bench" || w == "-fuzz":
			if i++; i < len(list) {
				patterns = append(patterns, list[i])
			}
		case slices.Contains([]string{"-tags", "-timeout", "-count", "-cpuprofile", "-benchtime", "-p", "-skip", "-parallel"}, w):
			i++
		case strings.HasPrefix(w, "./") && !strings.Contains(w, "ROOM"): // CONTRIBUTING.md
			in, err := testsIn(root, w)
			if err != nil {
				faults = append(faults, err.Error())
			}
			names = append(names, in...)
		}
	}
	for _, p := range patterns {
		first, _, _ := strings.Cut(p, "/")
		for _, one := range strings.Split(first, "|") {
			if one == "^$" {
				continue
			}
			re, err := regexp.Compile(one)
			if err != nil {
				faults = append(faults, err.Error())
				continue
			}
			if !slices.ContainsFunc(names, re.MatchString) {
				faults = append(faults, fmt.Sprintf("no test matches %q", one))
			}
		}
	}
	return faults
}

// TestCommandsOfPages: everything that a page of documentation tells the reader to run exists. A claim of docs/security.md without
// its test fails here.
func TestCommandsOfPages(t *testing.T) {
	root := "../.."
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(root + "/docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, page := range append(append(pages, more...), root+"/README.md", root+"/SECURITY.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range aTestCommand.FindAllStringSubmatch(string(text), -1) {
			commands++
			for _, f := range missing(root, m[1]) {
				t.Errorf("%s: %s: %s", filepath.Base(page), m[1], f)
			}
		}
	}
	if commands < 40 {
		t.Errorf("%d commands were found", commands)
	}
}

// TestEveryClaimHasATest: in docs/security.md, each row of the tables about an adversary's means and about measurements names a
// command or a page.
func TestEveryClaimHasATest(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, title := range []string{"\n## What an adversary can do\n", "\n## Measured\n"} {
		_, section, ok := strings.Cut(string(text), title)
		if !ok {
			t.Fatalf("no section %q", strings.TrimSpace(title))
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, row := range aClaim.FindAllString(section, -1)[2:] {
			rows++
			if !regexp.MustCompile("go test |make [a-z]|docs/|\\| the same|\\]\\(|\"[A-Z]|this page|keys of nodes").MatchString(row) {
				t.Errorf("no test and no page: %s", row)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows were read", rows)
	}
}

func TestMissingTestsAreFound(t *testing.T) {
	for command, want := range map[string]int{
		`go test ./internal/borders -run 'TestMissing\|TestCommands'`:  0,
		`go test ./internal/borders -run 'TestMissing\|NoSuchTest'`:    1,
		`go test -v -tags long ./internal/borders -run TestMissing`:    0,
		`go test ./internal/nowhere`:                                   1,
		`go test ./internal/borders -run '^$' -bench NoSuchBenchmark`:  1,
		`go test ./internal/borders -run TestMissing/sub -args -write`: 0,
	} {
		if got := missing("../..", command); len(got) != want {
			t.Errorf("%s: %q", command, got)
		}
	}
}
