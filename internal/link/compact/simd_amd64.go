package compact

import "golang.org/x/sys/cpu"

// wide says that this processor can compute eight contexts at once (AVX2), where the functions of plain.go compute one by one.
// Both give the same codes. GODEBUG=cpu.avx2=off turns it off.
var wide = cpu.X86.HasAVX2

// foreseeWide is ask, dots and mixed: how likely a one is, and how many of the contexts of the last octets predict something.
//
//go:noescape
func foreseeWide(l *looked, w *weighing, half uint32) (st int, seen int)

// learnWide is learn.
//
//go:noescape
func learnWide(l *looked, over *uint32, sm *uint16, steps *[256]uint32, bit int)

// nudgeWide is nudge, for all inputs.
//
//go:noescape
func nudgeWide(in, a, b, c *int32, ea, eb, ec int64)

// bringWide is counters.line for each missing line; over has room for all of them. It returns the slots in use afterwards.
//
//go:noescape
func bringWide(missing uint32, line, base *[lanes]uint32, at *lineTable, over *uint32, packed *byte, states *uint32, used, round uint32) (now uint32)

// linesWide finds the lines that the contexts select after the first bits of an octet, and returns a bit for each that is
// not in use in this round. Of those it fetches the lines of the base into the cache.
//
//go:noescape
func linesWide(l *looked, at *lineTable, to *lines, base *byte, half, round uint32) (missing uint32)

// fetchWide has lines fetched into the cache.
//
//go:noescape
func fetchWide(lines *lines, over *uint32)
