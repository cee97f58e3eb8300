// Package keyfile reads, makes, replaces and destroys files with keys: of a network, of nodes and authorities, tokens, the secret
// of a journal, and certificates of TAK devices. Its errors say what to do. It refuses a private file that others can read.
//
// Packages internal/link/seal and internal/link/roster define the formats of a network's and a node's key.
package keyfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// maxKeyFile is the size in octets of the largest key file read; a network's key takes 61.
const maxKeyFile = 4096

// private says how a file is read that only some users may read, and what its errors advise.
type private struct {
	what    string      // the error's words before the file's name
	closed  fs.FileMode // bits that its mode may not have
	others  string      // users who can read it if it has such bits
	missing string      // advice if the file is missing
	seen    string      // advice if others could read it, besides closing it
	large   error       // the error for a file that is too large
}

// read reads a file of at most maxKeyFile octets, and one octet more to notice a larger one.
func (p private) read(file string) ([]byte, error) {
	name := p.what + file
	f, err := infile.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist; %s", name, p.missing)
	} else if err != nil {
		return nil, fmt.Errorf("%s %s; it must belong to the user that runs the gateway", name, problem(err))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: nobody can replace it after the check
	if err == nil && info.Mode().Perm()&p.closed != 0 {
		return nil, fmt.Errorf("%s can be read by %s (mode %04o); close it with: chmod 600 %s%s", name, p.others, info.Mode().Perm(), file, p.seen)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s", name, problem(err))
	}
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("%s: %w", name, p.large)
	}
	return text, nil
}

// load reads a file that only its owner may read, and parses it.
func load[T any](file, missing, seen string, large error, parse func(string) (T, error)) (v T, err error) {
	text, err := private{closed: 0o077, others: "others than its owner", missing: missing, seen: ", and " + seen, large: large}.read(file)
	if err != nil {
		return v, err
	}
	v, err = parse(string(text))
	clear(text)
	if err != nil {
		return v, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

// LoadKey reads a network key that only its owner can read. The error says what to do.
func LoadKey(file string) (seal.Key, error) {
	return load(file, "put the network's key there, or make a network's first one with: gateway keys new -o "+file,
		"if others used the machine make the network a new key", seal.ErrKeyText, seal.ParseKey)
}

// LoadNodeKey reads a node's key that only its owner can read. The error says what to do.
func LoadNodeKey(file string) (*seal.SigningKey, error) {
	return load(file, "make this node's key with: gateway keys node new -o "+file,
		"if others used the machine make this node a new key", roster.ErrNodeKey, roster.ParseNodeKey)
}

// LoadAuthority reads an authority's file; a passphrase protects its private half.
func LoadAuthority(file string) (roster.Authority, error) {
	return load(file, "make a network's first one with: gateway keys authority new -o "+file,
		"if others used the machine choose another passphrase", roster.ErrAuthorityKey, roster.ParseAuthority)
}

// LoadToken reads a token that only its owner can read: its first line. The error says what to do.
func LoadToken(file string) (string, error) {
	with := "one with: (umask 077; head -c 24 /dev/urandom | base64 > " + file + ")"
	const least = 16 // octets
	errShort := fmt.Errorf("its first line must be at least %d printable characters without a space", least)
	return load(file, "make "+with, "make a new "+with, errShort, func(text string) (string, error) {
		token, _, _ := strings.Cut(text, "\n")
		token = strings.TrimSpace(token)
		if len(token) < least || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return "", errShort
		}
		return token, nil
	})
}

// LoadSecret reads a file with a secret: all of it except line ends at its end. Only its owner and group may be able to read
// it. The error says what to do.
func LoadSecret(file string) ([]byte, error) {
	text, err := private{
		what:    "the journal's key file ",
		closed:  0o007,
		others:  "everybody",
		missing: "is its medium there? A first one: (umask 077; head -c 32 /dev/urandom | base64 > " + file + ")",
		large:   fmt.Errorf("it has more than %d octets", maxKeyFile),
	}.read(file)
	text = bytes.TrimRight(text, "\r\n")
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("the journal's key file %s is empty", file)
	}
	return text, err
}

// LoadRoster reads a roster. It does not check its signature.
func LoadRoster(file string) (*roster.Roster, error) {
	text, err := infile.Read(file, roster.MaxText)
	if err != nil {
		return nil, fmt.Errorf("%s %s; bring the file that gateway keys roster has made", file, problem(err))
	}
	r, err := roster.ParseText(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// NewKey draws a network key and writes it to a new file that only its owner can read. It never overwrites a file.
func NewKey(file string) error {
	var key seal.Key
	rand.Read(key[:])
	return WriteNew(file, key.Text(), 0o600)
}

// NewNodeKey draws a node's key and writes it to a new file that only its owner can read. It never overwrites a file.
func NewNodeKey(file string) (*seal.SigningKey, error) {
	var seed [32]byte
	rand.Read(seed[:])
	key := seal.NewSigningKey(seed)
	return key, WriteNew(file, roster.NodeKeyText(key), 0o600)
}

// NewAuthority draws an authority's key and writes it, under a passphrase, to a new file.
func NewAuthority(file string, passphrase []byte) (seal.PublicKey, error) {
	var seed [32]byte
	var random [seal.RandomForLock]byte
	rand.Read(seed[:])
	rand.Read(random[:])
	a, err := roster.NewAuthority(seal.NewSigningKey(seed), passphrase, random)
	if err != nil {
		return a.Public, err
	}
	return a.Public, WriteNew(file, a.Text(), 0o600)
}

// WriteNew writes a key or a roster to a new file. It never overwrites one.
func WriteNew(file, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten: gateways that still use that key would be cut off; choose another name", file)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w", file, infile.Why(err))
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = atrest.SyncDir(filepath.Dir(file)) // otherwise a power cut may lose the new file's name
	}
	if err != nil {
		os.Remove(file) // half a key is worse than none
		return fmt.Errorf("%s cannot be written: %w", filepath.Clean(file), infile.Why(err))
	}
	return nil
}

// Replace writes a file anew, completely or not at all. Once it has returned without an error, a loss of power does not bring the old one back.
func Replace(file, text string, mode fs.FileMode) error {
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be removed: %w", next, infile.Why(err))
	}
	if err := WriteNew(next, text, mode); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(next, file), atrest.SyncDir(filepath.Dir(file))); err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, infile.Why(err))
	}
	return nil
}

// problem says why a file cannot be read, without naming it.
func problem(err error) string { return "cannot be read: " + infile.Why(err).Error() }
