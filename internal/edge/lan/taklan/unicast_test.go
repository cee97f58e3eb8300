package taklan

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/edge/lan"
	"aldis/internal/lab/check"
)

// directRoom is a room with an endpoint for devices of the mesh on loopback.
func directRoom(t *testing.T) (r *room, at string) {
	t.Helper()
	r = newRoom(t, Config{})
	m := Mesh{At: netip.MustParseAddr("127.0.0.1"), Events: netip.MustParseAddrPort("239.77.4.1:16970"), Chats: netip.MustParseAddrPort("239.77.4.2:17014")}
	if err := r.OpenMesh(m); err != nil {
		t.Fatal(err)
	}
	ln, err := lan.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.ServeDirect(ln) }()
	t.Cleanup(func() {
		r.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r, ln.Addr().String()
}

func dialDirect(t *testing.T, at string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Messages to the endpoint arrive unchanged, in each form that devices use; anything else closes its connection.
func TestDirect(t *testing.T) {
	r, at := directRoom(t)
	e, err := cot.ParseXML([]byte(`<event version="2.0" uid="u" type="b-t-f" how="h-e" time="2026-11-22T12:00:00Z" start="2026-11-22T12:00:00Z" stale="2026-11-22T13:00:00Z"><point lat="1" lon="2" hae="3" ce="4" le="5"/></event>`))
	if err != nil {
		t.Fatal(err)
	}
	forms := [][]byte{e.AppendXML(nil), e.AppendFrame(nil), e.AppendDatagram(nil, nil)}
	for i, form := range forms {
		c := dialDirect(t, at)
		c.Write(form[:2])
		c.Write(form[2:])
		if i == 2 { // it ends with the connection
			c.Close()
		}
		check.Until(t, limit, fmt.Sprintf("form %d is there", i), func() bool { return len(events[tak.Direct](r)) == i+1 })
		got, _, err := cot.ParseDirect(events[tak.Direct](r)[i].Frame)
		if err != nil || got == nil || got.Canonical() != e.Canonical() {
			t.Errorf("form %d came as %v, %v", i, got, err)
		}
	}
	for i, bad := range []string{"GET / HTTP/1.0\r\n\r\n", "<event uid='half'>", "\xbf\xff\xff\xff\xff\xff\xff", "\xbf\x01\xbf" + strings.Repeat("x", cot.MaxEvent+10), "x"} {
		c := dialDirect(t, at)
		io.WriteString(c, bad)
		c.(*net.TCPConn).CloseWrite()
		check.Until(t, limit, fmt.Sprintf("%.20q is refused", bad), func() bool { return r.refused("unicast_broken") == float64(i+1) })
	}
	if n := len(events[tak.Direct](r)); n != len(forms) {
		t.Errorf("%d messages were taken", n)
	}
	for range maxDirectsPerHost + 1 {
		dialDirect(t, at)
	}
	check.Until(t, limit, "a host has no more than its share", func() bool { return r.refused("unicast_connections") >= 1 })
}

// A message for a device is written to its endpoint, which closes the connection; the adapter learns the outcome.
func TestHand(t *testing.T) {
	r, _ := directRoom(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		b, _ := io.ReadAll(c)
		c.Close()
		got <- string(b)
	}()
	r.Do(tak.Hand{ID: 7, To: ln.Addr().String(), XML: []byte("<event/>")})
	check.Until(t, limit, "it is told", func() bool { return len(events[tak.Handed](r)) == 1 })
	if text, said := <-got, events[tak.Handed](r)[0]; text != "<event/>" || said.ID != 7 || said.Err != "" {
		t.Errorf("the device has %q, the adapter was told %+v", text, said)
	}
	ln.Close()
	r.Do(tak.Hand{ID: 8, To: ln.Addr().String(), XML: []byte("<event/>")})
	check.Until(t, limit, "a device that is not there is told", func() bool { return len(events[tak.Handed](r)) == 2 })
	if said := events[tak.Handed](r)[1]; said.ID != 8 || !strings.Contains(said.Err, "refused") {
		t.Errorf("the adapter was told %+v", said)
	}
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // takes connections, and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for id := range uint64(maxHands + 6) {
		r.Do(tak.Hand{ID: 100 + id, To: silent.Addr().String(), XML: []byte("<event/>")})
	}
	check.Until(t, limit, "too many are told at once", func() bool {
		busy := 0
		for _, h := range events[tak.Handed](r) {
			if h.Err == errBusy.Error() {
				busy++
			}
		}
		return busy == 6
	})
	begun := time.Now()
	r.Shutdown()
	if took := time.Since(begun); took > limit {
		t.Errorf("the end took %v", took)
	}
}
