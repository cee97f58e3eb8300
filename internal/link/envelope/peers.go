package envelope

import (
	"fmt"
	"strings"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// Peers whose advertisement has only a name (regular) cross together in a short item of their own form, in a third of the
// octets of an ItemDef: the far gateway reconstructs the rest. Withdrawals of peers with such ids do so too.
//
//	octet   0: adapter JXTA, kind site.Endpoint
//	octet   flags in the two high bits, the number of peers less 1 in the others
//	octets  the 16 octets of each id
//	octets  their names with line feeds between them, plain or with peersCoded codec and code; none for withdrawals
const (
	peersGone  = 0x80
	peersCoded = 0x40
	peersCount = 0x3f
)

// maxPeerName bounds, in octets, a name in that form.
const maxPeerName = 1024

// regularPeer returns the parts of a peer's item that this form has.
func regularPeer(it site.Item) (id []byte, name string, is bool) {
	if it.Adapter != site.JXTA || it.Kind != site.Endpoint || it.Sub != 0 || it.Scope != netGroup || it.ID != "" || it.Variant || !it.Expires.IsZero() {
		return nil, "", false
	}
	if id, is = regularOctets(it.Owner); !is || it.Gone {
		return id, "", is && len(it.Doc) == 0
	}
	head, tail := regular(it.Owner)
	name, begins := strings.CutPrefix(string(it.Doc), head)
	name, ends := strings.CutSuffix(name, tail)
	return id, name, begins && ends && len(name) <= maxPeerName && !strings.Contains(name, "\n")
}

// peerOf is the item of a regular peer.
func peerOf(id []byte, name string, gone bool) site.Item {
	it := site.Item{Kind: site.Endpoint, Scope: netGroup, Owner: regularOf(id), Gone: gone}
	if !gone {
		head, tail := regular(it.Owner)
		it.Doc = []byte(head + name + tail)
	}
	return it
}

// appendPeers appends short items of all regular peers; rest are the other items.
func appendPeers(short [][]byte, coder *compact.Coder, items []site.Item, left *room) (list [][]byte, rest []site.Item) {
	var ids [2][]byte
	var names []string
	for _, it := range items {
		id, name, is := regularPeer(it)
		switch {
		case !is || len(ids[0])+len(ids[1]) == MaxItems*idOctets:
			rest = append(rest, it)
		case it.Gone:
			ids[1] = append(ids[1], id...)
		default:
			ids[0], names = append(ids[0], id...), append(names, name)
		}
	}
	if len(ids[0]) > 0 {
		flags, text := byte(0), []byte(strings.Join(names, "\n"))
		if code, codec := coder.AppendElement([]byte{0}, text, compact.Full); len(code) < len(text) {
			code[0] = byte(codec)
			left.charge(codec, len(text))
			flags, text = peersCoded, code
		}
		short = append(short, append(append([]byte{0, flags | byte(len(names)-1)}, ids[0]...), text...))
	}
	if n := len(ids[1]) / idOctets; n > 0 {
		short = append(short, append([]byte{0, peersGone | byte(n-1)}, ids[1]...))
	}
	return short, rest
}

// parsePeers reads one short item that appendPeers made; most is how many peers there may be.
func parsePeers(b []byte, texts *Texts, left *room, most int) (items []site.Item, err error) {
	if len(b) < 2 || b[0] != 0 || b[1]&(peersGone|peersCoded) == peersGone|peersCoded {
		return nil, fmt.Errorf("%w: short peers", ErrMalformed)
	}
	n, gone := int(b[1]&peersCount)+1, b[1]&peersGone != 0
	ids, text := b[2:], []byte(nil)
	if len(ids) < n*idOctets || gone && len(ids) > n*idOctets {
		return nil, fmt.Errorf("%w: short peers", ErrMalformed)
	}
	if n > most {
		return nil, fmt.Errorf("%w: more than %d items", ErrLimit, MaxItems)
	}
	ids, text = ids[:n*idOctets], ids[n*idOctets:]
	names := make([]string, n)
	if b[1]&peersCoded != 0 {
		if text, err = expandDoc(text, texts, left); err != nil {
			return nil, err
		}
	}
	if !gone {
		names = strings.Split(string(text), "\n")
	}
	if len(names) != n {
		return nil, fmt.Errorf("%w: %d names of %d peers", ErrMalformed, len(names), n)
	}
	for i, name := range names {
		if len(name) > maxPeerName {
			return nil, fmt.Errorf("%w: a peer's name of %d octets", ErrLimit, len(name))
		}
		it := peerOf(ids[i*idOctets:(i+1)*idOctets], name, gone)
		left.charge(compact.Stored, len(it.Doc))
		items = append(items, it)
	}
	if left.octets < 0 {
		return nil, fmt.Errorf("%w: names of peers", ErrLimit)
	}
	return items, nil
}
