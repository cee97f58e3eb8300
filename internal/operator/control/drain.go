package control

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"aldis/internal/edge/audit"
	"aldis/internal/gateway/api"
)

// DrainOrder is the body of POST /drain: accept no more messages from local peers, or accept them again. The answer is the
// api.DrainStatus afterwards; null if there is no drain.
type DrainOrder struct {
	On bool `json:"on"`
}

// String is the order in words, for the log.
func (o DrainOrder) String() string {
	if o.On {
		return "take no messages of local peers any more"
	}
	return "take messages of local peers again"
}

func (s Source) drain(ctx context.Context, order DrainOrder) (any, error) {
	s.Order(api.Drain{On: order.On})
	var got *api.DrainStatus
	err := Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got = now.Gateway.Drain
		return (got != nil) == order.On, err
	})
	return got, err
}

// backupTime is how long a caller may take to read a backup.
const backupTime = 10 * time.Minute

// backup answers POST /backup with a copy of the journal. The copy holds all messages in custody and the gateway's identity, so
// it is sent only over the unix socket.
func (s Source) backup(w http.ResponseWriter, r *http.Request) {
	by, err := s.Authority().who(r)
	if err == nil && by.From != "" {
		err = fmt.Errorf("run gateway backup on the gateway's own machine")
	}
	if err != nil {
		s.refuse(w, "backup", by, err)
		return
	}
	s.given("backup", "a copy of the journal", by)
	copied, err := s.Backup(r.Context())
	if err != nil {
		s.Log.Warn("an order was not carried out", "order", "backup", "error", err)
		s.keep(audit.Entry{Kind: audit.OrderFailed, Name: "backup", What: err.Error(), By: by.String()})
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	defer copied.Close()
	info, err := copied.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(backupTime))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	_, _ = io.Copy(w, copied) // a caller that gets too little notices it by the length
}
