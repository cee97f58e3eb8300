package node

import (
	"context"
	"time"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// learned is the corpus that this start uses: the accepted one, or that of the configuration; nil: there is none.
func (n *node) learned(configured *compact.CorpusFile, records []api.Record) *compact.NetworkCorpus {
	c, err := corpusexchange.Chosen(configured, gateway.Memories(records, site.Corpora))
	if err != nil {
		n.log.Warn("the accepted corpus cannot be read; this start uses the configured corpus, or none", "error", err)
	}
	if c == nil {
		return nil
	}
	start := time.Now()
	network := c.Learn()
	n.log.Info("the gateway uses the network's corpus", "corpus", corpusexchange.Name(c), "messages", len(c.Messages), "seconds", time.Since(start).Seconds())
	return network
}

func (n *node) corpusFile(ctx context.Context, name string) (file []byte, ok bool, err error) {
	err = n.daemon.Do(ctx, func(time.Time) { file, ok = n.corpora.File(name) })
	return file, ok, err
}
