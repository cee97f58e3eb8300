// Package calls makes filters of system calls (seccomp(2)) from rules. A filter holds for every thread of a process, for its
// children and for the programs that they execute, and is never taken off again.
package calls
