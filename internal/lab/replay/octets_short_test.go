//go:build !long

package replay

const allOctets = false
