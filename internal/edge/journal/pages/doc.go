// Package pages reads the file of a bbolt store without trusting it. It does not map the file and does not panic: it
// checks every number in the file against the file's size before use, and reports a mismatch as a Fault.
//
// The reader demands exactly what bbolt writes: the elements of a page fill it without gaps, each page is reached
// once, and the first key of a page equals the key in its parent. bbolt can therefore open, read and change every file
// that this reader accepts. docs/decisions/journal-check.md says why the gateway has a reader of its own.
//
// Numbers in the file are little endian. Read file.go first, then walk.go (the tree) and loose.go (pages outside the
// tree).
package pages
