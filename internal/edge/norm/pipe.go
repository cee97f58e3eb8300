package norm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"aldis/internal/link/elide"
)

// A record on the pipe: length of the rest (4 octets, big-endian), type (1), leg (1), object (2), data.
type record struct {
	kind   byte
	leg    uint8 // index, from 0
	object uint16
	data   []byte
}

const (
	// To the child.
	recConfig byte = 1 + iota // data: childConfig as JSON; the first record
	recEnqueue
	recRequeue
	recCancel
	// From the child.
	recReady // data: the missing parts of its cell, a line each
	recBeat
	recObject // data: the object with its prefix
	recSent
)

const (
	recordHead = 8
	maxRecord  = elide.MaxObject + recordHead
)

var errRecord = errors.New("norm: malformed record on the pipe")

// childConfig is everything that a child is told.
type childConfig struct {
	Net        int // second octet of the aliases, the first to try
	Self       uint16
	Generation uint8
	Peers      []uint16
	Segment    int
	GRTT       time.Duration
	TxRateBps  float64
}

func appendRecord(dst []byte, r record) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(recordHead-4+len(r.data)))
	dst = append(dst, r.kind, r.leg)
	dst = binary.BigEndian.AppendUint16(dst, r.object)
	return append(dst, r.data...)
}

// readRecord reads one record into new memory; it returns io.EOF only between records.
func readRecord(in io.Reader) (record, error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return record{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n < recordHead-4 || n > maxRecord {
		return record{}, errRecord
	}
	r := record{kind: head[4], leg: head[5], object: binary.BigEndian.Uint16(head[6:]),
		data: make([]byte, n-(recordHead-4))}
	if _, err := io.ReadFull(in, r.data); err != nil {
		return record{}, fmt.Errorf("norm: cut record: %w", err)
	}
	return r, nil
}

func decodeConfig(r record) (c childConfig, err error) {
	if r.kind != recConfig {
		return c, errRecord
	}
	if err = json.Unmarshal(r.data, &c); err != nil {
		return c, fmt.Errorf("norm: configuration of the child: %w", err)
	}
	if len(c.Peers) == 0 || len(c.Peers) > MaxPeers {
		return c, fmt.Errorf("norm: %d peers: 1..%d", len(c.Peers), MaxPeers)
	}
	return c, nil
}

const (
	portSession = 7100
	portTx      = 7101
	memberSelf  = 1
	memberPeer  = 2
	memberAll   = 254
	firstNet    = 77
	lastNet     = 99
	// MaxPeers keeps libnorm's descriptors, four a session, below the 1024 that its select takes.
	MaxPeers = 200
)

// alias is the address of a member of the leg with that index.
func alias(net, index, member int) string { return fmt.Sprintf("127.%d.%d.%d", net, index+1, member) }
