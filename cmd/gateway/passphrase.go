package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"aldis/internal/infile"
)

const (
	leastPassphrase = 12 // octets
	mostPassphrase  = 1024
)

// askPassphrase is the first line of a file, or what is typed on the terminal, twice for a new one.
func askPassphrase(file string, fresh bool, stderr io.Writer) ([]byte, error) {
	read := func(string) ([]byte, error) { return passphraseIn(file) }
	if file == "" {
		if !isTerminal(os.Stdin) {
			return nil, errors.New("standard input is no terminal to ask for the passphrase: say --passphrase-file FILE")
		}
		in := bufio.NewReaderSize(os.Stdin, mostPassphrase)
		read = func(question string) ([]byte, error) { return typed(in, os.Stdin, stderr, question) }
	}
	p, err := read("passphrase of the authority's key: ")
	if err != nil || !fresh {
		return p, err
	}
	if len(p) < leastPassphrase {
		return nil, fmt.Errorf("a passphrase needs at least %d octets: four words drawn by chance are good", leastPassphrase)
	}
	if file == "" {
		again, err := read("the same again: ")
		if err == nil && !bytes.Equal(p, again) {
			err = errors.New("the two are not the same")
		}
		return p, err
	}
	return p, nil
}

func passphraseIn(file string) ([]byte, error) {
	f, err := infile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return firstLine(bufio.NewReaderSize(f, mostPassphrase))
}

// errNoPassphrase says that there was none where it should be.
var errNoPassphrase = errors.New("the passphrase is empty")

func firstLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the passphrase cannot be read: %w", err)
	}
	if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
		return nil, errNoPassphrase
	}
	return bytes.Clone(line), nil
}

// typed reads a line of standard input. On a terminal it asks first, and the terminal does not show what is typed.
func typed(in *bufio.Reader, stdin *os.File, prompt io.Writer, question string) ([]byte, error) {
	if isTerminal(stdin) {
		defer quiet(stdin)()
		fmt.Fprint(prompt, question)
		defer fmt.Fprintln(prompt)
	}
	return firstLine(in)
}

// quiet has a terminal not show what is typed, until what it returns is called.
func quiet(f *os.File) func() {
	was, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Lflag &^= unix.ECHO
	unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &now)
	return func() { unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, was) }
}
