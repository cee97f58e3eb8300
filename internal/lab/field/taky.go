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

// findTaky is the program of taky that make tak-peers has installed above the working directory or the binary; "": none.
func findTaky() string {
	program := filepath.Join("field-tests", "tak", ".venv", "bin", "taky")
	for _, dir := range startingPoints() {
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
				return filepath.Join(dir, program)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

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
	log, err := os.Create(filepath.Join(dir, "taky.log"))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("ip", "netns", "exec", ns, program, "-c", conf)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	done, _, err := StartBound(cmd)
	if err != nil {
		return fmt.Errorf("lab: taky: %w", err)
	}
	context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	ready, stop := context.WithTimeout(ctx, gatewayReady)
	defer stop()
	for {
		c, err := dialIn(ready, ns, fmt.Sprintf("%s:%d", address, takPort))
		if err == nil {
			return c.Close()
		}
		select {
		case <-done:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("lab: taky ended at start: %s", lastLine(strings.TrimSpace(string(said))))
		case <-ready.Done():
			return fmt.Errorf("lab: taky takes no connections: %w", err)
		case <-time.After(pollEvery):
		}
	}
}
