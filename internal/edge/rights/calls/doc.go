// Package calls builds filters of system calls (seccomp(2)) from rules. A filter applies to every thread of a process,
// to its children and to the programs that they execute, and cannot be removed.
package calls
