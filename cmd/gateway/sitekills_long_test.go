//go:build long

package main

const siteKills = 200
