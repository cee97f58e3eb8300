package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ListenSocket opens a unix socket at path, which a key of the configuration names, for its owner, and for the members of a group unless
// that is -1. It replaces a socket that a killed gateway left behind, but not one that answers.
func ListenSocket(key, path string, group int) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s: %s is there and is no socket: remove it, or set another %[1]s", key, path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: another gateway answers at %s: stop that one, or set another %[1]s", key, path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		os.Remove(path) // nobody listens there any more
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	mode := os.FileMode(0o600)
	if group >= 0 {
		mode = 0o660
		if err = os.Chown(path, -1, group); err != nil {
			err = fmt.Errorf("%w: the user that runs the gateway must be root or in control.group", err)
		}
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return ln, nil
}

// giverOf asks the kernel which user is at the other end.
func giverOf(conn *net.UnixConn) (g Giver, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return g, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		g.UID, g.PID, g.Groups = int(cred.Uid), int(cred.Pid), append(peerGroups(fd), int(cred.Gid))
	})
	return g, errors.Join(err, cerr)
}

// peerGroups are the supplementary groups of the other end; none if the kernel does not tell.
func peerGroups(fd uintptr) (groups []int) {
	var ids [1024]uint32 // more than any user has that gives orders
	size := uint32(unsafe.Sizeof(ids))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&ids)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil
	}
	for _, id := range ids[:size/4] {
		groups = append(groups, int(id))
	}
	return groups
}
