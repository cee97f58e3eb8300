// Package rights takes away all rights that the gateway's process does not need, so that an attacker who takes over the process
// gains little.
//
// # Two stages
//
// Landlock applies to the thread that asks for it, and a Go process has several threads from its first instruction on. The
// first stage (Enter) therefore restricts one thread and executes the program again, with the same process id, descriptors and
// arguments. In the second stage Enter returns the active protections. Lock adds the filter of system calls when all sockets
// are open.
//
// # When the kernel offers less
//
// A kernel may lack Landlock or seccomp, or forbid them. The gateway goes on without, and reports it: Protection.
//
// docs/decisions/small-rights.md says what each part is for, and which alternatives were rejected.
//
// # Files
//
// Read enter.go first.
//
//   - enter.go: the first stage, and how its result reaches the second
//   - files.go: Landlock: which files may be used, and how
//   - memory.go: memory that is never swapped to a disk
//   - calls.go: system calls that a gateway and its children never make
//   - calls_amd64.go: further ones of amd64
//   - calls_arm64.go: arm64 has no further ones
//   - calls_other.go: other architectures have no filter
package rights
