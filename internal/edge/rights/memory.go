package rights

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Hold locks the memory of secrets, each of at least one octet, so that the kernel does not swap it to a disk, and keeps it out
// of core dumps. It locks their pages for as long as the process lives; it does not know of copies that the caller makes
// elsewhere.
func Hold(secrets ...[]byte) Protection {
	page := uintptr(unix.Getpagesize())
	for _, s := range secrets {
		first := uintptr(unsafe.Pointer(&s[0])) / page * page
		octets := (uintptr(unsafe.Pointer(&s[len(s)-1]))/page+1)*page - first
		if _, _, errno := unix.Syscall(unix.SYS_MLOCK, first, octets, 0); errno != 0 {
			return protection(Memory, fmt.Errorf("mlock: %w (RLIMIT_MEMLOCK)", errno))
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, first, octets, unix.MADV_DONTDUMP); errno != 0 {
			return protection(Memory, fmt.Errorf("madvise: %w", errno))
		}
	}
	return protection(Memory, nil)
}

// Octets is the memory of a value, for Hold.
func Octets[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
