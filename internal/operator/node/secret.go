package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/config"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/keyfile"
	"aldis/internal/operator/cli"
)

// secretOf is the secret that seals the journal in dir, read from its file or typed by the operator; nil: there is none. A new
// passphrase must be typed twice.
func secretOf(s config.Secret, dir string, stdin *os.File, prompt io.Writer) (atrest.Secret, error) {
	switch {
	case s.File != "":
		return s.Read()
	case !s.Ask:
		return nil, nil
	}
	in := bufio.NewReaderSize(stdin, cli.MostPassphrase)
	first, err := cli.Typed(in, stdin, prompt, "passphrase of the journal in "+dir+": ")
	if errors.Is(err, cli.ErrNoPassphrase) {
		return nil, fmt.Errorf("node.journal_passphrase is set, and there is no passphrase on standard input: start the gateway on a terminal, or name a file in node.journal_key_file")
	}
	if err != nil || journal.IsSealed(dir) || !cli.IsTerminal(stdin) {
		return first, err
	}
	if len(first) < atrest.LeastSecret { // before it is typed again
		return nil, fmt.Errorf("the passphrase of the journal: %w", atrest.ErrSecret)
	}
	again, err := cli.Typed(in, stdin, prompt, "nobody can read the journal without it; once more: ")
	if err == nil && !bytes.Equal(first, again) {
		err = errors.New("the two passphrases differ; nothing was changed")
	}
	return first, err
}

// SecretFor is the secret for commands: from the file that a flag names, or from the configuration.
func SecretFor(keyFile string, s config.Secret, dir string, stderr io.Writer) (atrest.Secret, error) {
	if keyFile != "" {
		return keyfile.LoadSecret(keyFile)
	}
	return secretOf(s, dir, os.Stdin, stderr)
}
