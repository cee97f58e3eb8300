package main

import (
	"fmt"
	"slices"
	"strings"
)

// tables writes docs/transports.md.
func tables(all []result) string {
	var b strings.Builder
	var versions []string // of the rows that depend on it
	for _, r := range all {
		if r.err == nil && r.Transport == "p_mul" && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	fmt.Fprintf(&b, `# P_Mul beside UFTP, NORM and TCP

Written by `+"`go run ./field-tests/pmul`"+` (after `+"`make build`"+`, as root, with the Debian package uftp; about half an hour), never
by hand. One file from one node to four over the emulated link, by real processes in network namespaces. The JSON of each
run is in field-tests/pmul/results/. Group membership is static: no IGMP goes on the air. P_Mul is that of %s.

- **p_mul**: `+"`gateway pmul`"+`, ACP 142 byte by byte; every recipient's acknowledgement is in the octets.
- **norm**: libnorm 1.5.9 in our child process, its packets as they are over UDP multicast: fixed rate, segments and GRTT
  of the profile, unicast NACK, no probing, at most four FLUSHes in a row. Nobody knows who has the file.
- **uftp** 4.10.2: `+"`uftp -R kbit/s -b 1000 -r 9:2:20 -s 10`"+` (5:2:20 on the star), closed group.
- **tcp**: a connection to each receiver, all at once, CUBIC.

Seconds count from handing the file over until the last receiver has the whole file: median over the seeds (lowest-highest).
The limit is octets x 8 / rate + mean delay: one copy on the air, no header, no loss, no change of talker. Octets are IP octets
on the air from handing the file over until a minute after the last receiver has it. On the star they are the mean of the four
terminals, each of which has a link of its own. hf-2400 loses per frame, so a transport with larger frames meets fewer bursts.
`, strings.Join(versions, ", "))
	for _, link := range links {
		for _, octets := range sizes {
			fmt.Fprintf(&b, "\n## %s, %d octets to %d\n\n", link, octets, receivers)
			fmt.Fprint(&b, "| | runs | all four have it | seconds at the last | over the limit | sender's octets | receivers' octets | frames lost |\n|---|---|---|---|---|---|---|---|\n")
			for _, transport := range transports {
				row(&b, transport, slices.DeleteFunc(slices.Clone(all), func(r result) bool {
					return r.Link != link || r.Octets != octets || r.Transport != transport
				}))
			}
		}
	}
	fmt.Fprintf(&b, "\n## 20,000 octets to four by P_Mul, seed by seed\n\n| link | seed | seconds at the last | over the limit | all known s | sender's octets | receivers' octets | frames lost |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		if r.Transport == "p_mul" && r.Octets == 20000 && r.err == nil {
			known := "later" // than the run was watched
			if r.Known > 0 {
				known = fmt.Sprintf("%.1f", r.Known)
			}
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.2f | %s | %d | %d | %d |\n", r.Link, r.Seed, r.Seconds, r.Seconds/r.Limit, known, r.Data, r.Return, r.Lost)
		}
	}
	return b.String()
}

// spread is median and range; runs that did not finish count as later than all.
func spread(v []float64, format string) string {
	if len(v) == 0 {
		return "-"
	}
	slices.Sort(v)
	one := func(x float64) string {
		if x == never {
			return "never"
		}
		return fmt.Sprintf(format, x)
	}
	if m, low, high := one(v[(len(v)-1)/2]), one(v[0]), one(v[len(v)-1]); low != high {
		return fmt.Sprintf("%s (%s-%s)", m, low, high)
	}
	return one(v[0])
}

const never = 1e9

func row(b *strings.Builder, transport string, runs []result) {
	var seconds, over, data, back, lost []float64
	whole := 0
	for _, r := range runs {
		if r.err != nil {
			continue
		}
		s := r.Seconds
		if r.Complete == receivers {
			whole++
		} else {
			s = never
		}
		seconds, over = append(seconds, s), append(over, s)
		if s != never {
			over[len(over)-1] = s / r.Limit
		}
		data, back, lost = append(data, float64(r.Data)), append(back, float64(r.Return)), append(lost, float64(r.Lost))
	}
	if len(seconds) == 0 {
		fmt.Fprintf(b, "| %s | not played | | | | | | |\n", transport)
		return
	}
	fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s | %s |\n", transport, len(seconds), whole, spread(seconds, "%.1f"), spread(over, "%.2f"),
		spread(data, "%.0f"), spread(back, "%.0f"), spread(lost, "%.0f"))
}
