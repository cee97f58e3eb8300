package seal

import "encoding/binary"

// Introductions are datagrams of a node that its peers do not know yet; package link/roster defines their content. Their
// first octet tells them from sealed ones.

// introVersion is the version in the first octet of an introduction.
const introVersion = 2 << 5

// IntroOverhead is the octets of a datagram before its part of an introduction.
const IntroOverhead = 1 + 2 + 1 + 1

// IsIntroduction says whether a datagram has a part of an introduction.
func IsIntroduction(datagram []byte) bool {
	return len(datagram) > IntroOverhead && datagram[0] == introVersion && datagram[3] < datagram[4]
}

// IntroParts are the datagrams of an introduction, each of at most so many octets; nil: they would be too many.
func IntroParts(introduction []byte, most int) (list [][]byte) {
	start()
	tag := hash(nil, introduction)
	room := max(most-IntroOverhead, 1)
	count := (len(introduction) + room - 1) / room
	if count > 255 {
		return nil
	}
	for i := range count {
		part := introduction[i*room : min(len(introduction), (i+1)*room)]
		list = append(list, append([]byte{introVersion, tag[0], tag[1], byte(i), byte(count)}, part...))
	}
	return list
}

// Intro collects the parts of one introduction. The zero value has none.
type Intro struct {
	tag   [3]byte // with the number of parts
	parts [][]byte
	lacks int
}

// Add takes a datagram for which IsIntroduction holds, of an introduction of at most so many octets. whole is the
// introduction once all parts are here. A part of another introduction begins anew: none of them is authentic, so only one
// is held at a time.
func (a *Intro) Add(datagram []byte, most int) (whole []byte) {
	tag := [3]byte{datagram[1], datagram[2], datagram[4]}
	if a.parts == nil || a.tag != tag {
		*a = Intro{tag: tag, parts: make([][]byte, datagram[4]), lacks: int(datagram[4])}
	}
	at := datagram[3]
	if a.parts[at] == nil {
		a.parts[at] = append([]byte{}, datagram[IntroOverhead:]...)
		a.lacks--
	}
	octets := 0
	for _, part := range a.parts {
		octets += len(part)
	}
	if octets > most {
		*a = Intro{}
		return nil
	}
	if a.lacks > 0 {
		return nil
	}
	for _, part := range a.parts {
		whole = append(whole, part...)
	}
	*a = Intro{}
	return whole
}

// introKey is the key that hides an introduction of an epoch.
func (s GroupSecret) introKey(epoch uint32) [keyLen]byte {
	return hash(s[:], binary.BigEndian.AppendUint32([]byte("aldis introduction 1"), epoch))
}

// Hide seals text for nodes that know the secret. The nonce is a hash of all input, so no two texts share one.
func (s GroupSecret) Hide(epoch uint32, clear, text []byte) []byte {
	start()
	key := s.introKey(epoch)
	h := hash(key[:], append(append(binary.BigEndian.AppendUint64([]byte("nonce"), uint64(len(clear))), clear...), text...))
	n := [nonceLen]byte(h[:nonceLen])
	return encrypt(n[:], text, clear, &n, &key)
}

// Show is the text that Hide has sealed. The error is ErrShort or ErrAuth.
func (s GroupSecret) Show(epoch uint32, clear, hidden []byte) ([]byte, error) {
	if len(hidden) < nonceLen+tagLen {
		return nil, ErrShort
	}
	key, n := s.introKey(epoch), [nonceLen]byte(hidden)
	text := make([]byte, len(hidden)-nonceLen-tagLen, len(hidden)) // C wants a valid address even for an empty text
	if !decrypt(text, hidden[nonceLen:], clear, &n, &key) {
		return nil, ErrAuth
	}
	return text, nil
}
