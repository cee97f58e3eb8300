package field

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/gateway/api"
)

// gatewayProc is a gateway under test: a process in its site's namespace.
type gatewayProc struct {
	name, binary, netns, config, logFile, lan string

	machine *machine // where it is installed from a package; nil: binary runs on this machine

	client *http.Client // for get
	cmd    *exec.Cmd
	done   <-chan struct{} // closed when the process has been waited for
	ended  func() error    // the result of the process, once done
}

const (
	gatewayReady = 30 * time.Second // to take connections on the LAN
	gatewayStop  = 10 * time.Second // from SIGTERM to SIGKILL
	pollEvery    = 20 * time.Millisecond
	gatewayHTTP  = "127.0.0.1:9142"
)

// start runs the gateway and waits until it takes connections.
func (g *gatewayProc) start(ctx context.Context) error {
	if err := g.launch("run"); err != nil {
		return err
	}
	return g.takes(ctx)
}

// launch runs a command of the gateway with its configuration.
func (g *gatewayProc) launch(command ...string) error {
	log, err := os.OpenFile(g.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("ip", "netns", "exec", g.netns, g.binary)
	cmd.Args = append(append(cmd.Args, command...), "-c", g.config)
	if g.machine != nil {
		if cmd, err = g.machine.service(command...); err != nil {
			return err
		}
	}
	cmd.Dir = filepath.Dir(g.config)
	cmd.Stdout, cmd.Stderr = log, log
	done, ended, err := StartBound(cmd)
	if err != nil {
		g.cmd = nil
		return fmt.Errorf("lab: gateway of %s: %w", g.name, err)
	}
	g.cmd, g.done, g.ended = cmd, done, ended
	return nil
}

// takes waits until the gateway takes connections.
func (g *gatewayProc) takes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayReady)
	defer cancel()
	for {
		conn, err := DialIn(ctx, g.netns, g.lan)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-g.done:
			return fmt.Errorf("lab: gateway of %s ended at start: %v\n%s", g.name, g.ended(), g.tail())
		case <-ctx.Done():
			return fmt.Errorf("lab: gateway of %s takes no connections on %s: %w\n%s", g.name, g.lan, err, g.tail())
		case <-time.After(pollEvery):
		}
	}
}

// configure adds lines to the configuration, before the gateway starts.
func (g *gatewayProc) configure(text string) error {
	f, err := os.OpenFile(g.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	_, err = fmt.Fprintf(f, "\n%s", text)
	return errors.Join(err, f.Close())
}

// kill ends the gateway as a power cut would; ending the libnorm child is left to the gateway.
func (g *gatewayProc) kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill() // it may have exited already
		<-g.done
	}
}

// stop ends the gateway in good order and returns its errors.
func (g *gatewayProc) stop() error {
	if g.cmd == nil {
		return nil
	}
	select {
	case <-g.done:
		return fmt.Errorf("gateway of %s had ended: %v: %s", g.name, g.ended(), lastLine(g.tail()))
	default:
	}
	_ = g.cmd.Process.Signal(unix.SIGTERM) // it may exit at this very moment
	select {
	case <-g.done:
	case <-time.After(gatewayStop):
		g.kill()
		return fmt.Errorf("gateway of %s did not end within %v of SIGTERM", g.name, gatewayStop)
	}
	if err := g.ended(); err != nil {
		return fmt.Errorf("gateway of %s: %w: %s", g.name, err, lastLine(g.tail()))
	}
	return nil
}

// order gives the gateway an operator's order by a command.
func (g *gatewayProc) order(ctx context.Context, command, what string, args ...string) error {
	program, words := "ip", []string{"netns", "exec", g.netns, g.binary, command, what, "-c", g.config}
	if g.machine != nil {
		program, words = "nsenter", []string{"-t", strconv.Itoa(g.cmd.Process.Pid), "-m", "-n", "gateway", command, what}
	}
	if out, err := exec.CommandContext(ctx, program, append(words, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("lab: %s of %s: %w: %s", command, g.name, err, bytes.TrimSpace(out))
	}
	return nil
}

// get asks the gateway for a page of its HTTP server.
func (g *gatewayProc) get(ctx context.Context, page string) ([]byte, error) {
	if g.client == nil {
		g.client = &http.Client{Timeout: gatewayStop, Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return DialIn(ctx, g.netns, addr) },
		}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+gatewayHTTP+"/"+page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("lab: gateway of %s: %w", g.name, err)
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 16<<20))
}

// status asks the gateway for its status.
func (g *gatewayProc) status(ctx context.Context) (st api.Status, err error) {
	body, err := g.get(ctx, "status")
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(body, &st); err != nil {
		return st, fmt.Errorf("lab: gateway of %s: status: %w", g.name, err)
	}
	return st, nil
}

// snapshot keeps the gateway's status pages next to its log, for people: no figure is taken from them.
func (g *gatewayProc) snapshot(ctx context.Context) error {
	var errs []error
	for _, page := range []string{"metrics", "status"} {
		body, err := g.get(ctx, page)
		if err == nil {
			err = os.WriteFile(strings.TrimSuffix(g.logFile, "gateway.log")+page, body, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tail is the end of the gateway's log.
func (g *gatewayProc) tail() string {
	b, err := os.ReadFile(g.logFile)
	if err != nil {
		return ""
	}
	if len(b) > 4096 {
		b = b[len(b)-4096:]
	}
	return strings.TrimSpace(string(b))
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
