//go:build long

package peertest

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/lab/field"
)

// An outage longer than the minute after which 2.7 gives up a stream that acknowledges nothing. Both ends keep sending:
// they have to wait, and then everything arrives, in order. After that the gateway of one end is killed and comes back.
func TestStreamsWaitThroughAnOutage(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{field.KindJXSE27, field.KindJXSE27Unsigned} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const blocks = 400
			w := newWorld(t, 6*time.Minute)
			sa, sb := pair(t)
			a, b := w.peer(sa, kind, "A", 9702), w.peer(sb, kind, "B", 9703)
			w.tell(a, "bidi-listen chat", "sock-listen file")
			w.tell(b, "find chat 1000", "find file 1000")
			w.await(b, "discovered", "chat")
			w.await(b, "discovered", "file")
			w.await(a, "pipe_ready", "chat")
			w.await(a, "pipe_ready", "file")
			slow(sa, sb, time.Second)
			w.tell(b, "bidi-connect chat", "sock-connect file")
			w.await(b, "opened", "file")
			w.await(a, "opened", "file")
			w.await(a, "opened", "chat")
			sa.link(false)
			sb.link(false)
			w.tell(b, fmt.Sprintf("bidi-send chat 1000 %d", blocks), fmt.Sprintf("sock-send file 1000 %d", blocks))
			w.tell(a, fmt.Sprintf("bidi-send chat 1000 %d", blocks), fmt.Sprintf("sock-send file 1000 %d", blocks))
			w.never(150*time.Second, "a stream ends", func(e field.Event) bool { return e.Ev == "closed" || e.Ev == "error" }, a, b)
			for _, p := range []*field.Peer{a, b} {
				sent := map[string]int{}
				for _, e := range p.Events() {
					if e.Ev == "sent" {
						sent[e.Name]++
					}
					if e.Ev == "closed" || e.Ev == "error" {
						t.Errorf("%s: %+v", p.Name(), e)
					}
				}
				t.Logf("%s sent in the outage: %v", p.Name(), sent)
				// 2.7 has one lock for the writers of all streams (ReliableOutputStream.writeLock is a literal): the first
				// that has to wait stops the other, too.
				if most := max(sent["chat"], sent["file"]); most < 100 || most > 200 {
					t.Errorf("%s sent %v in the outage; the window is 100 blocks and what is under way", p.Name(), sent)
				}
			}
			up := time.Now()
			sa.link(true)
			sb.link(true)
			once := func(count int64) {
				t.Helper()
				for _, x := range []struct {
					to         *field.Peer
					name, from string
				}{{a, "chat", "B"}, {a, "file", "B"}, {b, "chat", "A"}, {b, "file", "A"}} {
					w.receives(x.to, x.name, x.from, count, 1000, 1)
				}
			}
			once(blocks)
			t.Logf("all there %.1f s after the outage", time.Since(up).Seconds())
			sa.halt()
			w.tell(b, "bidi-send chat 1000 20", "sock-send file 1000 20")
			w.tell(a, "bidi-send chat 1000 20", "sock-send file 1000 20")
			sa.restart()
			up = time.Now()
			once(blocks + 20)
			t.Logf("all there %.1f s after the restart", time.Since(up).Seconds())
		})
	}
}
