package control

import "context"

// ReloadOrder is the body of POST /reload: read the configuration again.
type ReloadOrder struct {
	DryRun bool `json:"dry_run,omitempty"` // say what is different, and change nothing
}

// String is the order in words, for the log.
func (o ReloadOrder) String() string {
	if o.DryRun {
		return "dry run"
	}
	return "read the configuration again"
}

func (s Source) reload(ctx context.Context, order ReloadOrder) (any, error) {
	return s.Reload(ctx, order.DryRun)
}
