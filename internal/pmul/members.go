package pmul

// Members says anew which nodes exist (Config.Peers). What is held for one that is not among them goes on: Gone ends it.
func Members(list []NodeID, s *Sender, r *Receiver) { s.cfg.Peers, r.cfg.Peers = list, list }
