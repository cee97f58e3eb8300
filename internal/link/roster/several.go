package roster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"aldis/internal/link/seal"
)

// By mistake an authority may sign two rosters with the same serial, each the successor of the same roster. Nobody can say
// which of them is meant. Until there is one with a higher serial, nodes that know both use the nodes that both name.

// Digest tells rosters apart, also two of one serial: the first octets of the SHA-256 of the output of Append.
func (r *Roster) Digest() [8]byte {
	h := sha256.Sum256(r.Append(nil))
	return [8]byte(h[:])
}

// Fingerprint is the digest as two operators compare it: four groups of four hexadecimal digits.
func (r *Roster) Fingerprint() string {
	d := r.Digest()
	return fmt.Sprintf("%x %x %x %x", d[0:2], d[2:4], d[4:6], d[6:8])
}

// Mark is two octets by which two nodes see whether they use the same of these rosters, in whichever order. It is never 0.
func Mark(list []*Roster) (mark uint16) {
	for _, r := range list {
		d := r.Digest()
		mark ^= binary.BigEndian.Uint16(d[:])
	}
	return max(mark, 1)
}

// Newest is the rosters at the beginning of a list, the newest first, that have one serial: usually one.
func Newest(list []*Roster) []*Roster {
	n := slices.IndexFunc(list, func(r *Roster) bool { return r.Serial != list[0].Serial })
	if n < 0 {
		n = len(list)
	}
	return list[:n]
}

// Common is the roster of the nodes that rosters of one serial all name with the same key. A single roster is returned
// unchanged; the common one of several is not signed.
func Common(list []*Roster) *Roster {
	if len(list) == 1 {
		return list[0]
	}
	r := *list[0]
	r.Signature = seal.Signature{}
	r.Nodes = slices.DeleteFunc(slices.Clone(r.Nodes), func(n Node) bool {
		return slices.ContainsFunc(list, func(other *Roster) bool {
			is, ok := other.Node(n.ID)
			return !ok || is.Public != n.Public
		})
	})
	for _, other := range list {
		if other.At.Before(r.At) {
			r.At = other.At
		}
	}
	return &r
}

// commonEpoch is the epoch of several rosters of one serial: only nodes that all of them name know its secret.
func commonEpoch(self uint16, own *seal.SigningKey, list []*Roster) (e seal.Epoch, err error) {
	var secrets []seal.GroupSecret
	for _, r := range list {
		one, err := r.Epoch(self, own)
		if err != nil {
			return e, err
		}
		secrets = append(secrets, one.Secret)
	}
	return seal.Epoch{Number: list[0].Serial, Secret: seal.CommonSecret(secrets), Members: Common(list).members()}, nil
}
