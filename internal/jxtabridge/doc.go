// Package jxtabridge is the gateway's side of the JXTA conversation: rendezvous and relay of unmodified JXTA peers on
// the LAN, and the place where it is decided what of it crosses the link. Messages end here: queries are answered
// from replicated state, payload is carried without its hop elements, and the far bridge re-creates the messages as
// if the far peer (a "ghost") stood behind the gateway.
//
// BiDi pipes and sockets between a local peer and a ghost have their reliability layer ended here, for reasons and with
// limits that docs/decisions/streams.md gives.
//
// It follows docs/reference/jxta-ghosts.md, docs/reference/jxta-baseline.md and docs/reference/jxta-wire.md.
// Formats are in internal/jxta, sockets in internal/lan.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Sizes are octets. Peers, groups and pipes are named by their unique
// values in normal form.
package jxtabridge
