package replay

import (
	"slices"
	"time"

	"aldis/internal/link/profile"
)

// knob is a value of a profile that may be changed, by its key in the file's [gateway] section.
type knob struct {
	Key   string
	get   func(*profile.Profile) int
	set   func(*profile.Profile, int)
	steps []float64 // factors to try
	among []int     // or values to try
}

// segmentRoom is the difference between a datagram and a segment in the shipped profiles: seal, frame header and riders.
const segmentRoom = 60

func millis(field func(*profile.Profile) *time.Duration) (get func(*profile.Profile) int, set func(*profile.Profile, int)) {
	return func(p *profile.Profile) int { return int(*field(p) / time.Millisecond) },
		func(p *profile.Profile, v int) { *field(p) = time.Duration(v) * time.Millisecond }
}

// knobs are the knobs of every profile. Transport is none of them: the choice depends on who may transmit.
func knobs() []knob {
	timer := func(key string, field func(*profile.Profile) *time.Duration, steps ...float64) knob {
		get, set := millis(field)
		return knob{Key: key, get: get, set: set, steps: steps}
	}
	bundle := timer("bundle_ms", func(p *profile.Profile) *time.Duration { return &p.Bundle })
	bundle.among = []int{0, 30, 100, 300, 1000, 3000}
	return []knob{
		{Key: "datagram_octets", get: func(p *profile.Profile) int { return p.DatagramOctets }, among: []int{256, 360, 508, 700, 900, 1084, 1400},
			set: func(p *profile.Profile, v int) { p.DatagramOctets, p.SegmentOctets = v, v-segmentRoom }},
		{Key: "segment_octets", get: func(p *profile.Profile) int { return p.SegmentOctets }, set: func(p *profile.Profile, v int) { p.SegmentOctets = v },
			steps: []float64{0.5, 2}},
		timer("ack_delay_ms", func(p *profile.Profile) *time.Duration { return &p.AckDelay }, 0.5, 0.75, 1.35, 2, 4),
		bundle,
		timer("gap_age_ms", func(p *profile.Profile) *time.Duration { return &p.GapAge }, 0.6, 1.6),
		timer("probe_interval_ms", func(p *profile.Profile) *time.Duration { return &p.ProbeInterval }, 0.5, 2),
		timer("grtt_ms", func(p *profile.Profile) *time.Duration { return &p.GRTT }, 0.6, 1.6),
		{Key: "window", get: func(p *profile.Profile) int { return p.Window }, set: func(p *profile.Profile, v int) { p.Window = v }, steps: []float64{0.5, 2}},
	}
}

// candidates are the values to try for a profile, in ascending order, without those that the profile's checks refuse.
func (k *knob) candidates(p profile.Profile, wide bool) []int {
	now := k.get(&p)
	var values []int
	for _, f := range k.steps {
		if v := nice(float64(now) * f); wide || f >= 0.5 && f <= 2 {
			values = append(values, v)
		}
	}
	for i, v := range k.among {
		if wide || near(k.among, now, i) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	return slices.DeleteFunc(values, func(v int) bool {
		q := p
		k.set(&q, v)
		return v == now || q.Validate("", nil) != nil
	})
}

// near says whether the i-th of ascending values is within two places of v.
func near(values []int, v, i int) bool {
	at, found := slices.BinarySearch(values, v)
	if found {
		return i >= at-2 && i <= at+2
	}
	return i >= at-2 && i <= at+1
}

// nice rounds a value to two digits, because a search cannot justify more.
func nice(v float64) int {
	n, unit := int(v+0.5), 1
	for n >= 100*unit {
		unit *= 10
	}
	return max(1, (n+unit/2)/unit*unit)
}
