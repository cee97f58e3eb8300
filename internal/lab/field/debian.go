package field

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aldis/internal/lab/baddisk"
)

//go:embed debian.sh
var debianScript string

// debianCache holds the Debians that machines begin with, one for each set of packages that a gateway needs. They stay there.
const debianCache = "/var/cache/aldis-lab"

// debians makes machines with a Debian of their own, on which a package of the gateway is installed.
type debians struct {
	w       *world
	logf    func(format string, args ...any)
	base    string // the Debian that all begin with, and nobody writes to
	pkg     string
	program string // the gateway of the package, for commands that need no machine
}

// machine is a Debian of its own. It has its own root directory, users and processes of the gateway, and a disk for the state directory
// that forgets what was not synced when its power is lost. What else it writes is in an overlay on this machine's disk.
type machine struct {
	netns, base, dir string
	disk             *baddisk.Disk
	bring            map[string]string // files here that come to its /etc/aldis before its first start, by their names there
}

// packaged says whether a gateway is given as its Debian package.
func packaged(gateway string) bool { return strings.HasSuffix(gateway, ".deb") }

// packageVersion is the name and version of a package of the gateway.
func packageVersion(ctx context.Context, file string) (string, error) {
	out, err := bound(ctx, exec.Command("dpkg-deb", "--show", "--showformat", "${Package} ${Version}", file))
	if err == nil && !strings.HasPrefix(out, "aldis-gateway ") {
		err = fmt.Errorf("lab: %s has %s: the package aldis-gateway is wanted", file, out)
	}
	return out, err
}

// newDebians makes ready for machines with a package, which others may replace.
func newDebians(ctx context.Context, w *world, logf func(string, ...any), pkg, upgrade string) (d *debians, err error) {
	d = &debians{w: w, logf: logf, pkg: pkg}
	unpacked := filepath.Join(w.workDir(), "package")
	d.program = filepath.Join(unpacked, "usr/bin/gateway")
	if err = os.MkdirAll(unpacked, 0o700); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	_, err = bound(ctx, exec.Command("dpkg-deb", "-x", pkg, unpacked))
	var needs []string
	for _, file := range []string{pkg, upgrade} {
		var out string
		if err == nil {
			out, err = bound(ctx, exec.Command("dpkg-deb", "--field", file, "Depends"))
		}
		for dep := range strings.SplitSeq(out, ",") { // "libc6 (>= 2.34)"
			if f := strings.Fields(dep); len(f) > 0 {
				needs = append(needs, f[0])
			}
		}
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(needs)
	d.base, err = d.bootstrap(ctx, slices.Compact(needs))
	return d, err
}

// bootstrap is the directory of a Debian with these packages, of the release and from the archive that this machine uses. It is made if
// no run has made it before.
func (d *debians) bootstrap(ctx context.Context, needs []string) (base string, err error) {
	base = filepath.Join(debianCache, strings.Join(needs, "+"))
	if _, err = os.Stat(base); err == nil {
		return base, nil
	}
	if _, err = exec.LookPath("mmdebstrap"); err != nil {
		return "", errors.New("lab: clean machines are made by mmdebstrap, which is not installed: apt install mmdebstrap; or play programs and not packages with --gateway and --upgrade")
	}
	out, err := bound(ctx, exec.Command("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages", "Origin: Debian"))
	if err != nil {
		return "", err
	}
	sources := strings.Split(out, "\n")
	if out == "" {
		return "", errors.New("lab: apt knows no archive of Debian on this machine: apt update")
	}
	release := slices.MinFunc(sources, func(a, b string) int { return len(strings.Fields(a)[2]) - len(strings.Fields(b)[2]) }) // not its updates
	d.logf("making a clean Debian in %s, once: half a minute, and 100 MB from the archive that apt uses", base)
	if err = os.MkdirAll(debianCache, 0o755); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	// All its processes end with it, and so do its mounts.
	_, err = bound(ctx, exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "mmdebstrap", "--quiet", "--variant=minbase",
		"--include=" + strings.Join(needs, ","), strings.Fields(release)[2], d.w.unfinished()}, sources...)...))
	if err == nil {
		err = os.Rename(d.w.unfinished(), base)
	}
	if errors.Is(err, os.ErrExist) { // another run has made it meanwhile
		err = nil
	}
	return base, err
}

// machine makes a machine in a namespace, and installs the package there.
func (d *debians) machine(ctx context.Context, name, netns string) (*machine, error) {
	m := &machine{netns: netns, base: d.base, dir: filepath.Join(d.w.workDir(), name), bring: map[string]string{}}
	d.logf("%s: installing %s", name, filepath.Base(d.pkg))
	var err error
	for _, sub := range []string{"upper/root", "work", "root", "disk", "data"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(m.dir, sub), 0o755))
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if m.disk, err = baddisk.New(filepath.Join(m.dir, "disk")); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", name, err)
	}
	d.w.disks = append(d.w.disks, m.disk)
	if err = m.disk.Mount(filepath.Join(m.dir, "data")); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", name, err)
	}
	return m, m.install(ctx, d.pkg)
}

// install installs a package while no process runs on the machine, or replaces an installed one.
func (m *machine) install(ctx context.Context, pkg string) error {
	file, err := copied(pkg, filepath.Join(m.dir, "upper/root"))
	if err != nil {
		return err
	}
	_, err = bound(ctx, m.enter("install", "/root/"+filepath.Base(file)))
	return err
}

// enter is debian.sh on the machine.
func (m *machine) enter(what string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", m.netns, "sh", "-c", debianScript, "debian.sh", m.base, m.dir, what}, args...)...)
}

var keyLine = regexp.MustCompile(`((?:key_file|node_key|roster) = )"([^"]+)"`)

// adopts changes the text of a configuration so that it names keys and roster by their places on the machine, and notes that these and the
// configuration come there.
func (m *machine) adopts(config, text string) string {
	m.bring["gateway.toml"] = config
	return keyLine.ReplaceAllStringFunc(text, func(line string) string {
		part := keyLine.FindStringSubmatch(line)
		name := filepath.Base(part[2])
		m.bring[name] = part[2]
		return fmt.Sprintf("%s%q", part[1], "/etc/aldis/"+name)
	})
}

// service is the gateway as its unit runs it, with a command in the place of "run".
func (m *machine) service(command ...string) (*exec.Cmd, error) {
	for name, file := range m.bring {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.dir, "upper/etc/aldis", name), text, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	clear(m.bring)
	return m.enter("run", command...), nil
}

// bound runs a program to its end, or kills it when ctx ends, and returns its output without spaces at the end.
func bound(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	done, ended, err := StartBound(cmd)
	if err == nil {
		select {
		case <-done:
		case <-ctx.Done():
			_ = cmd.Process.Kill() // it may have ended at this very moment
		}
		err = ended()
	}
	if err != nil {
		name := filepath.Base(cmd.Path)
		if i := slices.Index(cmd.Args, "debian.sh"); i > 0 {
			name = strings.Join(cmd.Args[i:], " ")
		}
		return "", errors.Join(fmt.Errorf("lab: %s: %w: %s", name, err, strings.TrimSpace(out.String()+errs.String())), ctx.Err())
	}
	return strings.TrimSpace(out.String()), nil
}
