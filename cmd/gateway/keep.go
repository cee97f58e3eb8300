package main

import (
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
	"syscall"
	"time"

	"aldis/internal/config"
)

const (
	keepFirst  = 100 * time.Millisecond // before a gateway that died is started again; doubled each time
	keepMost   = 10 * time.Second
	keepWell   = 30 * time.Second // that it ran for so long forgives what was before
	keepPatent = 5 * time.Second  // a first start that fails within this time is a mistake of the operator's
)

// keeper holds the listening sockets and a gateway that serves them. When the gateway dies peers are still taken in,
// by the kernel, and find their gateway again as soon as it runs.
type keeper struct {
	program, file string
	stderr        io.Writer
	log           *slog.Logger
	held          map[netip.AddrPort]*os.File
}

// keep runs a gateway for ever, until SIGINT or SIGTERM. SIGHUP starts it anew, with the configuration and the program
// as they are then.
func keep(file string, stderr io.Writer) int {
	cfg, err := config.Load(file)
	if err != nil {
		return mistakes(stderr, err)
	}
	program, err := os.Executable()
	if err != nil {
		return fail(stderr, "run", err)
	}
	k := &keeper{program: program, file: file, stderr: stderr, log: newLogger(cfg, stderr), held: map[netip.AddrPort]*os.File{}}
	if err := k.hold(cfg); err != nil {
		return fail(stderr, "run", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// The kernel ends the child when the thread ends that made it: this one stays (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	return k.run(signals)
}

// hold opens what the configuration asks for and is not held yet, and closes what it asks for no more.
func (k *keeper) hold(cfg *config.Config) error {
	want := map[netip.AddrPort]bool{}
	for _, w := range wantedSockets(cfg) {
		want[w.at] = true
	}
	for at, f := range k.held {
		if !want[at] {
			f.Close()
			delete(k.held, at)
		}
	}
	for _, w := range wantedSockets(cfg) {
		if k.held[w.at] != nil {
			continue
		}
		ln, err := net.Listen("tcp", w.at.String())
		if err != nil {
			return listenError(w.key, "TCP", w.at, err)
		}
		f, err := ln.(*net.TCPListener).File()
		ln.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", w.key, err)
		}
		k.held[w.at] = f
	}
	return nil
}

func (k *keeper) run(signals chan os.Signal) int {
	pause, first := keepFirst, true
	for {
		begun := time.Now()
		cmd, err := k.start()
		if err != nil {
			k.log.Error("the gateway cannot be started", "error", err)
			return exitRefused
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		stop, again := false, false
	running:
		for {
			select {
			case s := <-signals:
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
			k.reload()
			pause, first = keepFirst, false
			continue
		}
		first = false
		if lived > keepWell {
			pause = keepFirst
		}
		k.log.Error("the gateway ended and is started again; its sockets stayed open", "cause", cause(err), "after", lived.Round(time.Millisecond), "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case s := <-signals:
			timer.Stop()
			if s != syscall.SIGHUP {
				return exitGood
			}
			k.reload()
		}
		pause = min(2*pause, keepMost)
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

// reload holds the sockets of the configuration as it is now; with one that has a mistake nothing changes, and the
// gateway says what is wrong with it.
func (k *keeper) reload() {
	cfg, err := config.Load(k.file)
	if err == nil {
		err = k.hold(cfg)
	}
	if err != nil {
		k.log.Error("the configuration cannot be read again", "error", err)
	}
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
