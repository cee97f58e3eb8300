package pairlink

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
)

// A frame is its length in four octets, its kind in one, and its content. The length includes the kind.
type kind byte

const (
	kindHello   kind = 1 + iota // greeting, as JSON
	kindRefuse                  // why the other machine is refused, in words
	kindMessage                 // pair.Message
	kindRecords                 // a commit: at, operations
	kindAcked                   // a commit is durable: at
	kindBegin                   // of a snapshot: at, store, start
	kindPart                    // of a snapshot: operations
	kindEnd                     // of a snapshot
	kindPing                    // sent when there was no other frame for a while
	kindClaim                   // to a witness: pair.Claim
	kindVerdict                 // of a witness: pair.Verdict
	kindQuorum                  // quorum.Message
	kindPassed                  // to the leader: connections that are passed on, and the octets that their peers have
	kindTaken                   // from the leader: it knows of such connections
)

// Bounds of a frame, in octets.
const (
	mostGreeting = 64 << 10 // before the other machine has shown its key
	mostFrame    = 96 << 20
	partOctets   = 1 << 20 // about the size of a part of a snapshot
)

var errFrame = errors.New("pairlink: the frame is broken")

// at is a position in the stream: a commit of a leadership, in an epoch.
type at struct{ epoch, run, seq uint64 }

func appendFrame(b []byte, k kind, content ...[]byte) []byte {
	n := 1
	for _, c := range content {
		n += len(c)
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(n)), byte(k))
	for _, c := range content {
		b = append(b, c...)
	}
	return b
}

// readFrame reads a frame of at most most octets.
func readFrame(r io.Reader, most int) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 1
	if n < 0 || n > most {
		return 0, nil, fmt.Errorf("%w: %d octets", errFrame, n)
	}
	content := make([]byte, n)
	_, err := io.ReadFull(r, content)
	return kind(head[4]), content, err
}

func numbers(list ...uint64) []byte {
	var b []byte
	for _, n := range list {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// cutNumbers reads numbers from the beginning of b.
func cutNumbers(b []byte, into ...*uint64) (rest []byte, err error) {
	if len(b) < 8*len(into) {
		return nil, errFrame
	}
	for _, n := range into {
		*n, b = binary.BigEndian.Uint64(b), b[8:]
	}
	return b, nil
}

func (a at) append() []byte { return numbers(a.epoch, a.run, a.seq) }

func cutAt(b []byte) (a at, rest []byte, err error) {
	rest, err = cutNumbers(b, &a.epoch, &a.run, &a.seq)
	return a, rest, err
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func appendMessage(m pair.Message) []byte {
	return append(numbers(m.Epoch, m.N, m.From, m.Voted), byte(m.Kind), byte(flag(m.Granted)))
}

func parseMessage(b []byte) (m pair.Message, err error) {
	rest, err := cutNumbers(b, &m.Epoch, &m.N, &m.From, &m.Voted)
	if err != nil || len(rest) != 2 || rest[1] > 1 {
		return m, errFrame
	}
	m.Kind, m.Granted = pair.Kind(rest[0]), rest[1] == 1
	return m, nil
}

func appendQuorum(m quorum.Message) []byte {
	b := append(numbers(m.Term, m.N), byte(m.Kind), byte(len(m.Acked)))
	for _, a := range m.Acked {
		b = append(b, numbers(a.Index, a.Term)...)
	}
	return append(b, m.Raft...)
}

func parseQuorum(b []byte) (m quorum.Message, err error) {
	rest, err := cutNumbers(b, &m.Term, &m.N)
	if err != nil || len(rest) < 2 {
		return m, errFrame
	}
	m.Kind, m.Acked = quorum.Kind(rest[0]), make([]quorum.At, rest[1])
	rest = rest[2:]
	for i := range m.Acked {
		if rest, err = cutNumbers(rest, &m.Acked[i].Index, &m.Acked[i].Term); err != nil {
			return m, err
		}
	}
	m.Raft = rest
	return m, nil
}

func appendClaim(c pair.Claim) []byte {
	return numbers(c.Machine, c.Epoch, c.From, flag(c.Forced))
}

func parseClaim(b []byte) (c pair.Claim, err error) {
	var forced uint64
	rest, err := cutNumbers(b, &c.Machine, &c.Epoch, &c.From, &forced)
	if err != nil || len(rest) != 0 || forced > 1 || c.Machine == 0 {
		return c, errFrame
	}
	c.Forced = forced == 1
	return c, nil
}

func appendVerdict(v pair.Verdict) []byte { return numbers(v.Epoch, flag(v.Granted), v.Newest) }

func parseVerdict(b []byte) (v pair.Verdict, err error) {
	var granted uint64
	rest, err := cutNumbers(b, &v.Epoch, &granted, &v.Newest)
	if err != nil || len(rest) != 0 || granted > 1 {
		return v, errFrame
	}
	v.Granted = granted == 1
	return v, nil
}

// appendOps appends operations of a journal. A nil value deletes.
func appendOps(b []byte, ops []journal.Op) []byte {
	for _, op := range ops {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(op.Bucket))), op.Bucket...)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(op.Key))), op.Key...)
		if op.Value == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(append(b, 1), uint32(len(op.Value))), op.Value...)
	}
	return b
}

// parseOps reads what appendOps wrote. The operations share b.
func parseOps(b []byte) (ops []journal.Op, err error) {
	for len(b) > 0 {
		var op journal.Op
		if len(b) < 2 {
			return nil, errFrame
		}
		bucket, rest, ok := cut(b[2:], int(binary.BigEndian.Uint16(b)))
		if !ok || len(rest) < 4 {
			return nil, errFrame
		}
		op.Bucket = string(bucket)
		if op.Key, rest, ok = cut(rest[4:], int(binary.BigEndian.Uint32(rest))); !ok || len(rest) < 1 || rest[0] > 1 {
			return nil, errFrame
		}
		if there := rest[0] == 1; there {
			if len(rest) < 5 {
				return nil, errFrame
			}
			if op.Value, rest, ok = cut(rest[5:], int(binary.BigEndian.Uint32(rest[1:]))); !ok {
				return nil, errFrame
			}
		} else {
			rest = rest[1:]
		}
		ops, b = append(ops, op), rest
	}
	return ops, nil
}

func cut(b []byte, n int) (first, rest []byte, ok bool) {
	if n < 0 || n > len(b) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// appendStored is a machine's vote in the form that the journal stores.
func appendStored(s pair.Stored) []byte {
	return numbers(s.Machine, s.Epoch, s.Voted, flag(s.Other)|flag(s.Whole)<<1|flag(s.Led)<<2)
}

func parseStored(b []byte) (s pair.Stored, ok bool) {
	var flags uint64
	rest, err := cutNumbers(b, &s.Machine, &s.Epoch, &s.Voted, &flags)
	s.Other, s.Whole, s.Led = flags&1 != 0, flags&2 != 0, flags&4 != 0
	return s, err == nil && len(rest) == 0
}

// greeting is the first frame of each end.
type greeting struct {
	Protocol int        `json:"protocol"`
	Hello    pair.Hello `json:"hello"`
	Clock    int64      `json:"clock"` // wall clock, in seconds
	Facts    []Fact     `json:"facts"`
	Ways     []Way      `json:"ways"` // where local peers connect to this machine
	// Member is the Hello of a member of three or more, and Listen its address; nil: it is one of two.
	Member *quorum.Hello  `json:"member,omitempty"`
	Listen netip.AddrPort `json:"listen,omitzero"`
	// Version is the version of the gateway, for operators. Older gateways send none.
	Version string `json:"version,omitempty"`
	// Packs says that the machine can pack what follows (pack.go). Older gateways cannot.
	Packs bool `json:"packs,omitempty"`
}

func parseGreeting(b []byte) (g greeting, err error) {
	if err := json.Unmarshal(b, &g); err != nil {
		return g, fmt.Errorf("%w: %w", errFrame, err)
	}
	if g.Hello.Machine == 0 && (g.Member == nil || g.Member.Machine == 0) {
		return g, errFrame
	}
	return g, nil
}
