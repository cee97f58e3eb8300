package cell

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits of a process in a cell.
const (
	maxFiles  = 1024    // the most that libnorm's select can handle
	maxMemory = 4 << 30 // octets of address space; Go and glibc reserve 1.7 GB of it and use little
)

// Enter is the first stage: it does what the two arguments of IsFirst ask for, and executes the program again, without them and
// with the descriptors below keep. It returns only if that fails. The process should then exit with ExitRefused.
func Enter(args []string, keep int) error {
	runtime.LockOSThread() // execve looks at the capabilities of this thread
	if args[1] == "own" {
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("loopback of the own network: %w", err)
		}
	}
	for resource, most := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_AS: maxMemory} {
		if err := limit(resource, most); err != nil {
			return fmt.Errorf("resource limit: %w", err)
		}
	}
	if err := closeFrom(keep); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	dropCapabilities() // Lock reports any that are left
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	rest := os.Args[:len(os.Args)-len(args)]
	return fmt.Errorf("second stage: %w", syscall.Exec("/proc/self/exe", rest, os.Environ()))
}

// raiseLoopback sets lo up; the kernel then gives it 127.0.0.0/8.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// closeFrom makes the kernel close the descriptors from first on at execve: the program that started the gateway may have left
// some open.
func closeFrom(first int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// limit lowers a resource limit; a lower one stays.
func limit(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, most)
	now.Cur = min(now.Cur, most)
	return syscall.Setrlimit(resource, &now)
}

// dropCapabilities empties all five capability sets of this thread, as far as it may.
func dropCapabilities() {
	for c := uintptr(0); ; c++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil { // unknown to this kernel, or not permitted
			break
		}
	}
	unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var none [2]unix.CapUserData
	unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// capabilities names the capabilities that this thread has or could get; "": none.
func capabilities() string {
	var have [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &have[0]); err != nil {
		return fmt.Sprintf("no capabilities (%v)", err)
	}
	for _, h := range have {
		if h.Effective|h.Permitted|h.Inheritable != 0 {
			return "no capabilities"
		}
	}
	for c := uintptr(0); ; c++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		switch {
		case errors.Is(err, unix.EINVAL): // there are no more
			return ""
		case err != nil || in != 0: // it grants none, because of no-new-privileges
			return "empty capability bounding set"
		}
	}
}

// Lock is the second stage: from now on no thread of this process can do more than the filter allows. It returns the names of
// protections that this machine does not offer.
func Lock() (missing []string) {
	// Other processes with the same user id may not look into this one, and it dumps no core.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		missing = append(missing, fmt.Sprintf("not dumpable (%v)", err))
	}
	if some := capabilities(); some != "" {
		missing = append(missing, some)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		missing = append(missing, fmt.Sprintf("no new privileges (%v)", err))
	}
	if err := loadFilter(os.Getpid()); err != nil {
		missing = append(missing, fmt.Sprintf("system call filter (%v)", err))
	}
	return missing
}
