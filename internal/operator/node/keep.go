package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
)

const (
	keepFirst  = 100 * time.Millisecond // pause before a gateway that died is started again; it doubles each time
	keepMost   = 10 * time.Second
	keepWell   = 30 * time.Second // a run of this length resets the pause
	keepPatent = 5 * time.Second  // a first start that fails within this time is a mistake of the operator
)

// keeper holds the listening sockets and a gateway that serves them. If the gateway dies, the kernel still accepts peers, which
// find their gateway again as soon as it runs.
type keeper struct {
	program, file string
	stderr        io.Writer
	log           *slog.Logger
	held          map[netip.AddrPort]*os.File
}

// keep runs a gateway for ever, until SIGINT or SIGTERM. SIGHUP restarts it with the present configuration and program, if that
// program accepts that configuration.
func keep(file string, stderr io.Writer) int {
	cfg, err := config.Load(file)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	if cfg.Node.Secret.Ask {
		return cli.Fail(stderr, "run", errors.New("--keep-socket starts the gateway again when nobody is there to type: set node.journal_key_file instead of node.journal_passphrase"))
	}
	program, err := os.Executable()
	if err != nil {
		return cli.Fail(stderr, "run", err)
	}
	log, _ := newLogger(cfg, stderr)
	k := &keeper{program: program, file: file, stderr: stderr, log: log, held: map[netip.AddrPort]*os.File{}}
	next, err := k.open(cfg)
	if err != nil {
		return cli.Fail(stderr, "run", err)
	}
	k.hold(next)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// The kernel kills the child when the thread that started it exits, so this thread must stay (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	return k.run(signals)
}

// open opens sockets that a configuration wants and that are not held yet. After an error no new socket is open.
func (k *keeper) open(cfg *config.Config) (next map[netip.AddrPort]*os.File, err error) {
	next = map[netip.AddrPort]*os.File{}
	defer func() {
		if err != nil {
			for at, f := range next {
				if k.held[at] == nil {
					f.Close()
				}
			}
		}
	}()
	for _, w := range cfg.Listens() {
		next[w.At] = k.held[w.At]
		if next[w.At] != nil {
			continue
		}
		delete(next, w.At)
		ln, err := net.Listen("tcp", w.At.String())
		if err != nil {
			return next, listenError(w.Key, "TCP", w.At, err)
		}
		f, err := ln.(*net.TCPListener).File()
		ln.Close()
		if err != nil {
			return next, fmt.Errorf("%s: %w", w.Key, err)
		}
		next[w.At] = f
	}
	return next, nil
}

// hold holds these sockets from now on, and closes held ones that are not among them.
func (k *keeper) hold(next map[netip.AddrPort]*os.File) {
	for at, f := range k.held {
		if next[at] == nil {
			f.Close()
		}
	}
	k.held = next
}

func (k *keeper) run(signals chan os.Signal) int {
	pause, first := keepFirst, true
	for {
		begun := time.Now()
		cmd, err := k.start()
		if err != nil {
			k.log.Error("the gateway process cannot be started", "error", err)
			return cli.ExitRefused
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		stop, again := false, false
	running:
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGHUP && !k.reload() {
					continue // the gateway keeps running as it is
				}
				stop = stop || s != syscall.SIGHUP
				again = s == syscall.SIGHUP
				cmd.Process.Signal(syscall.SIGTERM)
			case err = <-ended:
				break running
			}
		}
		lived := time.Since(begun)
		code := cmd.ProcessState.ExitCode() // -1: a signal
		switch {
		case stop, first && code > 0 && lived < keepPatent:
			return max(code, 0)
		case again:
			pause, first = keepFirst, false
			continue
		}
		first = false
		if lived > keepWell {
			pause = keepFirst
		}
		k.log.Error("the gateway process ended and starts again; its sockets stayed open", "cause", cause(err), "after", lived.Round(time.Millisecond), "pause", pause)
		ordered, stop := k.wait(pause, signals)
		switch {
		case stop:
			return cli.ExitGood
		case ordered:
			pause = keepFirst
		default:
			pause = min(2*pause, keepMost)
		}
	}
}

// wait waits for a pause before the next start. It returns early if the operator stops the keeper, or orders a restart with a
// valid configuration.
func (k *keeper) wait(pause time.Duration, signals chan os.Signal) (ordered, stop bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return false, false
		case s := <-signals:
			if s != syscall.SIGHUP {
				return false, true
			}
			if k.reload() {
				return true, false
			}
		}
	}
}

func cause(err error) string {
	var exit *exec.ExitError
	if err == nil {
		return "exit status 0"
	} else if errors.As(err, &exit) {
		return exit.String()
	}
	return err.Error()
}

// reload checks whether a start with the program and configuration on disk would succeed, and holds the sockets that it needs.
// If not, nothing changes, and it reports the reason.
func (k *keeper) reload() bool {
	err := k.check()
	var cfg *config.Config
	if err == nil {
		cfg, err = config.Load(k.file)
	}
	var next map[netip.AddrPort]*os.File
	if err == nil {
		next, err = k.open(cfg)
	}
	if err != nil {
		k.log.Error("not restarted: the new configuration is wrong; the gateway keeps the old one", "error", err)
		return false
	}
	k.hold(next)
	return true
}

// keepCheck is how long the program on disk may take to judge the configuration.
const keepCheck = 20 * time.Second

// check asks the program that will run next: it may be a different one.
func (k *keeper) check() error {
	ctx, cancel := context.WithTimeout(context.Background(), keepCheck)
	defer cancel()
	said, err := exec.CommandContext(ctx, k.program, "check", "-c", k.file).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(bytes.TrimSpace(said)) > 0 {
		return errors.New(strings.ReplaceAll(strings.TrimSpace(string(said)), "\n", "; "))
	}
	return err
}

func (k *keeper) start() (*exec.Cmd, error) {
	cmd := exec.Command(k.program, "run", "-c", k.file)
	cmd.Stderr = k.stderr
	for _, f := range k.held {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(cmd.ExtraFiles)), keeperEnv+"="+strconv.Itoa(os.Getpid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd, cmd.Start()
}
