package main

import (
	"testing"

	"aldis/internal/lab/trace"
)

// The peers send as many octets as published, and no message is too small for a peer's message (64 octets).
func TestSchedule(t *testing.T) {
	for _, p := range trace.BlueGame {
		for seed := range uint64(20) {
			sizes, err := schedule(options{run: p.Run, seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]int64{"mpa": p.In, "bergen": p.Out} {
				sum := int64(0)
				for _, s := range sizes[name] {
					sum += int64(s.size)
					if s.size < 64 || s.at < 0 || s.at.Seconds() > p.TotalS {
						t.Errorf("run %d, seed %d: %d octets at %v", p.Run, seed, s.size, s.at)
					}
				}
				if sum != want {
					t.Errorf("run %d, seed %d: %s sends %d octets, want %d", p.Run, seed, name, sum, want)
				}
			}
		}
	}
}
