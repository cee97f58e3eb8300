package field

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// findTaky is taky's program, which make tak-peers has installed above the working directory or the binary; "": there is none.
func findTaky() string { return findUp("field-tests", "tak", ".venv", "bin", "taky") }

// serverReady is how long a server of other makers may take to listen.
const serverReady = 90 * time.Second

// startTaky runs taky in a namespace until ctx ends, and returns when it listens.
func startTaky(ctx context.Context, program, ns, address, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	text := fmt.Sprintf("[taky]\nbind_ip = %s\nroot_dir = %s\n[cot_server]\nport = %d\n[ssl]\nenabled = false\n", address, dir, takPort)
	conf := filepath.Join(dir, "taky.conf")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return startServer(ctx, ns, fmt.Sprintf("%s:%d", address, takPort), dir, "taky.log", program, "-c", conf)
}

// startServer runs a program of other makers in a namespace and a directory until ctx ends, and returns when it listens.
func startServer(ctx context.Context, ns, at, dir, logName string, command ...string) error {
	log, err := os.Create(filepath.Join(dir, logName))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("ip", append([]string{"netns", "exec", ns}, command...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	done, _, err := StartBound(cmd)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", command[0], err)
	}
	context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	ready, stop := context.WithTimeout(ctx, serverReady)
	defer stop()
	for {
		c, err := DialIn(ready, ns, at)
		if err == nil {
			return c.Close()
		}
		select {
		case <-done:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("lab: %s ended at start: %s", command[0], lastLine(strings.TrimSpace(string(said))))
		case <-ready.Done():
			return fmt.Errorf("lab: %s takes no connections: %w", command[0], err)
		case <-time.After(pollEvery):
		}
	}
}
