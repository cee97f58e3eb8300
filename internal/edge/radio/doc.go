// Package radio owns the UDP sockets on the link; package tlslink owns the connections over TLS. It sends and receives UDP
// payloads, which internal/link/seal has encrypted or will open. It does not look into them.
//
// Nothing here blocks. When the inbox has no space for a payload, or the kernel does not accept it at once, radio
// drops and counts it. Sizes are octets of UDP payload. Read radio.go first, then group.go (multicast groups).
package radio
