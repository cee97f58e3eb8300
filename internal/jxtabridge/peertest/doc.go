// Package peertest puts unmodified JXTA peers in front of two bridges that are joined in memory: real TCP, real
// libraries, no link. It has tests only.
package peertest
