package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
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
		read = func(prompt string) ([]byte, error) { return typed(prompt, stderr) }
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
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return firstLine(f)
}

func firstLine(r io.Reader) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(r, mostPassphrase)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
		return nil, errors.New("the passphrase is empty")
	}
	return line, nil
}

// typed asks on the terminal, which does not show what is typed.
func typed(prompt string, stderr io.Writer) ([]byte, error) {
	fd := int(os.Stdin.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &quiet); err != nil {
		return nil, err
	}
	defer unix.IoctlSetTermios(fd, unix.TCSETS, was)
	fmt.Fprint(stderr, prompt)
	defer fmt.Fprintln(stderr)
	return firstLine(os.Stdin)
}
