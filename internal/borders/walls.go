package borders

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// importsOf returns the rooms that a file imports.
func (f *file) importsOf() (list []string, specs []*ast.ImportSpec) {
	for _, spec := range f.tree.Imports {
		if p, own := strings.CutPrefix(importPath(spec), module); own {
			list, specs = append(list, pathOf(p)), append(specs, spec)
		}
	}
	return list, specs
}

// wall compares a file's imports with the table. Tests may import more than May says:
//
//   - tests of a pure room import pure rooms, words, C and the lab
//   - tests of other rooms import any room
//   - no test of an adapter imports another adapter
func (f *file) wall(rooms table) (faults []Fault) {
	room, known := rooms.find(f.room)
	if !known {
		return nil // walls reports it once for the room
	}
	list, specs := f.importsOf()
	for i, p := range list {
		if p == f.room {
			continue // a test from outside its package
		}
		to, ok := rooms.find(p)
		theirs, ours := rooms.adapter(p), rooms.adapter(f.room)
		switch {
		case !ok:
			faults = append(faults, f.fault(specs[i], "imports %s, which the table of rooms does not have", p))
		case ours != "" && theirs != "" && ours != theirs:
			faults = append(faults, f.fault(specs[i], "the adapter %s imports the adapter %s", ours, theirs))
		case f.test && room.pure() && to.Kind == Edge && to.District != "lab":
			faults = append(faults, f.fault(specs[i], "a test of a pure room imports the edge room %s", p))
		case !f.test && !slices.Contains(room.May, p):
			faults = append(faults, f.fault(specs[i], "the table of rooms does not let %s import %s", f.room, p))
		}
	}
	return faults
}

// astray finds the rooms of the table that are outside their district's folder.
func astray(rooms table) (faults []Fault) {
	for _, r := range rooms {
		i := slices.IndexFunc(Districts, func(d District) bool { return d.Name == r.District })
		top, _, _ := strings.Cut(r.Path, "/")
		if i < 0 || Districts[i].Folder == "" || top == Districts[i].Folder || slices.Contains(fixed, top) {
			continue
		}
		faults = append(faults, faultAt(r.dir(), "lies outside of internal/%s, the folder of the district %s", Districts[i].Folder, r.District))
	}
	return faults
}

// walls compares the table with the tree and with itself: every room is in both, every permission is used, and imports go down
// the list of districts, except those in upward.
func walls(files []*file, rooms table, upward map[string][]string) (faults []Fault) {
	used := map[string]map[string]bool{}
	for _, f := range files {
		if path.Dir(f.path) == "." {
			faults = append(faults, faultAt(f.path, "a Go file outside the rooms"))
			continue
		}
		if used[f.room] == nil {
			used[f.room] = map[string]bool{}
			if _, ok := rooms.find(f.room); !ok {
				faults = append(faults, faultAt(path.Dir(f.path), "a room that the table does not have"))
			}
		}
		if list, _ := f.importsOf(); !f.test {
			for _, p := range list {
				used[f.room][p] = true
			}
		}
	}
	floor := func(name string) int {
		return slices.IndexFunc(Districts, func(d District) bool { return d.Name == name })
	}
	seen := map[string]bool{}
	for _, r := range rooms {
		switch {
		case seen[r.Path]:
			faults = append(faults, faultAt(r.dir(), "the table has this room twice"))
		case used[r.Path] == nil:
			faults = append(faults, faultAt(r.dir(), "the table has this room, the tree does not"))
		case floor(r.District) < 0:
			faults = append(faults, faultAt(r.dir(), "no district is called %q", r.District))
		}
		seen[r.Path] = true
		for _, p := range r.May {
			to, ok := rooms.find(p)
			if !ok || !used[r.Path][p] {
				faults = append(faults, faultAt(r.dir(), "the table permits %s, which no file imports any more", p))
			} else if floor(to.District) > floor(r.District) && !slices.Contains(upward[r.Path], p) {
				faults = append(faults, faultAt(r.dir(), "a room of the district %s may not import %s of the district %s above it", r.District, p, to.District))
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(upward)) {
		for _, p := range upward[from] {
			r, _ := rooms.find(from) // if there is none it permits nothing
			to, _ := rooms.find(p)
			if !slices.Contains(r.May, p) || floor(to.District) <= floor(r.District) {
				faults = append(faults, faultAt(Room{Path: from}.dir(), "Upward excuses an import of %s that is gone", p))
			}
		}
	}
	return faults
}
