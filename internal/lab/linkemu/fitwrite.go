package linkemu

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/link/profile"
)

// Profile is base with the findings about the link.
func (r Result) Profile(base profile.Profile, name string) profile.Profile {
	p := base
	p.Name = name
	if r.Shared {
		if r.TurnKnown {
			p.Turnaround = r.Turnaround.Round(time.Millisecond)
		}
		both := Estimate{Few: r.Up.Few, Packets: r.Up.Packets + r.Down.Packets, Lost: r.Up.Lost + r.Down.Lost, Runs: r.Up.Runs + r.Down.Runs,
			RateBps: r.Up.RateBps, RateKnown: true, Delay: (r.Up.Delay + r.Down.Delay) / 2, Jitter: (r.Up.Jitter + r.Down.Jitter) / 2}
		both.LossPct, both.LossFrom, both.LossTo = share(both.Lost, both.Packets)
		if both.Runs > 0 {
			both.MeanRun = float64(both.Lost) / float64(both.Runs)
		}
		p.Up = both.direction(base.Up)
		p.Down = p.Up
	} else {
		p.Up, p.Down = r.Up.direction(base.Up), r.Down.direction(base.Down)
	}
	p.Reorder = r.Up.Overtaken+r.Down.Overtaken > 0
	return p
}

// bursty is the mean run of losses from which on they are taken to come in bursts.
const bursty = 1.5

// direction is the emulator's settings. Those that a capture cannot tell stay as in base.
func (e Estimate) direction(base profile.Direction) profile.Direction {
	d := profile.Direction{RateBps: e.RateBps, Delay: e.Delay.Round(time.Millisecond), Jitter: e.Jitter.Round(time.Millisecond),
		QueueOctets: max(base.QueueOctets, e.Waited), QueueFrames: base.QueueFrames, QueueAge: base.QueueAge, Compresses: base.Compresses}
	if !e.tellsRate(base) {
		d.RateBps = base.RateBps
	}
	if !e.tellsLoss(base) {
		d.LossPct, d.LossRef, d.GEp, d.GEr, d.GEBadPct, d.GEGoodPct, d.Fades = base.LossPct, base.LossRef, base.GEp, base.GEr, base.GEBadPct, base.GEGoodPct, base.Fades
	} else if e.MeanRun >= bursty {
		d.GEr = round(1/e.MeanRun, 1e4)
		d.GEp = round(float64(e.Runs)/float64(e.Packets-e.Lost), 1e6)
		d.GEBadPct = 100
	} else {
		d.LossPct = round(e.LossPct, 100)
	}
	return d
}

// tellsRate says whether the packets tell the rate; few packets must also contradict the rate of base.
func (e Estimate) tellsRate(base profile.Direction) bool {
	return e.RateKnown || e.Few && (base.RateBps < e.RateFrom || base.RateBps > e.RateTo)
}

// tellsLoss says whether the packets tell the loss: few packets do if the loss of base is unlikely.
func (e Estimate) tellsLoss(base profile.Direction) bool {
	mean := base.MeanLossPct()
	return !e.Few || mean < e.LossFrom || mean > e.LossTo
}

func round(x, steps float64) float64 { return float64(int64(x*steps+0.5)) / steps }

// Write makes the file of a profile from the text of base: it keeps [gateway] and [p_mul], and writes the link as it was found, each
// number with its origin. It reads the file again before it returns it.
func (r Result) Write(source []byte, base profile.Profile, name string, head []string) ([]byte, error) {
	p := r.Profile(base, name)
	var out strings.Builder
	for _, line := range head {
		out.WriteString(strings.TrimSpace("# "+line) + "\n")
	}
	section, written := "", false
	for line := range strings.Lines(string(source)) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			section = strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t")
			if isDirection(section) && !written {
				r.directions(&out, p, base)
				written = true
			}
		}
		key, _, _ := strings.Cut(trimmed, "=")
		key = strings.TrimSpace(key)
		switch {
		case isDirection(section), section == "" && strings.HasPrefix(trimmed, "#"):
			continue
		case section == "" && key == "name":
			line = fmt.Sprintf("name = %q\n", name)
		case section == "link" && key == "reorder":
			continue
		case section == "link" && key == "turnaround_ms" && r.Shared && !r.TurnKnown:
			line = number("turnaround_ms", fmt.Sprint(p.Turnaround.Milliseconds()), "choice: as before; it does not show, for the delay is as long")
		case section == "link" && key == "turnaround_ms" && r.Shared:
			line = number("turnaround_ms", fmt.Sprint(p.Turnaround.Milliseconds()), fmt.Sprintf(r.word()+": %d changes of talker", r.TurnsSeen))
		}
		out.WriteString(line)
		if section == "link" && key == "medium" && p.Reorder {
			out.WriteString(number("reorder", "true", fmt.Sprintf(r.word()+": %d packets overtook others", r.Up.Overtaken+r.Down.Overtaken)))
		}
	}
	text := []byte(out.String())
	got, err := profile.Decode(name+".toml", text)
	if err != nil {
		return nil, err
	}
	if got != p {
		return nil, fmt.Errorf("fit: the text of profile %s cannot be rewritten: write its keys on lines of their own, as gateway profiles %s prints them", base.Name, base.Name)
	}
	return text, nil
}

func isDirection(section string) bool {
	return section == "both" || section == "up" || section == "down"
}

func number(key, value, why string) string {
	return fmt.Sprintf("%-28s # %s\n", key+" = "+value, why)
}

// word says how a number was found.
func (r Result) word() string {
	if r.probed {
		return "probed"
	}
	return "fitted"
}

// directions writes the sections of both directions.
func (r Result) directions(out *strings.Builder, p, base profile.Profile) {
	if r.Shared {
		e := r.Up
		e.Packets, e.Lost, e.Runs, e.Waited = r.Up.Packets+r.Down.Packets, r.Up.Lost+r.Down.Lost, r.Up.Runs+r.Down.Runs, max(r.Up.Waited, r.Down.Waited)
		_, e.LossFrom, e.LossTo = share(e.Lost, e.Packets)
		out.WriteString("[both]                       # the channel is the same for all\n")
		e.section(out, p.Up, base.Up, r.word())
		return
	}
	first := "the first capture's end"
	if r.probed {
		first = "the terminal"
	}
	out.WriteString("[up]                         # from " + first + "\n")
	r.Up.section(out, p.Up, base.Up, r.word())
	out.WriteString("[down]                       # to it\n")
	r.Down.section(out, p.Down, base.Down, r.word())
}

func (e Estimate) section(out *strings.Builder, d, base profile.Direction, word string) {
	of := fmt.Sprintf("%s: %d packets", word, e.Packets)
	put := func(key string, value any, why string) { out.WriteString(number(key, fmt.Sprint(value), why)) }
	why := of
	if e.RateTo > e.RateFrom {
		why += fmt.Sprintf(", %d to %d", e.RateFrom, e.RateTo)
	}
	if !e.tellsRate(base) {
		why = "choice: as before; " + strings.TrimPrefix(why, word+": ") + ", do not tell"
	}
	put("rate_bps", d.RateBps, why)
	put("delay_ms", d.Delay.Milliseconds(), of+"; the clocks were set so that both ways take as long")
	why = of
	if e.JitterTo > e.JitterFrom {
		why += fmt.Sprintf(", %d to %d", e.JitterFrom.Milliseconds(), e.JitterTo.Milliseconds())
	}
	put("jitter_ms", d.Jitter.Milliseconds(), why)
	put("queue_octets", d.QueueOctets, fmt.Sprintf("choice: as before; %d octets waited and arrived", e.Waited))
	if d.QueueFrames > 0 {
		put("queue_frames", d.QueueFrames, "choice: as before")
	}
	if d.QueueAge > 0 {
		put("queue_age_ms", d.QueueAge.Milliseconds(), "choice: as before")
	}
	if d.Compresses {
		put("compresses", true, "choice: as before")
	}
	lost := fmt.Sprintf("%s: %d of %d lost, %.1f to %.1f %%", word, e.Lost, e.Packets, e.LossFrom, e.LossTo)
	switch {
	case !e.tellsLoss(base):
		e.asBefore(put, d)
	case d.GEp > 0:
		put("ge_good_to_bad", d.GEp, fmt.Sprintf("%s, in %d runs", lost, e.Runs))
		put("ge_bad_to_good", d.GEr, fmt.Sprintf("%s: runs of %.1f packets", word, 1/d.GEr))
		put("ge_loss_bad_percent", "100.0", "choice: nothing is heard in a run")
	case d.LossPct > 0:
		put("loss_percent", d.LossPct, lost)
	}
	out.WriteString("\n")
}

// asBefore writes the losses of base, because the packets do not contradict them.
func (e Estimate) asBefore(put func(key string, value any, why string), d profile.Direction) {
	why := fmt.Sprintf("choice: as before; %d of %d lost, %.1f to %.1f %%, do not tell", e.Lost, e.Packets, e.LossFrom, e.LossTo)
	for _, one := range []struct {
		key   string
		value float64
		whole bool
	}{{"loss_percent", d.LossPct, false}, {"loss_block_octets", float64(d.LossRef), true}, {"ge_good_to_bad", d.GEp, false}, {"ge_bad_to_good", d.GEr, false},
		{"ge_loss_bad_percent", d.GEBadPct, false}, {"ge_loss_good_percent", d.GEGoodPct, false}, {"fade_every_ms", float64(d.Fades.Every.Milliseconds()), true},
		{"fade_lasts_ms", float64(d.Fades.Lasts.Milliseconds()), true}, {"fade_loss_percent", d.Fades.LossPct, false}} {
		switch {
		case one.value == 0:
			continue
		case one.whole:
			put(one.key, int(one.value), why)
		default:
			put(one.key, one.value, why)
		}
	}
}
