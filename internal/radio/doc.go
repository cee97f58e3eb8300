// Package radio owns the only socket on the link: UDP payloads in and out, sealed by internal/link/seal before they come
// here and opened after they left. It looks into none of them.
//
// Nothing here waits: what the inbox has no room for, and what the kernel does not take at once, is dropped and
// counted. Sizes are octets of UDP payload.
package radio
