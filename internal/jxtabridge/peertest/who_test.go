package peertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/field"
)

// Somebody at another address dials in with a peer's id. The peer answers the gateway's question, keeps its place and
// gets all messages; the other gets none.
func TestSecondAddressGetsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{field.KindJXSE27, field.KindJXSE27Unsigned, field.KindJXTA22} {
		for _, polls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s polls %t", kind, polls), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 150*time.Second)
				sa, sb := pair(t)
				start := w.peer
				if polls {
					start = w.pollingPeer
				}
				a, b := start(sa, kind, "A", 9702), w.peer(sb, field.KindJXSE27, "B", 9703)
				w.tell(a, "find svc 1000", "listen svc")
				w.tell(b, "publish svc")
				w.await(a, "pipe_ready", "svc")
				w.tell(b, "send svc 200 1")
				w.receives(a, "svc", "B", 1, 200, 1)
				st, _ := sa.status()
				heard := impostor(t, sa, st.Peers[0].Peer)
				w.tell(b, "send svc 200 9 1") // longer than an answer may take
				w.receives(a, "svc", "B", 10, 200, 1)
				st, stats := sa.status()
				if len(st.Peers) != 1 || st.Peers[0].Connections == 0 {
					t.Errorf("the peer has lost its place: %+v", st.Peers)
				}
				if kind != field.KindJXSE27 && stats.Refused["second_address"] == 0 {
					t.Errorf("the peer has not answered, or nobody has counted the other: %+v", stats)
				}
				if got := heard(); bytes.Contains(got, []byte("JxtaWire")) {
					t.Errorf("the other address hears %q", got)
				}
			})
		}
	}
}

// impostor dials in from another address and claims to be the peer. The function that it returns gives the octets heard so far.
func impostor(t *testing.T, s *side, peer string) func() []byte {
	t.Helper()
	at := strings.TrimSuffix(s.gateway, ".1") + ".66"
	out, err := exec.Command("ip", "-o", "addr", "show", "to", s.gateway).Output()
	if err != nil {
		t.Fatal(err)
	}
	ip(t, "addr", "add", at+"/32", "dev", strings.Split(strings.Fields(string(out))[1], "@")[0])
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(at)}}
	c, err := d.Dial("tcp", s.cfg.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	line, err := jxta.AppendWelcome(nil, jxta.Welcome{Dest: "tcp://" + s.cfg.Address, Public: "tcp://" + c.LocalAddr().String(), Peer: jxta.URN(peer)})
	if err == nil {
		_, err = c.Write(line)
	}
	r := bufio.NewReader(c)
	if err == nil {
		_, err = r.ReadString('\n') // the gateway's own
	}
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var heard []byte
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := io.ReadAtLeast(r, buf, 1)
			mu.Lock()
			heard = append(heard, buf[:n]...)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(heard)
	}
}
