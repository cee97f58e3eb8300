package rights

import (
	"errors"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/rights/calls"
)

// never are the calls that neither a gateway nor its children make, with any arguments. All others are allowed: shared
// libraries change the calls that they make, and a gateway killed for such a call serves nobody.
var never = []uint32{
	// To look into other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PERF_EVENT_OPEN,
	// To see other files, or files at another place.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// Programs without a file.
	unix.SYS_MEMFD_CREATE, unix.SYS_EXECVEAT,
	// Parts of the kernel that often have holes.
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_VMSPLICE, unix.SYS_PERSONALITY,
	// The machine as a whole.
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_VHANGUP,
}

// tiocsti is the ioctl that inserts input at a terminal, which its shell then reads.
const tiocsti = 0x5412

// shmExec makes shared memory executable.
const shmExec = 0o100000

// sometimes are the calls whose arguments decide.
func sometimes() []calls.Rule {
	list := []calls.Rule{
		calls.On(unix.SYS_SOCKET, calls.Allow, calls.Is(0, calls.All, unix.AF_UNIX)),
		calls.On(unix.SYS_SOCKET, calls.Allow, calls.Is(0, calls.All, unix.AF_NETLINK)), // to list the addresses of this machine
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			list = append(list, calls.On(unix.SYS_SOCKET, calls.Allow, calls.Is(0, calls.All, family), calls.Is(1, 0xf, kind)))
		}
	}
	// The child that runs libnorm has a user and a network of its own.
	const others = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID
	return append(list,
		calls.On(unix.SYS_SOCKET, calls.Refuse),
		calls.On(unix.SYS_CLONE, calls.Allow, calls.Is(0, others, 0)),
		calls.On(unix.SYS_CLONE, calls.Refuse),
		calls.On(unix.SYS_CLONE3, calls.Absent), // its flags are in memory, which no filter can read; glibc falls back to clone
		calls.On(unix.SYS_MMAP, calls.Refuse, calls.Is(2, unix.PROT_WRITE|unix.PROT_EXEC, unix.PROT_WRITE|unix.PROT_EXEC)),
		calls.On(unix.SYS_MPROTECT, calls.Refuse, calls.Is(2, unix.PROT_EXEC, unix.PROT_EXEC)),
		calls.On(unix.SYS_PKEY_MPROTECT, calls.Refuse, calls.Is(2, unix.PROT_EXEC, unix.PROT_EXEC)),
		calls.On(unix.SYS_SHMAT, calls.Refuse, calls.Is(2, shmExec, shmExec)),
		calls.On(unix.SYS_IOCTL, calls.Refuse, calls.Is(1, calls.All, tiocsti)),
	)
}

// Lock denies the system calls that no gateway makes, to all threads and to later children.
func Lock() Protection {
	if architecture == 0 {
		return protection(Calls, errors.New("there is none for this architecture"))
	}
	list := sometimes()
	for _, call := range append(never, here...) {
		list = append(list, calls.On(call, calls.Refuse))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // without it only root may load a filter
		return protection(Calls, err)
	}
	return protection(Calls, calls.Load(calls.Program(architecture, list, calls.Allow)))
}
