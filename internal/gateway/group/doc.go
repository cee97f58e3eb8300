// Package group is the carrier of messages to several peers at once, over P_Mul: every message, state included, is one
// P_Mul message to all that it is for, and Ack_PDUs are its receipts. P_Mul itself knows no order; the
// Message_Sequence_Number puts messages of one sender into it. docs/decisions/pmul-carrier.md.
//
// Files: group.go the carrier and its engines; accept.go messages that this site gives to P_Mul; send.go what goes on the air;
// behind.go what goes once more to a peer with an older roster; ended.go messages that have ended, and what a peer that cannot
// read one gets again; order.go the order of what a peer sends, and records; ordered.go what the operator orders of a message;
// putback.go what a peer that was put back lacks.
package group
