package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/edge/rights"
	"aldis/internal/link/profile"
)

const asUnit = "run it by the systemd unit of the package (docs/install.md), which sets it"

// rights checks what the gateway's process may do, and which parts of the machine it could reach.
func (f *findings) rights(c *config.Config, run *Running) {
	f.namespaces(c, run)
	if run == nil {
		return
	}
	if run.Report != nil {
		f.protections(run.Report.Protections)
	}
	is := fields(procFile(run.PID, "status"))
	limits := procFile(run.PID, "limits")
	if len(is) == 0 || limits == "" {
		f.warn("rights", "", "run gateway doctor as root, or as the user that runs the gateway", "%s may not look at the rights of process %d", userName(os.Geteuid()), run.PID)
		return
	}
	f.user(run, is)
	f.hardening(run, is)
	f.memory(run, limits)
	if n, ok := softLimit(limits, "Max open files"); ok && n < uint64(c.LAN.MaxConnections+64) {
		f.warn("rights.files", "", "LimitNOFILE=65536 in the unit, or a smaller lan.max_connections", "the gateway may have %d files and connections open, and lan.max_connections is %d", n, c.LAN.MaxConnections)
	} else if ok {
		f.ok("rights.files", "", "the gateway may have %d files and connections open", n)
	}
}

// user checks the user and the capabilities with which the process runs.
func (f *findings) user(run *Running, is map[string]string) {
	effective, err := strconv.ParseUint(is["CapEff"], 16, 64)
	switch {
	case run.UID == 0:
		f.warn("rights.user", "", asUnit+": User=aldis", "the gateway runs as root and needs no privilege")
	case err == nil && effective != 0:
		f.warn("rights.user", "", asUnit+": CapabilityBoundingSet=", "the gateway has capabilities (%016x) and needs none", effective)
	default:
		f.ok("rights.user", "", "the gateway runs as %s, without a capability", userName(run.UID))
	}
}

// hardening reports which lines of the unit are in effect for the process, according to /proc.
func (f *findings) hardening(run *Running, is map[string]string) {
	bounding, err := strconv.ParseUint(is["CapBnd"], 16, 64)
	var on, off []string
	for _, line := range []struct {
		name   string
		active bool
	}{
		{"NoNewPrivileges", is["NoNewPrivs"] == "1"},
		{"SystemCallFilter", is["Seccomp"] == "2"},
		{"CapabilityBoundingSet=", err == nil && bounding == 0},
		{"ProtectSystem=strict", readOnlyRoot(procFile(run.PID, "mountinfo"))},
		{"UMask=0077", is["Umask"] == "0077"},
	} {
		if line.active {
			on = append(on, line.name)
		} else {
			off = append(off, line.name)
		}
	}
	const check = "rights.hardening"
	if len(off) > 0 {
		active := "none"
		if len(on) > 0 {
			active = strings.Join(on, ", ")
		}
		f.warn(check, "", asUnit, "of the unit's hardening is not active: %s; active: %s", strings.Join(off, ", "), active)
		return
	}
	f.ok(check, "", "of the unit's hardening is active: %s", strings.Join(on, ", "))
}

// protections reports the protections that the gateway has set up itself at its start.
func (f *findings) protections(list []rights.Protection) {
	var on []string
	for _, p := range list {
		if p.Active {
			on = append(on, p.Name)
		}
	}
	const check = "rights.given_up"
	if missing := rights.Missing(list); len(missing) > 0 {
		f.warn(check, "", "docs/install.md, \"What the gateway gives up\", says what each needs", "the gateway could not have: %s; it has: %s",
			strings.Join(missing, "; "), strings.Join(append(on, "nothing more"), ", "))
	} else if len(on) > 0 {
		f.ok(check, "", "the gateway has given itself: %s", strings.Join(on, ", "))
	}
}

// memory checks where the network's key could go from the process's memory: to a core dump, or to swap on a disk.
func (f *findings) memory(run *Running, limits string) {
	if n, ok := softLimit(limits, "Max core file size"); ok && n > 1 { // 1 leaves none, also where the kernel pipes dumps (core(5))
		f.warn("rights.core", "", asUnit+": LimitCORE=1; by hand: ulimit -c 0", "a crash may leave a core dump, which holds the network's key")
	} else if ok {
		f.ok("rights.core", "", "a crash leaves no core dump")
	}
	swaps, err := os.ReadFile("/proc/swaps")
	switch devices := strings.Split(strings.TrimSpace(string(swaps)), "\n"); {
	case err != nil:
	case len(devices) < 2:
		f.ok("rights.swap", "", "memory is not moved to a disk: this machine has no swap")
	case noSwap(run.PID):
		f.ok("rights.swap", "", "memory of the gateway is not moved to a disk (memory.swap.max is 0)")
	default:
		f.warn("rights.swap", "", "encrypt the swap, or MemorySwapMax=0 in the unit (systemctl edit aldis-gateway.service)",
			"memory is not locked: the network's key may be written to the swap of this machine")
	}
}

// noSwap says that the control group of a process has no swap.
func noSwap(pid int) bool {
	_, group, ok := strings.Cut(procFile(pid, "cgroup"), "0::")
	if !ok {
		return false
	}
	text, err := os.ReadFile("/sys/fs/cgroup" + strings.TrimSpace(group) + "/memory.swap.max")
	return err == nil && strings.TrimSpace(string(text)) == "0"
}

// namespaces checks whether the process that runs libnorm gets its cell.
func (f *findings) namespaces(c *config.Config, run *Running) {
	const check, out = "rights.cell", "docs/install.md, \"The process that runs libnorm\", says what to change"
	switch {
	case c.Link.Profile.Transport == profile.PMul:
	case run != nil && run.Report != nil && run.Report.Cell != nil && run.Report.Cell.Whole:
		f.ok(check, "", "the NORM process has its whole cell")
	case run != nil && run.Report != nil && run.Report.Cell != nil:
		f.warn(check, "", out, "the NORM process lacks of its cell: %s", strings.Join(run.Report.Cell.Missing, ", "))
	default:
		for _, name := range []string{"user/max_user_namespaces", "user/max_net_namespaces", "kernel/unprivileged_userns_clone"} {
			if text, err := os.ReadFile("/proc/sys/" + name); err == nil && strings.TrimSpace(string(text)) == "0" {
				f.warn(check, "", out, "the kernel gives no namespaces (%s is 0), so that the NORM process will not have its whole cell", strings.ReplaceAll(name, "/", "."))
				return
			}
		}
		f.ok(check, "", "the kernel gives namespaces for the NORM process's cell")
	}
}

// fields are the lines of /proc/…/status.
func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			m[key] = strings.TrimSpace(value)
		}
	}
	return m
}

// softLimit is the first figure of a line of /proc/…/limits; "unlimited" is the greatest number.
func softLimit(limits, name string) (n uint64, ok bool) {
	for line := range strings.Lines(limits) {
		rest, found := strings.CutPrefix(line, name)
		w := strings.Fields(rest)
		if !found || len(w) == 0 {
			continue
		}
		if w[0] == "unlimited" {
			return 1<<64 - 1, true
		}
		_, err := fmt.Sscan(w[0], &n)
		return n, err == nil
	}
	return 0, false
}

// readOnlyRoot says whether the file system at / of a process is read-only.
func readOnlyRoot(mountinfo string) (is bool) {
	for line := range strings.Lines(mountinfo) {
		if w := strings.Fields(line); len(w) > 5 && w[4] == "/" { // the last one covers those before it
			is = strings.HasPrefix(w[5]+",", "ro,")
		}
	}
	return is
}
