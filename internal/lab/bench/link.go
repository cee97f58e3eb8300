package bench

import "context"

func (s *session) link(ctx context.Context) error { return nil }
