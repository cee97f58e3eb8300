package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// cable joins two UDP addresses on loopback, and can be cut. Each end knows one of the cable's sockets as the other's address.
type cable struct {
	ends [2]*net.UDPConn
	to   [2]netip.AddrPort // where the gateways listen
	cut  atomic.Bool
	sent atomic.Int64 // datagrams
}

func newCable(t *testing.T) *cable {
	t.Helper()
	c := &cable{}
	for i := range c.ends {
		c.to[i] = netip.MustParseAddrPort(check.FreeAddress(t, "udp"))
		c.ends[i] = openUDP(t, "127.0.0.1:0")
	}
	for i := range c.ends {
		go func() {
			data := make([]byte, 65535)
			for {
				n, _, err := c.ends[i].ReadFromUDPAddrPort(data)
				if err != nil {
					return
				}
				c.sent.Add(1)
				if !c.cut.Load() { // from gateway i to the other, out of the socket that the other knows
					c.ends[1-i].WriteToUDPAddrPort(data[:n], c.to[1-i])
				}
			}
		}()
	}
	return c
}

// of is the [[link]] of gateway i.
func (c *cable) of(i int, name, profile, more string) string {
	return fmt.Sprintf("[[link]]\nname = %q\nprofile = %q\nlisten = %q\n%s[[link.peer]]\nid = %d\naddress = %q\n", name, profile, c.to[i], more, 2-i, c.ends[i].LocalAddr())
}

// linked starts two gateways whose configurations end with these links.
func linked(t *testing.T, links func(i int) string) (sites [2]*testSite, gateways [2]*running) {
	t.Helper()
	sites[0] = newSite(t, 1, "")
	sites[1] = newSite(t, 2, sites[0].key())
	for i, s := range sites {
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\n[http]\nlisten = %q\n", i+1, i+1, s.dir+"/data", s.lan, s.http)
		check.NoError(check.Fatal(t), os.WriteFile(s.file, []byte(text+links(i)), 0o644))
		gateways[i] = s.start(t)
	}
	return sites, gateways
}

// Two real gateways have two bearers each. The cheaper one is cut and restored while a peer sends messages, once while that peer's
// gateway is killed. Each message arrives once, in order.
func TestRealGatewaysChangeTheirBearer(t *testing.T) {
	t.Parallel()
	sat, hf := newCable(t), newCable(t)
	sites, gateways := linked(t, func(i int) string {
		return sat.of(i, "sat", "iridium-certus-100", "key_file = \"net.key\"\n") + hf.of(i, "hf", "iridium-directip", "price = 2\n")
	})
	a, b := gateways[0], gateways[1]
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	k := newTalk(t, a, b)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the listener has ", k.there.all())
		}
	})
	var said []string
	say := func(n int) {
		t.Helper()
		for range n {
			text := fmt.Sprintf("text-%d", len(said))
			check.NoError(check.Fatal(t), k.say(text))
			said = append(said, text)
		}
	}
	all := func() bool { return k.there.all() == strings.Join(said, " ") }
	b.until(t, "the listener is known", func() bool { return b.peer(t).FarItems > 0 })
	say(3)
	a.until(t, "all arrive by the first bearer", all)
	check.Equal(t, "datagrams on the second bearer", int(hf.sent.Load()), 0)
	sat.cut.Store(true)
	say(5)
	a.until(t, "all arrive by the second", all)
	check.True(t, "on the second bearer", hf.sent.Load() > 0)
	check.True(t, "the log says so", strings.Contains(b.logged(), "messages for a peer change their bearer"))
	code, out, _ := run(t, "status", "-c", b.file)
	check.True(t, "status shows both bearers", code == 0 && strings.Contains(out, "sat") && strings.Contains(out, "hf *"), out)
	sat.cut.Store(false)
	b.until(t, "the cheaper bearer is used again", func() bool { return b.peer(t).Bearers[0].Used })
	say(3)
	a.until(t, fmt.Sprintf("all %d arrive, once and in order", len(said)), all)

	sat.cut.Store(true)
	say(3)
	b.until(t, "the second bearer is used", func() bool { return b.peer(t).Bearers[1].Used })
	say(3)
	b.until(t, "they are in custody", func() bool { return int(b.peer(t).Accepted) == len(said) })
	// The status counts messages that the loop has accepted. A kill may lose only those that are not in the journal yet.
	b.until(t, "they are durable", func() bool { _, m := b.get("/metrics"); return strings.Contains(m, "\naldis_journal_held_bytes 0\n") })
	check.Equal(t, "exit of the killed gateway", b.stop(t, syscall.SIGKILL), -1)
	sat.cut.Store(false)
	b = sites[1].start(t)
	b.until(t, "the cheaper bearer is used after the restart", func() bool { return b.peer(t).Bearers[0].Used && b.peer(t).Bearers[0].Link == "up" })
	k.sender = dialWith(t, tcp.Config{Address: b.lan, Edge: edgepeer.Config{ID: k.sender.ID(), Name: "ops", Rand: rand.New(rand.NewPCG(3, 1))}})
	b.until(t, "the listener is known again", func() bool { return b.peer(t).FarItems > 0 })
	say(3)
	a.until(t, fmt.Sprintf("all %d arrive, once and in order, those before the kill too", len(said)), all)
}
