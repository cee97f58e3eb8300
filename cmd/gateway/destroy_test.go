package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// Keys and journal are destroyed, the audit log stays. It is refused while the gateway runs, and does not happen by mistake. A
// second name of the same file shows random octets.
func TestKeysDestroy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s, node := o.member(t, 1)
	o.sign(t, "new", "-o", o.roster(), "--network", "blue", "--node", node)
	o.give(t, s)
	s.write(t, filepath.Join(s.dir, "data"))
	key := filepath.Join(s.dir, "node.key")
	was, err := os.ReadFile(key)
	check.NoError(t, err)
	check.NoError(t, os.Link(key, filepath.Join(s.dir, "other-name")))
	r := s.start(t)
	code, _, errs := run(t, "keys", "destroy", "-c", s.file, "--yes")
	check.Equal(t, "exit while it runs", code, 1)
	wants(t, errs, "a gateway runs on it")
	r.stop(t, syscall.SIGTERM)
	code, _, errs = run(t, "keys", "destroy", "-c", s.file)
	check.Equal(t, "exit without --yes", code, 2)
	wants(t, errs, "--yes is missing")
	_, err = os.Stat(key)
	check.NoError(t, err)

	wants(t, does(t, "destroy", "-c", s.file, "--yes"), "destroyed "+key, "aldis.db", "may keep it")
	for _, gone := range []string{key, filepath.Join(s.dir, "data", "aldis.db")} {
		_, err := os.Stat(gone)
		check.True(t, gone+" is gone", errors.Is(err, fs.ErrNotExist), err)
	}
	_, err = os.Stat(filepath.Join(s.dir, "data", "audit.log"))
	check.NoError(t, err)
	is, err := os.ReadFile(filepath.Join(s.dir, "other-name"))
	check.NoError(t, err)
	check.True(t, "it was overwritten", len(is) == len(was) && string(is) != string(was))
	does(t, "destroy", "-c", s.file, "--yes") // again: nothing is there any more
}

// The private keys of certificates for TAK devices are destroyed too. Files that are no keys stay, and a missing directory is
// no failure.
func TestKeysDestroyOfTAK(t *testing.T) {
	s := newTAKSite(t, 2, "")
	server := filepath.Join(s.dir, "server")
	check.NoError(t, os.Mkdir(server, 0o700))
	for _, name := range []string{"client.key", "client.pem", "gateway.p12"} {
		check.NoError(t, os.WriteFile(filepath.Join(server, name), []byte(name), 0o600))
	}
	s.write(t, "tls = \"127.0.0.1:8089\"\ntls_keys = \"tak\"\nserver = \"127.0.0.1:8087\"\nserver_keys = \"server\"\n", "1")
	does(t, "tak", "-o", filepath.Join(s.dir, "tak"), "127.0.0.1", "anna")
	said := does(t, "destroy", "-c", s.file, "--yes")
	for _, gone := range []string{"tak/ca.key", "tak/server.key", "tak/anna.key", "server/client.key", "server/gateway.p12"} {
		file := filepath.Join(s.dir, gone)
		wants(t, said, "destroyed "+file)
		_, err := os.Stat(file)
		check.True(t, gone+" is gone", errors.Is(err, fs.ErrNotExist), err)
	}
	for _, stays := range []string{"tak/anna.pem", "server/client.pem"} {
		_, err := os.Stat(filepath.Join(s.dir, stays))
		check.NoError(t, err)
	}
	check.NoError(t, os.RemoveAll(server))
	does(t, "destroy", "-c", s.file, "--yes")
}
