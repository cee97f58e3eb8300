package config

import (
	"errors"
	"strings"

	"aldis/internal/infile"
	"aldis/internal/link/compact"
)

// Corpus is what the net teaches its gateways; File "": nothing beside what is built in.
type Corpus struct {
	File string
	*compact.CorpusFile
	// From are the peers of whom a corpus that they send is used from the next start on, without a word of the operator.
	From []uint16
	// Refuse has nothing kept of what peers send.
	Refuse bool
}

// readCorpus reads [compact].
func (r *reader) readCorpus() {
	s := section{r, r.tree.tables["compact"], "compact"}
	r.cfg.Corpus.Refuse = s.flag("corpus_refuse")
	for name := range strings.SplitSeq(s.text("corpus_from", false), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		r.cfg.Corpus.From = append(r.cfg.Corpus.From, r.site(s, "corpus_from", name))
	}
	if r.cfg.Corpus.Refuse && len(r.cfg.Corpus.From) > 0 {
		s.fail("corpus_from", "is of no use with corpus_refuse = true")
	}
	file := r.resolve(s.text("corpus", false))
	if file == "" {
		return
	}
	corpus, err := LoadCorpus(file)
	if err != nil {
		s.fail("corpus", "%s %v", file, err)
		return
	}
	r.cfg.Corpus.File, r.cfg.Corpus.CorpusFile = file, corpus
}

// LoadCorpus reads a file of gateway corpus build. The error does not name it.
func LoadCorpus(file string) (*compact.CorpusFile, error) {
	b, err := infile.Read(file, compact.MaxCorpusFile)
	if err != nil {
		return nil, infile.Why(err)
	}
	c, err := compact.ReadCorpus(b)
	if err != nil {
		return nil, errors.New("is no corpus of a net, or is damaged: copy it again, or make one with gateway corpus build")
	}
	return c, nil
}
