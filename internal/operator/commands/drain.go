package operator

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/pair"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/doctor"
)

const drainAbout = `usage: gateway drain [--stop] [--wait TIME] [-c FILE] [--json]
       gateway drain --to ADDRESS [--stop] [-c FILE] [--json]
       gateway drain --off [-c FILE] [--json]

Prepares the gateway on this machine for a stop: it takes no more messages of local peers, sends what waits, and the
command says when it has nothing that has to go out. Peers stay connected, what comes from other sites is handed over, and
local peers still find each other. A message that is not taken is refused as by a queue that is full: the sender on a
unicast pipe is told, on a propagate pipe nobody is.

The order is of this run: a restart takes messages again. Ctrl-C leaves it in force; --off ends it. Messages that are held
(gateway message hold), or are for a site that does not answer, keep it from becoming empty.

At a site of several machines, --to has the one at ADDRESS lead (of cluster.members or site.other). It has everything of this
one's journal, so that nothing has to go out before; peers that were connected here are passed on to it when they connect again.
A machine that does not lead has nothing to hand over.

With --stop the gateway is stopped when it is empty: its service and socket if systemd runs it, otherwise its process.

Exit: 0 it is empty (--off: it takes messages again), 1 not so, 2 wrong usage.
`

func drainCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("drain", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	off := fs.Bool("off", false, "take messages of local peers again")
	stop := fs.Bool("stop", false, "stop the gateway when it is empty")
	most := fs.Duration("wait", 0, "wait so long at the most (`TIME`, like 10m); 0: for ever")
	to := fs.String("to", "", "have the machine of the site at `ADDRESS` lead")
	asJSON := fs.Bool("json", false, "print the last state as JSON")
	if _, code, done := cli.Parse(fs, args, 0, drainAbout, stdout, stderr); done {
		return code
	}
	if *off && (*stop || *most != 0) || *most < 0 || *to != "" && (*off || *most != 0) {
		fmt.Fprintf(stderr, "gateway drain: --stop and --wait go without --off, --to without --off and --wait\n\n%s", drainAbout)
		return cli.ExitUsage
	}
	d := drainTask{file: *file, stdout: stdout, stderr: stderr, asJSON: *asJSON}
	if *to != "" {
		return d.handOver(*to, *stop)
	}
	err := d.order(!*off)
	if err == nil && !*off {
		err = d.wait(*most)
	}
	if err == nil && *stop {
		err = d.stop()
	}
	if err == nil && *asJSON {
		err = cli.PrintJSON(stdout, d.state)
	}
	if err != nil {
		return cli.Fail(stderr, "drain", err)
	}
	if *off && !*asJSON {
		fmt.Fprintln(stdout, "the drain has ended; the gateway takes messages of local peers again")
	}
	return cli.ExitGood
}

// drainTask is one call of the command.
type drainTask struct {
	file           string
	stdout, stderr io.Writer
	asJSON         bool
	desk           desk
	state          *api.DrainStatus
}

// handOver makes another machine of the site lead.
func (d *drainTask) handOver(address string, stop bool) int {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		fmt.Fprintf(d.stderr, "gateway drain: --to takes an address of cluster.members or site.other: %v\n\n%s", err, drainAbout)
		return cli.ExitUsage
	}
	var is pair.Status
	if d.desk, err = DeskOf(d.file, ""); err == nil {
		_, err = d.desk.TalkOf(&is, "GET", "/site", nil)
	}
	switch {
	case err != nil:
	case is.Role == pair.Leading.String():
		body, _ := json.Marshal(control.RetireOrder{To: to})
		is, err = siteOrder(d.desk, "/site/retire", body, func(s pair.Status) bool { return s.Role == pair.Following.String() && s.Other == to.String() })
	case !slices.Contains(is.Others(), to.String()):
		err = fmt.Errorf("%v is no other machine of this site; those are %s", to, strings.Join(is.Others(), ", "))
	}
	if err == nil && d.asJSON {
		err = cli.PrintJSON(d.stdout, is)
	} else if err == nil {
		text := "no other machine leads"
		if is.Role == pair.Following.String() {
			text = is.Other + " does"
		}
		fmt.Fprintf(d.stdout, "this machine does not lead; %s\n", text)
	}
	if err == nil && stop {
		err = d.stop()
	}
	if err != nil {
		return cli.Fail(d.stderr, "drain", err)
	}
	return cli.ExitGood
}

func (d *drainTask) order(on bool) (err error) {
	if d.desk, err = DeskOf(d.file, ""); err != nil {
		return err
	}
	body, _ := json.Marshal(control.DrainOrder{On: on})
	_, err = d.desk.TalkOf(&d.state, "POST", "/drain", body)
	return err
}

// drainLook is the time between two looks at the messages that are left.
const drainLook = 200 * time.Millisecond

// wait waits until no message is left that has to go out.
func (d *drainTask) wait(most time.Duration) error {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupted)
	began, said := time.Now(), ""
	for {
		left := d.left()
		switch {
		case d.state == nil:
			return fmt.Errorf("the drain was ended, or the gateway was restarted: it takes messages again")
		case d.state.Messages == 0:
			if !d.asJSON {
				fmt.Fprintf(d.stdout, "empty: nothing waits for a far gateway%s\n", left)
			}
			return nil
		case most > 0 && time.Since(began) > most:
			return fmt.Errorf("after %v still %s; the gateway goes on sending it and takes no messages: gateway drain --off ends that", most, left)
		case left != said && !d.asJSON:
			fmt.Fprintf(d.stdout, "%s\n", left)
			said = left
		}
		select {
		case s := <-interrupted:
			return fmt.Errorf("%v: %s; the gateway goes on sending it and takes no messages: gateway drain --off ends that", s, left)
		case <-time.After(drainLook):
		}
		var r control.Report
		if _, err := d.desk.TalkOf(&r, "GET", "/status", nil); err != nil {
			return err
		}
		d.state = r.Drain
	}
}

// left says which messages are left.
func (d *drainTask) left() string {
	if d.state == nil {
		return ""
	}
	if d.state.Messages == 0 {
		if d.state.Pending > 0 {
			return fmt.Sprintf("; messages of other sites wait for local peers (%d) and stay in the journal", d.state.Pending)
		}
		return ""
	}
	var sites []string
	for _, name := range slices.Sorted(maps.Keys(d.state.Sites)) {
		sites = append(sites, fmt.Sprintf("%s %d", name, d.state.Sites[name]))
	}
	return fmt.Sprintf("messages that wait: %d (%s)", d.state.Messages, strings.Join(sites, ", "))
}

// stop stops the systemd unit of the gateway, or if there is none its keeper, or if there is none the process itself.
func (d *drainTask) stop() error {
	path, err := config.ControlSocket(d.file)
	if err != nil {
		return err
	}
	run, err := doctor.Find(path)
	if err != nil {
		return fmt.Errorf("the gateway has ended already: %w", err)
	}
	pid := run.PID
	if unit := unitOf(pid); unit != "" {
		out, err := exec.Command("systemctl", "stop", unit+".socket", unit+".service").CombinedOutput()
		if err != nil {
			return fmt.Errorf("systemctl stop %s.socket %s.service: %w: %s", unit, unit, err, strings.TrimSpace(string(out)))
		}
	} else {
		if parent := keeperOf(pid); parent != 0 {
			pid = parent
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(drainLook) {
		if _, err := doctor.Find(path); err != nil {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("process %d got the signal to stop, but still runs", pid)
		}
	}
	if !d.asJSON {
		fmt.Fprintln(d.stdout, "stopped")
	}
	return nil
}

// unitOf is the systemd service that a process belongs to, without the suffix; "": it belongs to none.
func unitOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	_, group, ok := strings.Cut(string(text), "0::")
	unit, service := strings.CutSuffix(filepath.Base(strings.TrimSpace(group)), ".service")
	if !ok || !service || !strings.Contains(unit, "aldis") {
		return ""
	}
	return unit
}

// keeperOf is the process of gateway run --keep-socket that started a gateway; 0: none did.
func keeperOf(pid int) int {
	parent := doctor.Parent(pid)
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
	if parent > 1 && slices.Contains(strings.Split(string(args), "\x00"), "--keep-socket") {
		return parent
	}
	return 0
}
