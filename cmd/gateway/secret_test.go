package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/operator/cli"
)

// shows are the files below dir that contain one of the words.
func shows(t *testing.T, dir string, words ...string) (list []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				list = append(list, fmt.Sprintf("%s shows %s", filepath.Base(path), w))
			}
		}
		return err
	})
	check.NoError(t, err)
	return list
}

// A gateway that gets a key file seals the journal and the audit record that it has so far. A thief of the data directory without
// that file finds no payload, no name and no id in it. With the file everything is readable, messages go on, and the commands for
// journals work.
func TestStolenDisk(t *testing.T) {
	t.Parallel()
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, sa.key())
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	data := filepath.Join(sb.dir, "data")
	sb.write(t, data, "1 "+sa.link)
	a := sa.start(t)
	b := sb.start(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })

	pipe := edgepeer.NamedPipe("stolen")
	var there heard
	listener := dialPeer(t, a, "listener-at-hq", 1, there.hear)
	_, err := listener.Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate})
	check.NoError(t, err)
	send := func(r *running, text string) {
		t.Helper()
		sender := dialPeer(t, r, "speaker-on-ship", 2, nil)
		_, err := sender.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(text)}}})
		check.NoError(t, err)
	}
	b.until(t, "the listener is known", func() bool { return b.status(t).Peers[0].FarItems > 0 })
	code, _, errs := run(t, "silence", "on", "-c", b.file, "--until", "1h") // so that messages wait
	check.Equal(t, "silence on: "+errs, code, cli.ExitGood)
	send(b, "the first payload of all")
	b.until(t, "a message waits", func() bool { return b.peer(t).Waiting == 1 })
	b.stop(t, syscall.SIGTERM)
	words := []string{"first payload", "second payload", "speaker-on-ship", "listener-at-hq", "urn:jxta", "uuid-", "on until", "uid 0", "node2"}
	check.True(t, "a clear journal shows what it holds", len(shows(t, data, words...)) > 4)

	// The secret is kept elsewhere.
	secret := filepath.Join(t.TempDir(), "journal.key")
	check.NoError(t, os.WriteFile(secret, []byte("0123456789 of a key\n"), 0o600))
	text, err := os.ReadFile(sb.file)
	check.NoError(t, err)
	with := func(line string) {
		t.Helper()
		check.NoError(t, os.WriteFile(sb.file, []byte(strings.Replace(string(text), "[node]\n", "[node]\n"+line+"\n", 1)), 0o600))
	}
	with(fmt.Sprintf("journal_key_file = %q", secret))
	b = sb.start(t)
	for _, p := range b.status(t).Protections {
		check.True(t, p.Name, p.Active, p.Lacks)
	}
	send(b, "the second payload of all")
	b.until(t, "two messages wait", func() bool { return b.peer(t).Waiting == 2 })
	check.Same(t, "what the disk shows while it runs", shows(t, data, words...), []string(nil))
	code, _, errs = run(t, "audit", "verify", "-c", b.file)
	check.Equal(t, "audit verify: "+errs, code, cli.ExitGood)
	b.stop(t, syscall.SIGKILL)
	check.Same(t, "what the stolen disk shows", shows(t, data, words...), []string(nil))

	// With the secret and without.
	withKey, without := []string{"-c", b.file}, []string{"--dir", data}
	for _, c := range []struct {
		command string
		args    []string
		code    int
		says    string
	}{
		{"journal check", withKey, cli.ExitGood, "is sound"},
		{"journal check", without, cli.ExitGood, "and not what its records hold"},
		{"journal stats", without, cli.ExitGood, "sealed"},
		{"journal export", without, cli.ExitRefused, "--key-file"},
		{"journal repair --force", without, cli.ExitRefused, "its secret was not given"},
		{"journal export --key-file " + secret, without, cli.ExitGood, `"bucket":"to"`},
		{"audit show", without, cli.ExitRefused, "--key-file"},
		{"audit show", withKey, cli.ExitGood, "silence"},
		{"audit verify --key-file " + secret, without, cli.ExitGood, "are sound"},
		{"journal repair --force", withKey, cli.ExitGood, "messages for far gateways: 2 wait"},
	} {
		code, out, errs := run(t, append(strings.Fields(c.command), c.args...)...)
		what := fmt.Sprint("gateway ", c.command, " ", c.args)
		check.Equal(t, what+": "+errs, code, c.code)
		check.Contains(t, what, out+errs, c.says)
	}
	check.Same(t, "what is there after a repair", shows(t, data, words...), []string(nil))

	// Another secret, no secret, and a typed one.
	other := filepath.Join(filepath.Dir(secret), "other.key")
	check.NoError(t, os.WriteFile(other, []byte("0123456789 of a kez\n"), 0o600))
	with(fmt.Sprintf("journal_key_file = %q", other))
	code, _, errs = run(t, "run", "-c", sb.file)
	check.Equal(t, "exit with another secret", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "it is sealed with another secret; nothing was changed")
	check.NoError(t, os.WriteFile(sb.file, text, 0o600))
	code, _, errs = run(t, "run", "-c", sb.file)
	check.Equal(t, "exit without a secret", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "node.journal_key_file")
	with("journal_passphrase = true")
	code, _, errs = run(t, "run", "-c", sb.file)
	check.Equal(t, "exit without a keyboard", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "no passphrase on standard input")
	code, _, errs = run(t, "run", "-c", sb.file, "--keep-socket")
	check.Equal(t, "exit with a keeper", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "node.journal_key_file instead")

	cmd := gatewayCommand("run", "-c", sb.file)
	cmd.Stdin = strings.NewReader("0123456789 of a key\n")
	b = sb.startCommand(t, cmd)
	check.Equal(t, "messages that wait", b.peer(t).Waiting, 2)
	code, _, errs = run(t, "silence", "off", "-c", b.file)
	check.Equal(t, "silence off: "+errs, code, cli.ExitGood)
	b.until(t, "both have arrived", func() bool {
		return strings.Contains(there.all(), "the first payload") && strings.Contains(there.all(), "the second payload")
	})
	check.Equal(t, "its end", b.stop(t, syscall.SIGTERM), 0)
}
