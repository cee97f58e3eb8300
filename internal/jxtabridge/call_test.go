package jxtabridge

import (
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
)

// calls lets time go by and counts the calls to peers.
func (n *node) calls(d time.Duration) (addresses []string) {
	n.Helper()
	end := n.now.Add(d)
	for !n.wake.IsZero() && !n.wake.After(end) {
		n.now = n.wake
		for _, a := range check.Only[Dial](n.step(nil).Orders) {
			addresses = append(addresses, a.Address)
		}
	}
	n.now = end
	return addresses
}

// A leased peer without a connection is called where it listens: soon after it was lost, ever more seldom, and no longer
// once it is back or its lease has ended; after a restart of the gateway at once.
func TestAbsentPeerIsCalledBack(t *testing.T) {
	n := newNode(t, 1)
	a, b := n.peer("A", "cbid"), n.peer("B", "uuid")
	if c := n.calls(time.Minute); len(c) != 0 {
		t.Fatalf("peers that are there are called: %q", c)
	}
	a.hangUp()
	if c := n.calls(callFirst - time.Millisecond); len(c) != 0 {
		t.Errorf("called before it could come back: %q", c)
	}
	if c := n.calls(10 * time.Second); len(c) != 4 || c[0] != a.addr { // at 0.5, 1.5, 3.5, 7.5 s
		t.Errorf("called in 10 s: %q", c)
	}
	if c := n.calls(10 * time.Minute); len(c) < 10 || len(c) > 15 {
		t.Errorf("called %d times in 10 minutes", len(c))
	}
	a.redial("")
	if c := n.calls(time.Minute); len(c) != 0 {
		t.Errorf("called though it is back: %q", c)
	}
	a.hangUp()
	b.disconnect(jxta.NetGroup)
	b.hangUp()
	if c := n.calls(5 * time.Second); len(c) == 0 || c[0] != a.addr {
		t.Errorf("called: %q", c)
	}
	n.restart()
	c := check.Only[Dial](n.step(nil).Orders)
	if len(c) != 1 || c[0].Address != a.addr {
		t.Errorf("after a restart %v is called, want %s alone", c, a.addr)
	}
	if c := n.calls(time.Hour); len(c) > 25 {
		t.Errorf("%d calls to a peer whose lease has ended", len(c))
	}
}

// Nobody can make the gateway call a third party, or itself over HTTP.
func TestWhoIsNotCalled(t *testing.T) {
	for _, tt := range []struct{ name, public, remote, want string }{
		{"its own", "tcp://10.9.1.2:9702", "10.9.1.2:40000", "10.9.1.2:9702"},
		{"another host", "tcp://10.9.1.3:9702", "10.9.1.2:40000", ""},
		{"a name", "tcp://example.org:9702", "10.9.1.2:40000", ""},
		{"no port", "tcp://10.9.1.2", "10.9.1.2:40000", ""},
		{"port 0", "tcp://10.9.1.2:0", "10.9.1.2:40000", ""},
		{"a service behind", "tcp://10.9.1.2:9702/a/b", "10.9.1.2:40000", "10.9.1.2:9702"},
		{"http", "http://10.9.1.2:9702", "10.9.1.2:40000", ""},
		{"nothing", "", "10.9.1.2:40000", ""},
	} {
		if got := listens(jxta.Welcome{Public: tt.public}, tt.remote); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
