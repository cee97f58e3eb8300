// Package group is the carrier of messages to several peers at once, over P_Mul: every message, state included, is one
// P_Mul message to all that it is for, and Ack_PDUs are its receipts. P_Mul itself knows no order; the
// Message_Sequence_Number puts messages of one sender into it. docs/decisions/pmul-carrier.md.
//
// Files: group.go the carrier; behind.go what goes once more to one with an older roster; ended.go what has ended, for who cannot read it; order.go the order of what a peer sends, and
// records; ordered.go what the operator orders of a message; putback.go what a peer that was put back lacks.
package group
