package carriernet

import (
	"encoding/binary"
	"errors"

	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// In place of the seal, a datagram has its receiver, its sender, the number of the sender's start, a counter and its form. The remaining
// octets of the seal are empty.
const wrapOctets = 2 + 2 + 4 + 4 + 1

var errWrap = errors.New("carriernet: no datagram of a node")

func wrap(to, from uint16, incarnation, counter uint32, long bool, frames []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, to)
	b = binary.BigEndian.AppendUint16(b, from)
	b = binary.BigEndian.AppendUint32(b, incarnation)
	b = binary.BigEndian.AppendUint32(b, counter)
	form := byte(0)
	if long {
		form = 1
	}
	b = append(b, form)
	b = append(b, make([]byte, seal.Overhead(long)-wrapOctets)...)
	return append(b, frames...)
}

func unwrap(b []byte) (d Datagram, incarnation uint32) {
	long := b[12] == 1
	return Datagram{To: binary.BigEndian.Uint16(b), From: binary.BigEndian.Uint16(b[2:]), Long: long, Octets: len(b),
		Counter: binary.BigEndian.Uint32(b[8:]), Body: b[seal.Overhead(long):]}, binary.BigEndian.Uint32(b[4:])
}

// Frames are the frames of a datagram.
func (d Datagram) Frames() (list []frame.Frame) {
	for body := d.Body; len(body) > 0; {
		f, rest, err := frame.Parse(body)
		if err != nil {
			panic(errWrap) // no carrier writes such frames
		}
		list, body = append(list, f), rest
	}
	return list
}

// Has says whether a datagram has a frame of a type.
func Has[F frame.Frame](d Datagram) bool { return len(Of[F](d)) > 0 }

// Of are the frames of one type in a datagram.
func Of[F frame.Frame](d Datagram) (list []F) {
	for _, f := range d.Frames() {
		if f, ok := f.(F); ok {
			list = append(list, f)
		}
	}
	return list
}
