package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// plain are the calls that need no look at their arguments.
var plain = common
