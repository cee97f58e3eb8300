package jxta

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Group ids whose text form is fixed (wire 1.1), as unique values.
const (
	nullID     = "jxta-Null"
	WorldGroup = "jxta-WorldGroup"
	NetGroup   = "jxta-NetGroup"
)

// ID kinds: the last octet of a uuid or cbid id (wire 1.2).
const (
	KindCodat   = 0x01
	KindGroup   = 0x02
	KindPeer    = 0x03
	KindPipe    = 0x04
	KindClass   = 0x05
	KindSpec    = 0x06
	KindContent = 0x07
)

// Well-known module class ids (wire 1.4), as unique values.
const (
	ClassPeerGroup  = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000105"
	ClassResolver   = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000205"
	ClassDiscovery  = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000305"
	ClassRendezvous = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000605"
	ClassPeerInfo   = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000705"
	ClassEndpoint   = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000805"
	ClassRelay      = "uuid-DEADBEEFDEAFBABAFEEDBABE0000000F05"
)

// Group UUIDs that stand inside ids for the world and the net peer group (wire 1.2).
var (
	WorldUUID = [16]byte([]byte("YabadabaJxtaP2P3"))
	NetUUID   = [16]byte([]byte("YabadabaNPG P2P3"))
)

const (
	urnPrefix   = "urn:jxta:"
	maxIDLength = 160 // octets; the longest uuid id is 5+128, binaryID ones are shorter
	uuidOctets  = 64  // octets of the array behind a uuid id, type octet included
)

// URN writes a unique value as an ID: "urn:jxta:uuid-...".
func URN(unique string) string { return urnPrefix + unique }

// ParseURN returns the unique value in normal form of "urn:jxta:<unique>". White space around it is ignored: 2.2
// writes line breaks inside elements (baseline 6).
func ParseURN(s string) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) < len(urnPrefix) || !strings.EqualFold(s[:len(urnPrefix)], urnPrefix) {
		return "", fail("ID", "urn:jxta", ErrMismatch)
	}
	return Normalize(s[len(urnPrefix):])
}

// Normalize brings a unique value into the form in which ids are compared: hex digits in upper case, trailing zero
// octets before the type octet left out (wire 1.2; ghosts 2: one random id in 256 has them), the well-known
// ids in their own spelling. Ids of unknown formats stay as they are.
func Normalize(unique string) (string, error) {
	if len(unique) > maxIDLength {
		return "", fail("ID", "unique value", ErrTooLong)
	}
	format, value, ok := strings.Cut(unique, "-")
	if !ok || format == "" || value == "" {
		return "", fail("ID", "format", ErrMissing)
	}
	switch {
	case strings.EqualFold(format, "jxta"):
		for _, w := range []string{nullID, WorldGroup, NetGroup} {
			if strings.EqualFold(unique, w) {
				return w, nil
			}
		}
		return "", fail("ID", "jxta format", ErrMismatch)
	case strings.EqualFold(format, "uuid"), strings.EqualFold(format, "cbid"):
		return normalizeHex(strings.ToLower(format), value)
	}
	for i := 0; i < len(unique); i++ {
		if c := unique[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`/#<>&"'`, c) >= 0 {
			return "", fail("ID", "unique value", ErrSyntax)
		}
	}
	return unique, nil
}

func normalizeHex(format, value string) (string, error) {
	if len(value)%2 != 0 || len(value) < 2 {
		return "", fail("ID", "hex digits", ErrSyntax)
	}
	if len(value) > 2*uuidOctets {
		return "", fail("ID", "hex digits", ErrTooLong)
	}
	v := []byte(value)
	for i, c := range v {
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'F':
		case c >= 'a' && c <= 'f':
			v[i] = c - 'a' + 'A'
		default:
			return "", fail("ID", "hex digits", ErrSyntax)
		}
	}
	body, kind := v[:len(v)-2], v[len(v)-2:]
	for len(body) > 0 && string(body[len(body)-2:]) == "00" {
		body = body[:len(body)-2]
	}
	n := string(body) + string(kind)
	switch { // these two groups are always written by name
	case string(kind) == "02" && n == strings.ToUpper(hex.EncodeToString(NetUUID[:]))+"02":
		return NetGroup, nil
	case string(kind) == "02" && n == strings.ToUpper(hex.EncodeToString(WorldUUID[:]))+"02":
		return WorldGroup, nil
	}
	return format + "-" + n, nil
}

// IDKind is the type octet of a uuid or cbid id, 0 for other formats.
func IDKind(unique string) byte {
	p, ok := SplitID(unique)
	if !ok {
		return 0
	}
	return p.Kind
}

// IDParts is a uuid or cbid id of the usual two-UUID form in binary: it fits into 1+1+16+16 octets.
type IDParts struct {
	CBID  bool // format cbid, else uuid
	Kind  byte
	Group [16]byte // group, or base class of class and spec ids
	UUID  [16]byte
}

// SplitID takes a unique value apart. It reports false for other formats and for ids with more than two UUIDs
// (codats with a hash).
func SplitID(unique string) (IDParts, bool) {
	n, err := Normalize(unique)
	if err != nil {
		return IDParts{}, false
	}
	format, value, _ := strings.Cut(n, "-")
	if format != "uuid" && format != "cbid" {
		return IDParts{}, false
	}
	raw, err := hex.DecodeString(value)
	if err != nil || len(raw) == 0 || len(raw) > 33 {
		return IDParts{}, false
	}
	p := IDParts{CBID: format == "cbid", Kind: raw[len(raw)-1]}
	var both [32]byte
	copy(both[:], raw[:len(raw)-1])
	copy(p.Group[:], both[:16])
	copy(p.UUID[:], both[16:])
	return p, true
}

// Unique is the unique value in normal form.
func (p IDParts) Unique() string {
	format := "uuid-"
	if p.CBID {
		format = "cbid-"
	}
	b := append(append(append([]byte(nil), p.Group[:]...), p.UUID[:]...), p.Kind)
	n, err := Normalize(format + hex.EncodeToString(b))
	if err != nil {
		panic("jxta: an id made of its parts must be one: " + err.Error())
	}
	return n
}

// NewID draws a random uuid id of a kind in a group. It never ends in a zero octet, which peers of 2.2 would
// cut off (ghosts 2).
func NewID(kind byte, group [16]byte, rand io.Reader) (string, error) {
	p := IDParts{Kind: kind, Group: group}
	for p.UUID[15] == 0 {
		if _, err := io.ReadFull(rand, p.UUID[:]); err != nil {
			return "", fmt.Errorf("jxta: random id: %w", err)
		}
	}
	return p.Unique(), nil
}
