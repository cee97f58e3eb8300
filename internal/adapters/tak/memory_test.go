package tak

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// Events in the journal that cannot be read are forgotten with one warning; the gateway starts without them.
func TestUnreadableMemories(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	bad := map[string]bool{keyFar + farKey(2, 7): true, keyAt + farKey(2, 8): true, keyOurs + number4(3): true, keyOffer + "hash": true, files.KeyPull + "hash": true, keyKept + "m": true}
	memories := []site.Memory{{Key: keyRun, Value: []byte{0, 7, 1}}}
	for key := range bad {
		memories = append(memories, site.Memory{Key: key, Value: append([]byte("no words"), bytes.Repeat([]byte{0xff}, 9)...)})
	}
	f, err := New(Config{Sites: []uint16{2}}, memories)
	if err != nil {
		t.Fatal(err)
	}
	out := f.Step(now, nil)
	for _, m := range out.Remember {
		if len(m.Value) == 0 {
			delete(bad, m.Key)
		}
	}
	check.Equal(t, "memories that stay", len(bad), 0)
	check.Equal(t, "warnings", len(out.Notes), 1)
	check.Equal(t, "counted", f.Counts()["memory_unreadable"], 6)
	_, err = New(Config{Sites: []uint16{2}}, []site.Memory{{Key: "?", Value: []byte{1}}})
	check.True(t, "a memory of another format is an error", err != nil)
}

// What is kept on the map fits in the queue of a stream, so a device that connects gets all of it.
func TestKeptOctets(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	k, remember := newKept(1), func(string, []byte) {}
	e := func(i, octets int) *cot.Event {
		e := answer(now, fmt.Sprint(i), "u-d-f", time.Hour)
		e.Detail = []cot.Node{{Name: "remarks", Kids: []cot.Node{{Text: strings.Repeat("a", octets)}}}}
		return e
	}
	for i := range 100 {
		k.put(0, e(i, 100_000), remember)
	}
	check.Equal(t, "events", k.len(), 31)
	for i := range 100 {
		k.put(0, e(i, 100), remember)
	}
	check.Equal(t, "shorter events", k.len(), 100)
	for i := range 100 {
		k.drop(fmt.Sprint(i), remember)
	}
	check.Equal(t, "octets of none", k.octets, 0)
}
