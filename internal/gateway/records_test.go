package gateway_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// missing names the messages that were sent to a site and never arrived there.
func missing(at *sim.Site, from uint16, sent []offered) (list []string) {
	for _, o := range sent {
		if !slices.ContainsFunc(at.Got, func(g sim.Got) bool {
			return g.From == from && bytes.Equal(g.Payload.Parts[0].Data, o.Message.Parts[0].Data)
		}) {
			list = append(list, o.Message.ID)
		}
	}
	return list
}

// A gateway goes on with a repaired journal: its numbers are gone and its store is new. All messages that waited or were
// under way on either side arrive, and those sent afterwards arrive once.
func TestRepairedJournal(t *testing.T) {
	for link, seeds := range map[string][]uint64{"iridium-directip": {0, 1, 2, 3}, "iridium-dialup": {1}, "hf-2400": {1, 3}} {
		for _, seed := range seeds {
			t.Run(fmt.Sprint(link, seed), func(t *testing.T) {
				w := world(t, 2, link, seed, func(c *sim.Config) { c.Group = link == "hf-2400" })
				hq, ship := w.Nodes[0], w.Nodes[1]
				hq.Site.Put(w, pipeItem(1, pipeHQ))
				ship.Site.Put(w, pipeItem(2, pipeShip))
				down := tracks(w, hq, []uint16{2}, 40, 200, time.Second)
				up := tracks(w, ship, []uint16{1}, 40, 200, time.Second)
				w.Run(30 * time.Second)
				broken := w.Nodes[seed%2]
				w.Kill(broken, time.Second)
				var kept gateway.Kept
				w.Rewrite(broken, true, func(records []api.Record) []api.Record {
					lost := func(bucket string) bool { return bucket == "peer" && seed > 1 } // the damage may concern these too
					records = slices.DeleteFunc(records, func(r api.Record) bool { return lost(r.Bucket) })
					kept = gateway.AsNewStore(records, lost)
					return kept.Records
				})
				w.Run(20 * time.Minute)
				for who, list := range map[string][]string{"HQ's": missing(ship.Site, 1, *down), "the ship's": missing(hq.Site, 2, *up)} {
					for _, id := range list {
						// Messages offered to a gateway while it does not run are lost.
						if at := w.Nodes[seed%2]; (who == "HQ's") != (at == hq) || len(list) > 1 {
							t.Errorf("%s message %s has not arrived (%d waited, %d were under way)", who, id, kept.Waiting, kept.Again)
						}
					}
				}
				hq.Site.Got, ship.Site.Got = nil, nil
				down = tracks(w, hq, []uint16{2}, 20, 200, time.Second)
				up = tracks(w, ship, []uint16{1}, 20, 200, time.Second)
				w.Run(20 * time.Minute)
				if link == "hf-2400" { // P_Mul waits for a gap only for a while, so order may suffer
					once := func(at *sim.Site, from uint16, sent []offered) {
						if list := missing(at, from, sent); len(list) > 0 || len(at.Got) != len(sent) {
							t.Errorf("%d of %d messages of node %d, %v are missing", len(at.Got), len(sent), from, list)
						}
					}
					once(ship.Site, 1, *down)
					once(hq.Site, 2, *up)
				} else {
					once(t, w, ship.Site, 1, *down)
					once(t, w, hq.Site, 2, *up)
				}
				if len(ship.Site.Far[1]) != 1 || len(hq.Site.Far[2]) != 1 {
					t.Errorf("%d and %d items are known, want one each", len(ship.Site.Far[1]), len(hq.Site.Far[2]))
				}
			})
		}
	}
}

// The content of a message that is under way is lost. All others arrive, once, also those of the flow that it spelt out.
func TestLostContentUnderWay(t *testing.T) {
	w := world(t, 2, "iridium-directip", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute) // they have met
	w.Outage(ship, 10*time.Minute)
	w.Run(time.Second)
	down := tracks(w, hq, []uint16{2}, 12, 200, time.Second)
	w.Run(20 * time.Second)
	w.Kill(hq, time.Second)
	lost := 0
	w.Rewrite(hq, false, func(records []api.Record) []api.Record {
		first := slices.IndexFunc(records, func(r api.Record) bool { return r.Bucket == "to" && binary.BigEndian.Uint64(r.Value[1:]) != 0 })
		if first < 0 {
			t.Fatal("nothing is under way")
		}
		id := records[first].Key[2:]
		return slices.DeleteFunc(records, func(r api.Record) bool {
			if r.Bucket == "mail" && slices.Equal(r.Key, id) {
				lost++
				return true
			}
			return false
		})
	})
	w.Run(30 * time.Minute)
	if lost != 1 {
		t.Fatalf("%d messages were taken out", lost)
	}
	once(t, w, ship.Site, 1, (*down)[1:])
	if n := hq.GW.Status(w.Now).Peers[0]; n.UnderWay+n.Waiting != 0 {
		t.Errorf("%d messages are under way and %d wait when all has arrived", n.UnderWay, n.Waiting)
	}
}

// Records that cannot be read are refused one by one where the gateway can do without them, and are an error where not.
func TestRefusedRecords(t *testing.T) {
	id := []byte{0, 0, 0, 0, 0, 0, 0, 9}
	to := make([]byte, 18)
	w := world(t, 2, "wire", 1)
	var refused []string
	start := func(records ...api.Record) (err error) {
		w.Reconfigure(w.Nodes[0], func(c *gateway.Config) {
			c.Refused = func(r api.Record, why error) { refused = append(refused, r.Bucket) }
			_, err = gateway.New(*c, records)
		})
		return err
	}
	bad := []byte("no record")
	if err := start(api.Record{Bucket: "own", Key: []byte("k"), Value: bad}, api.Record{Bucket: "mail", Key: id, Value: bad},
		api.Record{Bucket: "to", Key: append([]byte{0, 2}, id...), Value: to}, api.Record{Bucket: "to", Key: append([]byte{0, 77}, id...), Value: to},
		api.Record{Bucket: "deliver", Key: append([]byte{0, 2}, id[2:]...), Value: bad}, api.Record{Bucket: "far", Key: []byte{0, 2, 'k'}, Value: bad},
		api.Record{Bucket: "copy", Key: []byte{0, 2, 'k'}, Value: bad}); err != nil {
		t.Error(err)
	}
	slices.Sort(refused)
	if want := []string{"copy", "deliver", "far", "mail", "own", "to", "to"}; !slices.Equal(refused, want) {
		t.Errorf("refused: %v, want %v", refused, want)
	}
	for _, bucket := range []string{"peer", "seal"} {
		err := start(api.Record{Bucket: bucket, Key: []byte{0, 2}, Value: bad})
		if err == nil || !strings.Contains(err.Error(), "gateway journal repair") {
			t.Errorf("a damaged record of %s: %v", bucket, err)
		}
	}
	if err := start(api.Record{Bucket: "silence", Key: []byte("self"), Value: bad[:3]}); !errors.Is(err, mail.ErrRecord) {
		t.Errorf("an order of silence that cannot be read: %v", err)
	}
}

// After a repair a gateway is silent when an order of silence may have been lost, and as it was when not.
func TestSilenceAfterARepair(t *testing.T) {
	on := api.Record{Bucket: "silence", Key: []byte("self"), Value: []byte{1, 0, 0, 0, 0, 0, 0, 0, 0}}
	off := api.Record{Bucket: "silence", Key: []byte("self"), Value: make([]byte, 9)}
	for _, tt := range []struct {
		records []api.Record
		lost    bool
		want    bool
	}{{nil, false, false}, {nil, true, true}, {[]api.Record{on}, true, true}, {[]api.Record{off}, true, false}, {[]api.Record{on}, false, true}} {
		k := gateway.AsNewStore(tt.records, func(bucket string) bool { return bucket == "silence" && tt.lost })
		if k.Silent != tt.want {
			t.Errorf("%d orders, lost %v: silent %v", len(tt.records), tt.lost, k.Silent)
		}
	}
}

// A repair keeps of a bearer behind the first what it keeps of the first, but for the numbers of its peers. The order of silence of one
// bearer is not that of the node, and a message that waits on a bearer with a name keeps its place.
func TestRepairKeepsWhatBelongsToBearers(t *testing.T) {
	group, direct := []byte{0, 2, byte(mail.Group), 0, 0, 0, 0, 0, 0, 0, 7}, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 7}
	to := func(number uint64) []byte {
		b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{0}, number), 41)
		return append(b, 0, 2, 'h', 'f')
	}
	id := []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 9}
	records := []api.Record{{Bucket: "early@hf", Key: group}, {Bucket: "early@hf", Key: direct}, {Bucket: "inflow@hf", Key: direct[:6]}, {Bucket: "path@hf", Key: direct[:2]},
		{Bucket: "day@hf", Key: []byte("day")}, {Bucket: "bill@hf", Key: []byte{1}}, {Bucket: "peer@hf", Key: direct[:2]}, {Bucket: "seal@hf", Key: direct[:2]},
		{Bucket: "silence", Key: []byte("@hf"), Value: make([]byte, 9)}, {Bucket: "to", Key: id, Value: to(0)}, {Bucket: "to", Key: id, Value: to(3)}}
	k := gateway.AsNewStore(records, func(bucket string) bool { return bucket == "silence" })
	var kept []string
	for _, r := range k.Records {
		kept = append(kept, r.Bucket+" "+string(r.Key[:min(len(r.Key), 4)]))
	}
	want := []string{"early@hf " + string(group[:4]), "inflow@hf " + string(direct[:4]), "path@hf " + string(direct[:2]), "day@hf day", "bill@hf \x01", "silence @hf",
		"to " + string(id[:4]), "to " + string(id[:4]), "silence self"}
	check.Equal(t, "kept", fmt.Sprintf("%q", kept), fmt.Sprintf("%q", want))
	check.Equal(t, "dropped", k.Dropped, 3)
	check.True(t, "silent, as the node's own order may be lost", k.Silent)
	check.Equal(t, "waiting and under way", fmt.Sprint(k.Waiting, k.Again), "1 1")
	for _, r := range k.Records {
		if r.Bucket == "to" {
			check.Equal(t, "place", binary.BigEndian.Uint64(r.Value[9:]), 41)
		}
	}
}
