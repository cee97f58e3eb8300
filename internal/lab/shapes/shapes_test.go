package shapes

import (
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var epoch = time.Unix(1_800_000_000, 0)

// TestStrangersAreMany: one seed is one application. All together they send short and long, text and binary, and repeated elements.
func TestStrangersAreMany(t *testing.T) {
	octets, names, orders := map[int]bool{}, map[string]bool{}, map[string]bool{}
	again := 0
	for seed := range uint64(300) {
		a, b := New(seed, 1<<20), New(seed, 1<<20)
		var last Message
		for i := range 20 {
			now := epoch.Add(time.Duration(i) * time.Second)
			m := a.Next(now)
			check.Same(check.Fatal(t), fmt.Sprint("seed ", seed), b.Next(now), m)
			order := ""
			for k, e := range m {
				check.True(check.Fatal(t), "from 1 octet to 64 kB", len(e.Data) >= 1 && len(e.Data) <= MaxOctets+MaxOctets/2)
				octets[int(math.Log2(float64(len(e.Data))))], names[e.Name] = true, true
				order += e.Name + ","
				if k < len(last) && reflect.DeepEqual(e, last[k]) {
					again++
				}
			}
			orders[order], last = true, m
		}
	}
	check.Equal(t, "powers of two among the sizes", len(octets), 17)
	check.True(t, "many names and orders", len(names) > 1000 && len(orders) > 300)
	check.True(t, "elements that come again", again > 1000)
}

// TestReport: five elements, of which the checksum is right, and as many octets as requested.
func TestReport(t *testing.T) {
	s := Report(7, "hq", 200)
	for i := range 500 {
		now := epoch.Add(time.Duration(i) * 600 * time.Millisecond)
		m := s.Next(now)
		var names []string
		for _, e := range m {
			names = append(names, e.Name)
		}
		must := check.Fatal(t)
		check.Same(must, "names", names, []string{"from", "seq", "ts", "crc", "body"})
		check.Equal(must, "octets", m.Octets(), 200)
		check.Equal(must, "seq", string(m[1].Data), strconv.Itoa(i+1))
		check.Equal(must, "ts", string(m[2].Data), strconv.FormatInt(now.UnixMilli(), 10))
		check.Equal(must, "crc", string(m[3].Data), fmt.Sprintf("%08x", crc32.ChecksumIEEE(m[4].Data)))
	}
}

// TestArrivals: each pattern has the requested mean, and the patterns differ.
func TestArrivals(t *testing.T) {
	const n = 20000
	var least []time.Duration
	for _, p := range Patterns {
		next, known := Arrivals(3, p, time.Second)
		check.True(check.Fatal(t), p, known)
		var all time.Duration
		var gaps []time.Duration
		for range n {
			d := next()
			all += d
			gaps = append(gaps, d)
		}
		mean := all / n
		check.True(check.In(t, p), fmt.Sprint("mean ", mean), mean > 950*time.Millisecond && mean < 1050*time.Millisecond)
		slices.Sort(gaps)
		least = append(least, gaps[n/4])
	}
	check.Equal(t, "patterns that differ", len(slices.Compact(slices.Sorted(slices.Values(least)))), len(Patterns))
	_, known := Arrivals(3, "never", time.Second)
	check.True(t, "unknown", !known)
}
