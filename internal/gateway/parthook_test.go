package gateway

// Part takes from a gateway's memory what the messages of a peer are coded after, as a flipped bit would spoil it: nothing of it can be
// read until its sender codes otherwise. The journal keeps it.
func Part(g *Gateway, peer uint16) {
	g.out = &Output{}
	g.byID[peer].Reader.Unlearn()
	g.out = nil
}
