package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// Bounds of the process that rehearses for the page. The gateway's own work comes first: the process has the lowest priority,
// and one core.
const (
	whatIfPlays  = 3
	whatIfMemory = 384 << 20 // octets that it tries to keep to
	whatIfData   = 1 << 30   // octets beyond which it is killed
	whatIfCPU    = 60        // s of a processor
	whatIfOutput = 8 << 20   // octets
	whatIfNice   = 19
)

// rehearsing plays traffic on the built-in links.
func rehearsing() *control.Rehearsing {
	r := &control.Rehearsing{Play: rehearseBeside}
	for _, name := range profile.Names() {
		if p, err := profile.Load(name, nil); err == nil && name != "wire" {
			r.Links = append(r.Links, control.Link{Name: name, Summary: p.Summary})
		}
	}
	return r
}

// rehearseBeside runs a rehearsal in the second program, if that is installed.
func rehearseBeside(ctx context.Context, link string, deadline time.Duration, trace []byte) ([]byte, error) {
	type end struct {
		out []byte
		err error
	}
	ended := make(chan end, 1)
	go func() {
		runtime.LockOSThread() // the process inherits this thread's niceness, and dies with it; the thread exits with this goroutine
		out, err := rehearseOn(ctx, link, deadline, trace)
		ended <- end{out, err}
	}()
	e := <-ended
	return e.out, e.err
}

func rehearseOn(ctx context.Context, link string, deadline time.Duration, trace []byte) ([]byte, error) {
	lab, err := cli.Lab()
	if err != nil {
		return nil, err
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), whatIfNice); err != nil {
		return nil, fmt.Errorf("the rehearsal cannot be given the lowest priority: %w", err)
	}
	cmd := exec.CommandContext(ctx, lab, "rehearse", "--profile", link, "--trace", "-", "--plays", strconv.Itoa(whatIfPlays),
		"--deadline", deadline.String(), "--alone", "--json")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT="+strconv.Itoa(whatIfMemory))
	cmd.Stdin = bytes.NewReader(trace)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	var out, told bounded
	out.most, told.most = whatIfOutput, 64<<10
	cmd.Stdout, cmd.Stderr = &out, &told
	err = cmd.Start()
	switch {
	case errors.Is(err, fs.ErrPermission): // it was installed after the gateway gave up all other rights
		return nil, fmt.Errorf("%s is newer than this start of the gateway, which may not run it: restart the gateway", lab)
	case err != nil:
		return nil, err
	}
	for resource, most := range map[int]uint64{unix.RLIMIT_DATA: whatIfData, unix.RLIMIT_CPU: whatIfCPU, unix.RLIMIT_CORE: 0} {
		if err := unix.Prlimit(cmd.Process.Pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return nil, fmt.Errorf("the limits of the rehearsal cannot be set: %w", err)
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case out.Len() > 0 && (err == nil || errors.As(err, &exit) && exit.ExitCode() == cli.ExitRefused): // refused: some messages are late
		return out.Bytes(), nil
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return nil, fmt.Errorf("the rehearsal was ended (%v): the traffic is too much for %d s of one processor, or for %d MB", exit, whatIfCPU, whatIfData>>20)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if text := strings.TrimPrefix(lines[len(lines)-1], "gateway rehearse: "); text != "" {
		return nil, errors.New(text)
	}
	return nil, errors.Join(errors.New("the rehearsal gave no answer"), err)
}

// bounded keeps so many octets, and refuses more.
type bounded struct {
	bytes.Buffer
	most int
}

// Write takes all of p or nothing.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, io.ErrShortBuffer
	}
	return b.Buffer.Write(p)
}
