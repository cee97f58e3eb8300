package operator

import (
	"fmt"
	"io"
	"text/tabwriter"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/edge/config"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
)

// shownCorpus is a corpus in the output of show.
type shownCorpus struct {
	Name     string         `json:"corpus"`
	Messages int            `json:"messages"`
	Octets   int            `json:"octets"`
	Kinds    []compact.Kind `json:"kinds"`
	Text     []string       `json:"text,omitempty"`
}

// showCorpus prints the contents of a corpus file.
func showCorpus(path string, text, asJSON bool, stdout io.Writer) error {
	f, err := config.LoadCorpus(path)
	if err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	s := shownCorpus{Name: corpusexchange.Name(f), Messages: len(f.Messages), Kinds: compact.Kinds(f)}
	for _, m := range f.Messages {
		s.Octets += len(m)
		if text {
			s.Text = append(s.Text, string(m))
		}
	}
	if asJSON {
		return cli.PrintJSON(stdout, s)
	}
	fmt.Fprintf(stdout, "corpus %s: %d messages of %d octets\n", s.Name, s.Messages, s.Octets)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "messages\toctets\t  kind\n")
	for _, k := range s.Kinds {
		fmt.Fprintf(w, "%d\t%d\t  %s\n", k.Taught, k.TaughtOctets, k.Kind)
	}
	w.Flush()
	for _, m := range s.Text {
		fmt.Fprintf(stdout, "\n%q", m)
	}
	if text {
		fmt.Fprintln(stdout)
	}
	return nil
}
