package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal says whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// MostPassphrase is the most octets of a passphrase.
const MostPassphrase = 1024

// ErrNoPassphrase says that a passphrase is empty.
var ErrNoPassphrase = errors.New("the passphrase is empty")

// FirstLine reads a passphrase: the first line of in.
func FirstLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the passphrase cannot be read: %w", err)
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		return nil, ErrNoPassphrase
	}
	return bytes.Clone(line), nil
}

// Typed reads a line of standard input. On a terminal it prompts first, and the typed text is not shown.
func Typed(in *bufio.Reader, stdin *os.File, prompt io.Writer, question string) ([]byte, error) {
	if IsTerminal(stdin) {
		defer quiet(stdin)()
		fmt.Fprint(prompt, question)
		defer fmt.Fprintln(prompt)
	}
	return FirstLine(in)
}

// quiet makes a terminal not show typed text, until the returned function is called or a signal ends the program.
func quiet(f *os.File) func() {
	was, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Lflag &^= unix.ECHO
	back := func() { unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, was) }
	over := IfInterrupted(back)
	unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &now)
	return func() { over(); back() }
}
