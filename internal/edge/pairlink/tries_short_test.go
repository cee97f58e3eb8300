//go:build !long

package pairlink

const tries = 30
