package xmpp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// Keys of memories. The comments name the rest of the key, then the value.
const (
	keyOurs    = "o" // site, number: kind, id, local part, resource, local part of the receiver
	keyTheirs  = "t" // site, number: id, local parts of sender and receiver
	keyError   = "e" // site, number: why a message of ours failed; its sender is still to be told
	keyTold    = "x" // site, 0: outcomes that are still to be sent to it
	keyPair    = "p" // site, local part here, 0, local part there: flags
	keyHere    = "r" // site of the room, room, 0, local part of an occupant here: nick, JIDs
	keyHome    = "h" // room here, 0, nick of an occupant here: nothing; far sites know the occupant
	keyCharter = "c" // room here: charter
	keyArchive = "a" // room here, 0, number: a line
	keyNode    = "n" // site of a node, owner, 0, node, 0, bare JID here that is subscribed
	keyWant    = "w" // likewise, without the JID: the home of the node was asked for it
	keyItem    = "i" // this site, owner, 0, node, 0, item: far sites know it
	keyStated  = "u" // local part: nothing; far sites have the presence of this user
)

// ErrMemory says that a memory is of another format.
var ErrMemory = errors.New("xmpp: memory of another format")

var errShort = errors.New("cut short")

// restore reads the memories of an earlier run, in the order of their keys. A text of one client that cannot be read does not end the
// start for all: it is left out.
func (f *Adapter) restore(memories []site.Memory) error {
	for _, m := range memories {
		err := f.restoreOne(m.Key, m.Value)
		if fault := (*stanza.Fault)(nil); errors.As(err, &fault) {
			f.trouble.Count("memory_unreadable")
		} else if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrMemory, m.Key, err)
		}
	}
	return nil
}

func (f *Adapter) restoreOne(key string, value []byte) error {
	if len(key) == 0 {
		return errShort
	}
	kind, rest := key[:1], key[1:]
	switch {
	case kind == server.KeyPrefix && f.own == nil || kind == keyArchive && f.own == nil: // from a time when the gateway served clients itself
		return nil
	case kind == server.KeyPrefix:
		return f.own.Restore(key, value)
	case kind == keyArchive:
		return f.archive.Restore(rest, value)
	case kind == keyGiven, kind == keyOffered, kind == files.KeyPull:
		return f.uploads.restore(kind, rest, value)
	}
	if kind == keyStated {
		f.presence.restoreStated(rest)
		return nil
	}
	if kind == keyBatch {
		return f.restoreBatch(rest, value)
	}
	if kind == keyCharter {
		return restoreCharter(&f.rooms, rest, value)
	}
	if kind == keyHome {
		return f.rooms.restoreHome(rest)
	}
	if len(rest) < 2 {
		return errShort
	}
	if kind == keyHere {
		return f.rooms.restoreHere(binary.BigEndian.Uint16([]byte(rest)), rest[2:], value)
	}
	if kind == keyNode || kind == keyWant || kind == keyItem {
		return f.nodes.restore(kind, binary.BigEndian.Uint16([]byte(rest)), rest[2:], value)
	}
	n := f.numbers[binary.BigEndian.Uint16([]byte(rest))]
	if n == nil { // of a site that is no longer configured
		return nil
	}
	if kind == keyPair {
		return f.presence.restorePair(n.site, rest[2:], value)
	}
	if len(rest) != 6 {
		return errShort
	}
	number := binary.BigEndian.Uint32([]byte(rest[2:]))
	switch kind {
	case keyOurs:
		return n.restoreOurs(number, value)
	case keyTheirs:
		return n.restoreTheirs(number, value)
	case keyTold:
		f.told[n.site] = &outcomes{data: value}
		return nil
	case keyError:
		if len(value) != 1 {
			return errShort
		}
		f.owed = append(f.owed, owed{n.site, number, value[0]})
		return nil
	}
	return errors.New("unknown")
}

// appendTexts appends texts, each behind its length.
func appendTexts(dst []byte, texts ...string) []byte {
	for _, t := range texts {
		dst = append(binary.AppendUvarint(dst, uint64(len(t))), t...)
	}
	return dst
}

// cutText is the first text that appendTexts has appended, and the octets behind it.
func cutText(b []byte) (text string, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return "", nil, errShort
	}
	return string(b[w : w+int(n)]), b[w+int(n):], nil
}

// textsOf reads so many texts that appendTexts has appended, and nothing behind them.
func textsOf(b []byte, count int) (texts []string, err error) {
	for range count {
		var text string
		if text, b, err = cutText(b); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(b) > 0 {
		return nil, errShort
	}
	return texts, nil
}
