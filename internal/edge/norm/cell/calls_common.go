//go:build amd64 || arm64

package cell

import "golang.org/x/sys/unix"

// common are the permitted calls of both architectures whose arguments do not matter. Go's runtime, glibc's threads and
// allocator, and libnorm's loop use them. None of them opens a file, makes a process or names one.
var common = []uint32{
	// Memory.
	unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE,
	// Threads, and signals to them.
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_SCHED_YIELD,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
	unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// Time.
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
	// Waiting for descriptors.
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_PPOLL, unix.SYS_PSELECT6,
	unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	// Open descriptors.
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT,
	unix.SYS_FCNTL,
	// Datagrams.
	unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_GETSOCKNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT, unix.SYS_SENDTO,
	unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG,
	// Random numbers.
	unix.SYS_GETRANDOM,
}
