// Package peertest tests package jxtabridge with unmodified JXTA peers in front of two bridges that are joined in
// memory: real TCP and real libraries, without a link. It holds tests only.
package peertest
