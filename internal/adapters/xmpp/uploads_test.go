package xmpp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// file is the file room of a site, in memory.
func (s *server) file(o files.Order) {
	var ev site.Event
	part := func(hash string, n int) string { return fmt.Sprint(hash, "/", n) }
	switch o := o.(type) {
	case files.Reserve:
		at := fmt.Sprintf("%s/SLOT%d/%s", roomOf(s.node.ID), o.Ask, o.Name)
		ev = files.Reserved{Ask: o.Ask, Put: at, Get: at}
	case files.Load:
		loaded := files.Loaded{Ask: o.Ask}
		if b := s.disk[o.Hash]; b != nil {
			loaded.Parts = slices.Collect(slices.Chunk(b, files.PartOctets))[o.From:o.To]
		}
		ev = loaded
	case files.Keep:
		s.disk[part(o.Hash, o.Part)] = bytes.Clone(o.Data)
		ev = files.Kept{Token: o.Token, Hash: o.Hash, Part: o.Part}
	case files.Finish:
		var all []byte
		for i := 0; s.disk[part(o.Hash, i)] != nil; i++ {
			all = append(all, s.disk[part(o.Hash, i)]...)
		}
		s.disk[o.Hash] = all
		ev = files.Finished{Hash: o.Hash}
	case files.Know:
		if s.disk[o.Hash] != nil || !o.Bring {
			return
		}
		ev = files.Wanted{Hash: o.Hash}
	}
	s.w.At(10*time.Millisecond, func() {
		if s.node.GW != nil {
			s.w.DeliverLAN(s.node, site.XMPP, ev)
		}
	})
}

func roomOf(id uint16) string { return "https://files." + domainOf(id) }

// upload makes a client upload a file, and returns its address.
func (s *server) upload(from, name string, b []byte) string {
	s.w.t.Helper()
	s.say("upload."+domainOf(s.node.ID), "<iq type='get' id='%[2]s' from='%[1]s' to='upload.%[3]s'><request xmlns='urn:xmpp:http:upload:0' filename='%[2]s' size='%[4]d' content-type='image/jpeg'/></iq>",
		from, name, domainOf(s.node.ID), len(b))
	s.w.Run(time.Second)
	e := parse(s.w.t, s.got[len(s.got)-1])
	slot := e.Kid("urn:xmpp:http:upload:0", "slot")
	if slot == nil || e.Get("to") != from {
		s.w.t.Fatalf("no slot: %s", s.got[len(s.got)-1])
	}
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	s.disk[hash] = b
	at := slot.Kid("urn:xmpp:http:upload:0", "get").Get("url")
	s.w.DeliverLAN(s.node, site.XMPP, files.Uploaded{ID: strings.Split(at, "/")[3], Hash: hash, Name: name, MIME: "image/jpeg", Size: int64(len(b))})
	return at
}

// The file of a message crosses under its name, when somebody at the other site asks for it, and gets an address of that LAN.
// The sender of a file that is too large, or that a rule keeps, is told; a file that a site takes unasked comes by itself.
func TestFilesCross(t *testing.T) {
	w := newWorld(t, 2, "iridium-directip", 7, func(c *xmpp.Config) {
		c.Files = xmpp.Files{Domain: "upload." + c.Domain, URL: roomOf(c.ID), Most: 100_000, Cross: 50_000}
		if c.ID == 1 {
			c.Files.Bring = 2000
		}
		c.Rules = []rule.Rule{{Kind: rule.File, From: "eve@*", Local: true}}
	})
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	rng := rand.New(rand.NewPCG(1, 2))
	photo := func(octets int) []byte {
		b := make([]byte, octets)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	send := func(from, id, at string) {
		ship.line("hq.example", from, "bert@hq.example", id, at, "<x xmlns='jabber:x:oob'><url>"+at+"</url></x>")
		w.Run(time.Minute)
	}
	large := photo(40_000)
	at := ship.upload(anna, "quay.jpg", large)
	before, _ := w.Octets(w.Nodes[1])
	send(anna, "f1", at)
	up, _ := w.Octets(w.Nodes[1])
	t.Logf("the offer of a file takes %d octets with all headers", up-before)
	sum := sha256.Sum256(large)
	hash := hex.EncodeToString(sum[:])
	there := roomOf(1) + "/" + hash + "/quay.jpg"
	hq.has(1, "<body>"+there+"</body>", "<x xmlns='jabber:x:oob'><url>"+there+"</url></x>")
	if hq.disk[hash] != nil || up-before > 300 {
		t.Errorf("the file came unasked: %d octets", up-before)
	}
	w.DeliverLAN(w.Nodes[0], site.XMPP, files.Wanted{Hash: hash, Host: "10.0.0.1"})
	w.Run(10 * time.Second)
	w.kill(1)
	w.kill(2)
	w.Run(30 * time.Minute)
	if !bytes.Equal(hq.disk[hash], large) {
		t.Errorf("%d of %d octets are there", len(hq.disk[hash]), len(large))
	}
	small := photo(1500)
	send(anna, "f2", ship.upload(anna, "map.jpg", small))
	w.Run(5 * time.Minute)
	sum = sha256.Sum256(small)
	if !bytes.Equal(hq.disk[hex.EncodeToString(sum[:])], small) {
		t.Error("a small file does not come by itself")
	}
	send(anna, "f3", ship.upload(anna, "long.jpg", photo(60_000)))
	ship.has(1, "id='f3'", "type='error'", "at most 50000 cross (xmpp.max_crossing)")
	send("eve@ship2.example/e", "f4", ship.upload("eve@ship2.example/e", "eve.jpg", photo(1000)))
	ship.has(1, "id='f4'", "type='error'", "<not-allowed ")
	ship.say("upload.ship2.example", "<iq type='get' id='big' from='%s' to='upload.ship2.example'><request xmlns='urn:xmpp:http:upload:0' filename='a' size='100001'/></iq>", anna)
	ship.has(1, "id='big'", "<file-too-large xmlns='urn:xmpp:http:upload:0'><max-file-size>100000</max-file-size></file-too-large>")
	ship.say("upload.ship2.example", "<iq type='get' id='info' from='%s' to='upload.ship2.example'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>", anna)
	ship.has(1, "id='info'", "category='store' type='file'", "var='urn:xmpp:http:upload:0'", "<value>100000</value>")

	// In a room, too: clients of the same LAN get the address as it was sent.
	a := far{ship, anna, "anna"}
	a.enter()
	hq.room().enter(bert, "bert")
	w.Run(time.Minute)
	at = ship.upload(anna, "deck.jpg", photo(3000))
	a.say("f5", at)
	w.Run(time.Minute)
	check.Equal(t, "anna hears herself", a.heard("<body>"+at+"</body>"), 1)
	check.Equal(t, "bert hears of the file", hq.room().heard(bert, "<body>"+roomOf(1)+"/", "/deck.jpg</body>"), 1)
}

// A gateway whose operator has turned files off starts with the offers of an earlier run, and orders nothing from the file room that it
// does not have.
func TestFilesTurnedOff(t *testing.T) {
	cfg := xmpp.Config{ID: 1, Domain: "hq.example", Sites: []xmpp.Site{{ID: 2, Domain: "ship2.example"}}, Files: xmpp.Files{Domain: "upload.hq.example", URL: "https://files.hq.example", Most: 1000, Cross: 1000}}
	f, err := xmpp.New(cfg, nil)
	check.NoError(check.Fatal(t), err)
	now := time.Unix(1_800_000_000, 0)
	offer := (&code.Message{Number: 1, File: &code.File{Hash: [32]byte{1}, Name: "quay.jpg", MIME: "image/jpeg", Size: 500}}).Append(nil)
	out := f.Step(now, site.FarMessage{Site: 2, Token: 1, Message: site.Message{From: "dora", To: "bert", Parts: []site.Part{{Data: offer}}}})
	orders := func(out site.Output) (n int) {
		for _, o := range out.Orders {
			if _, ok := o.(files.Order); ok {
				n++
			}
		}
		return n
	}
	check.Equal(t, "the file room hears of the offer", orders(out), 1)
	for url, want := range map[string]int{cfg.Files.URL: 1, "": 0} {
		cfg.Files.URL = url
		again, err := xmpp.New(cfg, out.Remember)
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "orders after a restart with files at "+url, orders(again.Step(now, nil)), want)
	}
}
