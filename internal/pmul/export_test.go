package pmul

// ParseData reads one kind of PDU, for tests of PDUs on the air.
var ParseData = parseData

// Buckets are the names of all buckets that records may have.
func Buckets() []string {
	return []string{bucketIncoming, bucketFragment, bucketParity, bucketDone, bucketOutgoing, bucketBegun, bucketFate, bucketNode}
}
