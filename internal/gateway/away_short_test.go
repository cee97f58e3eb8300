//go:build !long

package gateway_test

const seedsOfAbsence = 10
