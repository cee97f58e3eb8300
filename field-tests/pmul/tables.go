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

Written by `+"`go run ./field-tests/pmul`"+` (after `+"`make build`"+`, as root, with the Debian package uftp; half an hour). Real processes send one file
from one node to four over the emulated link. The JSON of each run, including runs with 2,000 octets, is in field-tests/pmul/results/. P_Mul is that of %s.

- **p_mul**: `+"`gateway pmul`"+`, plain ACP 142. The octets include every recipient's acknowledgement.
- **norm**: libnorm 1.5.9 with the profile's rate, segments and GRTT, and at most four FLUSHes in a row. The sender does not learn which
  receivers have the file.
- **uftp** 4.10.2: `+"`uftp -R kbit/s -b 1000 -r 9:2:20 -s 10`"+` (5:2:20 on the star), closed group.
- **tcp**: a connection to each receiver, all at once, CUBIC.

*Seconds* run until the last receiver has the whole file: median (lowest-highest) of the seeds. The limit is octets x 8 / rate + mean
delay. *Octets* are IP octets until a minute after the last receiver has the file; on the star they are the mean of the four terminals.
The hf-2400 emulator draws losses per frame, so larger frames meet fewer bursts.
`, strings.Join(versions, ", "))
	for _, link := range links {
		fmt.Fprintf(&b, "\n## %s, to %d\n\n| octets | transport | all four have it | seconds | times the limit | sender's octets | receivers' octets |\n|---|---|---|---|---|---|---|\n", link, receivers)
		for _, octets := range sizes {
			for _, transport := range transports {
				row(&b, octets, transport, slices.DeleteFunc(slices.Clone(all), func(r result) bool {
					return r.Link != link || r.Octets != octets || r.Transport != transport
				}))
			}
		}
	}
	return b.String()
}

// spread is median and range; runs that did not finish count as the slowest.
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

// median is the middle of a spread.
func median(v []float64, format string) string {
	m, _, _ := strings.Cut(spread(v, format), " ")
	return m
}

const never = 1e9

func row(b *strings.Builder, octets int, transport string, runs []result) {
	var seconds, over, data, back []float64
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
		data, back = append(data, float64(r.Data)), append(back, float64(r.Return))
	}
	if len(seconds) == 0 {
		fmt.Fprintf(b, "| %d | %s | not played | | | | |\n", octets, transport)
		return
	}
	fmt.Fprintf(b, "| %d | %s | %d/%d | %s | %s | %s | %s |\n", octets, transport, whole, len(seconds), spread(seconds, "%.1f"), median(over, "%.2f"),
		spread(data, "%.0f"), median(back, "%.0f"))
}
