// Package radio owns the only socket on the link. It sends and receives UDP payloads, which internal/link/seal has sealed
// before and opens afterwards. It looks into none of them.
//
// Nothing here waits. If the inbox has no room for a payload, or the kernel does not take it at once, radio drops and
// counts it. Sizes are octets of UDP payload.
package radio
