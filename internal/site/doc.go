// Package site defines the vocabulary in which protocol adapters (adapters) and the core of the gateway speak of a site:
// state that gateways replicate (Item), messages of applications (Message), the outcome of a message (Fate), instructions to
// the LAN package (Order), records of an adapter (Memory) and lines for the log (Note).
//
// A protocol adapter is the pure package for one kind of LAN software: (now, Event) -> Output. It terminates that
// software's own protocols at the gateway, and says in this vocabulary what must cross. The core (internal/gateway and the
// packages that it uses) carries the values and knows no adapter. Rules, status and compression use Kind, Scope,
// Owner, Topic and the like. Sub, Variant, Doc, Service and Param are opaque to the core. An adapter imports neither
// the core nor another adapter.
//
// Files: item.go state of a site; message.go messages of applications, and their precedence; adapter.go events and outputs of
// an adapter; metric.go figures of an adapter; subject.go items and messages as the operator's rules see them.
//
// Fields are structured, because with one opaque header for each message rules, status, replacement and compression
// would each have to call the adapter. Only an adapter can read its own documents, so it describes items and messages
// to rules as a Subject. Adapters have numbers up to 63. JXTA is 0, which Protocol Buffers do not write, so that its
// number costs no octet. A gateway drops and counts messages of an adapter that it lacks.
//
// The package imports nothing of this module. Its values are plain data; a receiver never changes the slices in them.
package site
