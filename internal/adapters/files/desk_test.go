package files_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// desk makes a Desk, and the Output of its steps.
func desk(on bool) (*files.Desk, *site.Output) {
	out := &site.Output{}
	return files.New(files.Config{On: on, Most: 1 << 20, Out: out, Count: func(string) {}, May: func(time.Time, string) bool { return true },
		Unfit: func(time.Time, site.FarMessage) {}, Brings: func(*files.File) bool { return false }, Here: func(time.Time, *files.File) {}, Dropped: func(string) {}}), out
}

// A gateway that was killed when all parts of a file were on the disk makes a file of them after its restart. If files are not
// served any more, nothing is ordered, and a part that still comes has an end.
func TestKilledBeforeFinish(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := files.File{Site: 2, Hash: strings.Repeat("ab", 32), Name: "quay.jpg", Size: 2*files.PartOctets + 10, Heard: now}
	part := func(n int) site.FarMessage { return site.FarMessage{Site: 2, Token: uint64(n + 1)} }
	data := func(n int) []byte {
		short, err := hex.DecodeString(f.Hash[:16])
		check.NoError(check.Fatal(t), err)
		return append(binary.AppendUvarint(append([]byte{0}, short...), uint64(n)), make([]byte, min(files.PartOctets, int(f.Size)-n*files.PartOctets))...)
	}
	finishes := func(out *site.Output) (n int) {
		for _, o := range out.Orders {
			if fin, ok := o.(files.Finish); ok && fin.Hash == f.Hash && fin.Name == f.Name && fin.Size == f.Size {
				n++
			}
		}
		return n
	}
	d, out := desk(true)
	d.Offer(now, f)
	d.Wanted(now, files.Wanted{Hash: f.Hash})
	memory := map[string][]byte{}
	for n := range 3 {
		d.Part(now, part(n), data(n))
		d.Kept(now, files.Kept{Token: uint64(n + 1), Hash: f.Hash, Part: n})
		for _, m := range out.Remember {
			memory[m.Key] = m.Value
		}
		again, ordered := desk(true)
		again.Restore(f)
		check.True(t, "restored", again.RestorePull(f.Hash, memory[files.KeyPull+f.Hash]))
		again.TellAll()
		check.Equal(t, "orders to finish the file", finishes(ordered), n/2)
	}
	check.Equal(t, "orders in the first run", finishes(out), 1)
	off, ordered := desk(false)
	off.Restore(f)
	check.True(t, "restored", off.RestorePull(f.Hash, memory[files.KeyPull+f.Hash]))
	off.TellAll()
	off.Part(now, part(0), data(0))
	check.Equal(t, "orders to no file room", len(ordered.Orders), 0)
	check.Equal(t, "parts that end", len(ordered.Undelivered), 1)
}
