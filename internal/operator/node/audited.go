package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/audit"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
)

// openAudit opens the audit record. A full disk does not prevent a start.
func (n *node) openAudit() (err error) {
	n.audit, err = audit.OpenSealed(n.cfg.Node.DataDir, time.Now, n.secret, n.journal.Key())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		n.log.Error("the audit log has no room on the disk; orders are carried out but not recorded. Free space and restart the gateway", "error", err)
		n.audit, err = &audit.Log{}, nil
	}
	return err
}

// keep enters e in the audit record. If that fails it is logged; the order is obeyed all the same.
func (n *node) keep(e audit.Entry) {
	if err := n.audit.Add(e); err != nil {
		n.log.Error("the audit log cannot be written; the gateway still carries out orders, but does not record them", "error", err)
	}
}

const (
	refusalsEvery = time.Minute
	refusalsAgain = time.Hour
)

// refusals enters in the audit record that datagrams of the link were refused.
type refusals struct {
	n       *node
	entered map[string]uint64
	serial  uint32        // of the roster that was entered last; 0: none yet
	done    chan struct{} // closed when watch has returned
}

// watch enters refused datagrams within refusalsEvery, and while more come every refusalsAgain, until ctx ends.
func (r *refusals) watch(ctx context.Context) {
	defer close(r.done)
	tick := time.NewTicker(refusalsEvery)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s, err := r.n.snapshot(ctx)
			if err != nil {
				continue
			}
			r.roster(s.Gateway)
			if now.Sub(last) >= refusalsAgain && r.enter(s.Gateway) {
				last = now
			}
		}
	}
}

// roster enters which roster the gateway uses, whoever gave it.
func (r *refusals) roster(s api.Status) {
	if s.Roster != nil && s.Roster.Serial != r.serial {
		r.serial = s.Roster.Serial
		r.n.keep(audit.Entry{Kind: audit.Changed, Name: "roster", What: fmt.Sprintf("goes by roster %d of the network %s", s.Roster.Serial, s.Roster.Network)})
	}
}

// enter enters the datagrams dropped since its last call, and the peers in whose names somebody else had sealed them; false: there were
// none.
func (r *refusals) enter(s api.Status) bool {
	grown := map[string]uint64{}
	for reason, count := range s.Dropped {
		if more := count - r.entered[reason]; more > 0 && gateway.RefusesDatagrams(reason) {
			grown[reason], r.entered[reason] = more, count
		}
	}
	if len(grown) == 0 {
		return false
	}
	var names []string
	for _, p := range s.Peers {
		account := "in the name of " + p.Name
		if more := p.Forged + p.Strange - r.entered[account]; more > 0 {
			names = append(names, fmt.Sprintf("%s %d", p.Name, more))
			r.entered[account] += more
		}
	}
	what := ""
	if len(names) > 0 {
		what = "not sealed by whom they name: " + strings.Join(names, ", ")
	}
	r.n.keep(audit.Entry{Kind: audit.Refused, What: what, Counts: grown})
	return true
}
