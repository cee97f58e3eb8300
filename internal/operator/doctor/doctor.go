package doctor

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/config"
	"aldis/internal/operator/control"
)

// Grade is how bad a Finding is.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning"
	Fault   Grade = "fault"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"` // the check, the same in every run: "clock", "disk.sync", "far.key"
	About  string `json:"about,omitempty"`
	Grade  Grade  `json:"grade"`
	Text   string `json:"text"`
	WayOut string `json:"way_out,omitempty"` // of a fault or warning
}

// Running is the gateway that runs on this machine.
type Running struct {
	PID    int
	UID    int
	Report *control.Report // nil: it does not answer
	Why    string          // why it does not answer
}

// findings collects the findings.
type findings struct{ list []Finding }

func (f *findings) ok(check, about, format string, args ...any) {
	f.list = append(f.list, Finding{check, about, OK, fmt.Sprintf(format, args...), ""})
}

func (f *findings) warn(check, about, out, format string, args ...any) {
	f.list = append(f.list, Finding{check, about, Warning, fmt.Sprintf(format, args...), out})
}

func (f *findings) fault(check, about, out, format string, args ...any) {
	f.list = append(f.list, Finding{check, about, Fault, fmt.Sprintf(format, args...), out})
}

// Examine checks everything that a configuration without a mistake names. run is nil if no gateway runs.
func Examine(c *config.Config, run *Running, now time.Time) []Finding {
	f := &findings{}
	f.ok("configuration", "", "%s has no mistake", c.File)
	for _, w := range c.Warnings() {
		f.warn("configuration", "", "docs/configure.md explains every key", "%s", w)
	}
	f.gateway(run)
	f.clock(run, now)
	f.disk(c, run)
	f.ports(c, run)
	f.multicast(c)
	f.rights(c, run)
	f.routes(c, run)
	f.far(c, run, now)
	return f.list
}

// ExamineNode checks as much as it can while the configuration has mistakes. Each line of err is one mistake.
func ExamineNode(dataDir string, err error, run *Running, now time.Time) []Finding {
	f := &findings{}
	for _, line := range strings.Split(err.Error(), "\n") {
		f.fault("configuration", "", "mend it, and run gateway doctor again: the rest was not looked at", "%s", line)
	}
	f.gateway(run)
	f.clock(run, now)
	if dataDir != "" {
		f.dataDir(dataDir, 0, ownerOf(dataDir, run))
	}
	return f.list
}

// gateway reports whether a gateway runs.
func (f *findings) gateway(run *Running) {
	switch {
	case run == nil:
		f.warn("gateway", "", "systemctl start aldis-gateway, or gateway run, then run gateway doctor again: it asks the gateway",
			"no gateway runs here: whether the far gateways are heard, have the same key and are reached as the profile says is not known, and nothing was sent to find out")
	case run.Report == nil:
		f.fault("gateway", "", "look at its log; if it stays so, restart it", "a gateway runs (process %d) and does not answer: %s", run.PID, run.Why)
	case run.Report.Trouble != "":
		f.fault("gateway", "", "docs/faults.md names the cause and what to do", "the gateway runs and cannot work: %s", run.Report.Trouble)
	default:
		f.ok("gateway", "", "%s runs as %s (process %d)", run.Report.Version, userName(run.UID), run.PID)
	}
}

// Find asks the kernel which process listens at the socket for orders of a gateway. It sends nothing. nil: none.
func Find(socket string) (*Running, error) {
	conn, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	run := &Running{}
	var inner error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if inner == nil {
			run.PID, run.UID = int(cred.Pid), int(cred.Uid)
		}
	})
	if err == nil {
		err = inner
	}
	return run, err
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", uid)
}

// procFile reads a file of a process below /proc; "" if this user may not.
func procFile(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}
