package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/edge/config"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// TestInit: two sites are set up with init alone, the second with the command that the first one prints, and check accepts the
// files of both.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	ship, hq := filepath.Join(dir, "ship", "gateway.toml"), filepath.Join(dir, "hq", "gateway.toml")
	code, out, errs := run(t, "init", "-o", ship, "--id", "2", "--name", "tug", "--lan", "10.20.2.1", "--profile", "iridium-directip-shore",
		"--peer", "1,hq,192.0.2.9", "--new-key", "--data", filepath.Join(dir, "data"))
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	wants(t, out, "wrote "+ship+", and the network's new key "+filepath.Join(dir, "ship", "net.key"), "tcp://10.20.2.1:9701")
	_, other, found := strings.Cut(out, "gateway init ")
	if !found {
		t.Fatalf("init does not say what to do at the other side:\n%s", out)
	}
	other = strings.Replace(strings.TrimSpace(other), "ITS-LAN-ADDRESS", "10.20.0.1:9800", 1)
	check.Equal(t, "the command for the other side", other, "--ashore --id 1 --name hq --profile iridium-directip-shore --lan 10.20.0.1:9800 --peer 2,tug")

	args := append([]string{"init", "-o", hq, "--data", filepath.Join(dir, "data-hq")}, strings.Fields(other)...)
	code, _, errs = run(t, args...)
	check.Equal(t, "exit code without the key, off a terminal", code, cli.ExitUsage)
	check.Contains(t, "what it says", errs, "--new-key missing")
	if _, err := os.Stat(hq); err == nil {
		t.Fatal("init wrote a file although the key is missing")
	}
	key, err := os.ReadFile(filepath.Join(dir, "ship", "net.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(hq), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hq", "net.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = run(t, args...)
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	check.Contains(t, "what is left at the ship", out, `tug:  its configuration needs a [[link.peer]] with id = 1 and name = "hq"`)
	check.True(t, "it does not tell to do again what was done at the ship", !strings.Contains(out, "copy ") && !strings.Contains(out, "gateway init"), out)
	for _, file := range []string{ship, hq} {
		code, out, errs := run(t, "check", "-c", file)
		check.Equal(t, "exit code of check, and "+out+errs, code, cli.ExitGood)
	}
	a, err := config.Load(ship)
	if err != nil {
		t.Fatal(err)
	}
	b, err := config.Load(hq)
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "the keys are the same", a.Link.Key, b.Link.Key)
	check.Equal(t, "HQ is ashore, the ship is not", [2]bool{a.Link.Shore, b.Link.Shore}, [2]bool{false, true})
	check.Equal(t, "where the ship finds HQ", a.Link.Peers[0].Address, netip.MustParseAddrPort("192.0.2.9:7142"))
	check.Equal(t, "HQ's LAN address", b.LAN.TCP, netip.MustParseAddrPort("10.20.0.1:9800"))

	code, _, errs = run(t, args...)
	check.Equal(t, "exit code when the file is there", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "is there already")
}

// TestInitRefuses: a configuration that check would refuse leaves no file behind, and no key.
func TestInitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
		says string
	}{
		"an unknown link": {"--id 2 --name tug --lan 10.0.0.1 --profile iridium --peer 1,hq --new-key", cli.ExitRefused, "no such profile"},
		"its own number":  {"--id 1 --name tug --lan 10.0.0.1 --profile wire --peer 1,hq --new-key", cli.ExitRefused, "id"},
		"no address":      {"--id 2 --name tug --lan ship --profile wire --peer 1,hq --new-key", cli.ExitRefused, "--lan"},
		"no number":       {"--id 2 --name tug --lan 10.0.0.1 --profile wire --peer hq --new-key", cli.ExitUsage, "say id,name"},
		"nothing":         {"", cli.ExitUsage, "--id, --name, --lan, --profile, --peer, --new-key missing"},
		"an argument":     {"ship", cli.ExitUsage, ""},
		"quotes in names": {"--id 2 --name \"\x1b[2J --lan 10.0.0.1 --profile wire --peer 1,hq --new-key", cli.ExitRefused, "name"},
	} {
		dir := t.TempDir()
		code, _, errs := run(t, append([]string{"init", "-o", filepath.Join(dir, "gateway.toml"), "--data", dir}, strings.Fields(c.args)...)...)
		in := check.In(t, name)
		check.Equal(in, "exit code, and "+errs, code, c.code)
		check.Contains(in, "what it says", errs, c.says)
		left, err := os.ReadDir(dir)
		check.True(in, "nothing is left behind", err == nil && len(left) == 0, left)
	}
}
