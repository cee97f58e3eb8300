package borders

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// listFrom is the number of source files, doc.go not counted, from which a room's package comment must list them.
const listFrom = 7

// listsLater are the rooms whose lists are still missing. An entry for a room with a complete list is a fault.
var listsLater []string

// fileName is an entry of a list: "  - name.go: what it holds", or "name.go" after "Files:" or a semicolon.
var fileName = regexp.MustCompile(`(?m)(?:^\s*- |Files:\s|;\s)([a-z0-9_]+\.go)\b`)

// lists compares the lists of files in package comments with the directories. A list is a section "# Files" of the package
// comment, or a paragraph that begins with "Files:".
func lists(files []*file) (faults []Fault) {
	type room struct {
		path, at string
		source   map[string]bool
		all      map[string]bool
		list     []string
		has      bool
	}
	rooms := map[string]*room{}
	for _, f := range files {
		if f.test {
			continue
		}
		r := rooms[f.room]
		if r == nil {
			r = &room{path: f.room, at: path.Dir(f.path), source: map[string]bool{}, all: map[string]bool{}}
			rooms[f.room] = r
		}
		base := path.Base(f.path)
		r.all[base] = true
		if base != "doc.go" && !f.generated {
			r.source[base] = true
		}
		if list, ok := listIn(f.tree.Doc.Text()); ok {
			r.list, r.has, r.at = append(r.list, list...), true, f.path
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		r := rooms[name]
		var found []Fault
		if !r.has && len(r.source) >= listFrom {
			found = append(found, faultAt(r.at, "a room of %d files without a list of them in its package comment", len(r.source)))
		}
		for _, f := range r.list {
			if !r.all[f] {
				found = append(found, faultAt(r.at, "the list of files names %s, which does not exist", f))
			}
		}
		for _, f := range slices.Sorted(maps.Keys(r.source)) {
			if r.has && !slices.Contains(r.list, f) {
				found = append(found, faultAt(r.at, "the list of files lacks %s", f))
			}
		}
		switch later := slices.Contains(listsLater, r.path); {
		case !later:
			faults = append(faults, found...)
		case len(found) == 0:
			faults = append(faults, faultAt(r.at, "listsLater excuses a room whose list is whole"))
		}
	}
	return faults
}

// listIn returns the files that a package comment lists.
func listIn(doc string) (names []string, has bool) {
	_, section, has := strings.Cut("\n"+doc, "\n# Files\n")
	if has {
		section, _, _ = strings.Cut(section, "\n# ")
	} else if i := strings.Index("\n"+doc, "\nFiles:"); i >= 0 {
		section, _, _ = strings.Cut(doc[i:], "\n\n")
		has = true
	}
	for _, m := range fileName.FindAllStringSubmatch(section, -1) {
		names = append(names, m[1])
	}
	return names, has
}
