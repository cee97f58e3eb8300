//go:build !long

package peertest

import "aldis/internal/lab/field"

// JXSE 2.7 looks for a rendezvous every 15 s only, and takes the third look: it is in the long runs.
var multicastKinds = []string{field.KindJXTA22}
