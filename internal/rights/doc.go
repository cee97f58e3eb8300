// Package rights takes from the gateway's process what it does not need, so that whoever takes the process over has little.
//
// # Two stages
//
// Landlock holds for the thread that asks for it, and a Go process has several from its first instruction on. So the first
// stage (Enter) restricts one thread and executes the program again, with the same process id, descriptors and arguments. In
// the second Enter returns what there is. Lock adds the filter of system calls when all sockets are open.
//
// # What is not there
//
// A kernel may lack Landlock or seccomp, or forbid them. The gateway goes on, and says so: Protection.
//
// docs/decisions/small-rights.md says what each part is for, and what was not chosen.
//
// # Files
//
//   - calls.go: the system calls that a gateway and its children never make
//   - calls_amd64.go: further ones of amd64
//   - calls_arm64.go: on arm64 there are none
//   - calls_other.go: elsewhere there is no filter
//   - enter.go: the first stage, and what the second knows of it
//   - files.go: Landlock: which files, and what with them
//   - memory.go: memory that no disk sees
package rights
