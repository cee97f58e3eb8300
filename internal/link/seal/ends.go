package seal

import "encoding/binary"

// EndKey seals the messages of one node to another while gateways between them pass them on: docs/decisions/relay.md. The
// nonce is a message's number and a tag over all of it (a synthetic nonce, as in RFC 5297). So the same octets may be
// sealed again, and a node that was put back to an older copy of its data reuses a nonce for other octets once in 2^32 such
// cases.
type EndKey struct{ tag, stream [keyLen]byte }

// relayContext separates keys between the ends of a way from those of its hops.
var relayContext = [8]byte([]byte("aldisrl1"))

// End is the key for messages that node from seals for node to, one of which is this node; streams is what both know of
// each other's starts. With a key that the network shares, all nodes have it. false: the roster does not name the other
// node.
func (k *Keyring) End(from, to uint16, streams []byte) (e EndKey, ok bool) {
	base, ok := [keyLen]byte{}, true
	switch peer := to; {
	case k.shared != nil:
		base = *k.shared
	case to == k.self:
		peer = from
		fallthrough
	default:
		base, ok = k.epochs[0].pairs[peer]
	}
	text := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte("aldis end key 1"), from), to)
	base = derive(&base, 0, relayContext)
	return NewEndKey(hash(base[:], append(text, streams...))), ok
}

// NewEndKey makes a key from 32 octets that only its users know.
func NewEndKey(secret [keyLen]byte) EndKey {
	return EndKey{tag: derive(&secret, 1, relayContext), stream: derive(&secret, 2, relayContext)}
}

// Secret is a key that only this node can make, from its own key, for the purpose of.
func (k *Keyring) Secret(of []byte) [keyLen]byte {
	if k.shared != nil {
		return hash(k.shared[:], append([]byte("aldis set key 1"), of...))
	}
	seed := k.epochs[0].own.Seed()
	return hash(seed[:], append([]byte("aldis set key 1"), of...))
}

// Tag appends so many octets, 16 at the most, that prove number, ad and body to other holders of the key.
func (e *EndKey) Tag(dst []byte, octets int, number uint64, ad, body []byte) []byte {
	text := binary.BigEndian.AppendUint64(nil, number)
	text = append(append(append(text, byte(len(ad))), ad...), body...)
	m := mac(&e.tag, text)
	return append(dst, m[:octets]...)
}

// Proves says whether a tag is that of number, ad and body.
func (e *EndKey) Proves(tag []byte, number uint64, ad, body []byte) bool {
	return same(tag, e.Tag(nil, len(tag), number, ad, body))
}

// Seal appends a tag of so many octets, 8 at the most, and the encrypted body.
func (e *EndKey) Seal(dst []byte, octets int, number uint64, ad, body []byte) []byte {
	at := len(dst)
	dst = e.Tag(dst, octets, number, ad, body)
	tag := dst[at:]
	return append(dst, e.crypt(tag, number, body)...)
}

// Open is the body that Seal has sealed; false: it is not authentic.
func (e *EndKey) Open(sealed []byte, octets int, number uint64, ad []byte) (body []byte, ok bool) {
	if len(sealed) < octets {
		return nil, false
	}
	body = e.crypt(sealed[:octets], number, sealed[octets:])
	return body, e.Proves(sealed[:octets], number, ad, body)
}

// crypt encrypts or decrypts with ChaCha20; the nonce is made of a tag and a number.
func (e *EndKey) crypt(tag []byte, number uint64, body []byte) []byte {
	n := nonce(0)
	binary.BigEndian.PutUint64(n[nonceLen-8:], number)
	for i, b := range tag {
		n[i] ^= b
	}
	return stream(body, &n, &e.stream)
}
