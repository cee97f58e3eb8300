package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/edge/audit"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// The audit record has the orders, a reload, refusals, start and stop of a real gateway, with the user who caused them; a change
// of the record shows.
func TestAudit(t *testing.T) {
	a, _ := two(t)
	key := a.status(t).Key
	code, _, _ := run(t, "silence", "on", "-c", a.file, "--until", "1h")
	check.Equal(t, "silence on", code, cli.ExitGood)
	good, err := os.ReadFile(a.file)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(a.file, append(good, "\n[[filter]]\nname = \"x\"\n"...), 0o600))
	code, _, _ = run(t, "reload", "-c", a.file)
	check.Equal(t, "reload of a file with a mistake", code, cli.ExitRefused)
	check.NoError(t, os.WriteFile(a.file, append(good, "\n[log]\nlevel = \"warn\"\n"...), 0o600))
	code, _, errs := run(t, "reload", "-c", a.file)
	check.Equal(t, "reload: "+errs, code, cli.ExitGood)
	air, err := net.Dial("udp", a.link)
	check.NoError(check.Fatal(t), err)
	defer air.Close()
	before := a.status(t).Dropped["version"]
	a.until(t, "a datagram is refused", func() bool {
		air.Write([]byte(strings.Repeat("\xff", 40)))
		return a.status(t).Dropped["version"] > before
	})
	a.stop(t, syscall.SIGTERM)
	code, out, _ := run(t, "audit", "show", "-c", a.file)
	check.Equal(t, "audit show", code, cli.ExitGood)
	wants(t, out, "start ", "key "+key, "order  ", "silence", "on until", "by \"uid ", "order_failed", "changed ", "log.level", "refused", "version ", "end")
	code, out, _ = run(t, "audit", "verify", "-c", a.file, "--json")
	check.Equal(t, "audit verify", code, cli.ExitGood)
	wants(t, out, `"lines":`, `"head":`)
	path := filepath.Join(a.dir, "data", audit.File)
	text, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "on until", "on UNTIL", 1)), 0o600))
	code, _, errs = run(t, "audit", "verify", "-c", a.file)
	check.Equal(t, "audit verify of a changed record", code, cli.ExitRefused)
	wants(t, errs, "was changed")
}
