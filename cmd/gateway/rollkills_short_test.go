//go:build !long

package main

// rollKills is how many gateways TestKillsInRollovers kills.
const rollKills = 20
