// Package fleet holds the scripts and results of fleet trials: scripts have sites, bearers, talkers and accidents; results have the end
// of each message. The package plays nothing itself: internal/lab/field does.
//
// Files: script.go reads scripts; groups.go has their groups, churn and ways over relays; generate.go draws scripts; chance.go makes one
// with accidents at random moments; ledger.go records messages and their ends, and judges.
package fleet
