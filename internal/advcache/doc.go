// Package advcache keeps the advertisements of local peers and of other sites by group, type and id, and answers
// discovery questions from them. Lifetimes count down, attributes match with wildcards, and a newer version replaces
// the older (wire 7). internal/jxtabridge decides what may cross the link.
//
// Callers pass now. Sizes are octets. Memory is bounded by count and octets; when it is full, the advertisement that
// expires first is removed first.
package advcache
