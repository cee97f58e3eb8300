package node

import (
	"errors"
	"fmt"
	"log/slog"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
)

// spared reports the records of the journal that a start goes on without.
type spared struct {
	log     *slog.Logger
	records []api.Record
	aside   []journal.Op // records that the gateway does not understand
}

func newSpared(log *slog.Logger, records []api.Record) *spared {
	return &spared{log: log, records: records}
}

const (
	TextDamaged = "a journal record is damaged; the gateway has set it aside, its content is lost, and all else goes on"
	TextRefused = "a journal record cannot be used; the gateway has set it aside, its content is lost, and all else goes on"
)

func (s *spared) damaged(list []journal.Damaged) {
	for _, d := range list {
		s.logRecord(TextDamaged, d.Bucket, d.Key, d.Octets, d.Why)
	}
}

func (s *spared) refused(r api.Record, why error) {
	s.aside = append(s.aside, journal.Op(r))
	if errors.Is(why, mail.ErrContent) { // that one is reported already
		return
	}
	s.logRecord(TextRefused, r.Bucket, r.Key, len(r.Value), why.Error())
}

func (s *spared) logRecord(text, bucket string, key []byte, octets int, why string) {
	s.log.Error(text, "what", gateway.Words(bucket, key, s.records), "bucket", bucket, "key", fmt.Sprintf("%x", key), "octets", octets, "why", why)
}
