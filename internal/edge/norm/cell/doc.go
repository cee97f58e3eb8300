// Package cell confines a process before it reads octets that nobody has authenticated. The process is libnorm's: its
// parser is C++, and some datagrams are known to corrupt its heap.
//
// # Two stages
//
// The parent starts the program in namespaces of its own (Way.Apply). The first stage (Enter) brings up the loopback
// interface of the new network, sets resource limits, drops every capability, also from the bounding set, and executes
// the program again. The second execution is needed because capabilities belong to a thread and a Go process has
// several: only execve(2) leaves none behind. The second stage loads what it needs and calls Lock. From then on the
// kernel accepts only the system calls of a short list.
//
// # When the kernel offers less
//
// A kernel may forbid user namespaces, and a container may have no second user. Ways therefore lists several methods,
// the strongest first; the last asks nothing of the kernel. The no-new-privileges flag and the filter of system calls
// need nobody's permission. docs/decisions/norm-child.md says what each part is for.
//
// # Files
//
// Read cell.go, enter.go, filter.go.
//
//   - cell.go: methods of confinement, for the parent
//   - enter.go: both stages
//   - filter.go: the filter of system calls
//   - calls_common.go: permitted system calls on every architecture
//   - calls_amd64.go: permitted system calls on amd64
//   - calls_arm64.go: permitted system calls on arm64
//   - calls_other.go: other architectures have no list and no filter
package cell
