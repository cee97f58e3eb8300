// Package advcache stores the advertisements that JXTA peers of this LAN and of far sites have published, and answers
// discovery questions from them. It indexes them by group, type and id, and by the attributes that peers search for,
// with wildcards. A newer version of an advertisement replaces the older one, and lifetimes count down (wire 7). The
// package internal/jxtabridge decides which advertisements cross the link.
//
// The package is pure: callers pass the time. Sizes are octets. The number of advertisements and their octets are
// bounded. When the cache is full, it drops the advertisement that expires first.
//
// Read cache.go first, then index.go.
package advcache
