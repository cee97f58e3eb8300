package relay

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"aldis/internal/site"
)

// ErrCapsule says that something is no capsule.
var ErrCapsule = errors.New("relay: not a capsule")

// MaxHops is how many gateways may take a capsule on its way, its recipient among them.
const MaxHops = 4

// MaxRecipients is how many recipients one capsule may have.
const MaxRecipients = 64

// Kinds of capsules.
const (
	message = 0 // number (2), a tag of tagOctets for each recipient, for a set another one of the set's key, the envelope encrypted
	hello   = 1 // sealed with the key that two nodes always have: it says who speaks
	told    = 2 // sealed with the key of two streams: receipts and the like
	riding  = 3 // a message for one, with receipts and the like before it
)

const (
	tagOctets     = 4 // of a message: docs/decisions/trust.md says why they suffice
	controlOctets = 8 // of the tag of a hello or a told capsule
)

// The first octet of a capsule, which every hop may read and change.
const (
	hopsMask     = 7
	flagLifetime = 1 << 3 // an octet with the lifetime that is left follows
	kindShift    = 4
)

// Capsule has the octets that one node has sealed for others, with the fields that the gateways between them have to know.
type Capsule struct {
	Origin   uint16
	To       []uint16      // by id; those that the hop has to reach
	Set      uint16        // number that the origin gives the recipients for whom it seals at once, in one precedence; 0: it is no message
	Hops     int           // gateways that have taken it
	Lifetime time.Duration // that is left; 0: no end
	kind     int
	number   uint16 // of a message, its low 16 bits
	tags     []byte
	sealed   []byte
}

// Type is the MIME type of a capsule's octets: nobody can make them shorter.
const Type = "x/sealed"

// Message is the capsule as custody on the way to a hop takes it. mark says how urgent it is.
func (c *Capsule) Message(now time.Time, mark site.Mark) site.Message {
	head := byte(c.Hops) | byte(c.kind)<<kindShift
	data := []byte{head}
	mark = site.Mark{Precedence: mark.Precedence, Fleeting: mark.Fleeting}
	if c.Lifetime > 0 {
		data[0] |= flagLifetime
		data = append(data, lifetime(c.Lifetime))
		mark.Expires = now.Add(c.Lifetime).Truncate(time.Second)
	}
	if c.isMessage() {
		data = append(binary.BigEndian.AppendUint16(data, c.number), c.tags...)
	}
	to := make([]string, len(c.To))
	for i, id := range c.To {
		to[i] = strconv.Itoa(int(id))
	}
	return site.Message{Adapter: site.Relay, From: strconv.Itoa(int(c.Origin)), To: strings.Join(to, ","), Param: param(c.Set), Mark: mark,
		Parts: []site.Part{{Type: Type, Data: append(data, c.sealed...)}}}
}

func param(set uint16) string {
	if set == 0 {
		return ""
	}
	return strconv.Itoa(int(set))
}

// Parse reads what Message made. The capsule shares the message's octets.
func Parse(m *site.Message) (c Capsule, err error) {
	number := func(text string) uint16 {
		n, e := strconv.ParseUint(text, 10, 16)
		if e != nil || n == 0 || text != strconv.Itoa(int(n)) {
			err = ErrCapsule
		}
		return uint16(n)
	}
	c.Origin = number(m.From)
	list := strings.SplitN(m.To, ",", MaxRecipients+1)
	if len(m.Parts) != 1 || len(m.Parts[0].Data) < 1 || len(list) > MaxRecipients {
		return c, ErrCapsule
	}
	for i, text := range list {
		c.To = append(c.To, number(text))
		if i > 0 && c.To[i] <= c.To[i-1] {
			return c, ErrCapsule
		}
	}
	b := m.Parts[0].Data
	c.Hops, c.kind = int(b[0]&hopsMask), int(b[0]>>kindShift)
	life := b[0]&flagLifetime != 0
	if b = b[1:]; life {
		if len(b) < 1 {
			return c, ErrCapsule
		}
		c.Lifetime, b = lifetimeOf(b[0]), b[1:]
	}
	if !c.isMessage() {
		c.sealed = b
		if c.kind > riding || len(c.To) != 1 || m.Param != "" || len(b) < controlOctets {
			return c, ErrCapsule
		}
		return c, err
	}
	tags := tagOctets * len(c.To)
	if c.Set = number(m.Param); err != nil || len(b) < 2+tags {
		return c, ErrCapsule
	}
	c.number, c.tags, c.sealed = binary.BigEndian.Uint16(b), b[2:2+tags], b[2+tags:]
	return c, nil
}

// isMessage says that it has a number in its set.
func (c *Capsule) isMessage() bool { return c.kind == message || c.kind == riding }

// Waits says that it may wait for others that go to the same hop: it brings receipts, and nothing waits for them.
func (c *Capsule) Waits(p site.Precedence) bool {
	return c.kind == told && p.Rank() < site.Immediate.Rank()
}

// For is the capsule as it goes on to some of its recipients.
func (c Capsule) For(to []uint16) Capsule {
	var tags []byte
	for i, id := range c.To {
		for _, one := range to {
			if one == id && c.isMessage() {
				tags = append(tags, c.tags[i*tagOctets:(i+1)*tagOctets]...)
			}
		}
	}
	c.To, c.tags = to, tags
	return c
}

// Name is the same for a capsule however often it comes to a recipient.
func (c *Capsule) Name(to uint16) string {
	b := binary.BigEndian.AppendUint16([]byte{byte(c.kind)}, c.Origin)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, to), c.Set)
	tags := c.sealed[:min(len(c.sealed), controlOctets)]
	if c.isMessage() {
		tags = c.For([]uint16{to}).tags
	}
	return string(append(binary.BigEndian.AppendUint16(b, c.number), tags...))
}

// longest is eight years.
const longest = 27<<3 | 7

// A lifetime has an octet: five bits for the power of two, in seconds, and three behind the point. The octet never says a longer one.
func lifetime(d time.Duration) byte {
	s := uint64(max(d/time.Second, 1))
	e := bits.Len64(s) - 1
	if e > longest>>3 {
		return longest
	}
	return byte(e<<3) | byte(s<<3>>e&7)
}

func lifetimeOf(b byte) time.Duration {
	b = min(b, longest)
	return time.Duration(uint64(8|b&7)<<(b>>3)) * time.Second / 8
}

// head has the fields that tags prove besides the sealed octets.
func (c *Capsule) head(to uint16, p site.Precedence) []byte {
	b := []byte{byte(c.kind), byte(p)}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, c.Origin), to)
	return binary.BigEndian.AppendUint16(b, c.Set)
}
