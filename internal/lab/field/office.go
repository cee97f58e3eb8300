package field

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// keysOf runs gateway keys.
func keysOf(ctx context.Context, binary string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, append([]string{"keys"}, args...)...).CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("lab: gateway keys %s: %w: %s", args[0], err, bytes.TrimSpace(out)), ctx.Err())
	}
	return string(out), nil
}

// public is the public key in the output of gateway keys.
func public(out string) string {
	for line := range strings.Lines(out) {
		if key, is := strings.CutPrefix(line, "public"); is {
			return strings.TrimSpace(key)
		}
	}
	return ""
}

// newKey makes the key of a network, and returns the line of configurations that names it.
func newKey(ctx context.Context, binary, dir string) (line string, err error) {
	file := filepath.Join(dir, "net.key")
	_ = os.Remove(file) // left by an earlier run into the same directory
	_, err = keysOf(ctx, binary, "new", "-o", file)
	return fmt.Sprintf("key_file = %q\n", file), err
}

// office is the authority of a network whose nodes have keys of their own. It signs with the commands of the gateway.
type office struct {
	binary, dir, public string
	nodes               map[*lanSite]string // as --node wants them
}

func (o *office) file(name string) string { return filepath.Join(o.dir, name) }

// newOffice makes the authority, and the key of each site.
func newOffice(ctx context.Context, binary, dir string, sites []*lanSite, bearers []bearer) (*office, error) {
	o := &office{binary: binary, dir: dir, nodes: map[*lanSite]string{}}
	for _, name := range []string{"authority.key", "net.roster"} { // left by an earlier run
		_ = os.Remove(o.file(name))
	}
	if err := os.WriteFile(o.file("phrase"), []byte("nothing in a lab is secret\n"), 0o600); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	out, err := keysOf(ctx, binary, "authority", "new", "-o", o.file("authority.key"), "--passphrase-file", o.file("phrase"))
	if err != nil {
		return nil, err
	}
	o.public = public(out)
	for _, s := range sites {
		key := o.file(s.name + "-node.key")
		_ = os.Remove(key)
		if out, err = keysOf(ctx, binary, "node", "new", "-o", key); err != nil {
			return nil, err
		}
		s.keys = fmt.Sprintf("roster = %q\nnode_key = %q\nauthority = %q\n", o.file(s.name+".roster"), key, o.public)
		node := fmt.Sprintf("%d,%s,%s", s.index+1, s.name, public(out))
		for i, x := range bearers {
			switch {
			case !x.Has(s.name):
			case s.script.Behind() && !x.profile.Shared:
				node += ",on=" + x.Name
			default:
				node += fmt.Sprintf(",on=%s@%s:%d", x.Name, bearerAddr(i, s.index).Addr(), x.port(i))
			}
		}
		if s.script.Relay {
			node += ",relay"
		}
		o.nodes[s] = node
	}
	return o, nil
}

// sign makes the network's roster, or the next one, with these sites added, and delivers it to these sites alone.
func (o *office) sign(ctx context.Context, sites ...*lanSite) error {
	args := []string{"roster", "add", o.file("net.roster")}
	if _, err := os.Stat(args[2]); err != nil {
		args = []string{"roster", "new", "-o", args[2], "--network", "lab"}
	}
	args = append(args, "--authority", o.file("authority.key"), "--passphrase-file", o.file("phrase"))
	for _, s := range sites {
		args = append(args, "--node", o.nodes[s])
	}
	if _, err := keysOf(ctx, o.binary, args...); err != nil {
		return err
	}
	text, err := os.ReadFile(o.file("net.roster"))
	for _, s := range sites {
		err = errors.Join(err, os.WriteFile(o.file(s.name+".roster"), text, 0o644))
	}
	return err
}
