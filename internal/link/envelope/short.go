package envelope

import (
	"encoding/binary"
	"fmt"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// An item of an adapter other than JXTA's crosses in a short form of its own, in half the octets of an ItemDef:
//
//	octet   adapter, kind - 1 in the two high bits
//	octet   flags
//	varint  octets of the owner, the owner; likewise the scope and the id where the flags say so
//	octet   sub, varint seconds since 1970 UTC of the expiry: where the flags say so
//	octets  the document, plain or with shortCoded codec and code
const (
	shortScope = 1 << iota
	shortID
	shortCoded
	shortExpires
	shortGone
	shortVariant
	shortSub
	shortFlags
)

// appendShort appends an item in short form.
func appendShort(dst []byte, coder *compact.Coder, it site.Item, left *room) []byte {
	flags := byte(0)
	for bit, when := range map[byte]bool{shortScope: it.Scope != "", shortID: it.ID != "", shortExpires: !it.Expires.IsZero(),
		shortGone: it.Gone, shortVariant: it.Variant, shortSub: it.Sub != 0} {
		if when {
			flags |= bit
		}
	}
	doc := it.Doc
	if len(doc) > 0 {
		effort := compact.Full
		if len(doc) > left.modelled {
			effort = compact.Light
		}
		if code, codec := coder.AppendElement([]byte{0}, doc, effort); len(code) < len(doc) {
			code[0] = byte(codec)
			left.charge(codec, len(doc))
			flags, doc = flags|shortCoded, code
		}
	}
	dst = append(dst, byte(it.Adapter)|byte(it.Kind-1)<<6, flags)
	text := func(text string) { dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...) }
	text(it.Owner)
	if flags&shortScope != 0 {
		text(it.Scope)
	}
	if flags&shortID != 0 {
		text(it.ID)
	}
	if flags&shortSub != 0 {
		dst = append(dst, it.Sub)
	}
	if flags&shortExpires != 0 {
		dst = binary.AppendUvarint(dst, uint64(it.Expires.Unix()))
	}
	return append(dst, doc...)
}

// parseShort reads an item that appendShort has appended.
func parseShort(b []byte, texts *Texts, left *room) (it site.Item, err error) {
	if len(b) < 2 || b[1] >= shortFlags {
		return it, fmt.Errorf("%w: a short item", ErrMalformed)
	}
	it = site.Item{Adapter: site.Adapter(b[0] & 0x3f), Kind: site.Kind(b[0]>>6) + 1, Gone: b[1]&shortGone != 0, Variant: b[1]&shortVariant != 0}
	flags, rest := b[1], b[2:]
	number := func() uint64 {
		n, w := binary.Uvarint(rest)
		if w <= 0 {
			err = fmt.Errorf("%w: a short item", ErrMalformed)
			return 0
		}
		rest = rest[w:]
		return n
	}
	text := func() string {
		n := number()
		if n > uint64(len(rest)) {
			err = fmt.Errorf("%w: a short item", ErrMalformed)
			return ""
		}
		text := string(rest[:n])
		rest = rest[n:]
		return text
	}
	it.Owner = text()
	if flags&shortScope != 0 {
		it.Scope = text()
	}
	if flags&shortID != 0 {
		it.ID = text()
	}
	if flags&shortSub != 0 && len(rest) > 0 {
		it.Sub, rest = rest[0], rest[1:]
	}
	if flags&shortExpires != 0 {
		it.Expires = time.Unix(int64(number()&(1<<40-1)), 0).UTC()
	}
	switch {
	case err != nil || it.Adapter == site.JXTA || len(rest) > MaxDoc:
		return site.Item{}, fmt.Errorf("%w: a short item", ErrMalformed)
	case flags&shortCoded == 0 && len(rest) > 0:
		it.Doc = append([]byte(nil), rest...)
		left.charge(compact.Stored, len(rest))
	case flags&shortCoded != 0:
		it.Doc, err = expandDoc(rest, texts, left)
	}
	return it, err
}
