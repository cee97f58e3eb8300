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
	maxFiles  = 1024    // as many as libnorm's select takes
	maxMemory = 4 << 30 // octets of address space; Go and glibc reserve 1.7 GB of it and use little
)

// Enter is the first stage: it does what the two arguments of IsFirst ask for, and executes the program again without
// them and with the descriptors below keep. It returns only when that fails. The process should then end with
// ExitRefused.
func Enter(args []string, keep int) error {
	runtime.LockOSThread() // the capabilities of this thread are those that execve looks at
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
	dropCapabilities() // what is left Lock sees
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	rest := os.Args[:len(os.Args)-len(args)]
	return fmt.Errorf("second stage: %w", syscall.Exec("/proc/self/exe", rest, os.Environ()))
}

// raiseLoopback switches lo on; the kernel gives it 127.0.0.0/8 then.
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

// closeFrom lets no descriptor from this one on pass execve: the program that started the gateway may have left some open.
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

// limit lowers a resource limit; one that is lower already stays.
func limit(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, most)
	now.Cur = min(now.Cur, most)
	return syscall.Setrlimit(resource, &now)
}

// dropCapabilities empties all five sets of this thread, as far as it may.
func dropCapabilities() {
	for c := uintptr(0); ; c++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil { // not known to this kernel, or not permitted
			break
		}
	}
	unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var none [2]unix.CapUserData
	unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// capabilities says in words what this thread has of capabilities, or could ever get; "" when that is nothing.
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
		case errors.Is(err, unix.EINVAL): // the last was the one before
			return ""
		case err != nil || in != 0: // without new privileges it gives nothing
			return "empty capability bounding set"
		}
	}
}

// Lock is the second stage: from here on no thread of this process can do more than the filter allows. It says, in
// words, what could not be had.
func Lock() (missing []string) {
	// Nobody with the same user id may look into the process, and it leaves no core.
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
