package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// plain are the permitted calls whose arguments do not matter.
var plain = common
