// Package code encodes for the link what XMPP clients say: messages, what became of them, subscriptions, and presence. Who
// says it to whom stands in the flow (link/envelope) and not here; the compression of messages in custody (link/compact)
// works on the result. The package is pure.
//
// A site counts its messages to each other site from 0 to MostNumbers-1, again and again.
// What refers to an earlier message (a receipt, a correction) names it by that number in two octets.
//
// The numbers of kinds, fields and outcomes are part of the protocol: new ones are only ever added behind the last.
//
// Files: message.go messages; outcome.go what became of them; presence.go presence and subscriptions;
// room.go occupants of rooms; node.go items of nodes.
package code
