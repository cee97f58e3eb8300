// Package field plays field trials on one machine: sites in network namespaces, joined by the link emulator, with real
// gateways and unmodified JXTA peers. What it reports is measured at the emulator and in the peers, never in a gateway.
//
// Needs root, iproute2, Java 17 and the built peers of field-tests/peers. Sizes are IP octets, times seconds in the
// figures and time.Duration in Go. Everything that a run makes has the prefix aldis-<4 hex digits>- and is removed at
// the end; what a killed run left behind is removed by the next one.
package field
