// Package borders holds the borders of the rooms (docs of the layout: README and doc.go of each room) by reading their
// source: Check tells where a pure room reads a clock, does I/O, starts a goroutine, locks, draws from a global random
// source or imports a room or a package that it may not. Its test runs over the whole tree.
package borders
