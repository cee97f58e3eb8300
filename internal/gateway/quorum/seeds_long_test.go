//go:build long

package quorum

const seeds = 600
