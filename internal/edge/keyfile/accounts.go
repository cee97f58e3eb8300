package keyfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/infile"
)

// LoadAccounts reads the users that the gateway serves as an XMPP server.
func LoadAccounts(file string) (server.Accounts, error) {
	text, err := infile.Read(file, server.MaxAccountsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w; gateway xmpp user add NAME makes it", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s; it must belong to the user that runs the gateway", file, problem(err))
	}
	all, err := server.ParseAccounts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// SaveAccounts writes all users to the file anew. The file keeps its owner; a new one gets that of its directory.
func SaveAccounts(file string, all server.Accounts) error {
	owner, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		owner, err = os.Stat(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("%s %s", file, problem(err))
	}
	if err := Replace(file, string(all.Append(nil)), 0o600); err != nil {
		return err
	}
	if s, ok := owner.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return os.Chown(file, int(s.Uid), int(s.Gid))
	}
	return nil
}

// NewAccount returns the keys for a password, with a new salt.
func NewAccount(password string) (server.Keys, error) {
	salt := make([]byte, server.SaltOctets)
	rand.Read(salt) // never fails
	return server.NewKeys(password, salt)
}
