package compact

// The work for each context of each bit, and for each weight: nearly all the time of the model is spent here. simd_amd64.s
// does the same for several at once.

// ask sets the predictions of the bit's counters, and returns a bit for each context that predicts something.
func (m *model) ask() (says uint32) {
	l, over, in, maps := &m.looked, m.counters.over, (*[lanes]int32)(m.in[others:]), &m.Sm
	first, begin, primes := m.half*0x3d, m.half*5, m.census != nil
	from, to := m.asked()
	if m.some {
		*in, l.speaks = [lanes]int32{}, [lanes]uint32{}
	}
	for j := from; j < to; j++ {
		j := j & (lanes - 1) // the mask saves a bounds check
		h := l.hash[j]
		check := uint32(uint8(h>>8 + first))
		at := l.line[j] + (begin+h>>3)&(lineSlots-1)
		v := over[at]
		if v&0xff != check {
			w := over[at^1]
			switch {
			case w&0xff == check:
				at, v = at^1, w
			case w>>8&0xff < v>>8&0xff: // the younger counter is replaced
				at, v = at^1, noneYet|check
			default:
				v = noneYet | check
			}
		}
		l.slot[j] = at
		if primes && m.isRare(j) {
			l.slot[j], v = 0, noneYet
		}
		if v>>8&0xff == 0 { // no counter was here yet
			l.count[j], l.speaks[j], in[j] = noneYet|check, 0, 0
			continue
		}
		l.count[j], l.speaks[j] = v, 1<<32-1
		says |= 1 << j
		sm := uint32(j*smSlots) + countBucket[uint8(v>>8)] + uint32(smSlot[v>>20])
		l.smAt[j] = sm
		in[j] = (int32(stretched[v>>20]) + 3*int32(stretched[maps[sm]>>4])) >> 2
	}
	return says
}

// isRare says whether a context is too rare in the corpus for a counter.
func (m *model) isRare(j int) bool {
	if m.nth&3 == 0 {
		m.rare[j] = !m.census.common(m.hash[j], m.node, j)
	}
	return m.rare[j]
}

// learn moves the counters of the bit toward its value, and the maps of the contexts that predicted something.
func (m *model) learn(target int32) {
	l, over, steps, maps := &m.looked, m.counters.over, m.steps, &m.Sm
	from, to := m.asked()
	for j := from; j < to; j++ {
		j := j & (lanes - 1)
		v := l.count[j]
		step := steps[uint8(v>>8)]
		p := int32(v >> 16)
		p += int32(int64(target-p) * int64(step>>8) >> 16)
		over[l.slot[j]] = uint32(p)<<16 | step&0xff<<8 | v&0xff
		if l.speaks[j] != 0 {
			learnSlow(&maps[l.smAt[j]], target)
		}
	}
}

// dots weighs the inputs with three rows of weights.
func dots(in, wa, wb, wc []int32) (a, b, c int64) {
	for len(in) >= 4 && len(wa) >= 4 && len(wb) >= 4 && len(wc) >= 4 {
		x0, x1, x2, x3 := int64(in[0]), int64(in[1]), int64(in[2]), int64(in[3])
		a += x0*int64(wa[0]) + x1*int64(wa[1]) + x2*int64(wa[2]) + x3*int64(wa[3])
		b += x0*int64(wb[0]) + x1*int64(wb[1]) + x2*int64(wb[2]) + x3*int64(wb[3])
		c += x0*int64(wc[0]) + x1*int64(wc[1]) + x2*int64(wc[2]) + x3*int64(wc[3])
		in, wa, wb, wc = in[4:], wa[4:], wb[4:], wc[4:]
	}
	for i, x := range in {
		a += int64(x) * int64(wa[i])
		b += int64(x) * int64(wb[i])
		c += int64(x) * int64(wc[i])
	}
	return a, b, c
}

// nudge moves three rows of weights by their errors.
func nudge(in, wa, wb, wc []int32, ea, eb, ec int64) {
	wa, wb, wc = wa[:len(in)], wb[:len(in)], wc[:len(in)]
	for i, x := range in {
		if x == 0 {
			continue
		}
		wa[i] += int32((int64(x)*ea + 1<<19) >> 20)
		wb[i] += int32((int64(x)*eb + 1<<19) >> 20)
		wc[i] += int32((int64(x)*ec + 1<<19) >> 20)
	}
}

// mixed squeezes the sums of three rows and weighs them once more; squashed gets them as probabilities.
func mixed(sums [mixes]int64, we []int32, out, squashed *[mixes]int32) int {
	var e int64
	for i, x := range sums {
		out[i] = clamp(x >> 16)
		squashed[i] = int32(squash(int(out[i])))
		e += int64(out[i]) * int64(we[i])
	}
	return int(clamp(e >> 16))
}

func clamp(x int64) int32 { return int32(min(max(x, -stretchMax), stretchMax)) }
