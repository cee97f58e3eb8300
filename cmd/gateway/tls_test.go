package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// overTLS writes the configurations of two gateways whose only bearer is TLS, and starts them: the second calls the first.
func overTLS(t *testing.T) (sites [2]*testSite, gateways [2]*running) {
	t.Helper()
	at := check.FreeAddress(t, "tcp")
	more := []string{fmt.Sprintf("listen = %q\n[[link.peer]]\nid = 2\n", at), fmt.Sprintf("[[link.peer]]\nid = 1\naddress = %q\n", at)}
	return linked(t, func(i int) string {
		return "[link]\nover = \"tls\"\nprofile = \"tls-443\"\nkey_file = \"net.key\"\n" + more[i]
	})
}

// Two real gateways have one TLS connection between them. Each is killed while a peer sends messages, and each message arrives once, in
// order.
func TestRealGatewaysOverTLS(t *testing.T) {
	t.Parallel()
	sites, gateways := overTLS(t)
	a, b := gateways[0], gateways[1]
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	k := newTalk(t, a, b)
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
	a.until(t, "all arrive", all)
	say(3)
	b.until(t, "they are in custody", func() bool { return int(b.peer(t).Accepted) == len(said) })
	b.until(t, "they are durable", func() bool { _, m := b.get("/metrics"); return strings.Contains(m, "\naldis_journal_held_bytes 0\n") })
	check.Equal(t, "exit of the killed gateway", b.stop(t, syscall.SIGKILL), -1)
	a.until(t, "the bearer is down at once", func() bool { return !a.peer(t).Knows || a.peer(t).Link == "silent" })
	b = sites[1].start(t)
	k.sender = dialWith(t, tcp.Config{Address: b.lan, Edge: edgepeer.Config{ID: k.sender.ID(), Name: "ops", Rand: rand.New(rand.NewPCG(3, 1))}})
	b.until(t, "the listener is known again", func() bool { return b.peer(t).FarItems > 0 })
	say(3)
	a.until(t, fmt.Sprintf("all %d arrive, once and in order", len(said)), all)
}

// The reports of gateway link for a modem take effect at once: down, and messages take the other bearer; up, and they are back.
func TestAModemSpeaksToARealGateway(t *testing.T) {
	t.Parallel()
	sat, other := newCable(t), newCable(t)
	_, gateways := linked(t, func(i int) string {
		return sat.of(i, "sat", "iridium-certus-100", "modem = \"sat.sock\"\nkey_file = \"net.key\"\n") + other.of(i, "other", "iridium-directip", "price = 2\n")
	})
	a, b := gateways[0], gateways[1]
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	link := func(want int, says string, words ...string) {
		t.Helper()
		code, _, errs := run(t, append([]string{"link", "-c", b.file}, words...)...)
		check.Equal(t, fmt.Sprintf("exit of link %q", words), code, want)
		check.Contains(t, "what it says", errs, says)
	}
	info, err := os.Stat(b.dir + "/sat.sock")
	check.True(check.Fatal(t), "the socket is its owner's", err == nil && info.Mode().Perm() == 0o600, err)
	k := newTalk(t, a, b)
	b.until(t, "the listener is known", func() bool { return b.peer(t).FarItems > 0 })
	link(0, "", "sat", "down")
	b.until(t, "the bearer is down", func() bool { return !b.peer(t).Bearers[0].Up && b.peer(t).Bearers[1].Used })
	before := other.sent.Load()
	check.NoError(check.Fatal(t), k.say("over the other"))
	a.until(t, "it arrives", func() bool { return k.there.all() == "over the other" })
	check.True(t, "by the other bearer", other.sent.Load() > before)
	link(0, "", "rate", "9600")
	link(0, "", "sat", "queue", "0")
	link(1, "a whole number from 10 to", "sat", "rate", "0")
	link(1, "no [[link]] with the name", "hf", "up")
	link(2, "say up, down", "sat", "sideways")
	link(0, "", "up")
	b.until(t, "the bearer is up again", func() bool { return b.peer(t).Bearers[0].Up && b.peer(t).Bearers[0].Used })
	check.NoError(check.Fatal(t), k.say("and back"))
	a.until(t, "it arrives", func() bool { return k.there.all() == "over the other and back" })
	link(0, "", "free")
}
