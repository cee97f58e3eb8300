package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"aldis/internal/infile"
)

// Secret says where what seals the journal and the record of orders comes from. Nowhere: they are not sealed.
type Secret struct {
	File string // that holds it; it may begin with Credentials
	Ask  bool   // the operator types it at the start
}

// Set says that there is to be one.
func (s Secret) Set() bool { return s.File != "" || s.Ask }

// Credentials at the beginning of a path stands for the directory that systemd gives a unit with LoadCredential=.
const Credentials = "$CREDENTIALS_DIRECTORY/"

// maxSecret is the octets of the largest secret read.
const maxSecret = 4096

// secretPath is a path that may begin with Credentials.
func secretPath(to *string) slot {
	return text(to).also(func(s section, _ string) {
		if !strings.HasPrefix(*to, Credentials) {
			*to = s.r.resolve(*to)
		}
	})
}

// Path is where the file is; an error says that systemd has given none.
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

// Read reads the file: all of it but line ends at its end. Others than its owner and group may not be able to read it.
func (s Secret) Read() ([]byte, error) {
	path, err := s.Path()
	if err != nil {
		return nil, err
	}
	return LoadSecret(path)
}

// LoadSecret reads a file with a secret. The error says what to do.
func LoadSecret(path string) ([]byte, error) {
	f, err := infile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the journal's key file %s does not exist; is its medium there? A first one: (umask 077; head -c 32 /dev/urandom | base64 > %s)", path, path)
	} else if err != nil {
		return nil, fmt.Errorf("the journal's key file %s %s", path, readProblem(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the journal's key file %s %s", path, readProblem(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the journal's key file %s is not a file", path)
	case info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("the journal's key file %s can be read by everybody (mode %04o); close it with: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch text = bytes.TrimRight(text, "\r\n"); {
	case err != nil:
		return nil, fmt.Errorf("the journal's key file %s %s", path, readProblem(err))
	case len(text) > maxSecret:
		return nil, fmt.Errorf("the journal's key file %s has more than %d octets", path, maxSecret)
	case len(text) == 0:
		return nil, fmt.Errorf("the journal's key file %s is empty", path)
	}
	return text, nil
}
