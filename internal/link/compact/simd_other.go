//go:build !amd64

package compact

// wide: this processor cannot use simd_amd64.s.
const wide = false

func foreseeWide(*looked, *weighing, uint32) (st int, seen int) { return 0, 0 }

func learnWide(*looked, *uint32, *uint16, *[256]uint32, int) {}

func nudgeWide(_, _, _, _ *int32, _, _, _ int64) {}

func bringWide(uint32, *[lanes]uint32, *[lanes]uint32, *lineTable, *uint32, *byte, *uint32, uint32, uint32) uint32 {
	return 0
}

func linesWide(*looked, *lineTable, *lines, *byte, uint32, uint32) uint32 { return 0 }

func fetchWide(*lines, *uint32) {}
