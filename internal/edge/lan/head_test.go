package lan

import (
	"fmt"
	"strings"
	"testing"
)

// Requests of real peers pass, however the octets are split; a body may hold anything.
func TestHeadsOfRealPeers(t *testing.T) {
	all := "GET /uuid-0103?120000,120000,http://gw:9901 HTTP/1.1\r\nUser-Agent: Java/1.4\r\nHost: gw:9901\r\nAccept: *; q=.2\r\nConnection: keep-alive\r\n\r\n" +
		"POST / HTTP/1.1\r\nContent-Length: 40\r\nHost: gw\r\n\r\n" + strings.Repeat("\n \r\n", 10) +
		"\r\nPOST / HTTP/1.1\r\nContent-Length: 0\r\nHost: gw\r\n\r\n" +
		"GET / HTTP/1.0\r\n\r\n"
	for _, step := range []int{1, 2, 3, 7, 100, len(all)} {
		var h heads
		for i := 0; i < len(all); i += step {
			if err := h.read([]byte(all[i:min(i+step, len(all))])); err != nil {
				t.Fatalf("in pieces of %d, at %d: %v", step, i, err)
			}
		}
		if h.begun || h.body != 0 || len(h.line) != 0 {
			t.Errorf("in pieces of %d: %+v left", step, h)
		}
	}
	var h heads
	for i := 0; ; i++ {
		if err := h.read([]byte(fmt.Sprintf("X-%d: y\r\n", i))); err == errLongHead {
			break
		} else if err != nil || i > maxHead {
			t.Fatalf("a head without an end: line %d, %v", i, err)
		}
	}
	if h = (heads{}); h.read([]byte(strings.Repeat("a", maxHead+1))) != errLongHead {
		t.Error("a line without an end")
	}
}

func FuzzHeads(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n"), 5)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		if cut < 0 || cut > len(b) {
			return
		}
		var whole, parts heads
		err := whole.read(b)
		err2 := parts.read(b[:cut])
		if err2 == nil {
			err2 = parts.read(b[cut:])
		}
		if (err == nil) != (err2 == nil) {
			t.Errorf("whole %v, in two pieces %v", err, err2)
		}
		if len(whole.line) > maxHead {
			t.Errorf("%d octets kept", len(whole.line))
		}
	})
}
