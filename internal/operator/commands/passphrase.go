package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"aldis/internal/edge/infile"
	"aldis/internal/operator/cli"
)

// leastPassphrase is the fewest octets of a passphrase.
const leastPassphrase = 12

// askPassphrase reads a passphrase: the first line of a file, or typed on the terminal, twice if it is new.
func askPassphrase(file string, fresh bool, stderr io.Writer) ([]byte, error) {
	read := func(string) ([]byte, error) { return passphraseIn(file) }
	if file == "" {
		if !cli.IsTerminal(os.Stdin) {
			return nil, errors.New("standard input is no terminal to ask for the passphrase: say --passphrase-file FILE")
		}
		in := bufio.NewReaderSize(os.Stdin, cli.MostPassphrase)
		read = func(question string) ([]byte, error) { return cli.Typed(in, os.Stdin, stderr, question) }
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
			err = errors.New("the two passphrases differ")
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
	return cli.FirstLine(bufio.NewReaderSize(f, cli.MostPassphrase))
}
