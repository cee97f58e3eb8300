package radio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

const patience = 5 * time.Second

func open(t *testing.T, listen string, post func(api.Datagram) bool) *Radio {
	t.Helper()
	r, err := Open(netip.MustParseAddrPort(listen), post)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// inbox is a post function into a channel with room for n.
func inbox(n int) (chan api.Datagram, func(api.Datagram) bool) {
	ch := make(chan api.Datagram, n)
	return ch, func(d api.Datagram) bool {
		select {
		case ch <- d:
			return true
		default:
			return false
		}
	}
}

func receive(t *testing.T, ch chan api.Datagram) api.Datagram {
	t.Helper()
	select {
	case d := <-ch:
		return d
	case <-time.After(patience):
		t.Fatal("no datagram came")
		return api.Datagram{}
	}
}

func TestSendAndReceive(t *testing.T) {
	chA, postA := inbox(8)
	chB, postB := inbox(8)
	a, b := open(t, "127.0.0.1:0", postA), open(t, "127.0.0.1:0", postB)
	long := bytes.Repeat([]byte{0x5a}, 1400)
	a.Send([]api.Datagram{{Addr: b.Addr(), Data: []byte("one")}, {Addr: b.Addr(), Data: long}, {Addr: b.Addr()}})
	for i, want := range [][]byte{[]byte("one"), long, {}} {
		d := receive(t, chB)
		if !bytes.Equal(d.Data, want) || d.Addr != a.Addr() {
			t.Errorf("datagram %d: %d octets from %s, want %d from %s", i, len(d.Data), d.Addr, len(want), a.Addr())
		}
	}
	b.Send([]api.Datagram{{Addr: a.Addr(), Data: []byte("back")}})
	if d := receive(t, chA); string(d.Data) != "back" {
		t.Errorf("back: %q", d.Data)
	}
	if got, want := a.Stats(), (Stats{ReceivedDatagrams: 1, ReceivedOctets: 4, SentDatagrams: 3, SentOctets: 1403}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// A socket for both families speaks to IPv4 peers and names them as IPv4.
func TestBothFamilies(t *testing.T) {
	ch4, post4 := inbox(1)
	ch6, post6 := inbox(1)
	four, both := open(t, "127.0.0.1:0", post4), open(t, "[::]:0", post6)
	four.Send([]api.Datagram{{Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), both.Addr().Port()), Data: []byte("x")}})
	d := receive(t, ch6)
	if d.Addr != four.Addr() {
		t.Errorf("from %s, want %s", d.Addr, four.Addr())
	}
	both.Send([]api.Datagram{{Addr: d.Addr, Data: []byte("y")}})
	receive(t, ch4)
}

func TestFullInbox(t *testing.T) {
	ch, post := inbox(2)
	r := open(t, "127.0.0.1:0", post)
	s := open(t, "127.0.0.1:0", func(api.Datagram) bool { return true })
	for range 5 {
		s.Send([]api.Datagram{{Addr: r.Addr(), Data: []byte("x")}})
	}
	deadline := time.After(patience)
	for r.Stats().ReceivedDatagrams < 5 {
		select {
		case <-deadline:
			t.Fatalf("%+v", r.Stats())
		case <-time.After(time.Millisecond):
		}
	}
	if got := r.Stats(); got.DroppedDatagrams != 3 || len(ch) != 2 {
		t.Errorf("%+v with %d in the inbox", got, len(ch))
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	_, post := inbox(1)
	r := open(t, "127.0.0.1:0", post)
	for name, d := range map[string]api.Datagram{
		"too long":   {Addr: r.Addr(), Data: make([]byte, 70_000)},
		"no address": {Data: []byte("x")},
		"IPv6":       {Addr: netip.MustParseAddrPort("[::1]:9"), Data: []byte("x")},
	} {
		before := r.Stats().UnsentDatagrams
		r.Send([]api.Datagram{d})
		if r.Stats().UnsentDatagrams != before+1 {
			t.Errorf("%s: %+v", name, r.Stats())
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	_, post := inbox(1)
	r := open(t, "127.0.0.1:0", post)
	if _, err := Open(r.Addr(), post); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("port in use: %v", err)
	}
	if _, err := Open(netip.MustParseAddrPort("192.0.2.1:7142"), post); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("another machine's address: %v", err)
	}
}

func TestClose(t *testing.T) {
	_, post := inbox(1)
	r, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), post)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	r.Send([]api.Datagram{{Addr: netip.MustParseAddrPort("127.0.0.1:9"), Data: []byte("x")}})
	if r.Stats().UnsentDatagrams != 1 {
		t.Errorf("after Close: %+v", r.Stats())
	}
}

// Datagrams that the loop gathers and those that the radio's own reader posts are in one order, and each comes once.
func TestGather(t *testing.T) {
	const many = 2000
	ch, post := inbox(many)
	r := open(t, "127.0.0.1:0", post)
	s := open(t, "127.0.0.1:0", func(api.Datagram) bool { return true })
	for i := range many {
		s.Send([]api.Datagram{{Addr: r.Addr(), Data: binary.BigEndian.AppendUint32(nil, uint32(i))}})
		r.Gather(8)
	}
	for i := range many {
		if got := binary.BigEndian.Uint32(receive(t, ch).Data); got != uint32(i) {
			t.Fatalf("datagram %d is %d", i, got)
		}
	}
	if got := r.Stats(); got.ReceivedDatagrams != many || got.DroppedDatagrams != 0 {
		t.Errorf("%+v", got)
	}
}

// A datagram that nobody has read for a while says how long it has waited. Waiting datagrams are read at once, and no more than wanted.
func TestWaited(t *testing.T) {
	ch, post := inbox(8)
	r := open(t, "127.0.0.1:0", post)
	s := open(t, "127.0.0.1:0", func(api.Datagram) bool { return true })
	r.own.reading.Lock()
	for range 3 {
		s.Send([]api.Datagram{{Addr: r.Addr(), Data: []byte("x")}})
	}
	const busy = 50 * time.Millisecond
	for began := time.Now(); time.Since(began) < busy; {
		runtime.Gosched()
	}
	r.own.reading.Unlock()
	for i := range 3 {
		if d := receive(t, ch); d.Waited < busy || d.Waited > patience {
			t.Errorf("datagram %d has waited for %v, at least %v", i, d.Waited, busy)
		}
	}
	if got := waited(nil, time.Now()); got != 0 {
		t.Errorf("without a time of arrival: %v", got)
	}
}

// A radio that is bound to one address receives a group on the same port, while another bearer's radio uses that port.
func TestGroupBesideBearers(t *testing.T) {
	heard, post := inbox(4)
	a, b := open(t, "127.0.0.1:0", func(api.Datagram) bool { return true }), open(t, "127.0.0.2:0", post)
	port := b.Addr().Port()
	open(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), port).String(), func(api.Datagram) bool { return true })
	group := netip.AddrPortFrom(netip.MustParseAddr("239.77.1.1"), port)
	check.NoError(check.Fatal(t), a.Join(netip.AddrPortFrom(group.Addr(), a.Addr().Port()), "lo", nil))
	check.NoError(check.Fatal(t), b.Join(group, "lo", nil))
	a.Send([]api.Datagram{{Addr: group, Data: []byte("to all")}})
	check.Equal(t, "what the group was told", string(receive(t, heard).Data), "to all")
	a.Send([]api.Datagram{{Addr: b.Addr(), Data: []byte("to one")}})
	check.Equal(t, "what one was told", string(receive(t, heard).Data), "to one")
}
