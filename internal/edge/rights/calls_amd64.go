package rights

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// here are calls of this architecture only that a gateway never makes.
var here = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB}
