// Package borders holds the rules between rooms. It reads the source of the whole module and reports broken rules; its tests
// run over the tree, so that a broken rule fails `make test`.
//
// The table Rooms is the map: every package, its kind, its district and what it may import. docs/house.md shows it;
// `go test ./internal/borders -run TestMap -args -write` writes that page.
//
// # Files
//
//   - borders.go: Check, and the reading of the tree
//   - cite.go: citations of docs/reference, each resolved to a heading
//   - comments.go: doc comments begin with the declared name
//   - figures.go: the largest receivers and structs, and the source lines
//   - lists.go: the list of files in a package comment
//   - page.go: the generated part of docs/house.md
//   - paths.go: paths and make targets that comments name
//   - pure.go: the rules for pure rooms
//   - rooms.go: the table of rooms and districts
//   - sleep.go: tests wait for conditions, not for time
//   - walls.go: imports against the table
package borders
