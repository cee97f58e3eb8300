package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// sealOctets and frameOctets are the octets around a NORM segment in a sealed datagram: clear header and tag, and the
// longest elided DATA header (norm-seal 4).
const (
	sealOctets  = 20
	frameOctets = 8
	segmentRoom = 12 // margin for a varint that grows and for frames that ride in front
)

type problem struct{ key, text string }

// Validate reports every problem at once, so that one edit mends the file. line gives the lines of the keys by
// section and key; it may be nil for a profile that was not read from a file.
func (p Profile) Validate(file string, line map[string]int) error {
	var errs []*FieldError
	for _, pr := range p.problems() {
		key := lineKey(line, pr.key)
		errs = append(errs, &FieldError{file, line[key], key, pr.text})
	}
	return join(errs)
}

// join orders mistakes by line, those without one last, and drops repeats: both directions report a mistake in [both].
func join(list []*FieldError) error {
	slices.SortStableFunc(list, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Line, math.MaxInt), cmp.Or(b.Line, math.MaxInt)),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Problem, b.Problem))
	})
	list = slices.CompactFunc(list, func(a, b *FieldError) bool { return *a == *b })
	var errs []error
	for _, e := range list {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// lineKey is the key as the file spells it: the keys of a direction may be in [both].
func lineKey(line map[string]int, key string) string {
	section, rest, _ := strings.Cut(key, ".")
	if line[key] == 0 && (section == "up" || section == "down") && line["both."+rest] != 0 {
		return "both." + rest
	}
	return key
}

func (p Profile) problems() []problem {
	var list []problem
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			list = append(list, problem{key, fmt.Sprintf(format, args...)})
		}
	}
	check(nameForm.MatchString(p.Name) && len(p.Name) <= 40, "name", "%q is not 1 to 40 of a-z, 0-9 and single hyphens", p.Name)
	check(p.Summary != "" && len(p.Summary) <= 200, "summary", "must be 1 to 200 octets long")
	check(p.MTU >= 576 && p.MTU <= 65535, "link.mtu_octets", "%d is not from 576 to 65535", p.MTU)
	check(p.FrameOverhead <= 1000, "link.frame_overhead_octets", "%d is over 1000", p.FrameOverhead)
	if p.Shared {
		check(p.Up.RateBps == p.Down.RateBps, "down.rate_bps", "%d differs from up.rate_bps %d: a shared channel has one rate", p.Down.RateBps, p.Up.RateBps)
		check(p.Up.RateBps > 0, "up.rate_bps", "must be positive on a shared channel")
		check(p.MaxHold > 0, "link.max_hold_ms", "must be positive on a shared channel")
		check(p.Calls == Calls{}, "link.handover_ms", "only a terminal of a star has calls")
		check(p.AckDelay >= p.Turnaround, "gateway.ack_delay_ms", "%v is shorter than turnaround %v", p.AckDelay, p.Turnaround)
	} else {
		check(p.Turnaround == 0, "link.turnaround_ms", "only a shared channel turns around")
		check(p.MaxHold == 0, "link.max_hold_ms", "only a shared channel is held")
		check(p.KeyUp == 0, "link.key_up_ms", "only a shared channel is keyed")
		c := p.Calls
		check((c.HandoverEvery > 0) == (c.Handover > 0) && c.Handover*2 <= c.HandoverEvery, "link.handover_ms",
			"%v every %v: both or neither, and at most half of the time", c.Handover, c.HandoverEvery)
		check((c.DropEvery > 0) == (c.Redial > 0), "link.call_redial_ms", "goes with call_drop_every_ms")
	}
	same := p.Up == p.Down // then one report is enough
	for _, d := range []struct {
		section string
		Direction
	}{{"up.", p.Up}, {"down.", p.Down}} {
		if d.section == "down." && same {
			break
		}
		check(d.RateBps == 0 || d.RateBps >= 10, d.section+"rate_bps", "%d is neither 0 (unlimited) nor at least 10", d.RateBps)
		check(d.Delay <= 10*time.Minute, d.section+"delay_ms", "%v is over 10 minutes", d.Delay)
		check(d.Jitter <= 10*time.Minute, d.section+"jitter_ms", "%v is over 10 minutes", d.Jitter)
		check(d.QueueOctets == 0 || d.QueueOctets >= p.MTU, d.section+"queue_octets", "%d holds not even one frame of mtu_octets %d", d.QueueOctets, p.MTU)
		check(d.QueueOctets > 0 || d.RateBps == 0, d.section+"queue_octets", "must be given where the rate is limited")
		check(d.GEp <= 1, d.section+"ge_good_to_bad", "%v is no probability", d.GEp)
		check(d.GEr <= 1, d.section+"ge_bad_to_good", "%v is no probability", d.GEr)
		check(d.GEp == 0 || d.GEr > 0, d.section+"ge_bad_to_good", "must be positive: a burst would never end")
		check(d.GEp > 0 || d.GEBadPct == 0 && d.GEr == 0, d.section+"ge_good_to_bad", "must be positive: there are no bursts without it")
		check(d.QueueFrames <= 1<<20, d.section+"queue_frames", "%d is over %d", d.QueueFrames, 1<<20)
		check((d.Fades.Every > 0) == (d.Fades.Lasts > 0) && (d.Fades.Every > 0) == (d.Fades.LossPct > 0), d.section+"fade_every_ms",
			"goes with fade_lasts_ms and fade_loss_percent: all three or none")
		check(!d.Compresses || d.RateBps > 0, d.section+"compresses", "has no meaning where the rate is unlimited")
		check(d.LossRef == 0 || d.LossPct > 0, d.section+"loss_block_octets", "has no meaning without loss_percent")
	}
	check(p.DatagramOctets >= 64 && p.DatagramOctets <= p.MTU-IPUDPOctets, "gateway.datagram_octets",
		"%d is not from 64 to %d (mtu_octets less %d of IP and UDP)", p.DatagramOctets, p.MTU-IPUDPOctets, IPUDPOctets)
	check(p.LargeOctets == 0 || p.LargeOctets >= p.DatagramOctets && p.LargeOctets <= p.MTU-IPUDPOctets, "gateway.large_datagram_octets",
		"%d is neither 0 (as datagram_octets) nor from datagram_octets to %d (mtu_octets less %d of IP and UDP)", p.LargeOctets, p.MTU-IPUDPOctets, IPUDPOctets)
	check(p.UnitOctets >= 0 && p.UnitOctets <= p.MTU, "link.tariff_unit_octets", "%d is not from 0 (every octet counts) to mtu_octets", p.UnitOctets)
	check(p.UnitOctets <= 0 || p.Tariff == "" || p.Tariff == TariffOctets, "link.tariff_unit_octets", "is of no use where link.tariff is %q", p.Tariff)
	check(p.UnitOctets <= 0 || p.Filled() >= 64, "link.tariff_unit_octets", "leaves no datagram of 64 octets or more within datagram_octets")
	const around = sealOctets + frameOctets + segmentRoom
	most, of := p.DatagramOctets, "datagram_octets"
	if p.UnitOctets > 0 && p.Filled() != most {
		most, of = p.Filled(), fmt.Sprintf("the %d octets that fill units of %d", p.Filled(), p.UnitOctets)
	}
	check(p.SegmentOctets >= 16 && p.SegmentOctets <= most-around, "gateway.segment_octets",
		"%d is not from 16 to %d (%s less %d of seal and frame)", p.SegmentOctets, most-around, of, around)
	check(p.Transport == "" || p.Transport == NORM || p.Transport == PMul, "gateway.transport", "%q is neither %q nor %q", p.Transport, NORM, PMul)
	check(slices.Contains([]string{"", TariffOctets, TariffMinutes, TariffNone}, p.Tariff), "link.tariff",
		"%q is none of %q, %q, %q", p.Tariff, TariffOctets, TariffMinutes, TariffNone)
	check(p.CopyAfter == 0 || p.CopyAfter >= LeastCopyAfter && p.CopyAfter <= time.Minute, "gateway.copy_after_ms",
		"%v is neither 0 (never) nor from %v to a minute", p.CopyAfter, LeastCopyAfter)
	check(p.CopyAfter == 0 || p.Tariff == TariffMinutes || p.Tariff == TariffNone, "gateway.copy_after_ms",
		"copies cost money where the tariff is %q: link.tariff must be %q or %q", TariffOctets, TariffMinutes, TariffNone)
	check(p.Window >= 1 && p.Window <= 256, "gateway.window", "%d is not from 1 to 256", p.Window)
	check(p.AckDelay > 0, "gateway.ack_delay_ms", "must be positive")
	check(p.ProbeInterval > 0, "gateway.probe_interval_ms", "must be positive")
	check(p.GapAge > 0, "gateway.gap_age_ms", "must be positive")
	check(p.GRTT >= time.Millisecond && p.GRTT <= time.Minute, "gateway.grtt_ms", "%v is not from 1 ms to 1 minute", p.GRTT)
	check(p.Bundle <= time.Minute, "gateway.bundle_ms", "%v is over a minute", p.Bundle)
	u := p.PMulUse
	check(u.RepeatCount <= 100, "p_mul.repeat_count", "%d is over 100", u.RepeatCount)
	check(u.Messages <= 1<<20, "p_mul.messages", "%d is over %d", u.Messages, 1<<20)
	check(u.Octets <= 1<<30, "p_mul.octets", "%d is over %d", u.Octets, 1<<30)
	check(u.Incoming == 0 || u.Incoming >= 4 && u.Incoming <= 1<<16, "p_mul.incoming", "%d is not from 4 to %d", u.Incoming, 1<<16)
	check(u.IncomingOctets <= 1<<30, "p_mul.incoming_octets", "%d is over %d", u.IncomingOctets, 1<<30)
	return list
}
