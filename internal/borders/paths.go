package borders

import (
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	citedPath   = regexp.MustCompile(`(^|[^\w./-])((?:internal|cmd|docs|field-tests|ops|profiles)/[\w./-]*\w)`)
	citedTarget = regexp.MustCompile("(?m)(?:^|[`(])make ([a-z][a-z-]*)")
	aTarget     = regexp.MustCompile(`(?m)^([a-z][\w-]*(?: [a-z][\w-]*)*):(?:[^=]|$)`)
)

// paths finds the paths below internal, cmd, docs, field-tests, ops and profiles and the make targets that comments
// name, and says how many of them exist. A target is named at the start of a line, in backquotes or in parentheses.
func paths(root string, files []*file) (resolved int, faults []Fault, err error) {
	targets := map[string]bool{}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return 0, nil, fmt.Errorf("targets of the comments: %w", err)
	}
	for _, m := range aTarget.FindAllStringSubmatch(string(makefile), -1) {
		for _, t := range strings.Fields(m[1]) {
			targets[t] = true
		}
	}
	for _, f := range files {
		if f.generated {
			continue
		}
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				lost := func(what string) {
					faults = append(faults, f.fault(c, "the comment names %s, which does not exist", what))
				}
				text := textOf(c.Text)
				for _, m := range citedPath.FindAllStringSubmatch(text, -1) {
					if exists(os.DirFS(root), m[2]) {
						resolved++
					} else {
						lost(m[2])
					}
				}
				for _, m := range citedTarget.FindAllStringSubmatch(text, -1) {
					if targets[m[1]] {
						resolved++
					} else {
						lost("make " + m[1])
					}
				}
			}
		}
	}
	return resolved, faults, nil
}

// textOf is a comment without its markers.
func textOf(c string) string {
	if strings.HasPrefix(c, "/*") {
		return strings.Trim(c, "/*")
	}
	return strings.TrimPrefix(strings.TrimPrefix(c, "//"), " ")
}

// exists says whether a path is a file or a directory, or an identifier of a package: internal/edge/radio.Stats.
func exists(root fs.FS, name string) bool {
	if _, err := fs.Stat(root, name); err == nil {
		return true
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && token.IsExported(name[i+1:]) {
		return exists(root, name[:i])
	}
	return false
}
