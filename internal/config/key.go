package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aldis/internal/infile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// maxKeyFile is the size in octets of the largest key file read; a net's key takes 61.
const maxKeyFile = 4096

// LoadKey reads a net key that only its owner can read. The error says what to do.
func LoadKey(file string) (seal.Key, error) {
	text, err := private(file, "put the net's key there, or make a net's first one with: gateway keys new -o "+file,
		"if others used the machine make the net a new key", seal.ErrKeyText)
	if err != nil {
		return seal.Key{}, err
	}
	key, err := seal.ParseKey(string(text))
	clear(text)
	if err != nil {
		return seal.Key{}, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// LoadNodeKey reads a node's key that only its owner can read. The error says what to do.
func LoadNodeKey(file string) (*seal.SigningKey, error) {
	text, err := private(file, "make this node's key with: gateway keys node new -o "+file,
		"if others used the machine make this node a new key", roster.ErrNodeKey)
	if err != nil {
		return nil, err
	}
	key, err := roster.ParseNodeKey(string(text))
	clear(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// LoadRoster reads a roster. It believes nothing of it.
func LoadRoster(file string) (*roster.Roster, error) {
	text, err := infile.Read(file, roster.MaxText)
	if err != nil {
		return nil, fmt.Errorf("%s %s; bring the file that gateway keys roster has made", file, readProblem(err))
	}
	r, err := roster.ParseText(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// LoadAuthority reads an authority's file; its private half is under a passphrase.
func LoadAuthority(file string) (roster.Authority, error) {
	text, err := private(file, "make a net's first one with: gateway keys authority new -o "+file,
		"if others used the machine choose another passphrase", roster.ErrAuthorityKey)
	if err != nil {
		return roster.Authority{}, err
	}
	a, err := roster.ParseAuthority(string(text))
	if err != nil {
		return a, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// private reads a small file that only its owner can read. missing and seen say what to do where it is not there, or others
// can read it; large is the error of one that is too large.
func private(file, missing, seen string, large error) ([]byte, error) {
	f, err := infile.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist; %s", file, missing)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s; it must belong to the user that runs the gateway", file, readProblem(err))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: nobody can change it between look and read
	if err != nil {
		return nil, fmt.Errorf("%s %s", file, readProblem(err))
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", file)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others than its owner (mode %04o); close it with: chmod 600 %s, and %s",
			file, info.Mode().Perm(), file, seen)
	case info.Size() > maxKeyFile:
		return nil, fmt.Errorf("%s: %w", file, large)
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if err != nil && n < len(text) {
		return nil, fmt.Errorf("%s %s", file, readProblem(err))
	}
	return text, nil
}

// NewKey draws a net key and writes it to a new file that only its owner can read. It never overwrites a file.
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
		return fmt.Errorf("%s exists and is not overwritten: whoever still uses that key would be cut off; choose another name", file)
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
	if err != nil {
		os.Remove(file) // half a key is worse than none
		return fmt.Errorf("%s cannot be written: %w", filepath.Clean(file), infile.Why(err))
	}
	return nil
}

// Replace writes a file anew, all of it or nothing.
func Replace(file, text string, mode fs.FileMode) error {
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be removed: %w", next, infile.Why(err))
	}
	if err := WriteNew(next, text, mode); err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, infile.Why(err))
	}
	return nil
}
