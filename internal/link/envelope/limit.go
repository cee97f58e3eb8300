package envelope

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"aldis/internal/link/compact"
)

// Limits of what Parse accepts. Limits of octets are for everything in one message together, so that neither many items nor
// codes within codes expand a datagram further.
const (
	MaxElements = 4096      // elements of one message; lan's own limit is no higher
	MaxDoc      = 256 << 10 // octets of one document, expanded
	MaxNames    = 16 << 10  // octets of an item's scope, owner and id together: they are its key in the journal (32 KiB at most)
	MaxItems    = 64        // items of one message; senders put 8 at the most into one
	MaxAgain    = 4096      // numbers of messages asked for again

	maxExpanded = 32 << 20 // octets of a message, expanded; lan's own limit is no higher

	// maxModelled is how many octets of a message the model codes, in slices: about ten seconds of work, and between the
	// slices the loop is free for as long (mail.Turn). At 128 kbit/s, coding XML of that size saves a minute.
	maxModelled = 8 << 20
	// MostWhole is the same for a message that is coded and read in one turn of the loop.
	MostWhole = 1 << 20

	expandedAlways = 32 << 10 // octets that a message may expand to however short it is,
	expandedRatio  = 256      // and so many more for each of its octets on the link
)

// MostExpanded is how many octets a message of so many octets on the link may expand to. A sender fills up a message that
// would expand to more, a blank picture for example (Packed).
func MostExpanded(octets int) int {
	return min(maxExpanded, expandedAlways+expandedRatio*octets)
}

// leastOctets is the least size on the link of a message that expands to so many octets.
func leastOctets(expanded int) int {
	if expanded > maxExpanded {
		expanded = maxExpanded
	}
	return (expanded - expandedAlways + expandedRatio - 1) / expandedRatio
}

// room is how many octets a message may still expand to while it is parsed, or have coded by the model while it is made.
type room struct {
	octets   int // of all codecs
	modelled int // of these, by the model
}

// room is the room of a message of so many octets, expanded.
func (t *Texts) room(octets int) *room {
	modelled := maxModelled
	if t != nil && t.Whole {
		modelled = MostWhole
	}
	return &room{octets, modelled}
}

// limit is the most octets that a text of this codec may have; most is the text's own bound.
func (r *room) limit(codec compact.Codec, most int) int {
	if codec.ByModel() {
		most = min(most, r.modelled)
	}
	return min(most, r.octets)
}

// charge notes a text that was expanded or coded.
func (r *room) charge(codec compact.Codec, octets int) {
	r.octets -= octets
	if codec.ByModel() {
		r.modelled -= octets
	}
}

// beyond wraps the error of a text that had no room in ErrLimit.
func beyond(err error) error {
	if errors.Is(err, compact.ErrTooLong) {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}

// Fields of the messages in envelope.proto that repeat.
const (
	fieldData, fieldDefine, fieldItems, fieldCoded, fieldAgain, fieldShort = 2, 3, 4, 8, 11, 15

	fieldShape = 7 // of a FlowDef
)

// count says whether an envelope repeats its fields within the limits. It is called before Protocol Buffers makes a
// structure of each, which takes a hundred times the octets of an empty one.
func count(b []byte) error {
	var seen [fieldShort + 1]int
	shapes := 0
	err := fields(b, func(field protowire.Number, value []byte) error {
		if int(field) < len(seen) {
			seen[field]++
		}
		switch field {
		case fieldAgain:
			seen[field] += len(value) / 4 // packed
		case fieldDefine:
			return fields(value, func(field protowire.Number, _ []byte) error {
				if field == fieldShape {
					shapes++
				}
				return nil
			})
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case seen[fieldData] > MaxElements, seen[fieldCoded] > MaxElements, shapes > MaxElements:
		return fmt.Errorf("%w: more than %d elements", ErrLimit, MaxElements)
	case seen[fieldItems]+seen[fieldShort] > MaxItems:
		return fmt.Errorf("%w: %d items, at most %d", ErrLimit, seen[fieldItems]+seen[fieldShort], MaxItems)
	case seen[fieldAgain] > MaxAgain:
		return fmt.Errorf("%w: more than %d messages asked for again", ErrLimit, MaxAgain)
	}
	return nil
}

// fields calls f with each field of a Protocol Buffers message; value is the content of a field with a length.
func fields(b []byte, f func(field protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(b)
		} else {
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
		}
		if err := f(field, value); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
