package server

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xdg-go/scram"

	"aldis/internal/adapters/xmpp/stanza"
)

// Keys are kept by a server instead of a password (RFC 5803): with them it can check the password, but not reveal it.
type Keys = scram.StoredCredentials

// Accounts are the keys of all users, by local part.
type Accounts map[string]Keys

const (
	scheme     = "SCRAM-SHA-256$"
	iterations = 10_000 // RFC 7677 demands at least 4,096
	// SaltOctets is the length of a salt.
	SaltOctets = 16
	// MaxAccounts is how many users a site may have.
	MaxAccounts = 10_000
	// MaxAccountsFile is how long the file of the accounts may be, in octets.
	MaxAccountsFile = 4 << 20
)

// ErrPassword says that a password is unusable.
var ErrPassword = errors.New("a password needs 1 to 1,023 characters that can be written")

// NewKeys makes the keys of a password with a salt that was never used.
func NewKeys(password string, salt []byte) (Keys, error) {
	c, err := scram.SHA256.NewClient("-", password, "")
	if err != nil || password == "" || len(password) > 1023 {
		return Keys{}, ErrPassword
	}
	return c.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
}

// ParseAccounts reads accounts that Append has written: a line for each user.
func ParseAccounts(text []byte) (Accounts, error) {
	all := Accounts{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, keys, err := parseAccount(line)
		if _, twice := all[name]; err == nil && twice {
			err = fmt.Errorf("%s has a line already", name)
		}
		if err == nil && len(all) >= MaxAccounts {
			err = fmt.Errorf("more than %d users", MaxAccounts)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all[name] = keys
	}
	return all, lines.Err()
}

func parseAccount(line string) (name string, k Keys, err error) {
	name, rest, _ := strings.Cut(line, " ")
	if local, ok := stanza.Local(name); !ok || local != name {
		return "", k, fmt.Errorf("%q is no name of a user", name[:min(len(name), 64)])
	}
	bad := fmt.Errorf("of %s: no keys as gateway xmpp user writes them", name)
	rest, ok := strings.CutPrefix(rest, scheme)
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '$' || r == ':' })
	if !ok || len(parts) != 4 {
		return "", k, bad
	}
	var octets [3][]byte
	for i, text := range parts[1:] {
		if octets[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return "", k, bad
		}
	}
	n, err := strconv.ParseUint(parts[0], 10, 24)
	if err != nil || n < 4096 || len(octets[0]) == 0 || len(octets[1]) != sha256.Size || len(octets[2]) != sha256.Size {
		return "", k, bad
	}
	return name, Keys{KeyFactors: scram.KeyFactors{Salt: string(octets[0]), Iters: int(n)}, StoredKey: octets[1], ServerKey: octets[2]}, nil
}

// Append appends the accounts as text, in the order of their names.
func (a Accounts) Append(dst []byte) []byte {
	for _, name := range a.Names() {
		k, text := a[name], base64.StdEncoding.EncodeToString
		dst = fmt.Appendf(dst, "%s %s%d:%s$%s:%s\n", name, scheme, k.Iters, text([]byte(k.Salt)), text(k.StoredKey), text(k.ServerKey))
	}
	return dst
}

// Names are the users, sorted.
func (a Accounts) Names() []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
