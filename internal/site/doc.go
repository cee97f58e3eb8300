// Package site holds the words in which a face and the road speak of a site: the state that sister gateways replicate
// (Item), what applications say (Message), what became of that (Fate), what the LAN is to do (Order), what is remembered
// and what the log should say.
//
// A face is the pure room of one kind of LAN software: (now, Event) -> Output. It ends that software's own protocols here
// and tells in these words what must cross. The road (internal/gateway and what it uses) carries the words and knows
// nothing of any face: Kind, Scope, Owner, Topic and the like are for rules, status and compaction to go by; Sub, Variant,
// Doc, Service and Param are opaque to it. A face imports neither the road nor another face.
//
// Files: item.go state of a site; message.go what applications say, and how urgent it is; face.go events and outputs of a
// face; subject.go what the operator's rules see.
//
// The room is a leaf: it imports nothing of this module. Values are plain; whoever receives one never changes its slices.
package site
