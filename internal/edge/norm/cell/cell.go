package cell

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// nobody is the user and group that a process in a cell sees itself as.
	nobody = 65534
	// strangers is the first of the user ids that belong to no account and no container: systemd's UIDS-GIDS document leaves
	// that range free. The pid of the gateway makes the id unique to one gateway: nobody else may send the child a signal.
	strangers = 0x70000000
)

// ExitRefused is the exit code of a first stage whose Way the kernel refused.
const ExitRefused = 113

// Way is one way to confine a process.
type Way struct {
	User    bool // a user namespace of its own
	Network bool // a network namespace of its own
	drop    bool // to a user id that nobody else has; only root can do it
}

// Ways are the ways that this process may try, the best first. The last asks the kernel for nothing.
func Ways() []Way {
	if os.Geteuid() != 0 {
		return []Way{{User: true, Network: true}, {}}
	}
	return []Way{{User: true, Network: true, drop: true}, {User: true, Network: true}, {Network: true, drop: true},
		{drop: true}, {}}
}

// Missing names the namespaces that this way does without.
func (w Way) Missing() (list []string) {
	if !w.User {
		list = append(list, "own user namespace")
	}
	if !w.Network {
		list = append(list, "own network namespace")
	}
	return list
}

// Apply makes cmd start this way, in its first stage: "enter" and the way's word are added to its arguments.
func (w Way) Apply(cmd *exec.Cmd) {
	attr := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		*attr = *cmd.SysProcAttr
	}
	own := strangers + os.Getpid()
	if w.User {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		uid, gid := os.Geteuid(), os.Getegid()
		if w.drop {
			uid, gid = own, own
			attr.GidMappingsEnableSetgroups = true // root's groups are dropped
			attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		}
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: gid, Size: 1}}
	} else if w.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(own), Gid: uint32(own)}
	}
	word := "same"
	if w.Network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN)
		word = "own"
	}
	if w.User || w.drop {
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SETPCAP)
	}
	cmd.SysProcAttr = attr
	cmd.Args = append(cmd.Args, stageOne, word)
}

const stageOne = "enter"

// IsFirst says whether these arguments, behind those that cmd had, belong to a first stage.
func IsFirst(args []string) bool { return len(args) == 2 && args[0] == stageOne }
