package lan

import (
	"net"
	"testing"

	"aldis/internal/jxtabridge"
)

// A call that is answered becomes a connection like any other; one that is not leaves nothing behind. There is a limit on calls
// at a time.
func TestDial(t *testing.T) {
	w := start(t, Config{})
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.lan.Dial(jxtabridge.Dial{Address: peer.Addr().String()})
	c, err := peer.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(hello1)); err != nil {
		t.Fatal(err)
	}
	id := w.opened(1) // opened and welcomed
	w.lan.Close(id)
	w.closed(1)
	c.Close()
	gone := peer.Addr().String()
	peer.Close()
	w.lan.Dial(jxtabridge.Dial{Address: gone})
	w.lan.Dial(jxtabridge.Dial{Address: "nonsense"})
	w.until("two failures", func() bool { return w.metric("aldis_lan_dials_total", "failed") == 2 })
	if n := count[jxtabridge.Opened](w.all()); n != 1 {
		t.Errorf("%d connections were opened", n)
	}
	// At most maxDials calls at a time: here all places are taken, as far as the room knows.
	w.lan.mu.Lock()
	w.lan.dialing += maxDials
	w.lan.mu.Unlock()
	w.lan.Dial(jxtabridge.Dial{Address: gone})
	if n := w.metric("aldis_lan_dials_total", "too_many"); n != 1 {
		t.Errorf("%v calls were put off", n)
	}
}
