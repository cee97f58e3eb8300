//go:build long

package gateway_test

const seedsOfAbsence = 100
