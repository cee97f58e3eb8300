package cell

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule says what becomes of one system call. Of a call with conditions only what meets them all gets its action.
type rule struct {
	call   uint32
	when   []condition
	action uint32 // SECCOMP_RET_…
}

// condition looks at the lower 32 bits of an argument, which is all that the kernel looks at in those named here.
type condition struct {
	argument   int
	mask, want uint32
}

// Actions.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	kill   = unix.SECCOMP_RET_KILL_PROCESS
)

// namespaces are the flags of clone(2) that make new ones.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// conditional are the calls whose arguments matter, the same on every architecture. pid is the process's own.
func conditional(pid int) []rule {
	thread := uint32(unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND)
	rules := []rule{
		{unix.SYS_SOCKET, []condition{{0, ^uint32(0), unix.AF_INET}, {1, 0xf, unix.SOCK_DGRAM}}, allow},
		{unix.SYS_CLONE, []condition{{0, thread | namespaces, thread}}, allow},
		{unix.SYS_CLONE3, nil, absent}, // its flags are in memory, which no filter can read; glibc falls back to clone
		{unix.SYS_TGKILL, []condition{{0, ^uint32(0), uint32(pid)}}, allow},
		{unix.SYS_MMAP, []condition{{2, unix.PROT_EXEC, 0}}, allow},
		{unix.SYS_MPROTECT, []condition{{2, unix.PROT_EXEC, 0}}, allow},
		{unix.SYS_PRCTL, []condition{{0, ^uint32(0), unix.PR_SET_NAME}}, allow},
		{unix.SYS_PRLIMIT64, []condition{{0, ^uint32(0), 0}, {2, ^uint32(0), 0}}, allow}, // own limits, to read
	}
	for _, call := range hostile {
		rules = append(rules, rule{call, nil, kill})
	}
	return rules
}

// hostile are calls that only somebody who has taken the process over makes: it ends at once, and its parent tells why.
var hostile = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_CAPSET,
	unix.SYS_IO_URING_SETUP, unix.SYS_MEMFD_CREATE, unix.SYS_OPEN_BY_HANDLE_AT,
}

// Offsets in struct seccomp_data. Arguments have 64 bits, the lower half first on the architectures that have a list.
const (
	atCall         = 0
	atArchitecture = 4
	atArguments    = 16
)

// program compiles the rules. What none of them takes gets refuse; another architecture's calls end the process.
func program(architecture uint32, rules []rule) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(k uint32, skip int) unix.SockFilter { // skips so many when the accumulator is not k
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(skip)}
	}
	end := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	p := []unix.SockFilter{load(atArchitecture), unless(architecture, 0), end(kill), load(atCall)}
	p[1].Jt = 1 // over the kill
	for _, r := range rules {
		p = append(p, unless(r.call, 3*len(r.when)+1+min(len(r.when), 1)))
		for i, c := range r.when {
			left := 3*(len(r.when)-i-1) + 1 // to the end of this rule, behind its action
			p = append(p, load(uint32(atArguments+8*c.argument)),
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask}, unless(c.want, left))
		}
		p = append(p, end(r.action))
		if len(r.when) > 0 {
			p = append(p, load(atCall))
		}
	}
	return append(p, end(refuse))
}

// errNoList says that nobody has written down what libnorm and Go's runtime call on this architecture.
var errNoList = errors.New("none for this architecture")

// loadFilter puts the filter on every thread of the process.
func loadFilter(pid int) error {
	if architecture == 0 {
		return errNoList
	}
	rules := conditional(pid)
	for _, call := range plain {
		rules = append(rules, rule{call, nil, allow})
	}
	p := program(architecture, rules)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
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
