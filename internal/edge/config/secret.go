package config

import (
	"fmt"
	"os"
	"strings"

	"aldis/internal/edge/keyfile"
)

// Secret says where the gateway gets the secret that seals the journal and the record of orders. The zero value: they are not
// sealed.
type Secret struct {
	File string // file that holds it; the path may begin with Credentials
	Ask  bool   // the operator types it at the start
}

// Set says that a secret is configured.
func (s Secret) Set() bool { return s.File != "" || s.Ask }

// Credentials at the beginning of a path stands for the directory that systemd gives a unit with LoadCredential=.
const Credentials = "$CREDENTIALS_DIRECTORY/"

// secretPath is a path that may begin with Credentials.
func secretPath(to *string) slot {
	return text(to).also(func(s section, _ string) {
		if !strings.HasPrefix(*to, Credentials) {
			*to = s.r.resolve(*to)
		}
	})
}

// Path is the file's path; the error says that systemd has provided no directory of credentials.
func (s Secret) Path() (string, error) {
	rest, given := strings.CutPrefix(s.File, Credentials)
	if !given {
		return s.File, nil
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return "", fmt.Errorf("node.journal_key_file: CREDENTIALS_DIRECTORY is not set: this process was not started by a unit with LoadCredential=; name the file itself")
	}
	return dir + "/" + rest, nil
}

// Read reads the file, as LoadSecret does.
func (s Secret) Read() ([]byte, error) {
	path, err := s.Path()
	if err != nil {
		return nil, err
	}
	return keyfile.LoadSecret(path)
}
