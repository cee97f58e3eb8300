//go:build !long

package main

const siteKills = 4
