package commands

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/teach"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
)

// corpusOrder is the flags of corpus build.
type corpusOrder struct {
	out    string
	mask   bool
	lines  bool
	asJSON bool
}

// flags declares the flags of corpus build.
func (o *corpusOrder) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.out, "o", "", "`file` to write, with build")
	fs.BoolVar(&o.mask, "mask", false, "put other words in the place of secrets and of personal names, with build")
	fs.BoolVar(&o.lines, "lines", false, "each line of a file is a message, with build")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON, with build")
}

// build makes a corpus of samples, and prints its gain.
func (o *corpusOrder) build(paths []string, stdout, stderr io.Writer) error {
	if len(paths) == 0 || o.out == "" {
		return errors.New("it needs samples, and -o FILE")
	}
	s := samples{lines: o.lines, traffic: traffics{stderr}}
	for _, path := range paths {
		if err := s.path(path); err != nil {
			return err
		}
	}
	if len(s.list) == 0 {
		return errors.New("the named files hold no sample")
	}
	start, told := time.Now(), time.Time{}
	file, r, err := teach.Build(s.list, teach.Options{Mask: o.mask, Progress: func(done, most int) {
		if now := time.Now(); cli.IsTerminal(stderr) && now.Sub(start) > 2*time.Second && now.Sub(told) > time.Second/4 {
			told = now
			fmt.Fprintf(stderr, "\r%3d %% ", min(100, 100*done/max(1, most)))
		}
	}})
	if !told.IsZero() {
		fmt.Fprint(stderr, "\r      \r")
	}
	if err != nil {
		return errors.New("these samples are of no use: no kind of message shrinks by more than 2 %")
	}
	if err := keyfile.Replace(o.out, string(file), 0o600); err != nil {
		return err
	}
	if o.asJSON {
		return cli.PrintJSON(stdout, r)
	}
	fmt.Fprintf(stdout, "corpus %s in %s: %d messages, %d octets\n\n", r.Name, o.out, r.Messages, r.Octets)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "samples\ttaught\theld back\toctets\tbefore\tafter\t  kind\n")
	for _, k := range r.Kinds {
		note := ""
		switch {
		case k.LeftOut:
			note = ": left out, it gains nothing"
		case k.Held == 0:
			note = ": too few to measure"
		}
		if k.NotTaken > 0 && !k.LeftOut {
			note += fmt.Sprintf(": %d not taken, beyond its room of %d octets", k.NotTaken, k.Room)
		}
		figure := func(v float64) string {
			if k.Held == 0 {
				return "-"
			}
			return fmt.Sprintf("%.1f", v)
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\t  %s%s\n", k.Samples, k.Taught, k.Held, figure(k.Octets), figure(k.Before), figure(k.After), k.Kind, note)
	}
	w.Flush()
	fmt.Fprint(stdout, "\nBefore and after: octets of a first message on the link, of those held back; the corpus got them afterwards.\n")
	if slices.ContainsFunc(r.Kinds, func(k compact.Kind) bool { return k.NotTaken > 0 }) {
		fmt.Fprintf(stdout, "A kind has %d octets, and more as long as twice that gains a hundredth and the corpus has less than %d.\n", teach.FirstRoom, compact.MaxCorpus)
	}
	if r.Repeated > 0 {
		fmt.Fprintf(stdout, "%d samples were there already or were empty.\n", r.Repeated)
	}
	if r.Long > 0 {
		fmt.Fprintf(stdout, "%d samples have more than %d octets: what they begin with is used.\n", r.Long, compact.MaxCorpusMessage)
	}
	for _, p := range r.Private {
		what := "whoever has the corpus can read it; --mask puts something else in its place"
		if r.Masked {
			what = "masked"
		}
		fmt.Fprintf(stdout, "warning: %s in %d samples (%s): %s\n", p.What, p.Samples, p.From, what)
	}
	return nil
}
