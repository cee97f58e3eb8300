package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
)

// A corpus is read with the configuration, is one of its files, and is used from the next start on.
func TestCorpus(t *testing.T) {
	file := write(t, good+"[[compact.rule]]\ntype = \"a/b\"\neffort = \"none\"\n[compact]\ncorpus = \"net.corpus\"\n")
	corpus := filepath.Join(filepath.Dir(file), "net.corpus")
	b, err := compact.AppendCorpus(nil, [][]byte{[]byte("a message of this network")})
	check.NoError(check.Fatal(t), err)
	for name, test := range map[string]struct {
		content []byte
		problem string
	}{
		"missing": {nil, "no such file"}, "damaged": {b[:len(b)-1], "is no corpus of a network, or is damaged"}, "too large": {make([]byte, compact.MaxCorpusFile+1), "at most"},
	} {
		if test.content != nil {
			check.NoError(t, os.WriteFile(corpus, test.content, 0o600))
		}
		_, err := Load(file)
		if check.True(t, name+" is a mistake", err != nil) {
			check.Contains(t, name, err.Error(), "compact.corpus: ")
			check.Contains(t, name, err.Error(), test.problem)
		}
		os.Remove(corpus)
	}
	check.NoError(t, os.WriteFile(corpus, b, 0o600))
	c, err := Load(file)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "messages", len(c.Corpus.Messages), 1)
	check.True(t, "it is one of the files", slices.Contains(c.Files(), corpus))
	b, err = compact.AppendCorpus(nil, [][]byte{[]byte("another message of this network")})
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(corpus, b, 0o600))
	next, err := Load(file)
	check.NoError(check.Fatal(t), err)
	changes := c.Changes(next)
	check.Equal(check.Fatal(t), "changes", len(changes), 1)
	check.True(t, "it needs a restart", changes[0].Restart)
}

// Peers whose corpus is accepted without asking are named as elsewhere.
func TestCorpusFrom(t *testing.T) {
	file := write(t, good)
	load := func(lines string) (*Config, error) {
		check.NoError(t, os.WriteFile(file, []byte(good+"[compact]\n"+lines+"\n"), 0o600))
		return Load(file)
	}
	c, err := load(`corpus_from = "hq, 259"`)
	check.NoError(check.Fatal(t), err)
	check.True(t, "by name and by id", slices.Equal(c.Corpus.From, []uint16{1, 259}), c.Corpus.From)
	next, err := load(`corpus_refuse = true`)
	check.NoError(check.Fatal(t), err)
	check.True(t, "refuses", next.Corpus.Refuse)
	changes := c.Changes(next)
	check.True(t, "both are changes that need a restart", len(changes) == 2 && changes[0].Restart && changes[1].Restart, changes)
	for lines, problem := range map[string]string{
		`corpus_from = "hg"`:                         "compact.corpus_from: \"hg\" is neither name nor id of a [[link.peer]]",
		"corpus_from = \"hq\"\ncorpus_refuse = true": "compact.corpus_from: is of no use with corpus_refuse",
	} {
		_, err := load(lines)
		if check.True(t, lines+" is a mistake", err != nil) {
			check.Contains(t, lines, err.Error(), problem)
		}
	}
}
