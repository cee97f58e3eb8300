package cell

import (
	"errors"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/rights/calls"
)

// namespaces are the flags of clone(2) that make new namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// conditional are the calls whose arguments matter, the same on every architecture. pid is this process's.
func conditional(pid int) []calls.Rule {
	thread := uint32(unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND)
	rules := []calls.Rule{
		calls.On(unix.SYS_SOCKET, calls.Allow, calls.Is(0, calls.All, unix.AF_INET), calls.Is(1, 0xf, unix.SOCK_DGRAM)),
		calls.On(unix.SYS_CLONE, calls.Allow, calls.Is(0, thread|namespaces, thread)),
		calls.On(unix.SYS_CLONE3, calls.Absent), // its flags are in memory, which no filter can read; glibc falls back to clone
		calls.On(unix.SYS_TGKILL, calls.Allow, calls.Is(0, calls.All, uint32(pid))),
		calls.On(unix.SYS_MMAP, calls.Allow, calls.Is(2, unix.PROT_EXEC, 0)),
		calls.On(unix.SYS_MPROTECT, calls.Allow, calls.Is(2, unix.PROT_EXEC, 0)),
		calls.On(unix.SYS_PRCTL, calls.Allow, calls.Is(0, calls.All, unix.PR_SET_NAME)),
		calls.On(unix.SYS_PRLIMIT64, calls.Allow, calls.Is(0, calls.All, 0), calls.Is(2, calls.All, 0)), // to read its own limits
	}
	for _, call := range hostile {
		rules = append(rules, calls.On(call, calls.Kill))
	}
	return rules
}

// hostile are calls that only an intruder makes: the process is killed at once, and its parent reports why.
var hostile = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_CAPSET,
	unix.SYS_IO_URING_SETUP, unix.SYS_MEMFD_CREATE, unix.SYS_OPEN_BY_HANDLE_AT,
}

// errNoList says that there is no list yet of the calls that libnorm and Go's runtime make on this architecture.
var errNoList = errors.New("none for this architecture")

// loadFilter puts the filter on every thread of the process.
func loadFilter(pid int) error {
	if architecture == 0 {
		return errNoList
	}
	rules := conditional(pid)
	for _, call := range plain {
		rules = append(rules, calls.On(call, calls.Allow))
	}
	return calls.Load(calls.Program(architecture, rules, calls.Refuse))
}
