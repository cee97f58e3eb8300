package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
	"aldis/internal/operator/control"
)

// heard is a message as a peer's application received it.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) hear(_ *tcp.Peer, n edgepeer.Notice) {
	if m, ok := n.(edgepeer.Message); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.texts = append(h.texts, string(m.Elements[0].Data))
	}
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.texts, " ")
}

// talk is a listener behind one gateway, and a peer behind another that sends to it.
type talk struct {
	pipe   string
	there  heard
	sender *tcp.Peer
}

func newTalk(t *testing.T, listens, speaks *running) *talk {
	t.Helper()
	k := &talk{pipe: edgepeer.NamedPipe("orders")}
	if _, err := dialPeer(t, listens, "hq-ops", 1, k.there.hear).Do(edgepeer.Listen{Pipe: k.pipe, Kind: jxta.PipeTypePropagate}); err != nil {
		t.Fatal(err)
	}
	k.sender = dialPeer(t, speaks, "ops", 2, nil)
	return k
}

func (k *talk) say(text string) error {
	_, err := k.sender.Do(edgepeer.Send{Pipe: k.pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(text)}}})
	return err
}

// dialPeer connects a JXTA peer to a site's gateway and waits for its lease.
func dialPeer(t testing.TB, r *running, name string, seed uint64, hear func(*tcp.Peer, edgepeer.Notice)) *tcp.Peer {
	t.Helper()
	return dialWith(t, tcp.Config{Address: r.lan, Hear: hear, Edge: edgepeer.Config{Name: name, Rand: rand.New(rand.NewPCG(seed, 1))}})
}

// dialWith dials a peer and waits for its lease.
func dialWith(t testing.TB, cfg tcp.Config) *tcp.Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := tcp.Dial(ctx, cfg)
	if err == nil {
		t.Cleanup(p.Close)
		err = p.WaitLease(ctx, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listed is the output of gateway messages.
func listed(t *testing.T, r *running, args ...string) []api.MessageRow {
	t.Helper()
	code, out, errs := run(t, append([]string{"messages", "-c", r.file, "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("messages %q: exit %d: %s", args, code, errs)
	}
	var list control.MessageList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	return list.Messages
}

// Three messages wait in a silent gateway: one is held, one cancelled, one raised. The gateway is killed in between. The orders
// are in force afterwards, and every command reports them in words.
func TestMessageCommands(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	pipe := edgepeer.NamedPipe("orders")
	var there heard
	listener := dialPeer(t, a, "hq-ops", 1, there.hear)
	if _, err := listener.Do(edgepeer.Listen{Pipe: pipe, Kind: jxta.PipeTypePropagate}); err != nil {
		t.Fatal(err)
	}
	sender := dialPeer(t, b, "ops \u009b31mred", 2, nil)
	say := func(from *tcp.Peer, text string) {
		t.Helper()
		if _, err := from.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(text)}}}); err != nil {
			t.Fatal(err)
		}
	}
	say(sender, "first")
	b.until(t, "the first message is there", func() bool { return b.peer(t).Delivered == 1 && there.all() == "first" })
	code, out, errs := run(t, "messages", "-c", b.file, "--from", "ops")
	check.Equal(t, "exit, and "+errs, code, 0)
	wants(t, out, "delivered", "node1", `"ops \u009b31mred"`, "1 shown")
	check.True(t, "no escape reaches the terminal", !strings.Contains(out, "\u009b"), out)
	first := listed(t, b)[0].ID
	_, out, _ = run(t, "message", strings.ToLower(first), "-c", b.file)
	wants(t, out, "message "+first, "accepted", "on the air", "delivered", `from "ops \u009b31mred"`)
	check.True(t, "no escape reaches the terminal", !strings.Contains(out, "\u009b"), out)

	if code, _, errs = run(t, "silence", "on", "-c", b.file); code != 0 {
		t.Fatal(errs)
	}
	for _, text := range []string{"held", "cancelled", "raised"} {
		say(sender, text)
	}
	b.until(t, "three wait", func() bool { return len(listed(t, b, "--waiting")) == 3 })
	_, out, _ = run(t, "messages", "--waiting", "-c", b.file, "--ids")
	ids := strings.Fields(out)
	check.Equal(t, "ids", len(ids), 3)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"hold", ids[0]}, "it is held: it does not go to node1 until it is released"},
		{[]string{"cancel", ids[1]}, "it is cancelled: it does not go to node1 any more"},
		{[]string{"raise", ids[2]}, "it goes to node1 as priority"},
		{[]string{"raise", ids[2], "--precedence", "flash"}, "it goes to node1 as flash"},
		{[]string{"hold", ids[0]}, "for node1 it was held already"},
	} {
		code, out, errs := run(t, append([]string{"message", "-c", b.file}, tt.args...)...)
		check.Equal(check.In(t, tt.args), "exit", code, 0)
		check.Contains(check.In(t, tt.args), "answer", out+errs, tt.says)
	}
	code, _, errs = run(t, "message", "release", ids[1], "-c", b.file)
	check.Equal(t, "exit", code, 1)
	wants(t, errs, "has ended, and nothing changes that: node1: cancelled at")
	wants(t, b.logged(), `"order":"message"`, "an order for a message was carried out")

	code, out, errs = run(t, "message", "hold", "--precedence", "deferred", "-c", b.file)
	check.Equal(t, "exit, and "+errs, code, 0)
	wants(t, out, "deferred messages are held until they are released, also those that come: none waits now")
	code, out, errs = run(t, "message", "hold", "--precedence", "flash", "-c", b.file)
	check.Equal(t, "exit, and "+errs, code, 0)
	wants(t, out, "1 held now")
	_, out, _ = run(t, "status", "-c", b.file)
	wants(t, out, "HELD: flash messages since 20", "HELD: deferred messages since 20", "; 1 held now (gateway message release --precedence flash)")
	wants(t, b.logged(), "an order for all messages of a precedence was carried out", "message.class_ordered")
	code, out, errs = run(t, "message", "release", "--precedence", "flash", "-c", b.file)
	check.Equal(t, "exit, and "+errs, code, 0)
	wants(t, out, "flash messages are not held any more: 1 released")
	code, _, errs = run(t, "message", "hold", "-c", b.file)
	check.True(t, "without an id one sentence is the answer", code == 2 && strings.Count(errs, "\n") == 1, code, errs)

	b.stop(t, syscall.SIGKILL)
	b = b.testSite.start(t)
	_, out, _ = run(t, "messages", "-c", b.file)
	wants(t, out, "HELD: deferred messages since 20", "; 0 held now")
	rows := listed(t, b, "--waiting")
	check.Equal(t, "those that wait after the kill", len(rows), 2)
	check.Equal(t, "the first to go", rows[0].ID+" "+rows[0].Precedence, ids[2]+" flash")
	check.True(t, "the other is held", rows[1].ID == ids[0] && rows[1].Held && !rows[1].Accepted.IsZero(), rows[1])
	check.Equal(t, "why it waits", rows[0].Recipients[0].Detail, "this gateway is silent")
	if code, _, errs = run(t, "silence", "off", "-c", b.file); code != 0 {
		t.Fatal(errs)
	}
	a.until(t, "the raised one is there", func() bool { return there.all() == "first raised" })
	code, _, errs = run(t, "message", "cancel", ids[2], "-c", b.file)
	check.Equal(t, "exit, and "+errs, code, 1)
	if code, _, errs = run(t, "message", "release", ids[0], "-c", b.file); code != 0 {
		t.Fatal(errs)
	}
	a.until(t, "the released one is there", func() bool { return there.all() == "first raised held" })
	b.until(t, "all have ended", func() bool { return len(listed(t, b, "--state", "ended")) == 2 && len(listed(t, b)) == 2 })

	for _, args := range [][]string{{"message"}, {"message", "hold"}, {"message", "a", "b"}, {"message", "hold", ids[0], "--precedence", "flash"},
		{"message", "raise", ids[0], "--precedence", "loud"}, {"message", ids[0], "--token", "x"}, {"messages", "x"}, {"messages", "--limit", "0"},
		{"messages", "--precedence", "loud"}, {"messages", "--after", "soon"}, {"message", "cancel", "--precedence", "flash"}, {"message", "hold", "--precedence", "loud"}} {
		if code, _, errs := run(t, append(args, "-c", b.file)...); code != 2 || errs == "" {
			t.Errorf("%q: exit %d, want 2 and a reason", args, code)
		}
	}
	for _, args := range [][]string{{"message", "nonsense"}, {"message", "0000000-1"}, {"message", "hold", "0000000-1"}, {"messages", "--to", "nowhere"}} {
		if code, _, errs := run(t, append(args, "-c", b.file)...); code != 1 || errs == "" {
			t.Errorf("%q: exit %d, want 1 and a reason", args, code)
		}
	}
	if code := b.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}
