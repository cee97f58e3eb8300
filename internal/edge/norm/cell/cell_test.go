package cell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
)

// prisoner is the subcommand of the test program that enters a cell and tries something there.
const prisoner = "prisoner"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == prisoner {
		if args := os.Args[3:]; IsFirst(args) {
			fmt.Println("first stage:", Enter(args, 3))
			os.Exit(ExitRefused)
		}
		if missing := Lock(); len(missing) > 0 {
			fmt.Println("missing:", missing)
			os.Exit(1)
		}
		fmt.Println(attempts[os.Args[2]].do())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// attempt is an action of an attacker who has taken libnorm over.
type attempt struct {
	do   func() error
	want any // an errno, nil for success, or the signal that kills the process
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

var attempts = map[string]attempt{
	"nothing":              {func() error { return nil }, nil},
	"a program":            {func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) }, unix.SIGSYS},
	"a program by exec":    {func() error { return exec.Command("/bin/true").Run() }, unix.EPERM}, // it looks for the file first
	"a fork":               {func() error { return call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) }, unix.EPERM},
	"a file to read":       {func() error { _, err := os.Open("/etc/passwd"); return err }, unix.EPERM},
	"a file to write":      {func() error { return os.WriteFile("/tmp/aldis-cell-test", nil, 0o600) }, unix.EPERM},
	"a directory":          {func() error { return os.Mkdir("/tmp/aldis-cell-test", 0o700) }, unix.EPERM},
	"the file to go":       {func() error { return os.Remove("/proc/self/exe") }, unix.EPERM},
	"a stream":             {func() error { return socket(unix.AF_INET, unix.SOCK_STREAM) }, unix.EPERM},
	"a raw socket":         {func() error { return socket(unix.AF_INET, unix.SOCK_RAW) }, unix.EPERM},
	"a packet socket":      {func() error { return socket(unix.AF_PACKET, unix.SOCK_DGRAM) }, unix.EPERM},
	"a unix socket":        {func() error { return socket(unix.AF_UNIX, unix.SOCK_DGRAM) }, unix.EPERM},
	"netlink":              {func() error { return socket(unix.AF_NETLINK, unix.SOCK_DGRAM) }, unix.EPERM},
	"another family":       {func() error { return socket(unix.AF_INET6, unix.SOCK_DGRAM) }, unix.EPERM},
	"a datagram socket":    {func() error { return socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC) }, nil},
	"ptrace":               {func() error { return unix.PtraceAttach(os.Getppid()) }, unix.SIGSYS},
	"a look into another":  {func() error { return call(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid())) }, unix.SIGSYS},
	"a signal to another":  {func() error { return unix.Kill(os.Getppid(), unix.SIGTERM) }, unix.EPERM},
	"a signal to a thread": {func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), unix.SIGTERM) }, unix.EPERM},
	"a mount":              {func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }, unix.SIGSYS},
	"a namespace":          {func() error { return unix.Unshare(unix.CLONE_NEWUSER) }, unix.SIGSYS},
	"bpf":                  {func() error { return call(unix.SYS_BPF, 5) }, unix.SIGSYS},
	"a key":                {func() error { _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); return err }, unix.SIGSYS},
	"io_uring":             {func() error { return call(unix.SYS_IO_URING_SETUP, 1) }, unix.SIGSYS},
	"capabilities":         {func() error { return call(unix.SYS_CAPSET) }, unix.SIGSYS},
	"another user":         {func() error { return call(unix.SYS_SETRESUID) }, unix.SIGSYS},
	"more limits":          {func() error { return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil) }, unix.EPERM},
	"to be dumpable":       {func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }, unix.EPERM},
	"another filter":       {func() error { return call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER) }, unix.EPERM},
	"memory to execute": {func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}, unix.EPERM},
	"written memory to execute": {func() error {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		return call(unix.SYS_MPROTECT, uintptr(unsafe.Pointer(&b[0])), 4096, unix.PROT_READ|unix.PROT_EXEC)
	}, unix.EPERM},
	"threads and memory": {func() error {
		done := make(chan []byte)
		for range 20 {
			go func() {
				runtime.LockOSThread() // the thread exits with the goroutine
				done <- make([]byte, 1<<20)
			}()
		}
		for range 20 {
			<-done
		}
		runtime.GC()
		return nil
	}, nil},
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// try runs an attempt in a cell, and returns its output and how it ended.
func try(way Way, what string) (said string, err error) {
	cmd := exec.Command("/proc/self/exe", prisoner, what)
	way.Apply(cmd)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// An attacker who takes the process over can compute, and send datagrams where nobody is. The filter and the capabilities are
// the same for every way of confinement.
func TestPrisoner(t *testing.T) {
	for _, way := range Ways() {
		for what, a := range attempts {
			said, err := try(way, what)
			in := check.In(t, fmt.Sprintf("%+v: %s", way, what))
			switch want := a.want.(type) {
			case nil:
				check.Equal(in, "what it said", said, "<nil>")
				check.Equal(in, "its end", fmt.Sprint(err), "<nil>")
			case unix.Errno:
				if !strings.HasSuffix(said, want.Error()) || err != nil {
					t.Errorf("%+v: %s: %q, %v; want %v", way, what, said, err, want)
				}
			case unix.Signal:
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != want {
					t.Errorf("%+v: %s: %q, %v; want %v", way, what, said, err, want)
				}
			}
		}
	}
}

// A first stage that cannot do its work says so with its exit code: this one has no network of its own to set up.
func TestFirstStageRefused(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", prisoner, "nothing", stageOne, "own")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Geteuid(), Size: 1}}} // and no capability
	out, _ := cmd.CombinedOutput()
	check.Equal(t, "exit code", cmd.ProcessState.ExitCode(), ExitRefused)
	check.Contains(t, "what it said", string(out), "loopback of the own network: operation not permitted")
}

// No call is in two lists, and the jumps of the whole program fit in their octet.
func TestListsAreDisjoint(t *testing.T) {
	seen := map[uint32]bool{}
	for _, call := range slices.Concat(plain, hostile) {
		if seen[call] {
			t.Errorf("call %d is there twice", call)
		}
		seen[call] = true
	}
	for _, r := range conditional(1) {
		if len(r.When) > 0 && seen[r.Call] {
			t.Errorf("call %d is allowed whatever its arguments are", r.Call)
		}
	}
}
