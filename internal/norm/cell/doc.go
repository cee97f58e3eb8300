// Package cell shuts a process in before it touches octets that nobody has authenticated. The process is libnorm's: its
// parser is C++, and datagrams are known that corrupt its heap.
//
// # Two stages
//
// The parent starts the program in namespaces of its own (Way.Apply). The first stage (Enter) brings the loopback
// interface of the new network up, sets resource limits, drops every capability, also from the bounding set, and
// executes the program again. Capabilities belong to a thread, and a Go process has several: only execve(2) leaves none
// behind. The second stage loads what it needs and calls Lock, after which the kernel takes only the system calls of a
// short list.
//
// # What is not there
//
// A kernel may forbid user namespaces, and a container may have no second user. Ways therefore lists several ways, the
// best first, and the last asks the kernel for nothing. No new privileges and the filter need nobody's permission.
// docs/decisions/norm-child.md says what each part is for.
//
// # Files
//
//   - calls_amd64.go: the system calls that a process in a cell may make, on amd64
//   - calls_arm64.go: on arm64
//   - calls_common.go: on both
//   - calls_other.go: elsewhere there is no list, and no filter
//   - cell.go: the ways of shutting a process in, for its parent
//   - enter.go: both stages
//   - filter.go: the filter
package cell
