package cell

import (
	"slices"

	"golang.org/x/sys/unix"
)

const architecture = unix.AUDIT_ARCH_X86_64

// plain are the permitted calls whose arguments do not matter.
var plain = slices.Concat(common, []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PIPE, unix.SYS_TIME})
