// Package pages reads the file of a bbolt store without trusting it. It neither maps the file nor panics: every number in it
// is held against the size of the file before it is used, and what does not fit is a Fault.
//
// The reader asks for exactly what bbolt writes: the elements of a page fill it without a gap, a page is reached once, the
// first key of a page is the key that its parent has for it. So a file that it finds sound is one that bbolt can open,
// read and change. docs/decisions/journal-check.md says why a reader of our own and no other process does this.
//
// Numbers in the file are those of a little-endian machine.
package pages
