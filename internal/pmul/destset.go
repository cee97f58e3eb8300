package pmul

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Destinations whose nodes ascend are written as a set, if that is shorter: an Address_PDU to all members of a group names
// nodes in a row, and the sender's sequence for each of them differs by little. A set is twice the number of runs of nodes,
// plus one if the sequences differ; the runs, like those of an entry of an Ack_PDU; and the Message_Sequence_Number of all.
// If the sequences differ, that number is the least of them. Then follow an octet with the bits of a difference, and for
// each destination its difference from the least, in so many bits, the lowest bit of the lowest octet first.

const (
	// setMost bounds the destinations of a set: a run of many takes no more octets than one of few.
	setMost = 1024
	// setLeast is the fewest destinations that are written as a set. Among few, a set saves two or three octets of a
	// message, and bursts end no sooner: 128 messages of 200 octets to three on hf-2400, 400 seeds, 1.91 of their limit at
	// the median, 1.89 without.
	setLeast = few + 1
)

// appendDestinations writes destinations in the shorter way, and tells whether that is a set.
func appendDestinations(list []Destination) (b []byte, set bool) {
	b = binary.AppendUvarint(nil, uint64(len(list)))
	for _, d := range list {
		b = binary.AppendUvarint(b, uint64(d.Node))
		b = binary.AppendUvarint(b, uint64(d.Sequence))
	}
	if short := appendSet(list); short != nil && len(short) < len(b) {
		return short, true
	}
	return b, false
}

// appendSet writes a set; nil: these destinations do not form one.
func appendSet(list []Destination) (b []byte) {
	if len(list) < setLeast || len(list) > setMost {
		return nil
	}
	type nodes struct{ from, to NodeID }
	var runs []nodes
	least, greatest := list[0].Sequence, list[0].Sequence
	var end NodeID
	for _, d := range list {
		if d.Node <= end {
			return nil
		}
		if n := len(runs); n > 0 && d.Node == end+1 {
			runs[n-1].to = d.Node
		} else {
			runs = append(runs, nodes{d.Node, d.Node})
		}
		end = d.Node
		least, greatest = min(least, d.Sequence), max(greatest, d.Sequence)
	}
	head := uint64(len(runs)) << 1
	if greatest > least {
		head |= 1
	}
	b = binary.AppendUvarint(nil, head)
	end = 0
	for _, r := range runs {
		b = appendRun(b, uint64(end), uint64(r.from), uint64(r.to))
		end = r.to
	}
	b = binary.AppendUvarint(b, uint64(least))
	if greatest == least {
		return b
	}
	return appendDifferences(b, list, least, greatest)
}

// appendDifferences writes the difference of each sequence from the least.
func appendDifferences(b []byte, list []Destination, least, greatest uint32) []byte {
	width := bits.Len32(greatest - least)
	b = append(b, byte(width))
	held, n := uint64(0), 0
	for _, d := range list {
		held |= uint64(d.Sequence-least) << n
		for n += width; n >= 8; n -= 8 {
			b = append(b, byte(held))
			held >>= 8
		}
	}
	if n > 0 {
		b = append(b, byte(held))
	}
	return b
}

// destinations reads destinations one by one, or as a set.
func (r *reader) destinations(set bool) (list []Destination) {
	if set {
		return r.set()
	}
	// Each takes at least two octets: a false count costs no memory.
	for range r.uvarint("Count_of_Destination_Entries", uint64(len(r.b)/2)) {
		list = append(list, Destination{Node: NodeID(r.uvarint("Destination_ID", math.MaxUint32)),
			Sequence: uint32(r.uvarint("Message_Sequence_Number", math.MaxUint32))})
		if r.err != nil {
			return nil
		}
	}
	return list
}

func (r *reader) set() (list []Destination) {
	head := r.uvarint("Count_of_Destination_Entries", 2*uint64(len(r.b))+1)
	if head>>1 == 0 {
		r.fail("Count_of_Destination_Entries", ErrValue) // no destinations go one by one
	}
	var end uint64
	for range head >> 1 {
		var from uint64
		from, end = r.run("Destination_ID", end, math.MaxUint32, setMost)
		if uint64(len(list))+end-from >= setMost {
			r.fail("Destination_ID", ErrValue)
		}
		if r.err != nil {
			return nil
		}
		for node := from; node <= end; node++ {
			list = append(list, Destination{Node: NodeID(node)})
		}
	}
	least := uint32(r.uvarint("Message_Sequence_Number", math.MaxUint32))
	for i := range list {
		list[i].Sequence = least
	}
	if head&1 != 0 {
		r.differences(list)
	}
	return list
}

// differences adds its difference from the least to each sequence.
func (r *reader) differences(list []Destination) {
	width := int(r.octets("Message_Sequence_Number", 1)[0])
	if width < 1 || width > 32 {
		r.fail("Message_Sequence_Number", ErrValue)
		return
	}
	b := r.octets("Message_Sequence_Number", (len(list)*width+7)/8)
	held, n := uint64(0), 0
	for i := 0; i < len(list) && r.err == nil; i++ {
		for ; n < width; n += 8 {
			held |= uint64(b[0]) << n
			b = b[1:]
		}
		sequence := uint64(list[i].Sequence) + held&(1<<width-1)
		held, n = held>>width, n-width
		if sequence > math.MaxUint32 {
			r.fail("Message_Sequence_Number", ErrValue)
			return
		}
		list[i].Sequence = uint32(sequence)
	}
}
