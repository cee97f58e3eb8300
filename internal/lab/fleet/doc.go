// Package fleet holds what a trial of a fleet plays and what came of it: scripts with sites, bearers, talkers and accidents; and the
// end of each message. It plays nothing itself: internal/lab/field does.
//
// Files: script.go reads scripts; groups.go has their groups, churn and ways over relays; generate.go draws scripts; chance.go makes one
// with accidents at random moments; ledger.go takes down messages and their ends, and judges.
package fleet
