// Package advcache keeps advertisements, of local peers and of other sites, by group, type and id, and answers
// discovery questions from them: lifetimes count down, attributes match with wildcards, newest replaces older
// (wire 7). What may cross the link is decided in internal/jxtabridge.
//
// Callers pass now. Sizes are octets. Memory is bounded by count and octets; what dies first is put out first.
package advcache
