//go:build long

package pairlink

const tries = 50_000
