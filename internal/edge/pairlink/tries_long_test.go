//go:build long

package pairlink

const tries = 100_000
