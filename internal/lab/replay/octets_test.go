package replay

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"os"
	"strconv"
	"testing"

	"aldis/internal/lab/trace"
)

var write = flag.Bool("write", false, "write testdata/octets.csv anew, with all 45 replays")

const octetsFile = "testdata/octets.csv"

// The octets on the link of the five runs of 2004, replayed with three seeds on three links. A change of the design must leave them
// as they are; a change of the traffic writes the file anew (go test -tags long -run TestOctets ./internal/lab/replay -args -write) and
// is listed in CHANGELOG.md. Without the tag long each run is played with one seed.
func TestOctetsOnTheLink(t *testing.T) {
	text, err := os.ReadFile(octetsFile)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if *write && !allOctets {
		t.Fatal("all replays are needed to write the file: -tags long")
	}
	for _, row := range rows[1:] {
		run, _ := strconv.Atoi(row[0])
		seed, _ := strconv.ParseUint(row[1], 10, 64)
		if !allOctets && seed != uint64(run%3+1) {
			continue
		}
		t.Run(row[2]+"/"+row[0]+"/"+row[1], func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if _, err := trace.Synth(&b, run, seed, trace.ContentXML); err != nil {
				t.Fatal(err)
			}
			f, err := trace.ReadFile(&b)
			if err != nil {
				t.Fatal(err)
			}
			res, err := Run(context.Background(), f, Options{Profile: load(t, row[2]), Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range []int64{res.LinkBytes.Up, res.LinkBytes.Down, int64(res.LinkPackets.Up), int64(res.LinkPackets.Down)} {
				if text := strconv.FormatInt(got, 10); *write {
					row[3+i] = text
				} else if text != row[3+i] {
					t.Errorf("%s: %s, want %s", rows[0][3+i], text, row[3+i])
				}
			}
		})
	}
	t.Cleanup(func() { // after the parallel ones
		if !*write {
			return
		}
		var b bytes.Buffer
		if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(octetsFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}
