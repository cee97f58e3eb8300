package fit

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/link/profile"
)

// Profile is base with what was found of the link.
func (r Result) Profile(base profile.Profile, name string) profile.Profile {
	p := base
	p.Name = name
	if r.Shared {
		p.Turnaround = r.Turnaround.Round(time.Millisecond)
		both := Estimate{Packets: r.Up.Packets + r.Down.Packets, Lost: r.Up.Lost + r.Down.Lost, Runs: r.Up.Runs + r.Down.Runs,
			RateBps: r.Up.RateBps, RateKnown: true, Delay: (r.Up.Delay + r.Down.Delay) / 2, Jitter: (r.Up.Jitter + r.Down.Jitter) / 2}
		both.LossPct, _, _ = share(both.Lost, both.Packets)
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

// bursty is from when on losses are taken to come in bursts.
const bursty = 1.5

// direction is what the emulator is told. What a capture cannot tell stays as it is in base.
func (e Estimate) direction(base profile.Direction) profile.Direction {
	d := profile.Direction{RateBps: e.RateBps, Delay: e.Delay.Round(time.Millisecond), Jitter: e.Jitter.Round(time.Millisecond),
		QueueOctets: max(base.QueueOctets, e.Waited), QueueFrames: base.QueueFrames, QueueAge: base.QueueAge, Compresses: base.Compresses}
	if !e.RateKnown {
		d.RateBps = base.RateBps
	}
	if e.MeanRun >= bursty {
		d.GEr = round(1/e.MeanRun, 1e4)
		d.GEp = round(float64(e.Runs)/float64(e.Packets-e.Lost), 1e6)
		d.GEBadPct = 100
	} else {
		d.LossPct = round(e.LossPct, 100)
	}
	return d
}

func round(x, steps float64) float64 { return float64(int64(x*steps+0.5)) / steps }

// Write makes a profile's file of base's text: [gateway] and [p_mul] as they are, and the link as it was found, each number
// with where it comes from. The file is read again before it is returned.
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
				r.directions(&out, p)
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
		case section == "link" && key == "turnaround_ms" && r.Shared:
			line = number("turnaround_ms", fmt.Sprint(p.Turnaround.Milliseconds()), fmt.Sprintf("fitted: %d changes of talker", r.TurnsSeen))
		}
		out.WriteString(line)
		if section == "link" && key == "medium" && p.Reorder {
			out.WriteString(number("reorder", "true", fmt.Sprintf("fitted: %d packets overtook others", r.Up.Overtaken+r.Down.Overtaken)))
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

// directions writes the sections of both.
func (r Result) directions(out *strings.Builder, p profile.Profile) {
	if r.Shared {
		e := r.Up
		e.Packets, e.Lost, e.Runs, e.Waited = r.Up.Packets+r.Down.Packets, r.Up.Lost+r.Down.Lost, r.Up.Runs+r.Down.Runs, max(r.Up.Waited, r.Down.Waited)
		_, e.LossFrom, e.LossTo = share(e.Lost, e.Packets)
		out.WriteString("[both]                       # the channel is the same for all\n")
		e.section(out, p.Up)
		return
	}
	out.WriteString("[up]                         # from the first capture's end\n")
	r.Up.section(out, p.Up)
	out.WriteString("[down]                       # to it\n")
	r.Down.section(out, p.Down)
}

func (e Estimate) section(out *strings.Builder, d profile.Direction) {
	of := fmt.Sprintf("fitted: %d packets", e.Packets)
	put := func(key string, value any, why string) { out.WriteString(number(key, fmt.Sprint(value), why)) }
	why := of
	if e.RateTo > e.RateFrom {
		why += fmt.Sprintf(", %d to %d", e.RateFrom, e.RateTo)
	}
	if !e.RateKnown {
		why = "choice: as before; " + strings.TrimPrefix(why, "fitted: ") + ", do not tell"
	}
	put("rate_bps", d.RateBps, why)
	put("delay_ms", d.Delay.Milliseconds(), of+"; the clocks were set so that both ways take as long")
	put("jitter_ms", d.Jitter.Milliseconds(), of)
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
	lost := fmt.Sprintf("fitted: %d of %d lost, %.1f to %.1f %%", e.Lost, e.Packets, e.LossFrom, e.LossTo)
	switch {
	case d.GEp > 0:
		put("ge_good_to_bad", d.GEp, fmt.Sprintf("%s, in %d runs", lost, e.Runs))
		put("ge_bad_to_good", d.GEr, fmt.Sprintf("fitted: runs of %.1f packets", 1/d.GEr))
		put("ge_loss_bad_percent", "100.0", "choice: nothing is heard in a run")
	case d.LossPct > 0:
		put("loss_percent", d.LossPct, lost)
	}
	out.WriteString("\n")
}
