package compact

import (
	"bytes"
	"errors"
	"slices"
)

// ErrUnfinished says that a text is expanded in part. The same call, with the same Reading, continues it.
var ErrUnfinished = errors.New("compact: a text is expanded in part")

// Reading has the texts of one message that is expanded in slices (Coder.Read). It keeps expanded texts until the whole
// message is expanded. The zero value is ready; an abandoned one needs no cleanup.
type Reading struct {
	texts  map[textSum][]byte
	failed map[textSum]error // codes that do not expand: where a code is tried in two ways, the first is not tried again
	under  *expansion
}

// expansion is a text on its way back through a model of its own.
type expansion struct {
	sum   textSum
	try   try // the messages that are learned first
	m     *model
	under expanding // nil: decoding has not begun
}

// Read lets f expand for a reading, with about so many octets of the model's work in this call. An expansion that needs
// more ends with ErrUnfinished.
func (c *Coder) Read(r *Reading, octets int, f func()) {
	c.reading, c.left = r, octets
	f()
	c.reading = nil
}

// expand is Coder.expand for a reading, within the present slice.
func (r *Reading) expand(c *Coder, from *image, window []entry, codec Codec, b []byte, limit int) ([]byte, error) {
	sum := sumAfter(c.salt(from), window, append([]byte{byte(codec)}, b...))
	if text, done := r.texts[sum]; done {
		if len(text) > limit {
			return nil, ErrTooLong
		}
		return text, nil
	}
	if err := r.failed[sum]; err != nil {
		return nil, err
	}
	if r.under == nil || r.under.sum != sum {
		r.under = c.expansion(sum, try{codec: codec, image: from, tokens: codec.tokens(), window: slices.Clone(window)}, b, limit)
	}
	x := r.under
	done, err := x.advance(c, codec, b, limit)
	if err == nil && !done {
		return nil, ErrUnfinished
	}
	r.under = nil
	defer c.giveBack(x.m)
	var text []byte
	if err == nil {
		text, err = x.under.end()
	}
	if err != nil {
		if r.failed == nil {
			r.failed = map[textSum]error{}
		}
		r.failed[sum] = err
		return nil, err
	}
	if r.texts == nil {
		r.texts = map[textSum][]byte{}
	}
	r.texts[sum] = text
	return text, nil
}

// advance learns and decodes as much as is left of the coder's slice.
func (x *expansion) advance(c *Coder, codec Codec, b []byte, limit int) (done bool, err error) {
	before := x.m.work
	defer func() {
		c.left -= int(x.m.work - before)
		c.read += x.m.work - before
	}()
	if c.left <= 0 {
		return false, nil
	}
	left := c.left
	if x.under == nil {
		learned, done := x.try.learn(x.m, left)
		if !done {
			return false, nil
		}
		left = max(1, left-learned)
		x.under = x.try.expandWith(x.m, bytes.Clone(b), limit)
	}
	if codec == Bulk {
		left *= lightOctets
	}
	return x.under.advance(left)
}

// expansion begins to expand a code with a model that is not in use.
func (c *Coder) expansion(sum textSum, t try, code []byte, limit int) *expansion {
	var m *model
	if n := len(c.spare); n > 0 {
		m, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	c.recallText(&t, code, limit)
	return &expansion{sum: sum, try: t, m: t.starts(m)}
}

// giveBack keeps a model for the next reading.
func (c *Coder) giveBack(m *model) {
	if len(c.spare) < spareModels {
		c.spare = append(c.spare, m)
	}
}

const spareModels = 2
