package compact

// records remembers values by the record that has them. A record is an element of a document or a line of a text. Its name
// is its first value; a line with the first two values of an earlier line is found by both. So the latitude of track 4711
// is found again wherever it is in a message. The scan calls records; no input can make it fail.
type records struct {
	serial int32 // of the message
	names  [maxDepth + 1]uint32
	line   [2]uint32 // names of this line: of its first value, and of its first two
	values int       // in this line
	chain  []said
	slots  [valueSlots]int32 // the newest value with this key: its index in chain, plus one
}

// said is a value of a record.
type said struct {
	span
	key    uint32
	serial int32
	before int32 // the earlier value with the same key: its index in chain, plus one
}

const (
	maxSaid   = 1 << 14 // values of a window and a message; more are not remembered
	pastSaid  = 6       // values that a number is predicted from
	lineStart = 0x6c696e65
)

// begin starts a message.
func (r *records) begin() {
	r.serial++
	r.names = [maxDepth + 1]uint32{}
	r.newLine()
}

func (r *records) newLine() { r.line, r.values = [2]uint32{}, 0 }

// recordKeys returns the keys of a value, the more exact one first; 0: none.
func (s *scan) recordKeys() [2]uint32 {
	r := &s.records
	if s.alone {
		return [2]uint32{}
	}
	if s.tokens {
		if s.mode != inText && s.mode != inIDOctets {
			return [2]uint32{}
		}
		for d := min(s.depth, maxDepth); d > 0; d-- {
			if n := r.names[d]; n != 0 {
				return [2]uint32{mix32(s.key, n)}
			}
		}
		return [2]uint32{}
	}
	if r.values == 0 {
		return [2]uint32{}
	}
	column := uint32(r.values)
	if s.hasName {
		column = s.key
	}
	var keys [2]uint32
	if r.line[1] != 0 {
		keys[0] = mix32(column, r.line[1])
	}
	keys[1] = mix32(column, r.line[0])
	return keys
}

// known is the newest value at the same place of the same record, as its index in chain plus one; 0: there is none.
func (s *scan) known() int32 {
	for _, k := range s.recordKeys() {
		if k == 0 {
			continue
		}
		if i := s.records.slots[k%valueSlots]; i > 0 && s.records.chain[i-1].key == k {
			return i
		}
	}
	return 0
}

// rememberValue remembers the value that ends here. The first value of a record becomes its name.
func (s *scan) rememberValue(v span) {
	r := &s.records
	for _, k := range s.recordKeys() {
		if k == 0 || len(r.chain) >= maxSaid {
			continue
		}
		slot := &r.slots[k%valueSlots]
		before := *slot
		if before > 0 && r.chain[before-1].key != k {
			before = 0
		}
		r.chain = append(r.chain, said{v, k, r.serial, before})
		*slot = int32(len(r.chain))
	}
	name := mix32(s.field, lineStart)
	if !s.tokens {
		if r.values == 0 {
			r.line[0] = name
		} else if r.values == 1 {
			r.line[1] = mix32(r.line[0], name)
		}
		r.values++
		return
	}
	d := min(s.depth, maxDepth)
	if s.inAttr {
		if r.names[d] == 0 && s.attr != xmlnsHash {
			r.names[d] = name
		}
	} else if d > 1 && r.names[d] == 0 && r.names[d-1] == 0 {
		r.names[d-1] = name
	}
}

// xmlnsHash is the hash of the name of an attribute that does not name its element.
var xmlnsHash = func() (h uint32) {
	for _, c := range []byte("xmlns") {
		h = mix32(h, uint32(c))
	}
	return h
}()

// forecast is the number that continues the earlier values of this record, by the number of messages between them.
func (s *scan) forecast(at int32) (y int64, decimals int, ok bool) {
	r := &s.records
	var first, newest said
	var v0 int64
	n := 0
	for i := at; i > 0 && n < pastSaid; i = r.chain[i-1].before {
		e := r.chain[i-1]
		v, d, isNumber := s.number(e.span)
		if !isNumber || n > 0 && d != decimals {
			break
		}
		if n == 0 {
			newest, y, decimals = e, v, d
		}
		first, v0 = e, v
		n++
	}
	if n == 0 {
		return 0, 0, false
	}
	if steps := int64(newest.serial - first.serial); steps > 0 {
		y += (y - v0) * int64(r.serial-newest.serial) / steps
	}
	return y, decimals, true
}
