package borders

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	pageBegins = "<!-- Written by: go test ./internal/borders -run TestMap -args -write -->\n"
	pageEnds   = "<!-- End of the table. -->\n"
)

// page replaces the text between the two marks of docs/house.md with the table of rooms.
func page(old string, rooms table, upward map[string][]string) (string, error) {
	before, rest, ok := strings.Cut(old, pageBegins)
	_, after, ends := strings.Cut(rest, pageEnds)
	if !ok || !ends {
		return "", fmt.Errorf("the page lacks the line %q or, behind it, %q", pageBegins, pageEnds)
	}
	return before + pageBegins + "\n" + districts(rooms) + exceptions(upward) + pageEnds + after, nil
}

// districts writes one list for each district.
func districts(rooms table) string {
	var b strings.Builder
	for _, d := range Districts {
		fmt.Fprintf(&b, "### %s: %s\n\n", d.Name, d.What)
		for _, r := range rooms {
			if r.District == d.Name {
				fmt.Fprintf(&b, "- `%s`%s: %s\n", r.dir(), mark(r), r.What)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mark says what else a room is, if it is not just pure: its kind, and whether it is an adapter.
func mark(r Room) string {
	switch {
	case r.Adapter:
		return " (adapter)"
	case r.Kind == Words:
		return " (types)"
	case r.Kind != Pure:
		return " (" + string(r.Kind) + ")"
	}
	return ""
}

// exceptions writes the imports that go up the districts for now; nothing if there are none.
func exceptions(upward map[string][]string) string {
	if len(upward) == 0 {
		return ""
	}
	var list []string
	for _, from := range slices.Sorted(maps.Keys(upward)) {
		list = append(list, fmt.Sprintf("%s imports %s", from, strings.Join(upward[from], ", ")))
	}
	return "Exceptions from the order of districts, for now: " + strings.Join(list, "; ") + ".\n\n"
}
