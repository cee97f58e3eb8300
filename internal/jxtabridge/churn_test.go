package jxtabridge

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// A day of peers that come, take leases, publish, open pipes, ask, talk to each other, go, die without a word and come
// again leaves nothing behind: the bridge then holds as much as after the first hours, and when all have
// gone, nothing.
func TestDayOfChurn(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 1))
	c := newCrowd(t, Config{Lease: 10 * time.Minute}, 0)
	memory := map[string]bool{}
	remember := func(out site.Output) {
		for _, m := range out.Remember {
			if memory[m.Key] = true; len(m.Value) == 0 {
				delete(memory, m.Key)
			}
		}
	}
	const peers = 60
	open := map[*member]bool{}
	for range peers {
		c.peers = append(c.peers, &member{id: peerName("uuid", len(c.peers)+1), addr: fmt.Sprintf("10.1.0.%d:9702", len(c.peers)+1)})
	}
	conns := site.ConnID(1000)
	say := func(m *member, body []byte) { remember(c.step(Received{m.conn, c.next(body)})) }
	dial := func(m *member) {
		if conns++; open[m] {
			remember(c.step(Closed{m.conn}))
		}
		m.conn, open[m] = conns, true
		c.step(Opened{Conn: m.conn, Remote: m.addr})
		c.step(Welcomed{m.conn, jxta.Welcome{Dest: "tcp://" + c.cfg.Address, Public: "tcp://" + m.addr, Peer: jxta.URN(m.id), Version: "1.1"}})
		say(m, c.connectBody(m))
	}
	srdi := func(m *member, pipe string, life time.Duration) []byte {
		kind := jxta.PipeTypeUnicast
		if strings.HasSuffix(pipe, "104") {
			kind = jxta.PipeTypePropagate
		}
		s := jxta.SRDI{Peer: m.id, Key: kind, TTL: 1, Entries: []jxta.SRDIEntry{{Key: "Id", Value: jxta.URN(pipe), Life: life}}}
		r := jxta.ResolverSRDI{Handler: jxta.HandlerPipe, Payload: string(s.Append(nil))}
		return c.propagated(m, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"Srdi", xmlElement(jxta.NetGroup+"Srdi", r.Append(nil)))
	}
	act := func() {
		m := c.peers[rng.IntN(peers)]
		if !open[m] {
			if rng.IntN(3) == 0 {
				dial(m)
			}
			return
		}
		pipe := fmt.Sprintf("uuid-59616261646162614E50472050325033%032X04", rng.IntN(500)+1)
		switch rng.IntN(12) {
		case 0:
			remember(c.step(Closed{m.conn}))
			delete(open, m)
		case 1:
			dial(m)
		case 2, 3:
			say(m, c.connectBody(m))
		case 4:
			say(m, srdi(m, pipe, jxta.MaxLife))
		case 5:
			say(m, srdi(m, pipe, 0))
		case 6:
			c.now = c.now.Add(time.Second)
			i := rng.IntN(100_000)
			d := jxta.DiscoveryResponse{Type: jxta.TypeAdv, Found: []jxta.Found{{Life: time.Duration(rng.IntN(3600)) * time.Second, Doc: pipeAdv(i)}}}
			r := jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: string(d.Append(nil))}
			say(m, c.propagated(m, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", xmlElement(jxta.NetGroup+"IRes", r.Append(nil))))
		case 7:
			say(m, c.discovery(m, jxta.TypeAdv, 1, "Name", fmt.Sprintf("track %06d of ship %d", rng.IntN(100_000), rng.IntN(97))))
		case 8:
			say(m, c.discovery(m, jxta.TypePeer, 10, "", ""))
		default:
			say(m, c.routed(m, c.peers[rng.IntN(peers)].id, svcPipe, jxta.URN(pipe), body("x")))
		}
	}
	pass := func(d time.Duration) {
		for end := c.now.Add(d); c.now.Before(end); {
			if c.wake.IsZero() || c.wake.After(end) {
				c.now = end
				break
			}
			c.now = due.Latest(c.wake, c.now.Add(time.Millisecond))
			remember(c.step(nil))
		}
	}
	held := func() string {
		b := c.b
		return fmt.Sprintf("%d connections, %d peers in order, %d with a lease, %d timers, %d advertisements, %d questions, %d remembered",
			len(b.outlets.conns), len(b.outlets.order), len(b.outlets.membersOf(jxta.NetGroup)), len(b.outlets.timers), b.directory.cache.Len(), b.directory.questions.count(), len(memory))
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early uint64
	for hour := range 24 {
		for range 240 {
			act()
			act()
			pass(15 * time.Second)
		}
		if hour == 5 {
			early = heap()
		}
	}
	if now := heap(); now > early+early/4+(1<<20) {
		t.Errorf("%d kB after six hours, %d kB after a day: %s", early>>10, now>>10, held())
	}
	t.Log(held())
	for _, m := range c.peers {
		if open[m] {
			remember(c.step(Closed{m.conn}))
		}
	}
	pass(28 * time.Hour) // for a day the gateway knows which peers listened
	b := c.b
	if len(b.outlets.conns)+len(b.outlets.order)+len(b.outlets.peers)+len(b.outlets.members)+len(b.outlets.timers)+b.directory.cache.Len()+b.directory.questions.count()+len(memory)+len(b.directory.sent)+len(b.directory.purposes)+len(b.directory.serving)+len(b.outlets.openHere)+len(b.outlets.listening)+len(b.outlets.untold)+b.outlets.local.octets+len(b.outlets.local.shared)+len(b.outlets.waiting)+len(b.propagation.held)+len(b.directory.pushes.queue) != 0 {
		t.Errorf("when all have gone: %s; told %d, used %d and %d, open %d, untold %d", held(), len(b.directory.sent), len(b.directory.purposes), len(b.directory.serving), len(b.outlets.openHere), len(b.outlets.untold))
	}
	if !c.wake.IsZero() {
		t.Errorf("nothing is left, and it asks to be woken at %v", c.wake)
	}
}
