// Package group is the carrier that sends one message to several peers at once, over P_Mul (internal/pmul). Every
// message, and every change of the site's state, is one P_Mul message to all its recipients. Ack_PDUs acknowledge it.
// P_Mul itself does not order messages: the Message_Sequence_Number orders those of one sender.
// docs/decisions/pmul-carrier.md says when this carrier is used.
//
// The package is pure and has no goroutine. Callers pass the time.
//
// Files: group.go the carrier and its P_Mul engines, start here; members.go its peers as they come and go; accept.go messages that
// this site hands to P_Mul; send.go datagrams for the air; order.go the order of a peer's messages, and its records; ended.go messages that have
// ended, kept for a peer that cannot decode one; behind.go further copies for a peer with an older roster; ordered.go
// the operator's orders about a message; putback.go messages that a peer lacks after its data was restored from an older copy;
// handover.go messages that change their bearer; again.go messages of others, sent again for an origin that has fallen silent.
package group
