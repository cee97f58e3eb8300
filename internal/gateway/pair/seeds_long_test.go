//go:build long

package pair

const seeds = 3000
