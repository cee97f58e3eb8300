package field

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// pretends is a gateway for tests, which says how it runs, and keeps one line of two. Its unit and what installs it are the gateway's.
const pretends = `#!/bin/sh
echo "version %s as $(id -un):$(id -gn) in $(pwd): $*"
grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status
echo "files $(ulimit -n) core $(ulimit -c) umask $(umask)"
echo "there: $(ls /var/lib/aldis)"
echo "processes of others: $(ls /proc | grep -cx 1)"
stat -c '%%A %%U:%%G %%n' /etc/aldis/*
cat /etc/aldis/*
touch /usr/written 2>/dev/null && echo "writes in /usr"
touch /etc/aldis/written 2>/dev/null && echo "writes in /etc"
echo temporary >/tmp/written
cd /var/lib/aldis
echo line >kept
sync kept .
echo line >lost
`

// testPackage makes a package of the gateway whose program is another one.
func testPackage(t *testing.T, version string) (file string) {
	t.Helper()
	dir := t.TempDir()
	tree := func(name, text string, mode os.FileMode) {
		name = filepath.Join(dir, name)
		check.NoError(check.Fatal(t), os.MkdirAll(filepath.Dir(name), 0o755))
		check.NoError(check.Fatal(t), os.WriteFile(name, []byte(text), mode))
	}
	ours := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../../ops", name))
		check.NoError(check.Fatal(t), err)
		return string(text)
	}
	tree("DEBIAN/control", "Package: aldis-gateway\nVersion: "+version+"\nArchitecture: all\nMaintainer: nobody <nobody@aldis.invalid>\nDescription: a test\n", 0o644)
	tree("DEBIAN/postinst", ours("package/postinst"), 0o755)
	tree("usr/share/aldis-gateway/gateway.toml", ours("package/gateway.toml"), 0o644)
	tree("lib/systemd/system/aldis-gateway.service", ours("systemd/aldis-gateway.service"), 0o644)
	tree("usr/bin/gateway", fmt.Sprintf(pretends, version), 0o755)
	file = filepath.Join(t.TempDir(), "aldis-gateway_"+version+"_all.deb")
	out, err := exec.Command("dpkg-deb", "-Znone", "--root-owner-group", "--build", dir, file).CombinedOutput()
	check.True(check.Fatal(t), "a package", err == nil, string(out))
	return file
}

// A machine of its own: a package is installed and upgraded by dpkg, its program runs as the unit says, keys are brought, and a loss of
// power takes what was not synced. Nothing of it is on this machine, and nothing is left. The machine begins with a copy of this one's
// system, since making a clean Debian needs an archive.
func TestMachineOfItsOwn(t *testing.T) {
	first, second := testPackage(t, "1"), testPackage(t, "2")
	tmp := t.TempDir()
	check.NoError(check.Fatal(t), unix.Mount("tmpfs", tmp, "tmpfs", 0, "")) // an overlay cannot lie in its own lower directory
	t.Cleanup(func() { check.NoError(t, unix.Unmount(tmp, 0)) })
	t.Setenv("TMPDIR", tmp)
	w, err := newWorld()
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() {
		check.NoError(t, w.close())
		left, err := os.ReadDir(tmp)
		check.True(t, "nothing is left", err == nil && len(left) == 0, left, err)
	})
	ns, err := w.add("m")
	check.NoError(check.Fatal(t), err)
	d := &debians{w: w, logf: t.Logf, base: "/", pkg: first}
	m, err := d.machine(t.Context(), "m", ns)
	check.NoError(check.Fatal(t), err)
	_, err = os.Stat("/usr/share/aldis-gateway")
	check.ErrorIs(t, err, os.ErrNotExist)

	key := filepath.Join(t.TempDir(), "net.key")
	check.NoError(check.Fatal(t), os.WriteFile(key, []byte("the key\n"), 0o600))
	g := &gatewayProc{name: "m", netns: ns, config: filepath.Join(t.TempDir(), "m.toml"), logFile: filepath.Join(t.TempDir(), "log"), machine: m}
	const text = "roster_of = 1\nkey_file = \"/etc/aldis/net.key\"\n"
	check.Equal(t, "the configuration", m.adopts(g.config, strings.Replace(text, "/etc/aldis/net.key", key, 1)), text)
	check.NoError(check.Fatal(t), os.WriteFile(g.config, []byte(text), 0o600))
	runs := func(command ...string) string {
		t.Helper()
		_ = os.Remove(g.logFile)
		check.NoError(check.Fatal(t), g.launch(command...))
		check.NoError(check.Fatal(t), g.ended())
		return g.tail()
	}
	said := runs("run")
	for _, line := range []string{"version 1 as aldis:aldis in /: run -c /etc/aldis/gateway.toml\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n",
		" core 0 umask 0077\n", "there: lost+found\n", "processes of others: 0\n", "the key"} {
		check.Contains(t, "what it says", said, line)
	}
	check.Lacks(t, "what it says", said, "writes")
	check.NoError(check.Fatal(t), m.disk.LosePower())
	check.NoError(check.Fatal(t), m.install(t.Context(), second))
	said = runs("site", "witness")
	check.Contains(t, "after an upgrade", said, "version 2 as aldis:aldis in /: site witness -c /etc/aldis/gateway.toml\n")
	check.Contains(t, "after a loss of power", said, "there: kept\nlost+found\n")
	check.Contains(t, "owners", said, "-rw-r----- root:aldis /etc/aldis/gateway.toml\n-rw------- aldis:root /etc/aldis/net.key\n")
	check.Contains(t, "the configuration", said, text)
}

// What cannot be played with packages is refused before anything is made.
func TestPackagesRefused(t *testing.T) {
	one := testPackage(t, "1")
	other := filepath.Join(t.TempDir(), "other.deb")
	check.NoError(check.Fatal(t), exec.Command("sh", "-c", `dpkg-deb -R "$0" "$2" && sed -i s/aldis-gateway/aldis-gateway-lab/ "$2/DEBIAN/control" && dpkg-deb -Znone -b "$2" "$1"`, one, other, filepath.Join(t.TempDir(), "x")).Run())
	version, err := packageVersion(t.Context(), one)
	check.True(t, "a package of the gateway", err == nil && version == "aldis-gateway 1", version, err)
	for want, o := range map[string]FleetOptions{
		"the package aldis-gateway is wanted": {Gateway: other},
		"a package replaces a package":        {Gateway: one, Upgrade: "/bin/true"},
		"failed to read archive":              {Gateway: "/nowhere/aldis-gateway.deb"},
	} {
		o.Script, o.Peers = &fleet.Script{}, []string{KindTAK}
		_, err := Fleet(t.Context(), o)
		check.True(t, "refused: "+want, err != nil && strings.Contains(err.Error(), want), err)
	}
}
