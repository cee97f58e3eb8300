// Package code encodes the data of XMPP clients for the link: messages, their outcomes, subscriptions, and presence. The sender
// and the receiver stand in the flow (link/envelope) and not here; the compression of messages in custody (link/compact)
// works on the result. The package is pure.
//
// A site counts its messages to each other site from 0 to MostNumbers-1, again and again.
// A reference to an earlier message (of a receipt, a correction) is that number in two octets.
//
// The numbers of kinds, fields and outcomes are part of the protocol: new ones are only ever added behind the last.
//
// Files: message.go messages; outcome.go their outcomes; presence.go presence and subscriptions;
// room.go occupants of rooms; node.go items of nodes.
package code
