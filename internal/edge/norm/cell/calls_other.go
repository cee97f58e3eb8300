//go:build !amd64 && !arm64

package cell

const architecture = 0

var plain []uint32
