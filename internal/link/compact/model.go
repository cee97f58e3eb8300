package compact

// The model predicts the next bit from contexts. Each context looks up how often a one followed it, a mixer that
// learns weighs what they say, and two maps correct the sum by what came of such sums before (context mixing, as in
// the PAQ family). Everything is integers.
const (
	contexts   = 14
	light      = 5 // the first of them, for bulk
	atV1       = 8 // the contexts of expectations
	atV2       = 9
	others     = 6 // inputs before those of the contexts: a constant, two of the match, three guesses
	inputs     = others + contexts
	guesses    = 3
	bySum      = 2 // the guess that a checksum makes
	guessSlots = 1024

	smSlots    = 8 * 32
	matchSlots = 256
	setMatch   = 6*4*16 + 1
	setSum     = 6 * 4 * 16 // the last of them: where a checksum says what comes
	setNode    = 256
	setKey     = 1024
	mixes      = 3
	apmSteps   = 33
	apmSlots   = 1024
	agreements = 3 * 3 * 3 * 5 // of guesses and match on the bit
	quiet      = 96            // error of a mixer, of 65536, that it does not learn from
	matchBits  = 15
	matchMin   = 5
	matchMost  = 32 // of a match, what counts
	matchMiss  = 8  // mistakes until a match is given up
)

// tables are what training changes besides the counters.
type tables struct {
	Sm      [contexts * smSlots]uint16
	Match   [matchSlots]uint16
	Guess   [guesses][guessSlots]uint16
	MixA    [setMatch * inputs]int32
	MixB    [setNode * inputs]int32
	MixC    [setKey * inputs]int32
	MixEnd  [setNode * mixes]int32
	ApmA    [apmSlots * apmSteps]uint16
	ApmB    [apmSlots * apmSteps]uint16
	ApmC    [agreements * apmSteps]uint16
	Endings [endSlots]uint32
}

// model is a predictor that learns. Coding a message changes it; both ends start from the same.
type model struct {
	scan
	tables
	counters counters
	used     int    // contexts looked at: all, or light
	limit    uint32 // of counts: from there on old and new weigh alike
	rate     int64  // of the mixers
	work     uint64 // octets that were coded, expanded or learned, ever

	octet
	census *census // while the model is primed: which contexts are worth a slot
	kind   uint32  // chooses weights
	doubt  bool    // the number expected and the value before differ here
	some   bool    // only the contexts of expectations count: the octet is as good as random
	looked
	mixer
	match
	guessed
}

// octet is what is known of the one that comes: its first bits.
type octet struct {
	node uint32 // a one and the bits so far
	half uint32 // the same of its half
	nth  uint   // of the next, from 0
}

// says is what the octet o, with a leading one, has as the next bit; false when the bits so far are not its.
func (b *octet) says(o uint32) (bit int, ok bool) {
	return int(o>>(7-b.nth)) & 1, o>>(8-b.nth) == b.node
}

// looked is where the contexts of the octet and of the bit lead.
type looked struct {
	hash  [contexts]uint32
	line  [contexts]uint32 // of the counters' own,
	base  [contexts]uint32 // and of what they were primed with
	rare  [contexts]bool   // while the model is primed: gets no counter
	slot  [contexts]uint32 // of the bit's counters
	count [contexts]uint32 // the counters
	smAt  [contexts]int32
}

// mixer weighs what is said of the bit.
type mixer struct {
	in    [inputs]int32
	out   [mixes]int32
	mixed [mixes]int32
	sum   int32 // as probability, what the mixers say
	// The weights and map entries of this bit.
	wa, wb, wc, we, pa, pb, pc int
}

// match is the last place with the same octets before it.
type match struct {
	matchAt    int // where in the history the match goes on; 0 for nowhere
	matchLen   int
	missed     int
	matchByte  uint32 // the octet it predicts, with a leading one; 0 once it is wrong
	matchIn    int    // its entry in Match, -1 when it says nothing
	matchTable []int32
	lore       *lore
	inLore     bool // matchAt is in the lore, not in the history
}

// guessed are octets guessed from values before, with a leading one, 0 once wrong; and what they are guessed from.
type guessed struct {
	guess, guessKind, guessIn [guesses]uint32
}

// rates[n] is how far, of 65536, a probability goes toward the bit seen after n.
var rates = makeRates()

func makeRates() (r [256]int32) {
	for n := range r {
		r[n] = int32(65536 * 2 / (2*n + 3))
	}
	return r
}

// smSlot is, by the high 12 bits of a counter's probability, its slot in a map.
var smSlot = makeSmSlot()

func makeSmSlot() *[4096]uint8 {
	t := new([4096]uint8)
	for i := range t {
		t[i] = uint8((int(stretchMid[i]) + stretchMax) * 32 / (2*stretchMax + 1))
	}
	return t
}

// countBucket groups counts for the maps that say what a young counter is worth.
var countBucket = makeCountBucket()

func makeCountBucket() (b [256]int32) {
	for n := range b {
		switch {
		case n <= 5:
			b[n] = int32(max(n-1, 0)) * 32
		case n < 12:
			b[n] = 5 * 32
		case n < 30:
			b[n] = 6 * 32
		default:
			b[n] = 7 * 32
		}
	}
	return b
}

func newModel() *model {
	m := &model{used: contexts, match: match{matchTable: make([]int32, 1<<matchBits)}}
	m.counters.forget("")
	for i := range m.Sm {
		m.Sm[i] = uint16(squash((i%32*2 - 31) * stretchMax / 32))
	}
	for i := range m.Match {
		m.Match[i] = uint16(squash(min(64+i*24, 1800)))
	}
	for i := range m.Guess {
		for j := range m.Guess[i] {
			m.Guess[i][j] = 0xc000
		}
	}
	for _, w := range [][]int32{m.MixA[:], m.MixB[:], m.MixC[:]} {
		for i := range w {
			w[i] = 65536 * 3 / 10
		}
	}
	for i := range m.MixEnd {
		m.MixEnd[i] = 65536 / mixes
	}
	for i := range m.ApmA {
		p := squash((i%apmSteps - apmSteps/2) * (2 * stretchMax / (apmSteps - 1)))
		m.ApmA[i], m.ApmB[i] = uint16(p), uint16(p)
		if i < len(m.ApmC) {
			m.ApmC[i] = uint16(p)
		}
	}
	for i := range m.Endings {
		m.Endings[i] = 64 << 16
	}
	return m
}

// forget empties the history; what was learned stays.
func (m *model) forget() {
	m.scan.reset()
	clear(m.matchTable)
	m.match.at(0, 0, 0)
}

// begin starts a message behind those in the history.
func (m *model) begin(tokens bool) {
	last := m.start
	m.alone = m.used == light
	m.scan.begin(tokens)
	if m.match.at(0, 0, 0); last < m.start { // a message like the last one is likely
		m.match.at(last, 1, 1)
	}
	if last == 0 {
		m.match.at(0, 0, 0)
	}
	m.choose()
}

// choose sets the contexts of the next octet.
func (m *model) choose() {
	s := &m.scan
	m.node, m.half, m.nth = 1, 1, 0
	i := len(s.hist) - s.value
	v1, v2 := s.expect(s.v1, s.v1OK, i), s.expect(s.v2, s.v2OK, i)
	exp := uint32(0)
	switch {
	case i < s.expN:
		exp = uint32(s.exp[i]) + 1
	case i == s.expN && i > 0:
		exp = valueEnds
	}
	m.doubt = exp > 0 && v1 > 0 && exp&0x1ff != v1&0x1ff
	if s.expOK {
		exp |= asExpected
	}
	next := uint32(0)
	if i+1 < s.expN {
		next = uint32(s.exp[i+1])
	}
	if s.exact {
		next |= 0x100
	}
	kind, key := uint32(s.mode), s.key
	m.some = s.mode == inIDOctets || s.noise > 0
	h := &m.hash
	switch {
	case s.mode == inIDOctets:
		*h = [contexts]uint32{atV1: mix32(v1, kind), atV2: mix32(v2, kind)}
	case s.mode == inDER:
		*h = [contexts]uint32{0: uint32(min(s.at, 400)) | kind<<16, 1: s.c4 & 0xff, 2: s.c4 & 0xffff, 3: s.c4 & 0xffffff, 4: s.c4,
			atV1: mix32(v1, kind), atV2: mix32(v2, kind)}
	default:
		*h = [contexts]uint32{
			mix32(key, kind),
			mix32(s.c4&0xff, kind),
			mix32(s.c4&0xffff, kind),
			mix32(s.c4&0xffffff, kind),
			mix32(s.c4, kind),
			mix32(s.c4, s.c8&0xffff),
			mix32(s.word, uint32(s.sep)),
			mix32(key, s.field),
			mix32(v1<<10|exp, key),
			mix32(v2|uint32(min(i, 255))<<16, key),
			mix32(s.word, s.last),
			mix32(key^uint32(min(i, 31))<<27, v1>>9|exp>>9<<1|v2>>9<<2),
			mix32(s.side, s.field),
			mix32(exp|next<<10, min(v1, 1)|v1>>9<<1|kind<<2),
		}
	}
	for j := range h[:m.used] {
		h[j] = mix32(h[j], uint32(j)*0x3779fb9+kind<<28+1)
	}
	m.findLines(0)
	m.guesses(v1, exp, next, i)
	m.kind = mix32(key, kind+uint32(btoi(m.some))<<8) & (setKey/4 - 1) << 2
	m.matchByte = 0
	if m.matchAt > 0 && !(m.some && m.matchLen < 8) { // chance hits mean nothing in noise
		m.matchByte = uint32(m.next(s.hist)) | 0x100
	}
}

// guesses sets the octets that the number expected and the value before have here, and what may tell how good they are.
func (m *model) guesses(v1, exp, next uint32, i int) {
	m.guess = [guesses]uint32{}
	common := uint32(btoi(m.exact))<<2 | uint32(btoi(m.doubt))<<1
	if c := exp & 0x1ff; c > 0 && c < valueEnds {
		near := uint32(3) // how near the digit behind is to changing this one
		switch next & 0xff {
		case '0', '1', '8', '9':
			near = 2
		case '2', '7':
			near = 1
		case '3', '4', '5', '6':
			near = 0
		}
		m.guess[0] = 0x100 | (c - 1)
		m.guessKind[0] = (uint32(min(m.expN-i, 8)-1)<<3|common|exp>>9)<<2 | near
	}
	if c := v1 & 0x1ff; c > 0 && c < valueEnds {
		m.guess[1] = 0x100 | (c - 1)
		left := min(int(m.v1.to-m.v1.from)-i, 8) - 1
		m.guessKind[1] = (uint32(left)<<3|common|v1>>9)<<2 | uint32(btoi(m.expN > 0))<<1 | uint32(btoi(m.some))
	}
	if c, kind := m.sums.checksum(); c > 0 {
		m.guess[bySum], m.guessKind[bySum] = 0x100|uint32(c), kind
	}
}

// predictGuesses sets what the guesses say.
func (m *model) predictGuesses() {
	for g := range guesses {
		m.in[3+g] = 0
		if m.guess[g] == 0 {
			continue
		}
		bit, ok := m.says(m.guess[g])
		if !ok {
			m.guess[g] = 0
			continue
		}
		m.guessIn[g] = (m.guessKind[g]<<2 | uint32(min(m.nth>>1, 3))) & (guessSlots - 1)
		st := int32(stretch(int(m.Guess[g][m.guessIn[g]])))
		if bit == 0 {
			st = -st
		}
		m.in[3+g] = st
	}
}

// take adds the octet c to the history.
func (m *model) take(c byte) {
	m.put(c)
	m.match.follow(m.hist, mix32(m.c4, m.c8&0xff))
	if m.matchAt == 0 && m.lore != nil && len(m.hist)-m.start >= loreMin {
		if at, n := m.lore.recall(m.hist[m.start:], loreHash(m.c4, m.c8)); at > 0 {
			m.match.at(at, n, 0)
			m.inLore = true
		}
	}
}

// at sets where in the history the match goes on.
func (m *match) at(at, length, missed int) {
	m.matchAt, m.matchLen, m.missed, m.inLore = at, length, missed, false
}

// next is the octet that the match says comes.
func (m *match) next(hist []byte) byte {
	if m.inLore {
		return m.lore.text[m.matchAt]
	}
	return hist[m.matchAt]
}

// follow moves the match on, or finds one. The table is asked by the hash of the last octets.
func (m *match) follow(hist []byte, hash uint32) {
	n := len(hist)
	if m.matchAt > 0 {
		same := m.next(hist) == hist[n-1]
		if same {
			m.matchLen++
			if m.matchLen > 16 {
				m.missed = 0
			}
		} else {
			m.matchLen = 0
			m.missed++
		}
		if m.matchAt++; m.missed > matchMiss || m.inLore && (!same || m.matchAt >= len(m.lore.text)) {
			m.at(0, 0, 0)
		}
	}
	if n < matchMin {
		return
	}
	c := hash >> (32 - matchBits)
	if at := int(m.matchTable[c]); m.matchLen < matchMin && at > 0 {
		l := 0
		for l < matchMost && l < at && hist[at-1-l] == hist[n-1-l] {
			l++
		}
		if l >= matchMin {
			m.at(at, l, 0)
		}
	}
	m.matchTable[c] = int32(n)
}

func (m *model) findLines(half uint32) {
	for j, h := range m.hash[:m.used] {
		m.line[j], m.base[j] = m.counters.line(mix32(h, half))
	}
}

// predict returns the probability that the next bit is a one, from 1 to 65535.
func (m *model) predict() int {
	seen := 0
	c := &m.counters
	for j, h := range m.hash[:m.used] {
		if m.some && j != atV1 && j != atV2 {
			m.in[others+j], m.smAt[j] = 0, -1
			continue
		}
		check := (h>>8 + m.half*0x3d) & 0xff
		line, base := m.line[j], m.base[j]
		i := (m.half*5 + h>>3) & (lineSlots - 1)
		at := line*lineSlots | i
		v := c.read(line, base, i)
		if v&0xff != check {
			w := c.read(line, base, i^1)
			switch {
			case w&0xff == check:
				at, v = at^1, w
			case w>>8&0xff < v>>8&0xff: // the younger one goes
				at, v = at^1, 0x8000<<16|check
			default:
				v = noneYet | check
			}
		}
		count := v >> 8 & 0xff
		if m.census != nil && m.nth&3 == 0 {
			m.rare[j] = !m.census.common(h, m.node, j)
		}
		if m.rare[j] {
			m.slot[j], m.count[j] = noSlot, 0
			m.in[others+j], m.smAt[j] = 0, -1
			continue
		}
		if count == 0 { // none was here yet
			m.slot[j], m.count[j] = at, noneYet|check
			m.in[others+j], m.smAt[j] = 0, -1
			continue
		}
		m.slot[j], m.count[j] = at, v
		if 1 <= j && j <= 5 {
			seen++
		}
		sm := int32(j*smSlots) + countBucket[count] + int32(smSlot[v>>20])
		m.smAt[j] = sm
		m.in[others+j] = (int32(stretchMid[v>>20]) + 3*int32(stretchMid[m.Sm[sm]>>4])) >> 2
	}
	if m.census != nil && !m.census.counts { // nobody asks what it predicts
		return 1 << 15
	}
	m.in[0] = 256
	bucket := m.predictMatch()
	m.predictGuesses()
	oks := btoi(m.v1OK || m.v2OK) + 2*btoi(m.expOK) + 4*btoi(m.exact) + 8*btoi(m.doubt)
	m.wa = ((seen*4+bucket)*16 + oks) * inputs
	if m.guess[bySum] > 0 {
		m.wa = setSum * inputs
	}
	m.wb = int(m.node) * inputs
	m.wc = int(m.kind|uint32(min(m.nth, 3))) * inputs
	m.we = int(m.node) * mixes
	return m.mix()
}

// predictMatch sets what the match model says, and returns how sure it is, from 0 to 3.
func (m *model) predictMatch() int {
	m.matchIn = -1
	bit, ok := m.says(m.matchByte)
	if !ok {
		m.matchByte = 0
		m.in[1], m.in[2] = 0, 0
		return 0
	}
	n := min(m.matchLen, matchMost)
	bucket := min(n, 15)
	if n >= 16 {
		bucket = 12 + n/4 - 1
	}
	if m.missed > 0 {
		bucket = 24 + min(n, 15) + 16*btoi(m.missed > 2)
	}
	m.matchIn = (bucket*2+btoi(m.mode >= inIDOctets))&(matchSlots/2-1) + matchSlots/2*btoi(m.inLore)
	st := int32(stretch(int(m.Match[m.matchIn])))
	if bit == 0 {
		st = -st
	}
	m.in[1], m.in[2] = st, 0
	if n >= 16 {
		m.in[2] = st >> 1
	}
	return 1 + min(n/6, 2)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mix weighs the inputs three times over, each time with weights chosen by something else, and weighs the sums.
func (m *model) mix() int {
	in := m.in[:others+m.used]
	wa, wb, wc := m.MixA[m.wa:][:len(in)], m.MixB[m.wb:][:len(in)], m.MixC[m.wc:][:len(in)]
	var a, b, c int64
	for i, x := range in {
		a += int64(x) * int64(wa[i])
		b += int64(x) * int64(wb[i])
		c += int64(x) * int64(wc[i])
	}
	m.out = [mixes]int32{clamp(a >> 16), clamp(b >> 16), clamp(c >> 16)}
	we := m.MixEnd[m.we : m.we+mixes]
	var e int64
	for i, x := range m.out {
		m.mixed[i] = int32(squash(int(x)))
		e += int64(x) * int64(we[i])
	}
	st := int(clamp(e >> 16))
	sum := squash(st)
	m.sum = int32(sum)
	// The maps, interpolated between two steps.
	const width = 2*stretchMax + 1
	pos := (st + stretchMax) * (apmSteps - 1)
	step, part := pos/width, pos%width
	m.pa = int((m.node|m.kind<<6)%apmSlots)*apmSteps + step
	m.pb = int(mix32(m.c4&0xffff, m.node)>>22)*apmSteps + step
	m.pc = m.agreement()*apmSteps + step
	pc := (int(m.ApmC[m.pc])*(width-part) + int(m.ApmC[m.pc+1])*part) / width
	pa := (int(m.ApmA[m.pa])*(width-part) + int(m.ApmA[m.pa+1])*part) / width
	pb := (int(m.ApmB[m.pb])*(width-part) + int(m.ApmB[m.pb+1])*part) / width
	if part > width/2 {
		m.pa++
		m.pb++
		m.pc++
	}
	return min(max((sum+pa+pb+pc+2)>>2, 1), 65535)
}

// agreement is what the guesses and the match say of the bit, as one number.
func (m *model) agreement() int {
	a := 0
	for _, g := range m.guess {
		a *= 3
		if g > 0 {
			a += 1 + int(g>>(7-m.nth)&1)
		}
	}
	a *= 5
	if m.matchIn >= 0 {
		a += 1 + int(m.matchByte>>(7-m.nth)&1)
		if m.matchLen >= 16 {
			a += 2
		}
	}
	return a
}

func clamp(x int64) int32 { return int32(min(max(x, -stretchMax), stretchMax)) }

// update learns the bit that came after predict.
func (m *model) update(bit int) {
	target := int32(bit) * 65535
	c := &m.counters
	for j, v := range m.count[:m.used] {
		if m.some && j != atV1 && j != atV2 {
			continue
		}
		if m.slot[j] == noSlot {
			continue
		}
		count := min(v>>8&0xff, m.limit)
		p := toward(int32(v>>16), target, count)
		if count < m.limit {
			count++
		}
		c.write(m.slot[j], uint32(p)<<16|count<<8|v&0xff)
		if at := m.smAt[j]; at >= 0 {
			q := int32(m.Sm[at])
			m.Sm[at] = uint16(q + (target-q)>>6)
		}
	}
	if m.census != nil && !m.census.counts {
		m.step(bit)
		return
	}
	if m.matchIn >= 0 {
		was := int(m.matchByte>>(7-m.nth)) & 1
		q := int32(m.Match[m.matchIn])
		q += (int32(btoi(was == bit))*65535 - q) >> 6
		m.Match[m.matchIn] = uint16(min(max(q, 32), 65535-8))
	}
	for g, o := range m.guess {
		if o > 0 {
			q := int32(m.Guess[g][m.guessIn[g]])
			q += (int32(btoi(int(o>>(7-m.nth)&1) == bit))*65535 - q) >> 5
			m.Guess[g][m.guessIn[g]] = uint16(min(max(q, 32), 65535-8))
		}
	}
	y := int32(bit) << 16
	ea, eb, ec := int64(y-m.mixed[0]), int64(y-m.mixed[1]), int64(y-m.mixed[2])
	if max(ea, -ea, eb, -eb, ec, -ec) > quiet { // there is nothing to learn from what was foreseen, and it takes time
		ea, eb, ec = ea*m.rate, eb*m.rate, ec*m.rate
		in := m.in[:others+m.used]
		wa, wb, wc := m.MixA[m.wa:][:len(in)], m.MixB[m.wb:][:len(in)], m.MixC[m.wc:][:len(in)]
		for i, x := range in {
			wa[i] += int32((int64(x)*ea + 1<<19) >> 20)
			wb[i] += int32((int64(x)*eb + 1<<19) >> 20)
			wc[i] += int32((int64(x)*ec + 1<<19) >> 20)
		}
	}
	e := int64(y-m.sum) * 2
	we := m.MixEnd[m.we : m.we+mixes]
	for i, x := range m.out {
		we[i] += int32((int64(x)*e + 1<<19) >> 20)
	}
	for _, p := range [...]*uint16{&m.ApmA[m.pa], &m.ApmB[m.pb], &m.ApmC[m.pc]} {
		q := int32(*p)
		*p = uint16(q + (target-q)>>6)
	}
	m.step(bit)
}

// step goes on to the next bit.
func (m *model) step(bit int) {
	m.node, m.half, m.nth = m.node<<1|uint32(bit), m.half<<1|uint32(bit), m.nth+1
	switch m.nth {
	case 4:
		m.findLines(m.half)
		m.half = 1
	case 8:
		m.take(byte(m.node))
		m.choose()
	}
}
