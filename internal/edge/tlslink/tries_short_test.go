//go:build !long

package tlslink

// tries is how many strangers call.
const tries = 2_000
