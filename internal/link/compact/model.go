package compact

import (
	"math/bits"
	"unsafe"
)

// The model predicts the next bit from contexts. Each context looks up how often a one followed it. A mixer that learns
// weighs their predictions, and two maps correct the sum by the bits that followed such sums before (context mixing, as in
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
	setSum     = 6 * 4 * 16 // the last of the weight sets: where a checksum predicts the octet
	setNode    = 256
	setKey     = 1024
	mixes      = 3
	apmSteps   = 33
	apmSlots   = 1024
	agreements = 3 * 3 * 3 * 5 // of guesses and match on the bit
	quiet      = 96            // error of a mixer, of 65536, from which it does not learn
	matchBits  = 15
	matchMin   = 5
	matchMost  = 32 // octets of a match that count
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

// model is a predictor that learns. Coding a message changes it; both ends start from the same state.
type model struct {
	looked // looked comes first, then the mixer, so that eight elements of a field never lie in two lines of the cache
	_      [2]int32
	mixer
	scan
	tables
	counters counters
	most     int          // contexts looked at: all, or light
	steps    *[256]uint32 // by count: 256 times how far the counter goes, and the count after that (stepsOf)
	rate     int64        // of the mixers
	work     uint64       // octets that were coded, expanded or learned, ever

	octet
	census   *census     // while the model is primed: which contexts are worth a slot
	kind     uint32      // chooses weights,
	oks      int         // and so does how much of the value agreed with the expected ones
	doubt    bool        // the expected number and the earlier value differ here
	some     bool        // only the contexts of expectations count: the octet is as good as random
	rare     [lanes]bool // while the model is primed: contexts that get no counter
	ahead    ahead
	weighing weighing
	match
	guessed
}

// octet is the known part of the next octet: its first bits.
type octet struct {
	node uint32 // a one and the bits so far
	half uint32 // the same for its half
	nth  uint   // number of the next bit, from 0
}

// lanes are the contexts, and as many more as make two times eight. The additional lanes select line 0 of the counters,
// which no context uses, and predict nothing.
const lanes = 16

// looked has the counters that the contexts of the octet and of the bit select. simd_amd64.s knows the place of each field.
type looked struct {
	hash   [lanes]uint32
	line   [lanes]uint32 // the first slot of the half octet's counters
	slot   [lanes]uint32 // of the bit's counter
	count  [lanes]uint32 // the counter
	smAt   [lanes]uint32 // its entry in Sm
	smWas  [lanes]uint32 // its value before
	speaks [lanes]uint32 // all ones for contexts that predict something
	used   [lanes]uint32 // all ones for contexts that are used
}

// weighing has the arguments of foreseeWide, in the layout that simd_amd64.s expects.
type weighing struct {
	over        *uint32
	sm          *uint16
	in          *int32
	stretched   *int16
	a, b, c     *int32 // rows of weights; a is the row for no predicting context of the last octets
	end         *int32
	out, mixed  *[mixes]int32
	squashTable *[2*stretchMax + 1]uint16
	eachSeen    int // octets from one row of the first weights to the row for one more predicting context
}

// mixer weighs the inputs three times over, each time with weights chosen by something else, and weighs the sums.
type mixer struct {
	in    [others + lanes]int32
	out   [mixes]int32
	mixed [mixes]int32
	sum   int32 // the mixers' prediction, as probability
	// The weights and map entries of this bit.
	wa, wb, wc, we, pa, pb, pc int
	part                       int // how far the sum is beyond the step of the maps, of apmWidth
}

// rates[n] is how far, of 65536, a probability moves toward a bit after n bits.
var rates = makeRates()

func makeRates() (r [256]int32) {
	for n := range r {
		r[n] = int32(65536 * 2 / (2*n + 3))
	}
	return r
}

// stepsOf is for counts up to a limit, from which on old and new bits weigh alike.
func stepsOf(limit int) *[256]uint32 {
	t := new([256]uint32)
	for n := range t {
		t[n] = uint32(rates[min(n, limit)])<<8 | uint32(min(n+1, limit))
	}
	return t
}

// Counts are limited to few when messages are coded, so new bits weigh more than when the model is primed.
var (
	stepsCoding  = stepsOf(12)
	stepsPriming = stepsOf(255)
)

// codingRate is how fast the mixers learn when messages are coded. A message is short, so good weights have to be found soon.
const codingRate = 100

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

func makeCountBucket() (b [256]uint32) {
	for n := range b {
		switch {
		case n <= 5:
			b[n] = uint32(max(n-1, 0)) * 32
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
	m := &model{most: contexts, match: match{matchTable: make([]int32, 1<<matchBits)}}
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

// copyModel copies the state of one model to another, into the memory that the other has. The other's work stays.
func copyModel(to, from *model) {
	work, counters, table, memory := to.work, to.counters, to.matchTable, memoryOf(&to.scan)
	*to = *from
	to.work = work
	to.counters.become(&from.counters, counters)
	to.matchTable = append(table[:0], from.matchTable...)
	memory.take(&to.scan)
	to.weighing = weighingOf(to)
}

// weighingOf refers to a model.
func weighingOf(m *model) weighing {
	return weighing{sm: &m.Sm[0], in: &m.in[0], stretched: &stretched[0], out: &m.out, mixed: &m.mixed, squashTable: squashTable}
}

// forget empties the history; learned counters and weights stay.
func (m *model) forget() {
	m.weighing = weighingOf(m)
	m.scan.reset()
	clear(m.matchTable)
	m.match.at(0, 0, 0)
}

// begin starts a message after those in the history.
func (m *model) begin(tokens bool) {
	last := m.start
	m.alone, m.ahead.octet = m.most == light, 0
	m.scan.begin(tokens)
	m.match.at(0, 0, 0)
	if last < m.start { // a message like the last one is likely
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
	var h [contexts]uint32
	switch {
	case s.mode == inIDOctets:
		h = [contexts]uint32{atV1: mix32(v1, kind), atV2: mix32(v2, kind)}
	case s.octets:
		n := uint32(min(len(s.hist)-s.begins, 255))
		kind, key = inFrame, mix32(s.head, n)
		h = [contexts]uint32{
			mix32(s.word, uint32(s.sep)),
			s.c4 & 0xff,
			s.c4 & 0xffff,
			s.c4 & 0xffffff,
			s.c4,
			mix32(s.c4, s.c8&0xffff),
			key,
			mix32(key, s.c4&0xff),
			mix32(v1<<10|exp, key),
			mix32(v2|uint32(min(i, 255))<<16, s.key),
			s.c4 >> 8 & 0xffff,
			mix32(s.c4>>24, s.c8>>24),
			mix32(key, s.c4&0xffff),
			s.c4&0xf0f0f0 | 1<<31,
		}
	case s.mode == inDER:
		h = [contexts]uint32{0: uint32(min(s.at, 400)) | kind<<16, 1: s.c4 & 0xff, 2: s.c4 & 0xffff, 3: s.c4 & 0xffffff, 4: s.c4,
			atV1: mix32(v1, kind), atV2: mix32(v2, kind)}
	default:
		h = [contexts]uint32{
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
	for j, h := range h {
		m.hash[j] = mix32(h, uint32(j)*0x3779fb9+kind<<28+1)
	}
	m.firstLines()
	m.guesses(v1, exp, next, i)
	m.kind = mix32(key, kind+uint32(btoi(m.some))<<8) & (setKey/4 - 1) << 2
	m.matchByte = 0
	if m.matchAt > 0 && !(m.some && m.matchLen < 8) { // chance hits mean nothing in noise
		m.matchByte = uint32(m.next(s.hist)) | 0x100
		m.weighMatch()
	}
	m.oks = (btoi(m.v1OK || m.v2OK) + 2*btoi(m.expOK) + 4*btoi(m.exact) + 8*btoi(m.doubt)) * inputs
}

// matchHash is that of the last octets, by which a match is found.
func (m *model) matchHash() uint32 { return mix32(m.c4, m.c8&0xff) }

// push adds the octet c to the history.
func (m *model) push(c byte) {
	m.put(c)
	m.match.follow(m.hist, m.matchHash())
	if m.matchAt == 0 && m.lore != nil && len(m.hist)-m.start >= loreMin {
		if at, n := m.lore.recall(m.hist[m.start:], loreHash(m.c4, m.c8)); at > 0 {
			m.match.at(at, n, 0)
			m.inLore = true
		}
	}
}

// lines are the lines that the contexts select in half an octet: where they begin among the lines in use, and where in the
// base.
type lines struct {
	own, base [lanes]uint32
}

// ahead has the lines for the second half of an octet that is known before it is coded. Meanwhile they are fetched into the
// cache.
type ahead struct {
	octet   uint32 // the next octet, with a leading one; 0: it is not known
	half    uint32 // the half whose lines these are; 0: none
	lines   lines
	missing uint32
}

// knows sets the octet that follows the one coded now.
func (a *ahead) knows(rest []byte) {
	a.octet = 0
	if len(rest) > 0 {
		a.octet = 0x100 | uint32(rest[0])
	}
}

// firstLines finds the counters of the first half of an octet.
func (m *model) firstLines() {
	from, to := m.asked()
	m.used = masks[from][to]
	m.ahead.half = 0
	if wide {
		var l lines
		missing := m.seek(&l, 0)
		if o := m.ahead.octet; o > 0 {
			m.ahead.half = o >> 4
			m.ahead.missing = m.seek(&m.ahead.lines, m.ahead.half)
		}
		m.bring(&l, missing)
		if m.ahead.half > 0 {
			fetchWide(&m.ahead.lines, &m.counters.over[0])
		}
		return
	}
	m.findLines(0)
}

// secondLines finds the counters of the second half.
func (m *model) secondLines() {
	switch {
	case m.half == m.ahead.half:
		m.bring(&m.ahead.lines, m.ahead.missing)
	case wide:
		var l lines
		m.bring(&l, m.seek(&l, m.half))
	default:
		m.findLines(m.half)
	}
}

// seek finds lines; missing has a bit for each that is not in use yet.
func (m *model) seek(l *lines, half uint32) (missing uint32) {
	return linesWide(&m.looked, m.counters.at, l, unsafe.StringData(m.counters.base), half, m.counters.gen)
}

// bring makes lines the current ones of this half octet; missing has a bit for each line that was not in use when sought.
func (m *model) bring(l *lines, missing uint32) {
	m.line = l.own
	if missing > 0 {
		c := &m.counters
		c.room()
		c.used = bringWide(missing, &m.line, &l.base, c.at, &c.over[0], unsafe.StringData(c.base), &states[0], c.used, c.gen)
	}
}

// findLines finds the lines one by one.
func (m *model) findLines(half uint32) {
	from, to := m.asked()
	m.line = [lanes]uint32{}
	for j := from; j < to; j++ {
		m.line[j] = m.counters.line(mix32(m.hash[j], half))
	}
}

// masks select the contexts in use, by the first and the one after the last.
var masks = func() (t [contexts + 1][contexts + 1][lanes]uint32) {
	for from := range t {
		for to := range t[from] {
			for j := from; j < to; j++ {
				t[from][to][j] = 1<<32 - 1
			}
		}
	}
	return t
}()

// asked returns the range of contexts that are used for this octet.
func (m *model) asked() (from, to int) {
	if m.some {
		return atV1, atV2 + 1
	}
	return 0, m.most
}

// predict returns the probability that the next bit is a one, from 1 to 65535.
func (m *model) predict() int {
	if !m.foresee() {
		return 1 << 15
	}
	return m.refined()
}

// foresee sets the predictions for the next bit, and weighs them. It returns false while the model is primed and nobody
// needs a probability.
func (m *model) foresee() bool {
	var says uint32
	if !wide || m.census != nil {
		says = m.ask()
		if m.census != nil && !m.census.counts {
			return false
		}
	}
	m.in[0] = 256
	m.predictGuesses()
	m.wa = m.predictMatch()*16*inputs + m.oks
	m.wb = int(m.node) * inputs
	m.wc = int(m.kind|uint32(min(m.nth, 3))) * inputs
	m.we = int(m.node) * mixes
	eachSeen := 4 * 16 * inputs
	if m.guess[bySum] > 0 {
		m.wa, eachSeen = setSum*inputs, 0
	}
	var st, seen int
	if wide && m.census == nil {
		w := &m.weighing
		w.over, w.a, w.b, w.c, w.end = &m.counters.over[0], &m.MixA[m.wa], &m.MixB[m.wb], &m.MixC[m.wc], &m.MixEnd[m.we]
		w.eachSeen = 4 * eachSeen
		st, seen = foreseeWide(&m.looked, w, m.half)
		m.wa += seen * eachSeen
	} else {
		m.wa += bits.OnesCount8(uint8(says&lastOctets)) * eachSeen
		a, b, c := dots(m.in[:others+m.most], m.MixA[m.wa:], m.MixB[m.wb:], m.MixC[m.wc:])
		st = mixed([mixes]int64{a, b, c}, m.MixEnd[m.we:], &m.out, &m.mixed)
	}
	m.sum = int32(squash(st))
	m.steer(st)
	return true
}

// steer finds the entries of the maps for a sum.
func (m *model) steer(st int) {
	pos := uint32(st+stretchMax) * (apmSteps - 1)
	step := int(pos / apmWidth)
	m.part = int(pos % apmWidth)
	m.pa = int((m.node|m.kind<<6)%apmSlots)*apmSteps + step
	m.pb = int(mix32(m.c4&0xffff, m.node)>>22)*apmSteps + step
	m.pc = m.agreed*apmSteps + step
}

// lastOctets has a bit for each context of the last octets.
const lastOctets = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

const apmWidth = 2*stretchMax + 1

// refined is the sum, corrected by the maps: each is interpolated between two steps.
func (m *model) refined() int {
	part := uint32(m.part)
	left := apmWidth - part
	pc := (uint32(m.ApmC[m.pc])*left + uint32(m.ApmC[m.pc+1])*part) / apmWidth
	pa := (uint32(m.ApmA[m.pa])*left + uint32(m.ApmA[m.pa+1])*part) / apmWidth
	pb := (uint32(m.ApmB[m.pb])*left + uint32(m.ApmB[m.pb+1])*part) / apmWidth
	return min(max(int(uint32(m.sum)+pa+pb+pc+2)>>2, 1), 65535)
}

// update learns the bit that followed predict.
func (m *model) update(bit int) {
	target := int32(bit) * 65535
	if wide && m.census == nil {
		learnWide(&m.looked, &m.counters.over[0], &m.Sm[0], m.steps, bit)
	} else {
		m.learn(target)
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
		if !m.guessing {
			break
		}
		if o > 0 {
			q := int32(m.Guess[g][m.guessIn[g]])
			q += (int32(btoi(int(o>>(7-m.nth)&1) == bit))*65535 - q) >> 5
			m.Guess[g][m.guessIn[g]] = uint16(min(max(q, 32), 65535-8))
		}
	}
	y := int32(bit) << 16
	ea, eb, ec := int64(y-m.mixed[0]), int64(y-m.mixed[1]), int64(y-m.mixed[2])
	if max(ea, -ea, eb, -eb, ec, -ec) > quiet { // nothing can be learned from a good prediction, and it takes time
		ea, eb, ec = ea*m.rate, eb*m.rate, ec*m.rate
		if wide {
			nudgeWide(&m.in[0], &m.MixA[m.wa], &m.MixB[m.wb], &m.MixC[m.wc], ea, eb, ec)
		} else {
			nudge(m.in[:others+m.most], m.MixA[m.wa:], m.MixB[m.wb:], m.MixC[m.wc:], ea, eb, ec)
		}
	}
	e := int64(y-m.sum) * 2
	we := m.MixEnd[m.we : m.we+mixes]
	_ = we[mixes-1]
	we[0] += int32((int64(m.out[0])*e + 1<<19) >> 20)
	we[1] += int32((int64(m.out[1])*e + 1<<19) >> 20)
	we[2] += int32((int64(m.out[2])*e + 1<<19) >> 20)
	near := btoi(m.part > apmWidth/2) // the nearer step learns
	learnSlow(&m.ApmA[m.pa+near], target)
	learnSlow(&m.ApmB[m.pb+near], target)
	learnSlow(&m.ApmC[m.pc+near], target)
	m.step(bit)
}

func learnSlow(p *uint16, target int32) {
	q := int32(*p)
	*p = uint16(q + (target-q)>>6)
}

// step goes on to the next bit.
func (m *model) step(bit int) {
	m.node, m.half, m.nth = m.node<<1|uint32(bit), m.half<<1|uint32(bit), m.nth+1
	switch m.nth {
	case 4:
		m.secondLines()
		m.half = 1
	case 8:
		m.push(byte(m.node))
		m.choose()
	}
}
