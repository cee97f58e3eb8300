package unicast

// Libnorm takes orders for the child that runs libnorm.
type Libnorm interface {
	// Start starts a child, in place of any that runs.
	Start(generation uint8, peers []uint16)
	// Enqueue sends data to a peer as one object. In each generation the objects to a peer are numbered 1, 2, 3... in
	// this order (0 is the marker). The child puts elide.PrefixOctets before the data.
	Enqueue(peer uint16, data []byte)
	// Cancel lets go of an object: nothing more of it is sent. Its number stays used.
	Cancel(peer, object uint16)
	// Inject gives libnorm a packet as if it had come from that peer.
	Inject(peer uint16, packet []byte)
}
