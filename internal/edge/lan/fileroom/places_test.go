package fileroom

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// half begins an upload of 15 MB from a loopback address and sends one octet of it.
func (b *bench) half(from string) net.Conn {
	b.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", strings.TrimPrefix(b.at, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	fmt.Fprint(c, "POST /Marti/sync/upload?name=h HTTP/1.1\r\nHost: x\r\nContent-Length: 15000000\r\n\r\nx")
	return c
}

// A thousand half uploads of one address do not block another, which uploads and downloads at once.
func TestHalfUploads(t *testing.T) {
	b := open(t, Config{Patience: time.Minute})
	var halves []net.Conn
	for range 1000 {
		halves = append(halves, b.half("127.0.0.9"))
	}
	defer func() {
		for _, c := range halves {
			c.Close()
		}
	}()
	check.Until(t, time.Minute, "its share of the places is taken", func() bool {
		b.bodies.mu.Lock()
		defer b.bodies.mu.Unlock()
		return b.bodies.hosts["127.0.0.9"] == mostBodiesHost
	})
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	defer end()
	req, err := http.NewRequestWithContext(ctx, "POST", b.at+"/Marti/sync/upload?name=good.zip", strings.NewReader("hello"))
	check.NoError(check.Fatal(t), err)
	asked := time.Now()
	resp, err := http.DefaultClient.Do(req)
	check.NoError(check.Fatal(t), err)
	defer resp.Body.Close()
	t.Logf("the upload of another address took %v", time.Since(asked))
	check.Equal(t, "the upload of another address", resp.StatusCode, http.StatusOK)
	code, text, _ := b.do("GET", "/Marti/sync/content?hash="+hashOf([]byte("hello")), "", nil)
	check.True(t, "its download", code == http.StatusOK && text == "hello", code, text)
	b.bodies.mu.Lock()
	all := b.bodies.all
	b.bodies.mu.Unlock()
	check.Equal(t, "places that are taken", all, mostBodiesHost)
}

// An upload that makes no progress is given up, and its place becomes free.
func TestSlowUpload(t *testing.T) {
	b := open(t, Config{Patience: 50 * time.Millisecond})
	c := b.half("127.0.0.1")
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	text, err := io.ReadAll(c)
	check.NoError(t, err)
	check.True(t, "it is told why", bytes.Contains(text, []byte("408")) && bytes.Contains(text, []byte("4096 octets a second")), string(text))
	check.Until(t, time.Minute, "its place is free", func() bool {
		b.bodies.mu.Lock()
		defer b.bodies.mu.Unlock()
		return b.bodies.all == 0 && len(b.bodies.hosts) == 0
	})
}

// Places are shared: no host has more than its share, and the last ones are for hosts that have none.
func TestPlaces(t *testing.T) {
	p := newPlaces()
	now := make(chan time.Time)
	close(now)
	enters := func(host string) bool {
		_, err := p.enter(context.Background(), host, now)
		return err == nil
	}
	for i, want := range []bool{true, true, true, false} {
		check.Equal(t, fmt.Sprintf("place %d of one host", i+1), enters("a"), want)
	}
	for i, want := range []bool{true, true, true, false} {
		check.Equal(t, fmt.Sprintf("place %d of a second", i+1), enters("b"), want)
	}
	check.True(t, "a third and a fourth have one each", enters("c") && enters("d"))
	check.True(t, "a fifth has none", !enters("e"))
	p.leave("a")
	check.True(t, "nor has the second another", !enters("b"))
	check.True(t, "a fifth has one", enters("e"))
}
