package pmul

// ParseData reads one kind of PDU, for tests of what is on the air.
var ParseData = parseData
