package seal

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	version  = 1 << 5
	flagLong = 1 << 4
	hintMask = 1<<4 - 1 // of the sender's id

	shortLen = 3
	longLen  = 11

	// OverheadShort and OverheadLong are the octets that sealing adds to a body.
	OverheadShort = shortLen + tagLen
	OverheadLong  = longLen + tagLen

	// Group as destination means every node of the network.
	Group uint16 = 0
)

// Overhead is the octets that sealing adds to a body in one of the two forms.
func Overhead(long bool) int {
	if long {
		return OverheadLong
	}
	return OverheadShort
}

// HeadOctets is how many octets before the ciphertext are not encrypted.
func HeadOctets(long bool) int { return Overhead(long) - tagLen }

// Key is a network's key: a node that has it belongs to the network.
type Key [keyLen]byte

const keyHeader = "aldis net key 1"

// ErrKeyText says that a text is not a network key.
var ErrKeyText = errors.New("seal: not an aldis net key (expected the line \"" + keyHeader + "\" and one line of base64)")

// Text is the key as a key file holds it.
func (k Key) Text() string {
	return keyHeader + "\n" + base64.StdEncoding.EncodeToString(k[:]) + "\n"
}

// String hides the key from logs.
func (k Key) String() string { return "network key (hidden)" }

// GoString hides the key from %#v.
func (k Key) GoString() string { return k.String() }

// Fingerprint lets two operators compare their keys aloud: five groups of four hexadecimal digits. It is crypto_kdf(key, 0,
// "aldisfpr"), cut to 80 bits, and reveals nothing of the key.
func (k Key) Fingerprint() string {
	start()
	sum := derive((*[keyLen]byte)(&k), 0, [8]byte([]byte("aldisfpr")))
	return groups(sum[:10])
}

// ParseKey reads the output of Text; blank space at line ends and at the end of the text does not matter.
func ParseKey(text string) (Key, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 || strings.TrimSpace(lines[0]) != keyHeader {
		return Key{}, ErrKeyText
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(lines[1]))
	if err != nil || len(raw) != keyLen {
		return Key{}, ErrKeyText
	}
	k := Key(raw)
	if k == (Key{}) {
		return Key{}, fmt.Errorf("%w: the key is all zero", ErrKeyText)
	}
	return k, nil
}

// Incarnation names one start of one node. Number grows with every start; Salt is random, so that two nodes with one id, or
// a node put back to an old backup, still have keys of their own.
type Incarnation struct {
	Number uint32 // 0: not known
	Salt   uint16
}

// NextIncarnation is the number of a start at wall time now when the start before had the number previous (0: none). The
// caller makes it durable before the first Seal. At the end of the numbers it answers an error, never a used number.
func NextIncarnation(previous uint32, now time.Time) (uint32, error) {
	if previous == math.MaxUint32 {
		return 0, errors.New("seal: incarnation numbers are used up, because the clock was ahead at an earlier start: when it is right now, start once with gateway run --start-by-clock, and have this node forgotten at its peers: gateway peer forget ID")
	}
	unix := min(max(now.Unix(), 0), math.MaxUint32)
	return max(previous+1, uint32(unix)), nil
}

// startID names one start of one sender.
func startID(node uint16, incarnation Incarnation) uint64 {
	return uint64(node)<<48 | uint64(incarnation.Number)<<16 | uint64(incarnation.Salt)
}

// datagramContext separates keys of datagrams from others of the same base.
var datagramContext = [8]byte([]byte("aldisdg1"))

// subkey is the key of one start of one sender, from a base key: the network's, a pair's, or a sender's for all.
func subkey(base *Key, node uint16, incarnation Incarnation) [keyLen]byte {
	return derive((*[keyLen]byte)(base), startID(node, incarnation), datagramContext)
}

func nonce(counter uint32) (n [nonceLen]byte) {
	binary.BigEndian.PutUint64(n[4:], uint64(counter))
	return n
}

// appendAD appends the additional data: header, sender, destination.
func appendAD(b, header []byte, from, to uint16) []byte {
	b = append(b, header...)
	b = binary.BigEndian.AppendUint16(b, from)
	return binary.BigEndian.AppendUint16(b, to)
}

// Why a datagram was not sealed.
var (
	// ErrSpent says that a Sealer has used its last counter: the node must start anew.
	ErrSpent = errors.New("seal: 2^32-1 datagrams sealed in this incarnation: restart the gateway")
	// ErrNoKey says that there is no key for the destination: the newest roster does not name it.
	ErrNoKey = errors.New("seal: the destination is in no roster")
)

// Sealer seals the datagrams of one start of a node.
type Sealer struct {
	self        uint16
	incarnation Incarnation
	ring        *Keyring
	keys        map[uint16]*[keyLen]byte // by destination, once it has been used
	prover      *prover                  // for datagrams to all; nil: they have no proofs
	proven      []byte                   // scratch
	counter     uint32                   // of the last datagram; the first is 1
	apart       map[uint16]uint32        // by destination, instead of counter, if each destination has a key of its own; nil: one counter for all
	heard       map[uint16]uint32        // value of counter when a destination was last heard
	forward     *Forward                 // nil: there is none
}

// NewSealer returns the Sealer of node self (1..65535) for one start. The same keys, self and incarnation must never be used
// for two Sealers.
func NewSealer(keys Keys, self uint16, incarnation Incarnation) *Sealer {
	if self == 0 || incarnation.Number == 0 {
		panic("seal: a Sealer needs a node id and an incarnation number")
	}
	start()
	s := &Sealer{self: self, incarnation: incarnation, heard: map[uint16]uint32{}}
	s.Rekey(keys)
	return s
}

// Rekey seals with other keys from now on. The counter goes on, so that no nonce is reused with a key that stays.
func (s *Sealer) Rekey(keys Keys) {
	s.ring, s.keys, s.prover = keys.ring(), map[uint16]*[keyLen]byte{}, nil
	if s.ring.shared == nil {
		s.prover = s.ring.epochs[s.ring.use].prover(s.self, s.incarnation)
	}
}

// key is the key with which to seal for a destination.
func (s *Sealer) key(to uint16) (key *[keyLen]byte, ok bool) {
	if s.ring.shared != nil {
		to = Group // one key for all
	}
	if key, ok = s.keys[to]; ok {
		return key, true
	}
	base, ok := s.ring.base(s.self, to)
	if ok {
		sub := subkey((*Key)(&base), s.self, s.incarnation)
		key, s.keys[to] = &sub, &sub
	}
	return key, ok
}

// Apart counts the datagrams to each destination separately, if each has a key of its own: then a busy sender does not run
// ahead of any replay window. It is for senders that seal nothing for Group, before the first Seal: a receiver has one
// window for both.
func (s *Sealer) Apart() {
	if s.ring.shared == nil {
		s.apart = map[uint16]uint32{}
	}
}

// Heard notes that a destination was heard now: it could receive the datagrams up to now.
func (s *Sealer) Heard(from uint16) {
	if s.apart == nil {
		s.heard[from] = s.counter
	}
}

// aheadMost is how many datagrams may go to others while one destination is not heard, before the next one for it goes in
// the long form: half of the counters that the 16 bits of the short form tell apart.
const aheadMost = 1 << 14

// Far says that the counter may have run so far ahead of a destination that the short form is not enough.
func (s *Sealer) Far(to uint16) bool { return s.apart == nil && s.counter-s.heard[to] >= aheadMost }

// Forward seals short datagrams to peers with keys that both ends wipe, if there are such keys.
func (s *Sealer) Forward(f *Forward) { s.forward = f }

// pick is key, or the key of this start and the peer's. A long datagram is for a peer that may lack that one.
func (s *Sealer) pick(to uint16, long bool) (key *[keyLen]byte, ok bool) {
	if key, ok = s.key(to); ok && !long && to != Group {
		if fresh := s.forward.sealing(to); fresh != nil {
			key = fresh
		}
	}
	return key, ok
}

// Counter is the number of the last datagram.
func (s *Sealer) Counter() uint32 { return s.counter }

// Incarnation names the start that this Sealer was made for.
func (s *Sealer) Incarnation() Incarnation { return s.incarnation }

// Overhead is the octets that sealing adds to a body for node to, or for Group.
func (s *Sealer) Overhead(to uint16, long bool) int {
	if to == Group {
		return Overhead(long) + s.ring.Proofs()
	}
	return Overhead(long)
}

// Seal appends the datagram with body for node to (Group: all) to dst, which must not overlap body. The long form also has
// incarnation, salt and the whole counter: for the first datagrams of a start, and after silences.
func (s *Sealer) Seal(dst []byte, to uint16, long bool, body []byte) ([]byte, error) {
	key, ok := s.pick(to, long)
	counter := s.counter
	if s.apart != nil {
		counter = s.apart[to]
	}
	switch {
	case !ok:
		return dst, ErrNoKey
	case counter == math.MaxUint32:
		return dst, ErrSpent
	}
	if s.counter = counter + 1; s.apart != nil {
		s.apart[to] = s.counter
	}
	var head [longLen]byte
	h := append(head[:0], version|byte(s.self)&hintMask)
	if long {
		h[0] |= flagLong
		h = binary.BigEndian.AppendUint32(h, s.incarnation.Number)
		h = binary.BigEndian.AppendUint16(h, s.incarnation.Salt)
		h = binary.BigEndian.AppendUint32(h, s.counter)
	} else {
		h = binary.BigEndian.AppendUint16(h, uint16(s.counter))
	}
	var adBuf [longLen + 4]byte
	ad := appendAD(adBuf[:0], h, s.self, to)
	n := nonce(s.counter)
	if to == Group && s.prover != nil {
		s.proven = s.prover.append(append(s.proven[:0], body...), s.self, s.incarnation, &n, ad, body)
		body = s.proven
	}
	return encrypt(append(dst, h...), body, ad, &n, key), nil
}
