package pmul

// Members sets anew which nodes exist (Config.Peers). Messages for a node that is not among them continue: Gone ends them.
func Members(list []NodeID, s *Sender, r *Receiver) { s.cfg.Peers, r.cfg.Peers = list, list }
