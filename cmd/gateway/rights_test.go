package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/edge/audit"
	"aldis/internal/edge/rights"
	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/doctor"
)

// asCaptor makes the test binary, as a gateway, try at SIGUSR1 the actions of an attacker who has taken the process over, and
// write the results into the file that the variable names.
const asCaptor = "ALDIS_TEST_ATTEMPTS"

func attemptWhenTold() {
	report := os.Getenv(asCaptor)
	if report == "" {
		return
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	go func() {
		for range told {
			came := map[string]bool{} // what was possible
			possible := func(what string, err error) { came[what] = !errors.Is(err, fs.ErrPermission) }
			_, err := os.ReadFile("/etc/shadow")
			possible("read /etc/shadow", err)
			outside := filepath.Dir(filepath.Dir(report))
			possible("write beside the data directory", os.WriteFile(outside+"/new", nil, 0o600))
			possible("write the configuration", os.WriteFile(outside+"/gateway.toml", nil, 0o600))
			possible("write /tmp", os.WriteFile(os.TempDir()+"/aldis-rights-test", nil, 0o600))
			possible("run a shell", exec.Command("/bin/sh", "-c", "true").Run())
			possible("run itself", exec.Command("/proc/self/exe", "-test.run", "^$").Run())
			possible("signal its parent", syscall.Kill(os.Getppid(), 0))
			possible("trace its parent", syscall.PtraceAttach(os.Getppid()))
			text, _ := json.Marshal(came)
			os.WriteFile(report+".new", text, 0o600)
			os.Rename(report+".new", report)
		}
	}()
}

// A gateway that has given up its rights carries messages, reloads, turns its audit record over and replaces the process that runs
// libnorm. An attacker who has taken it over can read no other file, write nowhere else and run no other program. Its status, its
// metrics and doctor report the protections.
func TestSmallRights(t *testing.T) {
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, sa.key())
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	report := filepath.Join(sb.dir, "data", "attempts")

	// An audit record that is full except for its last line, which is valid.
	sb.start(t).stop(t, syscall.SIGTERM)
	path := filepath.Join(sb.dir, "data", audit.File)
	record, err := os.ReadFile(path)
	check.NoError(check.Fatal(t), err)
	filler := strings.Repeat(strings.Repeat("x", 99)+"\n", 42_000)
	check.NoError(t, os.WriteFile(path, append([]byte(filler), record...), 0o600))

	a := sa.start(t)
	cmd := gatewayCommand("run", "-c", sb.file)
	cmd.Env = append(cmd.Env, asCaptor+"="+report)
	b := sb.startCommand(t, cmd)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })

	for _, p := range b.status(t).Protections {
		check.True(t, p.Name, p.Active, p.Lacks)
	}
	check.Equal(t, "protections", len(b.status(t).Protections), 6)
	check.Lacks(t, "the log", b.logged(), "all protections")
	_, metrics := b.get("/metrics")
	wants(t, metrics, fmt.Sprintf("aldis_protection{name=%q} 1\n", rights.Files), fmt.Sprintf("aldis_protection{name=%q} 1\n", rights.Calls))
	found, _ := sb.doctor(t)
	found.finds(t, "rights.given_up", doctor.OK, rights.Files, rights.Memory)
	found.finds(t, "rights.core", doctor.OK)

	_, err = os.Stat(path + ".1")
	check.NoError(t, err)

	b.cmd.Process.Signal(syscall.SIGUSR1)
	b.until(t, "it has tried", func() bool { _, err := os.Stat(report); return err == nil })
	text, err := os.ReadFile(report)
	check.NoError(t, err)
	check.Equal(t, "what was possible", string(text), `{"read /etc/shadow":false,"run a shell":false,"run itself":true,"signal its parent":false,`+
		`"trace its parent":false,"write /tmp":false,"write beside the data directory":false,"write the configuration":false}`)

	pipe := edgepeer.NamedPipe("rights")
	var there heard
	listener := dialPeer(t, a, "listener", 1, there.hear)
	_, err = listener.Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate})
	check.NoError(t, err)
	sender := dialPeer(t, b, "sender", 2, nil)
	say := func(text string) {
		t.Helper()
		_, err := sender.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(text)}}})
		check.NoError(t, err)
	}
	said := 0
	b.until(t, "a message is there", func() bool {
		said++
		say(fmt.Sprint("message ", said))
		return strings.Contains(there.all(), "message")
	})

	// An editor replaces the old file with a new one.
	good, err := os.ReadFile(b.file)
	check.NoError(t, err)
	check.NoError(t, os.WriteFile(b.file+"~", append(good, "\n[log]\nlevel = \"debug\"\n"...), 0o644))
	check.NoError(t, os.Rename(b.file+"~", b.file))
	code, _, errs := run(t, "reload", "-c", b.file)
	check.Equal(t, "reload: "+errs, code, cli.ExitGood)

	b.until(t, "libnorm runs", func() bool { return b.status(t).Cell != nil && b.status(t).NORM.Up })
	check.True(t, "its cell", b.status(t).Cell.Whole, b.status(t).Cell.Missing)
	failures := b.status(t).NORM.Failures
	for _, pid := range children(t, b.cmd.Process.Pid) {
		check.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	b.until(t, "libnorm runs again", func() bool { n := b.status(t).NORM; return n.Up && n.Failures > failures })

	last := fmt.Sprint("message ", said+1)
	b.until(t, "a last message is there", func() bool { say(last); return strings.Contains(there.all(), last) })
	check.Equal(t, "its end", b.stop(t, syscall.SIGTERM), 0)
}

// The files that a configuration names may lie anywhere: each in a directory of its own is read at the start and by a reload.
func TestFilesElsewhere(t *testing.T) {
	s := newSite(t, 2, "")
	elsewhere := func(name string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "own")
		check.NoError(t, os.Mkdir(dir, 0o700))
		return filepath.Join(dir, name)
	}
	key, token, profile, secret := elsewhere("net.key"), elsewhere("token"), elsewhere("link.toml"), elsewhere("journal.key")
	check.NoError(t, os.Rename(s.key(), key))
	check.NoError(t, os.WriteFile(token, []byte("0123456789abcdef0123\n"), 0o600))
	check.NoError(t, os.WriteFile(secret, []byte("0123456789abcdef0123\n"), 0o600))
	code, text, errs := run(t, "profiles", "geo-satcom-128k")
	check.Equal(t, "profiles: "+errs, code, cli.ExitGood)
	check.NoError(t, os.WriteFile(profile, []byte(text), 0o600))
	keys := filepath.Dir(elsewhere("")) // of TAK devices: a directory
	code, _, errs = run(t, "keys", "tak", "-o", keys, "127.0.0.1", "phone")
	check.Equal(t, "keys tak: "+errs, code, cli.ExitGood)
	all, err := os.ReadFile(s.file)
	check.NoError(t, err)
	changed := string(all)
	for from, to := range map[string]string{
		"key_file = \"net.key\"": fmt.Sprintf("key_file = %q", key), "\"geo-satcom-128k\"": fmt.Sprintf("%q", profile),
		"[http]\n": fmt.Sprintf("[http]\ntoken_file = %q\n", token), "[node]\n": fmt.Sprintf("[node]\njournal_key_file = %q\n", secret),
	} {
		check.Contains(t, "the configuration", changed, from)
		changed = strings.Replace(changed, from, to, 1)
	}
	changed += fmt.Sprintf("[tak]\nlisten = %q\ntls = %q\ntls_keys = %q\n", check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp"), keys)
	check.NoError(t, os.WriteFile(s.file, []byte(changed), 0o600))
	r := s.start(t)
	for _, p := range r.status(t).Protections {
		check.True(t, p.Name, p.Active, p.Lacks)
	}
	check.NoError(t, os.WriteFile(token+"~", []byte("another-0123456789\n"), 0o600))
	check.NoError(t, os.Rename(token+"~", token))
	code, out, errs := run(t, "reload", "-c", s.file)
	check.Equal(t, "reload: "+errs, code, cli.ExitGood)
	check.Contains(t, "reload", out, "the token of http.token_file: changed")
}
