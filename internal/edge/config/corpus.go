package config

import (
	"errors"

	"aldis/internal/edge/infile"
	"aldis/internal/link/compact"
)

// Corpus is the compression corpus that all gateways of the network share; File "": they have only the built-in one.
type Corpus struct {
	File string
	*compact.CorpusFile
	// From are the peers that may send a corpus: the next start uses it without asking the operator.
	From []uint16
	// Refuse says that no corpus from a peer is kept.
	Refuse bool
}

// readCorpus reads [compact].
func (r *reader) readCorpus() {
	s, c := r.fill("compact"), &r.cfg.Corpus
	if c.Refuse && len(c.From) > 0 {
		s.fail("corpus_from", "is of no use with corpus_refuse = true")
	}
	if c.File == "" {
		return
	}
	var err error
	if c.CorpusFile, err = LoadCorpus(c.File); err != nil {
		s.fail("corpus", "%s %v", c.File, err)
	}
}

// LoadCorpus reads a file of gateway corpus build. The error does not name it.
func LoadCorpus(file string) (*compact.CorpusFile, error) {
	b, err := infile.Read(file, compact.MaxCorpusFile)
	if err != nil {
		return nil, infile.Why(err)
	}
	c, err := compact.ReadCorpus(b)
	if err != nil {
		return nil, errors.New("is no corpus of a network, or is damaged: copy it again, or make one with gateway corpus build")
	}
	return c, nil
}
