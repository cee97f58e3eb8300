// Package install tests what the packages bring and do. It has no source of its own.
package install

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMaintainerScriptsParse(t *testing.T) {
	for _, file := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.Command("sh", "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

// The unit, the example of the configuration and the scripts speak of one user, one file and one port.
func TestUnitsAgreeWithTheConfiguration(t *testing.T) {
	service, socket, config, postinst := text(t, "../systemd/aldis-gateway.service"), text(t, "../systemd/aldis-gateway.socket"), text(t, "gateway.toml"), text(t, "postinst")
	for _, want := range []struct{ where, in, line string }{
		{"the service", service, "ExecStart=/usr/bin/gateway run -c /etc/aldis/gateway.toml\n"},
		{"the service", service, "User=aldis\nStateDirectory=aldis\n"},
		{"the configuration", config, `data_dir = "/var/lib/aldis"`},
		{"postinst", postinst, "--home-dir /var/lib/aldis"},
		{"postinst", postinst, "/etc/aldis/gateway.toml"},
	} {
		if !strings.Contains(want.in, want.line) {
			t.Errorf("%s lacks %q", want.where, want.line)
		}
	}
	listens := regexp.MustCompile(`(?m)^#? ?ListenStream=(.*)$`).FindAllStringSubmatch(socket, -1)
	if len(listens) != 2 {
		t.Fatalf("the socket listens at %v, want the ports of lan.tcp and lan.http", listens)
	}
	for _, at := range listens {
		if !strings.Contains(config, `"`+at[1]+`"`) {
			t.Errorf("the configuration does not name %s", at[1])
		}
	}
}

// What systemd itself says of the unit: 2.0 of 10 at most. The threshold counts tenths.
func TestUnitIsSandboxed(t *testing.T) {
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", "../systemd/aldis-gateway.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
