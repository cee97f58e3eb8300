package seal

import (
	"encoding/binary"
	"slices"
)

// againVersion is the version in the first octet of a datagram for all that a node other than its sender transmits; the
// other octets stay as they were. So no receiver takes the source address for the sender's, or believes that the sender
// still transmits.
const againVersion = 3 << 5

// Again is a sealed datagram in the form in which another node transmits it.
func Again(datagram []byte) []byte {
	b := slices.Clone(datagram)
	b[0] = b[0]&(flagLong|hintMask) | againVersion
	return b
}

// Original is the datagram that Again was made from; false: this is no such datagram.
func Original(datagram []byte) (sealed []byte, again bool) {
	if len(datagram) < OverheadShort || datagram[0]&^(flagLong|hintMask) != againVersion {
		return nil, false
	}
	sealed = slices.Clone(datagram)
	sealed[0] = sealed[0]&(flagLong|hintMask) | version
	return sealed, true
}

// IsLong says whether a datagram, or an Again, is in the long form.
func IsLong(datagram []byte) bool { return datagram[0]&flagLong != 0 }

// OpenAgain opens the Original of a datagram, which must be authentic, for all, and of the known start of its sender. The
// error is ErrReplay, with a body, if it was received before, and ErrTooOld if that is not known any more.
func (o *Opener) OpenAgain(sealed []byte) (from uint16, body []byte, err error) {
	long, headLen := IsLong(sealed), shortLen
	if long {
		headLen = longLen
	}
	if len(sealed) < headLen+tagLen {
		return 0, nil, ErrShort
	}
	for _, p := range o.byHint[sealed[0]&hintMask] {
		info := OpenInfo{Long: long, Incarnation: Incarnation{p.state.Incarnation, p.state.Salt}}
		if long {
			its := Incarnation{binary.BigEndian.Uint32(sealed[1:]), binary.BigEndian.Uint16(sealed[5:])}
			if info.Counter = binary.BigEndian.Uint32(sealed[7:]); its != info.Incarnation {
				continue
			}
		} else {
			info.Counter = p.state.expand(binary.BigEndian.Uint16(sealed[1:]))
		}
		if info.Incarnation.Number == 0 || info.Counter == 0 {
			continue
		}
		body, ok, err := o.decrypt(sealed, headLen, p.id, &info, p.keys)
		if err != nil || ok && !info.Group {
			return p.id, nil, ErrAuth
		}
		if !ok {
			continue
		}
		if err = p.state.check(info.Counter); err == nil {
			p.state.mark(info.Counter)
		}
		return p.id, slices.Clone(body), err
	}
	return 0, nil, ErrAuth
}
