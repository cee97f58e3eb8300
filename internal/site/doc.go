// Package site holds the words in which a face and the road speak of a site: the state that sister gateways replicate
// (Item), what applications say (Message), what became of a message (Fate), what the LAN is to do (Order), what a face
// remembers (Memory) and what the log should say (Note). docs/decisions/words-of-a-site.md gives the reasons.
//
// A face is the pure room of one kind of LAN software: (now, Event) -> Output. It ends that software's own protocols at
// the gateway, and says in these words what must cross. The road (internal/gateway and the rooms that it uses) carries
// the words and knows nothing of any face. Rules, status and compaction go by Kind, Scope, Owner, Topic and the like.
// Sub, Variant, Doc, Service and Param are opaque to the road. A face imports neither the road nor another face.
//
// Files: item.go state of a site; message.go what applications say, and how urgent it is; face.go events and outputs of a
// face; metric.go numbers of a face; subject.go what the operator's rules see.
//
// The room is a leaf: it imports nothing of this module. Values are plain; whoever receives one never changes its slices.
package site
