package calls

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rule says what happens to one system call. A rule with conditions acts only on calls that meet all of them; the first rule
// that matches decides.
type Rule struct {
	Call   uint32
	When   []Condition
	Action uint32 // Allow, Refuse, Absent or Kill
}

// Condition tests the lower 32 bits of an argument; the kernel reads no others of the arguments for which conditions are used.
type Condition struct {
	Argument   int
	Mask, Want uint32
}

// Actions.
const (
	Allow  = unix.SECCOMP_RET_ALLOW
	Refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	Absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	Kill   = unix.SECCOMP_RET_KILL_PROCESS
)

// On makes a rule in one line.
func On(call, action uint32, when ...Condition) Rule { return Rule{call, when, action} }

// Is makes a condition: an argument has the bits of want under mask.
func Is(argument int, mask, want uint32) Condition { return Condition{argument, mask, want} }

// All is the mask of a whole argument.
const All = ^uint32(0)

// foreign is a bit in the call numbers of the x32 ABI on amd64. No other number has it.
const foreign = 1 << 30

// Offsets in struct seccomp_data. Arguments have 64 bits, the lower half first on the architectures that have a list.
const (
	atCall         = 0
	atArchitecture = 4
	atArguments    = 16
)

// Program compiles rules. A call that no rule matches gets the action otherwise. A call of another architecture kills the
// process, and calls of the x32 ABI are refused.
func Program(architecture uint32, rules []Rule, otherwise uint32) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(k uint32, skip int) unix.SockFilter { // skips so many instructions unless the accumulator is k
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(skip)}
	}
	end := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	p := []unix.SockFilter{load(atArchitecture), unless(architecture, 0), end(Kill), load(atCall),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: foreign, Jf: 1}, end(Refuse)}
	p[1].Jt = 1 // past the instruction that kills
	for _, r := range rules {
		p = append(p, unless(r.Call, 3*len(r.When)+1+min(len(r.When), 1)))
		for i, c := range r.When {
			left := 3*(len(r.When)-i-1) + 1 // to the end of this rule, past its action
			p = append(p, load(uint32(atArguments+8*c.Argument)),
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.Mask}, unless(c.Want, left))
		}
		p = append(p, end(r.Action))
		if len(r.When) > 0 {
			p = append(p, load(atCall))
		}
	}
	return append(p, end(otherwise))
}

// Load puts a filter on every thread of this process, which must have set no-new-privileges.
func Load(program []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has another", thread)
	}
	return nil
}
