package commands

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/operator/cli"
	"aldis/internal/operator/commands"
)

// asGateway makes the test binary both programs in one: tests run it as an operator would.
const asGateway = "ALDIS_TEST_AS_GATEWAY"

func TestMain(m *testing.M) {
	if os.Getenv(asGateway) != "" {
		p := cli.Program{Name: "gateway", Commands: maps.Clone(operator.Commands), Inner: Program().Inner}
		maps.Copy(p.Commands, all)
		os.Exit(p.Dispatch(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// patience bounds every wait; a loaded machine is slow.
const patience = 30 * time.Second

// run runs a command that ends by itself.
func run(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asGateway+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// wants expects words in a text.
func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// configuration writes the configuration of a gateway, with the network's key next to it. more are lines of [link].
func configuration(t *testing.T, id int, more string) (file string) {
	t.Helper()
	dir := t.TempDir()
	if code, _, errs := run(t, "keys", "new", "-o", filepath.Join(dir, "net.key")); code != 0 {
		t.Fatal(errs)
	}
	file = filepath.Join(dir, "gateway.toml")
	text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = \"127.0.0.1:9701\"\n"+
		"[link]\nprofile = \"geo-satcom-128k\"\nlisten = \"127.0.0.1:7142\"\nkey_file = \"net.key\"\n%s[http]\nlisten = \"127.0.0.1:9780\"\n", id, id, filepath.Join(dir, "data"), more)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
