package tak

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/tak/code"
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

// The journal holds as many units as the table, and a site whose numbers run out begins a new table at its next start.
func TestUnitsAreForgotten(t *testing.T) {
	now, cfg := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC), Config{Sites: []uint16{2}, Units: 2}
	journal := map[string][]byte{}
	keep := func(out site.Output) {
		for _, m := range out.Remember {
			if journal[m.Key] = m.Value; len(m.Value) == 0 {
				delete(journal, m.Key)
			}
		}
	}
	units := func() (list []string) {
		for _, key := range slices.Sorted(maps.Keys(journal)) {
			if key[:1] == keyUnit {
				list = append(list, key[1:])
			}
		}
		return list
	}
	start := func() *Adapter {
		var memories []site.Memory
		for _, key := range slices.Sorted(maps.Keys(journal)) {
			memories = append(memories, site.Memory{Key: key, Value: journal[key]})
		}
		f, err := New(cfg, memories)
		check.Equal(t, "error", err, nil)
		keep(f.Step(now, Opened{Conn: 1, Remote: "10.0.0.1:5000"}))
		return f
	}
	f := start()
	say := func(uid string) {
		e := answer(now, uid, "a-f-G", time.Minute)
		e.How = "m-g"
		keep(f.Step(now, Heard{Conn: 1, Frame: e.AppendXML(nil)}))
		now = now.Add(2 * time.Minute)
		keep(f.Step(now, nil))
	}
	for i := range 50 {
		say(fmt.Sprint("unit ", i))
	}
	check.Equal(t, "units in the journal", fmt.Sprint(units()), "[unit 48 unit 49]")
	for i := range 20 { // those of an earlier version of the gateway
		journal[keyUnit+fmt.Sprint("old ", i)] = binary.BigEndian.AppendUint32([]byte{0}, uint32(i+100))
	}
	f = start()
	check.Equal(t, "units in the journal", fmt.Sprint(units()), "[old 18 old 19]")
	run := f.near.Run
	journal[keyUnit+"old 19"] = binary.BigEndian.AppendUint32([]byte{0}, code.MostUnits/2)
	f = start()
	check.Equal(t, "units in the journal", len(units()), 0)
	check.True(t, "another run", f.near.Run != run && string(journal[keyRun][:2]) != string([]byte{byte(run >> 8), byte(run)}), run)
	say("new")
	check.Equal(t, "its number", binary.BigEndian.Uint32(journal[keyUnit+"new"][1:]), 1)
	journal[keyUnit+"new"] = binary.BigEndian.AppendUint32([]byte{0}, code.MostUnits/2-1)
	f = start()
	f.near.Known("last", "", code.MostUnits-1, 0)
	before := len(units())
	say("beyond")
	check.Equal(t, "units in the journal", len(units()), before)
	check.Equal(t, "refused", f.Counts()["refused units"], 1)
}
