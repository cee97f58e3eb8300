package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/edge/infile"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
)

// ReadProfile reads the file of a profile that somebody has written.
func ReadProfile(file string) ([]byte, error) { return infile.Read(file, 1<<20) }

// ProfileWithSource loads a profile and the text of its file.
func ProfileWithSource(nameOrPath string) (profile.Profile, []byte, error) {
	var source []byte
	p, err := profile.Load(nameOrPath, func(file string) ([]byte, error) {
		b, err := ReadProfile(file)
		source = b
		return b, err
	})
	if err == nil && source == nil {
		source, err = profile.Source(nameOrPath)
	}
	return p, source, err
}

// MostFile is the most octets of one file that the command reads.
const MostFile = 32 << 20

// ReadFile reads a file of at most mostFile octets; - is standard input.
func ReadFile(file string) ([]byte, error) {
	if file != "-" {
		return infile.Read(file, MostFile)
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, MostFile+1))
	if err == nil && len(text) > MostFile {
		err = fmt.Errorf("standard input has more than %d octets", MostFile)
	}
	return text, err
}

// CorpusFlag reads the corpus that a flag names; nil: the flag names none.
func CorpusFlag(file string) (*compact.NetworkCorpus, error) {
	if file == "" {
		return nil, nil
	}
	f, err := config.LoadCorpus(file)
	if err != nil {
		return nil, fmt.Errorf("--corpus %s %w", file, err)
	}
	return f.Learn(), nil
}

// Mistakes prints the mistakes of a configuration, a line each.
func Mistakes(stderr io.Writer, err error) int {
	text := err.Error()
	fmt.Fprintln(stderr, text)
	if n := 1 + strings.Count(text, "\n"); n > 1 {
		fmt.Fprintf(stderr, "%d mistakes\n", n)
	}
	return ExitRefused
}
