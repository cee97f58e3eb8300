package tak_test

import (
	"aldis/internal/adapters/files"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// store is a file room in memory, which outlives the gateway like a disk.
type store struct {
	files   map[string][]byte // by hash
	parts   map[string]map[int][]byte
	devices map[string][]byte // files that the devices of the LAN hold themselves, by hash
	known   map[string]files.Know
	rotten  bool // the next part is kept damaged
}

func (w *world) storeOf(n *sim.Node) *store {
	if w.stores[n.ID] == nil {
		w.stores[n.ID] = &store{map[string][]byte{}, map[string]map[int][]byte{}, map[string][]byte{}, map[string]files.Know{}, false}
	}
	return w.stores[n.ID]
}

// order carries out an order of the adapter, and sends it the outcome a little later.
func (s *store) order(w *world, n *sim.Node, o files.Order) {
	var ev site.Event
	switch o := o.(type) {
	case files.Fetch:
		fetched := files.Fetched{Hash: o.Hash}
		if b, ok := s.devices[o.Hash]; ok {
			s.files[o.Hash] = b
		} else if s.files[o.Hash] == nil {
			fetched.Err = "nobody answers"
		}
		ev = fetched
	case files.Load:
		loaded := files.Loaded{Ask: o.Ask}
		if b := s.files[o.Hash]; b != nil {
			loaded.Parts = slices.Collect(slices.Chunk(b, files.PartOctets))[o.From:o.To]
		}
		ev = loaded
	case files.Keep:
		if s.parts[o.Hash] == nil {
			s.parts[o.Hash] = map[int][]byte{}
		}
		b := bytes.Clone(o.Data)
		if s.rotten {
			b[0], s.rotten = b[0]^1, false
		}
		s.parts[o.Hash][o.Part] = b
		ev = files.Kept{Token: o.Token, Hash: o.Hash, Part: o.Part}
	case files.Finish:
		var all []byte
		for i := range len(s.parts[o.Hash]) {
			all = append(all, s.parts[o.Hash][i]...)
		}
		delete(s.parts, o.Hash)
		finished := files.Finished{Hash: o.Hash}
		if sum := sha256.Sum256(all); hex.EncodeToString(sum[:]) == o.Hash {
			s.files[o.Hash] = all
		} else {
			finished.Err = "it has another hash"
		}
		ev = finished
	case files.Know:
		s.known[o.Hash] = o
		if _, here := s.files[o.Hash]; here || !o.Bring {
			return
		}
		ev = files.Wanted{Hash: o.Hash}
	}
	w.At(10*time.Millisecond, func() {
		if n.GW != nil {
			w.DeliverLAN(n, site.TAK, ev)
		}
	})
}

// parcel is a random file.
func parcel(octets int) (data []byte, hash string) {
	data = make([]byte, octets)
	rng := rand.New(rand.NewPCG(uint64(octets), 8))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:])
}

// offer is the event with which ATAK offers a file.
func (w *world) offer(uid, hash string, size int, to string) string {
	return w.event(uid, "b-f-t-r", fmt.Sprintf(`<fileshare filename="DP-A.zip" name="DP-A" senderUrl="http://10.0.0.2:8080/getfile?file=1" senderUid="ANDROID-1" senderCallsign="FALCON 1" sha256="%s" sizeInBytes="%d"/><ackrequest uid="%s" ackrequested="true" tag="DP-A"/>%s`,
		hash, size, uid, to), 10*time.Second)
}

func withFiles(c *tak.Config) { c.Files.URL = "http://10.1.0.1:8080" }

// ask makes a device at a node ask for a file: it sends the event of the file room.
func (w *world) ask(n *sim.Node, hash string) {
	w.DeliverLAN(n, site.TAK, files.Wanted{Hash: hash, Host: "10.0.0.1"})
}

// A data package of 200 kB is offered in a descriptor, crosses when a device asks for it, and is complete after an outage and
// a kill -9 of each gateway; the device that asked is told that it is here.
func TestDataPackage(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, withFiles)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	data, hash := parcel(200_000)
	w.storeOf(w.Nodes[1]).devices[hash] = data
	w.Run(time.Minute)
	up0, down0 := w.Octets(w.Nodes[1])
	ship.say(w.offer("dp-1", hash, len(data), ""))
	w.Run(20 * time.Second)
	e := hq.newest("dp-1")
	if e == nil {
		t.Fatal("the offer has not crossed")
	}
	if url := e.Find("fileshare").Get("senderUrl"); url != "http://10.1.0.1:8080/Marti/sync/content?hash="+hash {
		t.Errorf("the offer says that the file is at %q", url)
	}
	w.Run(10 * time.Minute)
	up, down := w.Octets(w.Nodes[1])
	t.Logf("the offer took %d octets", up+down-up0-down0)
	if up+down-up0-down0 > 1000 {
		t.Error("a file that nobody has asked for has crossed")
	}
	begun := w.Now
	w.ask(w.Nodes[0], hash)
	w.Run(5 * time.Minute)
	w.Outage(w.Nodes[1], 3*time.Minute)
	w.Run(6 * time.Minute)
	for i, d := range []*device{ship, hq} {
		w.Kill(w.Nodes[1-i], 5*time.Second)
		w.Run(10 * time.Second)
		d.again()
		w.Run(2 * time.Minute)
	}
	if got := w.storeOf(w.Nodes[0]); got.files[hash] != nil || !strings.Contains(got.known[hash].State, "of 200000 octets are here") {
		t.Errorf("before it can be here, it is known as %q", got.known[hash].State)
	}
	for range 60 {
		if w.Run(time.Minute); w.storeOf(w.Nodes[0]).files[hash] != nil {
			break
		}
	}
	if !bytes.Equal(w.storeOf(w.Nodes[0]).files[hash], data) {
		t.Fatalf("after %v the file is not complete: %s; %v", w.Now.Sub(begun), w.storeOf(w.Nodes[0]).known[hash].State, w.adapters[1].Counts())
	}
	w.Run(time.Second)
	up, down = w.Octets(w.Nodes[1])
	t.Logf("complete after %v, with 3 min of outage and two kills; %d octets on the link", w.Now.Sub(begun), up+down-up0-down0)
	if up+down-up0-down0 > 300_000 { // octets lost in the outage and the kills are sent again
		t.Errorf("200,000 octets took %d", up+down-up0-down0)
	}
	w.ask(w.Nodes[0], hash)
	w.Run(time.Minute)
	if counts := w.adapters[2].Counts(); counts["files_asked"] > 4 {
		t.Errorf("the file was asked for anew though it is here: %v", counts)
	}
}

// Files that are too large, are not at the named address, or are gone, end with a clear reason; a file that arrives with another
// hash is requested once more.
func TestDataPackagesThatFail(t *testing.T) {
	w := newWorld(t, 2, "wire", 7, withFiles, func(c *tak.Config) { c.Files.Most = 100_000 })
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	u := newUnit(1)
	w.Run(time.Minute)
	ship.say(u.report(w.Now))
	words := func() (list []string) {
		for _, g := range ship.got {
			if r := g.event.Find("remarks"); r != nil {
				list = append(list, r.Kids[0].Text)
			}
		}
		return list
	}
	data, hash := parcel(100_001)
	w.storeOf(w.Nodes[1]).devices[hash] = data
	ship.say(w.offer("large", hash, len(data), ""))
	_, other := parcel(50)
	ship.say(w.offer("nowhere", other, 50, ""))
	ship.say(w.offer("wrong", "../../etc/passwd", 50, ""))
	w.Run(20 * time.Second)
	if got := words(); len(got) != 2 || !strings.Contains(got[0], "has 100001 octets and does not cross") || !strings.Contains(got[1], "nobody answers") {
		t.Errorf("the sender was told %q", got)
	}
	if n := w.adapters[2].Counts()["refused file"]; n != 1 {
		t.Errorf("an offer with a hash that is none was refused %d times", n)
	}
	for _, uid := range []string{"large", "nowhere", "wrong"} {
		if hq.newest(uid) != nil {
			t.Errorf("the offer %q has crossed", uid)
		}
	}
	data, hash = parcel(40_000)
	there, here := w.storeOf(w.Nodes[1]), w.storeOf(w.Nodes[0])
	there.devices[hash] = data
	ship.say(w.offer("good", hash, len(data), ""))
	w.Run(20 * time.Second)
	here.rotten = true
	w.ask(w.Nodes[0], hash)
	w.Run(time.Minute)
	if counts := w.adapters[1].Counts(); counts["files_wrong"] != 1 || !bytes.Equal(here.files[hash], data) {
		t.Errorf("a file of which a part was wrong: %v; %v", counts, w.adapters[2].Counts())
	}
	if n := len(hq.of("good")); n != 2 {
		t.Errorf("the device that waits for a file was given its offer %d times", n)
	}
	delete(here.files, hash)
	delete(there.files, hash)
	w.ask(w.Nodes[0], hash)
	w.Run(time.Minute)
	if k := here.known[hash]; !k.Failed || !strings.Contains(k.State, "has it no more") {
		t.Errorf("a file that is gone: %+v", k)
	}
	w.GiveFar(t, hash)
}

// GiveFar makes the far site send parts that were not requested, or are malformed.
func (w *world) GiveFar(t *testing.T, hash string) {
	t.Helper()
	short, _ := hex.DecodeString(hash[:16])
	for i, data := range [][]byte{nil, {0}, append([]byte{0}, short...), append(append([]byte{0}, short...), 0xff, 0xff, 0xff, 0xff, 0x7f, 1), append(append([]byte{2}, short...), 0, 1)} {
		w.DeliverLAN(w.Nodes[0], site.TAK, site.FarMessage{Site: 2, Token: uint64(i) + 1, Message: site.Message{Topic: "part", Parts: []site.Part{{Data: data}}}})
		w.DeliverLAN(w.Nodes[0], site.TAK, site.FarMessage{Site: 2, Token: uint64(i) + 1, Message: site.Message{Topic: "want", Parts: []site.Part{{Data: data}}}})
	}
	if k := w.storeOf(w.Nodes[0]).parts[hash]; len(k) != 0 {
		t.Errorf("parts that nobody asked for were kept: %d", len(k))
	}
}

// An offer for one device goes to the site that has the device, and only to it.
func TestDataPackageForOne(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, withFiles)
	a, b := w.connect(w.Nodes[0]), w.connect(w.Nodes[0])
	ship := w.connect(w.Nodes[1])
	ua, ub := newUnit(1), newUnit(2)
	w.Run(time.Minute)
	a.say(ua.report(w.Now))
	b.say(ub.report(w.Now))
	w.Run(30 * time.Second)
	data, hash := parcel(1000)
	w.storeOf(w.Nodes[1]).devices[hash] = data
	ship.say(w.offer("dp-2", hash, len(data), fmt.Sprintf(`<marti><dest callsign="%s"/></marti>`, ub.callsign)))
	w.Run(time.Minute)
	if len(a.of("dp-2")) != 0 || len(b.of("dp-2")) != 1 {
		t.Errorf("given %d and %d times", len(a.of("dp-2")), len(b.of("dp-2")))
	}
	ack := w.event("ack-1", "b-f-t-a", `<ackresponse uid="dp-2" tag="DP-A" success="true"/><marti><dest callsign="FALCON 9"/></marti>`, time.Minute)
	b.say(ack)
	u9 := newUnit(9)
	ship.say(u9.report(w.Now))
	w.Run(time.Minute)
	if e := ship.newest("ack-1"); e == nil || e.Type != "b-f-t-a" {
		t.Error("the receiver's answer has not come back")
	}
}

// Without an outage a data package takes little more than its octets, and an alert does not wait for it.
func TestDataPackageAlone(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, withFiles)
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	data, hash := parcel(200_000)
	w.storeOf(w.Nodes[1]).devices[hash] = data
	w.Run(time.Minute)
	ship.say(w.offer("dp-1", hash, len(data), ""))
	w.Run(20 * time.Second)
	up0, down0 := w.Octets(w.Nodes[1])
	begun := w.Now
	w.ask(w.Nodes[0], hash)
	w.Run(2 * time.Minute)
	said := w.Now
	ship.say(w.event("u-9-1-1", "b-a-o-tbl", `<emergency type="911 Alert">FALCON 1</emergency>`, time.Hour))
	for w.Now.Sub(said) < time.Minute && hq.newest("u-9-1-1") == nil {
		w.Run(100 * time.Millisecond)
	}
	if took := w.Now.Sub(said); took > 5*time.Second {
		t.Errorf("an alert took %v behind a data package", took)
	} else {
		t.Logf("an alert took %v beside it", took)
	}
	for w.Now.Sub(begun) < time.Hour && w.storeOf(w.Nodes[0]).files[hash] == nil {
		w.Run(time.Second)
	}
	w.Run(10 * time.Second)
	up, down := w.Octets(w.Nodes[1])
	t.Logf("complete after %v, %d octets on the link", w.Now.Sub(begun), up+down-up0-down0)
	if up+down-up0-down0 > 230_000 {
		t.Errorf("200,000 octets took %d", up+down-up0-down0)
	}
	if n := len(hq.of("dp-1")); n != 2 {
		t.Errorf("the device that waits was given the offer %d times", n)
	}
}

// A data package that a rule brings is fetched although no device asks for it, also when the gateway is killed meanwhile;
// others wait, and one that is already here costs nothing.
func TestBring(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, withFiles, func(c *tak.Config) {
		c.Files.Bring = []rule.Bring{{Site: 9}, {Callsign: "FALCON *", Name: "DP*", Most: 20_000}}
	})
	hq, ship := w.connect(w.Nodes[0]), w.connect(w.Nodes[1])
	small, brought := parcel(17_000)
	large, other := parcel(21_000)
	w.storeOf(w.Nodes[1]).devices[brought], w.storeOf(w.Nodes[1]).devices[other] = small, large
	w.Run(time.Minute)
	ship.say(w.offer("dp-1", brought, len(small), ""))
	ship.say(w.offer("dp-2", other, len(large), ""))
	w.Run(20 * time.Second)
	w.Kill(w.Nodes[0], time.Second)
	w.Run(5 * time.Minute)
	if _, here := w.storeOf(w.Nodes[0]).files[brought]; !here {
		t.Errorf("it did not come: %+v", w.storeOf(w.Nodes[0]).known[brought])
	}
	if _, here := w.storeOf(w.Nodes[0]).files[other]; here {
		t.Error("one came that no rule brings")
	}
	hq.again()
	asked := w.adapters[1].Counts()["files_wanted"]
	ship.say(w.offer("dp-3", brought, len(small), ""))
	w.Run(time.Minute)
	if n := w.adapters[1].Counts()["files_wanted"]; n != asked || hq.newest("dp-3") == nil {
		t.Errorf("one that is here was asked for %d times", n-asked)
	}
}
