package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aldis/internal/link/seal"
)

// maxKeyFile is the size in octets of the largest key file read; a key takes 61.
const maxKeyFile = 4096

// LoadKey reads a net key that only its owner can read. The error says what to do.
func LoadKey(file string) (seal.Key, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return seal.Key{}, fmt.Errorf("%s does not exist; put the net's key there, or make a net's first one with: gateway keys new -o %s", file, file)
	}
	if err != nil {
		return seal.Key{}, fmt.Errorf("%s %s; it must belong to the user that runs the gateway", file, readProblem(err))
	}
	defer f.Close()
	info, err := f.Stat() // of the opened file: nobody can change it between look and read
	if err != nil {
		return seal.Key{}, fmt.Errorf("%s %s", file, readProblem(err))
	}
	switch {
	case !info.Mode().IsRegular():
		return seal.Key{}, fmt.Errorf("%s is not a file", file)
	case info.Mode().Perm()&0o077 != 0:
		return seal.Key{}, fmt.Errorf("%s can be read by others than its owner (mode %04o); close it with: chmod 600 %s, and if others used the machine make the net a new key",
			file, info.Mode().Perm(), file)
	case info.Size() > maxKeyFile:
		return seal.Key{}, fmt.Errorf("%s: %w", file, seal.ErrKeyText)
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if err != nil && n < len(text) {
		return seal.Key{}, fmt.Errorf("%s %s", file, readProblem(err))
	}
	key, err := seal.ParseKey(string(text))
	clear(text)
	if err != nil {
		return seal.Key{}, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// NewKey draws a net key and writes it to a new file that only its owner can read. It never overwrites a file.
func NewKey(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten: whoever still uses that key would be cut off; choose another name", file)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w", file, withoutPath(err))
	}
	var key seal.Key
	rand.Read(key[:])
	_, err = f.WriteString(key.Text())
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(file) // half a key is worse than none
		return fmt.Errorf("%s cannot be written: %w", filepath.Clean(file), withoutPath(err))
	}
	return nil
}

// withoutPath drops the file's name, for messages that name it themselves.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
