package xmpp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"aldis/internal/adapters/xmpp/code"
)

// numbers are the messages to and from one site to which either side may refer.
type numbers struct {
	*step
	site   uint16
	last   uint32 // of ours
	ours   []ours // the oldest first
	theirs []theirs
}

// ours is a message of a client here.
type ours struct {
	count uint32 // its number modulo MostNumbers crosses
	id    string // of the client
	from  jid    // the client, with its resource
	to    string // local part of the far user
	kind  code.Kind
	batch uint32 // count of the first message of its batch; 0: it goes alone
	told  bool   // its sender was told that a site does not get it
}

// theirs is a message of a far client.
type theirs struct {
	number   uint16
	id       string // by which clients here know it
	from, to string // local parts
}

// mostKept is how many messages of each way are remembered: half of the numbers, so that none has two meanings.
const mostKept = code.MostNumbers / 2

// mostID is the longest id of a client that is remembered.
const mostID = 256

func (o *ours) number() uint16 { return uint16(o.count % code.MostNumbers) }

// token identifies the message in its fate, also in a later run.
func (o *ours) token(site uint16) uint64 { return uint64(site)<<32 | uint64(o.count) }

// add gives a message of ours its number.
func (n *numbers) add(o ours) *ours {
	if len(o.id) > mostID {
		o.id = ""
	}
	n.last++
	o.count = max(1, n.last)
	n.last = o.count
	n.ours = append(n.ours, o)
	n.keep(&o)
	if len(n.ours) > mostKept {
		n.remember(n.key(keyOurs, n.ours[0].count), nil)
		n.ours = n.ours[1:]
	}
	return &n.ours[len(n.ours)-1]
}

func (n *numbers) keep(o *ours) {
	value := appendTexts([]byte{byte(o.kind)}, o.id, o.from.local, o.from.resource, o.to)
	if o.batch != 0 || o.told {
		value = appendTexts(value, strconv.FormatUint(uint64(o.batch), 10), strconv.FormatBool(o.told))
	}
	n.remember(n.key(keyOurs, o.count), value)
}

// join notes the batch of a message: all its messages have one fate.
func (n *numbers) join(count, batch uint32) {
	if o := n.find(func(o *ours) bool { return o.count == count }); o != nil {
		o.batch = batch
		n.keep(o)
	}
}

// with are the counts of the messages in the batch of a message.
func (n *numbers) with(count uint32) (list []uint32) {
	for i := range n.ours {
		if o := &n.ours[i]; o.batch == count || o.count == count {
			list = append(list, o.count)
		}
	}
	return list
}

// came notes a message of the far site.
func (n *numbers) came(t theirs) {
	n.theirs = slices.DeleteFunc(n.theirs, func(o theirs) bool { return o.number == t.number })
	n.theirs = append(n.theirs, t)
	n.remember(n.key(keyTheirs, uint32(t.number)), appendTexts(nil, t.id, t.from, t.to))
	if len(n.theirs) > mostKept {
		n.remember(n.key(keyTheirs, uint32(n.theirs[0].number)), nil)
		n.theirs = n.theirs[1:]
	}
}

// find is the newest message of ours for which is returns true; nil: there is none.
func (n *numbers) find(is func(*ours) bool) *ours {
	for i := len(n.ours) - 1; i >= 0; i-- {
		if is(&n.ours[i]) {
			return &n.ours[i]
		}
	}
	return nil
}

// of is the newest message of theirs for which is returns true; nil: there is none.
func (n *numbers) of(is func(*theirs) bool) *theirs {
	for i := len(n.theirs) - 1; i >= 0; i-- {
		if is(&n.theirs[i]) {
			return &n.theirs[i]
		}
	}
	return nil
}

// ref is the reference by which the far site knows a message that a client here names by an id.
func (n *numbers) ref(id string) (code.Ref, bool) {
	if o := n.find(func(o *ours) bool { return o.id == id }); o != nil && id != "" {
		return code.Ref{Number: o.number()}, true
	}
	if t := n.of(func(t *theirs) bool { return t.id == id }); t != nil {
		return code.Ref{Number: t.number, Yours: true}, true
	}
	return code.Ref{}, false
}

// id is the id by which clients here know a message to which the far site refers; "": it is not known here.
func (n *numbers) id(r code.Ref) string {
	if r.Yours {
		if o := n.find(func(o *ours) bool { return o.number() == r.Number }); o != nil {
			return o.id
		}
	} else if t := n.of(func(t *theirs) bool { return t.number == r.Number }); t != nil {
		return t.id
	}
	return ""
}

func (n *numbers) key(kind string, number uint32) string {
	return kind + string(binary.BigEndian.AppendUint32([]byte{byte(n.site >> 8), byte(n.site)}, number))
}

func (n *numbers) restoreOurs(count uint32, value []byte) error {
	if len(value) == 0 {
		return errShort
	}
	batch := uint64(0)
	texts, err := textsOf(value[1:], 4)
	if err != nil {
		if texts, err = textsOf(value[1:], 6); err == nil {
			batch, err = strconv.ParseUint(texts[4], 10, 32)
		}
	}
	if err != nil {
		return err
	}
	n.ours = append(n.ours, ours{batch: uint32(batch), told: len(texts) == 6 && texts[5] == "true", count: count, kind: code.Kind(value[0]), id: texts[0], from: jid{texts[1], n.cfg.Domain, texts[2]}, to: texts[3]})
	n.last = max(n.last, count)
	return nil
}

func (n *numbers) restoreTheirs(number uint32, value []byte) error {
	texts, err := textsOf(value, 3)
	if err != nil || number >= code.MostNumbers {
		return fmt.Errorf("number %d: %w", number, errShort)
	}
	n.theirs = append(n.theirs, theirs{uint16(number), texts[0], texts[1], texts[2]})
	return nil
}
